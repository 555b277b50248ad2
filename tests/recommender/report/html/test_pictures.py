"""The pictures of docs/report.md are what a browser shows today: `pytest -m slow`.

Fonts differ from machine to machine, so both are compared as 64 by 48 dots. With
RECOMMEND_UPDATE_GOLDEN=1 the pictures are taken again: look at them.
"""

import base64
import os
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
def test_a_picture_of_the_page_is_today_s(
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
