"""The site of the documentation has a place for every page."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def pages(tree: Any) -> list[str]:
    """The pages of a part of the contents, in their order."""
    if isinstance(tree, str):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree
    return [page for part in parts for page in pages(part)]


def test_every_page_is_in_the_contents_once():
    folder = ROOT / "docs"
    written = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    assert sorted(pages(SITE["nav"])) == written


def test_the_site_fetches_nothing_from_elsewhere():
    assert SITE["theme"]["font"] is False
    assert "extra_css" not in SITE
    assert "extra_javascript" not in SITE
