"""The names that Python users import: all there, quick, and not hidden by other projects."""

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import recommender

HEAVY = {"numpy", "pulp", "highspy", "pandas", "boto3", "google", "typer", "rich", "yaml"}


def python(script: str, *first: Path, flags: str = "-P") -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh Python, with some folders before ours."""
    return subprocess.run(
        [sys.executable, flags, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, first))},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("name", recommender.__all__)
def test_a_public_name_is_there(name: str):
    assert getattr(recommender, name) is not None
    assert name in dir(recommender)


def test_no_public_name_is_that_of_a_part():
    """Importing a part puts it on the package under its name, in place of what had that name."""
    parts = {each.name for each in pkgutil.iter_modules(recommender.__path__)}
    assert parts & set(recommender.__all__) == set()


def test_another_name_is_not():
    with pytest.raises(AttributeError, match="solve"):
        recommender.solve  # noqa: B018
    with pytest.raises(ImportError, match="Limit"):
        exec("from recommender import Limit")


def test_importing_the_package_loads_nothing_heavy():
    done = python("import recommender, sys; print(*sys.modules)")
    assert not HEAVY & set(done.stdout.split())
    ours = {name for name in done.stdout.split() if name.startswith("recommender")}
    assert ours == {"recommender", "recommender.catalogs"}


def test_a_folder_of_source_says_what_it_is(tmp_path: Path):
    """Such as that of a clone, where Python looks first when it starts there.

    Without site-packages: an editable install would find what the folder lacks.
    """
    (tmp_path / "recommender").mkdir()
    copy = Path(recommender.__file__).read_text("utf-8")
    (tmp_path / "recommender" / "__init__.py").write_text(copy, "utf-8")
    done = python("import recommender", tmp_path, flags="-PS")
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: {tmp_path / 'recommender'} is")
    assert "pip install -e ." in done.stderr
