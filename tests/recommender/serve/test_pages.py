"""The server's pages in a real browser: axe, phone, dark, keyboard. `pytest -m slow` runs them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recommender.serve import pages
from recommender.serve.question import OfferFilter
from tests.recommender.chromium import DESK, PHONE, chromium
from tests.recommender.planning import small

pytestmark = pytest.mark.slow
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

JOBS = (("llama3-8b-lora", "Llama 3.1 8B, LoRA"), ("resnet50-imagenet", "ResNet-50 on ImageNet"))
MADE = {
    "start": lambda: pages.start_page(JOBS),
    "catalog": lambda: pages.catalog_page(small(), OfferFilter("", "", "", "spot", 20)),
    "none": lambda: pages.catalog_page(small(), OfferFilter("abacus", "", "", "", 20)),
    "refusal": lambda: pages.refusal_page(
        ("deadline soon is not a duration",), pages.plan_form(JOBS, {"deadline": "soon"})
    ),
}
browser = pytest.fixture(scope="module")(chromium)
Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a page; whatever the browser complains of fails the test."""
    complaints: list[str] = []
    contexts = []

    def opened(which: str, size: dict[str, int], scheme: str = "light") -> Any:
        file = tmp_path / "page.html"
        file.write_bytes(MADE[which]())
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        made = contexts[-1].new_page()
        made.on("console", lambda said: complaints.append(said.text))
        made.goto(file.as_uri())
        return made

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("which", MADE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_desk_and_on_a_phone(open_page: Open, which: str, scheme: str):
    for size in (DESK, PHONE):
        made = open_page(which, size, scheme)
        found = axe.Axe().run(made)
        assert found.violations_count == 0, found.generate_report()
        assert made.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_in_the_dark_it_is_dark(open_page: Open):
    paper = "getComputedStyle(document.body).backgroundColor"
    assert open_page("catalog", DESK, "dark").evaluate(paper) == "rgb(19, 26, 34)"


def test_filters_and_rows_can_be_reached_with_the_keyboard_alone(open_page: Open):
    made = open_page("catalog", DESK)
    reached = []
    for _ in range(12):
        made.keyboard.press("Tab")
        reached.append(
            made.evaluate("document.activeElement.name || document.activeElement.tagName")
        )
    assert [name for name in reached if name.islower()] == [
        "name", "provider", "region", "market", "top",
    ]  # fmt: skip
    assert {"A", "BUTTON", "DIV"} <= set(reached)  # links, the question, the rows as they scroll
