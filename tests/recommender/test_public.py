"""The names that Python users import: all there, quick, and not hidden by other projects."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import recommender

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "pulp", "highspy", "pandas", "boto3", "google", "typer", "rich", "yaml"}


def python(script: str, *first: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh Python, with some folders before ours."""
    paths = os.pathsep.join(str(path) for path in (*first, ROOT))
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=first[0] if first else None,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("name", recommender.__all__)
def test_a_public_name_is_there(name: str):
    assert getattr(recommender, name) is not None
    assert name in dir(recommender)


def test_another_name_is_not():
    with pytest.raises(AttributeError, match="solve"):
        recommender.solve  # noqa: B018
    with pytest.raises(ImportError, match="Limit"):
        exec("from recommender import Limit")


def test_importing_the_package_loads_nothing_heavy():
    done = python("import recommender, sys; print(*sys.modules)")
    assert not HEAVY & set(done.stdout.split())
    assert len([name for name in done.stdout.split() if name.startswith("recommender")]) == 1


@pytest.mark.parametrize("name", ["catalogs", "benchmarks"])
def test_a_foreign_package_of_the_same_name_is_named(name: str, tmp_path: Path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("SPEED = 1\n")
    done = python("import recommender", tmp_path)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith(f"ImportError: {tmp_path / name / '__init__.py'} hides")


def test_a_foreign_package_that_fails_is_named(tmp_path: Path):
    (tmp_path / "benchmarks.py").write_text("import no_such_library\n")
    done = python("import recommender", tmp_path)
    assert "no_such_library" in done.stderr.splitlines()[-1]
    assert "install recommend again" in done.stderr.splitlines()[-1]
