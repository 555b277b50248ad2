"""The picture of the README: what it says, and that it is today's."""

import html
import os
import re
from pathlib import Path

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.answer import Answer
from recommender.plan.limits import Limits
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.picture import drawn, frontier_spec
from tests.recommender.planning import NOW, recommend
from tests.shipped import every_cloud

DOCS = Path(__file__).parents[4] / "docs"


@pytest.fixture(scope="module")
def answered() -> tuple[Answer, PlanRequest]:
    catalog, job = every_cloud(), find_job("resnet50-imagenet")
    limits = Limits(deadline_s=86_400.0)
    answer = recommend(job, limits, catalog=catalog, now=NOW, report=True)
    return answer, PlanRequest(job, limits, catalog=catalog.version)


def test_the_picture_of_the_readme_is_today_s(answered: tuple[Answer, PlanRequest]):
    """Its title, limits and names of plans; a drawer is needed to renew it, not to check it."""
    spec, kept = frontier_spec(*answered), DOCS / "frontier.svg"
    if os.environ.get("RECOMMEND_UPDATE_GOLDEN"):
        kept.write_bytes(drawn(spec, ".svg"))
    shown = {html.unescape(each) for each in re.findall(r">([^<>]+)<", kept.read_text("utf-8"))}
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
