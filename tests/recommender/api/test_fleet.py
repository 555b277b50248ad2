"""A fleet of real jobs keeps what all share, and says what it leaves out."""

from datetime import timedelta
from pathlib import Path

import pytest

from recommender.api.batch import Question
from recommender.api.fleet import FleetAnswer, answer_fleet
from recommender.inputs.fleet_file import read_fleet
from recommender.inputs.workers import Workers
from recommender.plan.limits import Choice, Limits, QuotaLimit
from recommender.report.fleet import fleet_page
from tests.recommender.planning import NOW, small

FLEET = """
start: 2026-09-28T00:00Z
slot: 6h
budgets: {vision: 60}
jobs:
  - {job: long.yaml, name: first, team: vision, deadline: 4d}
  - {job: long.yaml, name: second, team: vision, deadline: 9d, after: first}
  - {job: long.yaml, name: third, team: other, deadline: 4d, priority: 3}
  - {job: missing.yaml, deadline: 4d}
"""
SPOT = QuotaLimit("aws", "g", "spot", "", "vcpu", 16.0)
LIMITS = (SPOT, QuotaLimit("aws", "g", "on_demand", "", "vcpu", 16.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "fleet.yaml").write_text(FLEET, "utf-8")
    (folder / "long.yaml").write_text("like: resnet50-imagenet\nepochs: 120\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def answer(folder: Path) -> FleetAnswer:
    choice = Choice(mix="no", providers=("aws",), quotas=LIMITS, quotas_known=True)
    question = Question((Limits(max_machines=4),), choice, small(), NOW)
    fleet = read_fleet(folder / "fleet.yaml")
    return answer_fleet(fleet, folder, question, Workers(), folder / "columns.done")


def test_a_job_that_cannot_be_read_is_left_out_with_its_reason(answer: FleetAnswer) -> None:
    assert [(entry.name, bool(why)) for entry, why in answer.left_out] == [("missing", True)]
    assert {each.entry.name for each in answer.placed} == {"first", "second", "third"}


def test_jobs_keep_their_order_deadlines_and_confidence(answer: FleetAnswer) -> None:
    at = {each.entry.name: each for each in answer.placed}
    assert at["second"].start >= at["first"].end
    for each in answer.placed:
        assert each.end <= answer.start + timedelta(seconds=each.entry.deadline_s)
        assert each.row["chance"] >= 0.93  # asked for 95 %, up to the error of its paths


def test_at_no_moment_do_clusters_use_more_of_a_quota_than_there_is(answer: FleetAnswer) -> None:
    for moment in (each.start for each in answer.placed):
        used: dict[tuple[str, str], float] = {}
        for each in answer.placed:
            if each.start <= moment < each.end:
                for need in each.row["needs"]:
                    key = need["name"], need["region"]
                    used[key] = used.get(key, 0.0) + need["amount"] * (not need["fallback"])
        assert used
        assert all(amount <= 16.0 for amount in used.values()), used


def test_a_team_spends_at_most_its_budget_in_each_month(answer: FleetAnswer) -> None:
    spent = {key: usd for key, usd in answer.spent.items() if key[0] == "vision"}
    assert spent
    assert all(usd <= 60.0 + 1e-6 for usd in spent.values())
    usd = sum(e.row["cost_usd"] for e in answer.placed if e.entry.team == "vision")
    assert sum(spent.values()) == pytest.approx(usd)


def test_chances_together_are_no_better_than_of_the_worst_job(answer: FleetAnswer) -> None:
    worst = min(each.row["chance"] for each in answer.placed)
    assert answer.single.in_time <= answer.common.in_time <= worst + 0.05
    mean = sum(each.row["cost_usd"] for each in answer.placed)
    assert answer.common.usd_p95 >= 0.9 * mean


def test_kept_columns_give_the_answer_again(
    answer: FleetAnswer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recommender.api.batch._rows", lambda *_: pytest.fail("planned again"))
    choice = Choice(mix="no", providers=("aws",), quotas=LIMITS, quotas_known=True)
    question = Question((Limits(max_machines=4),), choice, small(), NOW)
    fleet = read_fleet(folder / "fleet.yaml")
    again = answer_fleet(fleet, folder, question, Workers(), folder / "columns.done")
    assert fleet_page(again).facts == fleet_page(answer).facts


def test_the_page_names_what_is_left_out_and_every_budget(answer: FleetAnswer) -> None:
    page = fleet_page(answer)
    said = " ".join(page.below)
    assert "Left out: missing" in said
    assert "vision, 2026-09" in said
    assert page.facts["gap"] == answer.plan.gap
    assert len(page.facts["jobs"]) == len(page.rows) == 3
