"""What deploy/ and development install is pinned by hashes, and fits what the package asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DEPLOYED = [*PROJECT["dependencies"], "setuptools>=77.0.3"]
FILES = {
    "deploy/requirements.txt": DEPLOYED,
    "deploy/container/serve-requirements.txt": [*DEPLOYED, *EXTRAS["serve"]],
    ".ci/requirements.txt": [*DEPLOYED, *EXTRAS["test"], *EXTRAS["history"], *EXTRAS["release"]],
}
IMAGES = ("deploy/container/Dockerfile", "deploy/container/serve.Dockerfile")
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)


def plain(name: str) -> str:
    """A project's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("file", FILES)
def test_every_requirement_has_a_version_and_hashes(file: str) -> None:
    entries = re.split(r"\n(?=[A-Za-z])", (ROOT / file).read_text("utf-8"))[1:]
    assert len(entries) > 20
    for entry in entries:
        assert PIN.match(entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry


@pytest.mark.parametrize("file", FILES)
def test_the_pins_satisfy_the_packages_requirements(file: str) -> None:
    pins: dict[str, set[str]] = {}
    for name, version in PIN.findall((ROOT / file).read_text("utf-8")):
        pins.setdefault(plain(name), set()).add(version)
    for text in FILES[file]:
        asked = Requirement(text)
        found = pins.get(plain(asked.name), set())
        assert found, f"{asked.name} is not pinned: make locks"
        assert all(asked.specifier.contains(Version(each)) for each in found), text


def test_nothing_is_installed_without_a_hash_where_credentials_are() -> None:
    workflows = ("deploy/github/refresh-catalog.yml", "deploy/github/publish-catalog.yml")
    for file in (*workflows, *IMAGES):
        text = re.sub(r"\\?\n\s*", " ", (ROOT / file).read_text("utf-8"))
        installs = re.findall(r"pip install [^&]*", text)
        assert installs
        for each in installs:
            assert "--require-hashes" in each or "--no-index --no-deps" in each, each


@pytest.mark.parametrize("image", IMAGES)
def test_a_container_runs_without_root_rights(image: str) -> None:
    lines = (ROOT / image).read_text("utf-8").splitlines()
    (user,) = [line for line in lines if line.startswith("USER ")]
    assert user == "USER 10001:10001"
    assert not [line for line in lines[lines.index(user) :] if line.startswith("RUN ")]
