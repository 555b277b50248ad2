"""The wheel holds the three packages with their data, and nothing else."""

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchmarks", "catalogs", "recommender")
MOST_BYTES = 200_000  # of one file
MOST_WHEEL_BYTES = 1_500_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from this checkout; needs no network."""
    folder = tmp_path_factory.mktemp("dist")
    call = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def sizes(wheel: Path) -> dict[str, int]:
    """Every file of the wheel with its size."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info.file_size for info in archive.infolist()}


def sources() -> set[str]:
    """Every file of the packages in this checkout."""
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file())
    kept = (path for path in files if path.suffix != ".pyc")
    return {path.relative_to(ROOT).as_posix() for path in kept}


def test_three_packages_and_nothing_else(sizes: dict[str, int]):
    shipped = {name for name in sizes if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in shipped} == set(PACKAGES)
    assert not [name for name in shipped if "tests/" in name or "/test_" in name]


def test_every_file_of_the_packages_is_shipped(sizes: dict[str, int]):
    assert sources() - set(sizes) == set()
    assert "catalogs/snapshot/manifest.json" in sizes
    assert "recommender/presets/resnet50-imagenet.yaml" in sizes


def test_packages_are_typed(sizes: dict[str, int]):
    assert {f"{name}/py.typed" for name in PACKAGES} <= set(sizes)


def test_licences_travel_with_the_wheel(sizes: dict[str, int]):
    names = {name.partition(".dist-info/licenses/")[2] for name in sizes}
    assert {"LICENSE", "NOTICE", "LICENSES/README.md"} <= names


def test_nothing_is_large(sizes: dict[str, int], wheel: Path):
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}
    assert wheel.stat().st_size < MOST_WHEEL_BYTES


def test_the_version_stands_in_one_place(wheel: Path):
    said: dict[str, str] = {}
    exec((ROOT / "recommender" / "version.py").read_text("utf-8"), said)
    assert wheel.name == f"recommend_gpus-{said['__version__']}-py3-none-any.whl"


def test_the_commands_are_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for name, target in project["scripts"].items():
        found = entry_points(group="console_scripts", name=name)
        if not found:
            pytest.skip("the tool is not installed here")
        assert [each.value for each in found] == [target]
        assert callable(next(iter(found)).load())
