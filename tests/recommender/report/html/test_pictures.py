"""The pictures of docs/gallery.md are what a browser shows today: `pytest -m slow`.

Fonts differ from machine to machine, so both are compared as 64 by 48 dots. With
RECOMMEND_UPDATE_GOLDEN=1 the pictures are taken again: look at them.
"""

import base64
import html
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recommender.api.calls import recommend
from recommender.job.jobfile import find_job
from recommender.plan.answer import Answer
from recommender.plan.limits import Limits
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.page import render
from recommender.report.html.picture import drawn, frontier_spec
from recommender.serve import pages
from recommender.serve.question import OfferFilter
from tests.recommender.chromium import chromium
from tests.shipped import every_cloud, snapshot

pytestmark = pytest.mark.slow
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)  # of the answer in README.md
FOLDER = Path(__file__).parents[4] / "docs" / "pictures"
MAX_APART = 8.0  # of 255, on average over all dots; another scheme of colours is 200 apart
DIFFERENCE = """async pictures => {
  const dots = await Promise.all(pictures.map(async text => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const brush = new OffscreenCanvas(64, 48).getContext("2d");
    brush.imageSmoothingQuality = "high";
    brush.drawImage(image, 0, 0, 64, 48);
    return brush.getImageData(0, 0, 64, 48).data;
  }));
  return dots[0].reduce((sum, dot, i) => sum + Math.abs(dot - dots[1][i]), 0) / dots[0].length;
}"""

browser = pytest.fixture(scope="module")(chromium)


@pytest.fixture(scope="module")
def answered() -> tuple[Answer, PlanRequest]:
    catalog, job = every_cloud(), find_job("resnet50-imagenet")
    limits = Limits(deadline_s=86_400.0)
    answer = recommend(job, limits, catalog=catalog, now=NOW, report=True)
    return answer, PlanRequest(job, limits, catalog=catalog.version)


@pytest.fixture(scope="module")
def report(answered: tuple[Answer, PlanRequest]) -> bytes:
    return render(*answered).encode("utf-8")


def test_the_picture_of_the_readme_is_today_s(answered: tuple[Answer, PlanRequest]):
    """Its title, limits and names of plans; a drawer is needed to renew it, not to check it."""
    spec, kept = frontier_spec(*answered), FOLDER.parent / "frontier.svg"
    if os.environ.get("RECOMMEND_UPDATE_GOLDEN"):
        kept.write_bytes(drawn(spec, ".svg"))
    shown = {html.unescape(each) for each in re.findall(r"<text[^>]*>([^<]*)", kept.read_text())}
    named = {row["tag"] for row in spec["datasets"]["plans"] if row["tag"]}
    limits = {row["name"] for row in spec["datasets"]["limits"]}
    assert len(named) > 4
    assert named | limits | {spec["title"]["text"], *spec["title"]["subtitle"]} <= shown


def test_the_cheapest_of_the_picture_is_the_cheapest_that_meets_the_limits(
    answered: tuple[Answer, PlanRequest],
):
    rows = frontier_spec(*answered)["datasets"]["plans"]
    (cheapest,) = [row for row in rows if "cheapest" in row["tag"]]
    others = [row["mean_usd"] for row in rows if row["meets"] and row["kind"] == "table"]
    assert cheapest["mean_usd"] <= min(others) * 1.02
    due = max(row["at"] for row in frontier_spec(*answered)["datasets"]["limits"])
    assert all(row["x"] <= 2.0 * due for row in rows if row["kind"] == "other")


@pytest.fixture(scope="module")
def catalog() -> bytes:
    return pages.catalog_page(snapshot(), OfferFilter("H100", "", "", "", 20))


@pytest.mark.parametrize(
    ("name", "page", "size", "scheme", "part"),
    [
        ("report", "report", (1100, 820), "light", ""),
        ("report-phone", "report", (390, 820), "dark", ""),
        ("frontier-dark", "report", (1100, 820), "dark", "#frontier"),
        ("runs", "report", (1100, 820), "light", "#runs"),
        ("tornado", "report", (1100, 820), "light", "#tornado"),
        ("catalog", "catalog", (1100, 820), "light", ""),
    ],
)
def test_a_picture_of_the_gallery_is_today_s(
    name: str, page: str, size: tuple[int, int], scheme: str, part: str, browser: Any,
    tmp_path: Path, request: pytest.FixtureRequest,
):  # fmt: skip
    file, kept = tmp_path / "page.html", FOLDER / f"{name}.png"
    file.write_bytes(request.getfixturevalue(page))
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
    )
    made = context.new_page()
    made.goto(file.as_uri())
    if page == "report":
        made.wait_for_function("document.documentElement.dataset.drawn === 'yes'")
    taken = (made.locator(part).first if part else made).screenshot()
    if os.environ.get("RECOMMEND_UPDATE_GOLDEN"):
        kept.write_bytes(taken)
    both = [base64.b64encode(each).decode() for each in (taken, kept.read_bytes())]
    apart = made.evaluate(DIFFERENCE, both)
    context.close()
    assert apart <= MAX_APART
