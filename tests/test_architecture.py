"""The picture and the page of the architecture say what the code is."""

import re

from tests.draw_architecture import PICTURE, ROOT, arrows, layers, picture

PAGE = ROOT / "docs" / "architecture.md"


def test_the_picture_is_drawn_from_today_s_imports():
    assert PICTURE.read_text("utf-8") == picture(), "run: make picture"


def test_arrows_run_downwards():
    row = {name: at for at, names in enumerate(layers()) for name in names}
    assert [(a, b) for a, used in arrows().items() for b in used if row[a] >= row[b]] == []


def test_every_module_that_the_page_names_is_there():
    folders = (ROOT / name for name in ("recommender", "catalogs", "benchmarks"))
    paths = [path.relative_to(ROOT) for folder in folders for path in folder.rglob("*.py")]
    page = PAGE.read_text("utf-8").replace("<name>", "aws")
    named = re.findall(r"`([\w/*]+\.py)`", page)
    assert len(named) > 30
    assert [name for name in named if not any(path.match(name) for path in paths)] == []


def test_few_modules_are_at_the_root_and_none_is_too_large():
    root = [path.name for path in (ROOT / "recommender").glob("*.py")]
    assert len(root) <= 6, root
    packages = [
        path for path in (ROOT / "recommender").iterdir() if (path / "__init__.py").exists()
    ]
    assert len(packages) + len(root) + 2 <= 25  # and catalogs, benchmarks
