"""The wheel holds one package, made of three folders of the repository with their data."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns

import pytest
import yaml

from recommender import __version__

ROOT = Path(__file__).parents[1]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = {  # where each folder of the repository is installed
    "recommender": "recommender",
    "benchmarks": "recommender/benchmarks",
    "catalogs": "recommender/catalogs",
}
MAX_BYTES = 200_000  # of one file
PICTURES = "recommender/report/html/static/vega.js"  # the one library that travels with the wheel
MAX_WHEEL_BYTES = 1_800_000
LEFT = "recommender/catalogs/deleted.py"  # a module that an earlier build has copied
BUILD = """
import sys
from setuptools import build_meta
getattr(build_meta, "build_" + sys.argv[1])(sys.argv[2])
"""


def built(kind: str, source: Path, target: Path) -> Path:
    """An sdist or a wheel, as pip has it built, by the setuptools that is installed here."""
    call = [sys.executable, "-c", BUILD, kind, str(target)]
    done = subprocess.run(call, cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (path,) = target.iterdir()
    return path


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist of a copy of this checkout, in which a build leaves nothing; needs no network."""
    copy, target = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("sdist")
    for path in ROOT.iterdir():
        if path.is_file():
            copy2(path, copy)
        elif path.name in {*FOLDERS, "LICENSES", "deploy", "docs", "examples", "tests"}:
            copytree(path, copy / path.name, ignore=ignore_patterns("__pycache__"))
    return built("sdist", copy, target)


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the sdist, where another build has left what it copied."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(source, filter="data")
    (folder,) = source.iterdir()
    left = folder / "build" / "lib" / LEFT
    left.parent.mkdir(parents=True)
    left.write_text("")
    return built("wheel", folder, target)


@pytest.fixture(scope="module")
def sizes(wheel: Path) -> dict[str, int]:
    """Every file of the wheel with its size."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info.file_size for info in archive.infolist()}


def sources() -> dict[str, str]:
    """Every file of the three folders in this checkout, and its name in the wheel."""
    return {
        path.relative_to(ROOT).as_posix(): f"{home}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, home in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_one_package_and_nothing_else(sizes: dict[str, int]):
    shipped = {name for name in sizes if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in shipped} == {"recommender"}
    assert shipped - set(sources().values()) == set()  # not LEFT either


def test_every_file_of_the_three_folders_is_shipped(sizes: dict[str, int]):
    assert set(sources().values()) - set(sizes) == set()
    assert "recommender/catalogs/snapshot/manifest.json" in sizes
    assert "recommender/benchmarks/ring.py" in sizes
    assert "recommender/job/presets/resnet50-imagenet.yaml" in sizes


def test_every_package_is_listed():
    inits = [name for name in sources().values() if name.endswith("/__init__.py")]
    assert TOOLS["tool"]["setuptools"]["packages"] == sorted(
        name.removesuffix("/__init__.py").replace("/", ".") for name in inits
    )


def test_the_source_archive_holds_the_sources_the_tests_and_the_documentation(sdist: Path):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert set(sources()) - names == set()
    assert {"tests/test_packaging.py", "docs/index.md", "examples/hello.py"} <= names
    assert {"CHANGELOG.md", "LICENSE", "NOTICE", "pyproject.toml", "setup.py"} <= names


def test_packages_are_typed(sizes: dict[str, int]):
    assert {f"{home}/py.typed" for home in FOLDERS.values()} <= set(sizes)


def test_licences_travel_with_the_wheel(sizes: dict[str, int]):
    names = {name.partition(".dist-info/licenses/")[2] for name in sizes}
    assert {"LICENSE", "NOTICE", "LICENSES/README.md"} <= names


def test_nothing_is_large(sizes: dict[str, int], wheel: Path):
    assert {name for name, size in sizes.items() if size > MAX_BYTES} == {PICTURES}
    assert sizes[PICTURES] < 1_000_000
    assert wheel.stat().st_size < MAX_WHEEL_BYTES


def test_the_version_is_in_one_place(wheel: Path):
    assert wheel.name == f"recommend_gpus-{__version__}-py3-none-any.whl"


def test_the_commands_are_installed():
    for name, target in TOOLS["project"]["scripts"].items():
        found = entry_points(group="console_scripts", name=name)
        if not found:
            pytest.skip("the tool is not installed here")
        assert [each.value for each in found] == [target]
        assert callable(next(iter(found)).load())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import recommender; print(recommender.load_catalog.__module__)", "recommender.catalogs"),
        (
            "import sys; from recommender.cli import run; "
            "sys.argv[1:] = ['--deadline', '24h', 'resnet50-imagenet']; sys.exit(run())",
            "finish within 24 h with 95 % chance",
        ),
        (
            "import sys; from recommender.benchmarks.command import main; "
            "sys.exit(main(['--help']))",
            "usage: recommend-bench",
        ),
    ],
    ids=["import", "recommend", "recommend-bench"],
)
def test_packages_of_other_projects_do_no_harm(script: str, said: str, wheel: Path, tmp_path: Path):
    """Folders `benchmarks` and `catalogs` are common; here they lie next to a user's script."""
    installed, place = tmp_path / "installed", tmp_path / "place"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    for folder in (place, installed):  # next to the script, and installed by another project
        for name in ("benchmarks", "catalogs"):
            (folder / name).mkdir(parents=True)
            (folder / name / "__init__.py").write_text("raise SystemExit('not ours')\n")
    (place / "script.py").write_text(script)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}  # the script's own first
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=place, env={**env, "PYTHONPATH": str(installed)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_the_conda_recipe_asks_for_what_the_project_asks_for() -> None:
    recipe = yaml.safe_load((ROOT / "deploy/conda/recipe.yaml").read_text("utf-8"))
    asked = [each.replace(">", " >", 1).lower() for each in TOOLS["project"]["dependencies"]]
    python = TOOLS["project"]["requires-python"]
    assert recipe["requirements"]["run"] == [f"python {python}", *asked]
    assert recipe["context"]["version"] == __version__
    scripts = [f"{name} = {where}" for name, where in TOOLS["project"]["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
