"""The sweep asks what it says, keeps what it found, and counts it right."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.optimize.linear_program import Model
from recommender.planner.plan_builder import goal_value_of, meets
from recommender.planner.plan_pool import PlanPool
from recommender.planner.ranking import ranked_plans
from tests.research.mixes.ask import (
    _disagreements,
    answered,
    ask,
    found_again,
    judged,
    problem_of,
    record,
)
from tests.research.mixes.nested import worse_than_stricter
from tests.research.mixes.overhead import beaten
from tests.research.mixes.questions import (
    SMALL_ACCOUNT,
    Question,
    choice_of,
    job_of,
    limits_of,
    questions,
    sample,
)
from tests.research.mixes.records import Asked, Judged, PlanRecord, Rented, line, read
from tests.research.mixes.table import tables
from tests.shipped import snapshot

QUESTION = Question("resnet18-cifar10", "24h", "none", "gang")


def plan(*machines: Rented, goal: float = 100.0) -> PlanRecord:
    return PlanRecord(machines, 1, (), 0.0, goal, 3600.0, 0.96, goal)


def rented(market: str, count: int = 2) -> Rented:
    places = (("us-east-1", "us-east-1a"),)
    return Rented(count, "aws", "p5.48xlarge", "H100", market, places)


def judged_at(usd: float) -> tuple[Judged, ...]:
    return (Judged("fresh", 100_000, usd, 0.1, 3600.0, 0.96, 0.001),)


CHEAP = plan(rented("spot"), goal=1.0)


def found(question: Question, first: PlanRecord) -> Asked:
    return Asked(question, 0.5, "ok", 0.0, "searched", first)


def test_the_sweep_has_more_than_five_hundred_different_questions() -> None:
    keys = [question.key for question in questions()]
    assert len(keys) == len(set(keys)) == (19 * 5 - 1) * 3 * 2 + 19 * (4 + 3)


def test_a_sample_has_as_many_of_each_class() -> None:
    drawn = sample(questions(), 200)
    counts = Counter((each.limits, each.quotas, each.runs_as) for each in drawn)
    assert len(set(drawn)) == 200
    assert set(counts.values()) <= {5, 6}
    assert len({each.preset for each in drawn}) > 15


def test_overhead_limits_are_combined_with_both_deadlines() -> None:
    asked = list(questions(("dlrm", "overhead")))
    limits = [limits_of(question) for question in asked]
    assert [each.max_overhead for each in limits] == [0.02, 0.05, 0.02, 0.05]
    assert [each.deadline_s for each in limits[:2]] == [86400.0, 86400.0]
    assert {question.quotas for question in asked} == {"none"}


def test_a_plan_that_others_beat_without_the_overhead_limit_is_named() -> None:
    question = replace(QUESTION, limits="24h, overhead 5%")
    catalog = snapshot()
    search = PlanPool(problem_of(question, catalog, choice_of(question, catalog)))
    first = ranked_plans(search, 1).plans[0]
    assert beaten(search, [first]) == ""
    estimate = first.plan.estimate
    worse = replace(
        estimate,
        cost=replace(estimate.cost, mean=2.0 * estimate.cost.mean),
        time=replace(estimate.time, trimmed_mean=2.0 * estimate.time.trimmed_mean),
    )
    made = replace(first, plan=replace(first.plan, estimate=worse))
    assert " by " in beaten(search, [made])


def test_solvers_are_compared_on_the_program_and_on_it_without_each_row() -> None:
    model = Model("two")
    model.variable("x", 1.0)
    model.objective["x"] = -1.0
    model.row("half", {"x": 1.0}, "<=", 0.5)
    model.row("none", {"x": 1.0}, ">=", 0.75)
    assert _disagreements(model) == ""


def test_questions_are_chosen_by_words_that_their_names_hold() -> None:
    chosen = list(questions(("gang", "96 vCPU", "t5-3b")))
    assert {q.key for q in chosen} == {
        f"t5-3b | {limits} | 96 vCPU | gang" for limits in ("24h", "2x fastest", "1.3x cheapest")
    }


def test_a_budget_is_a_third_more_than_the_cheapest_plan_needs() -> None:
    limits = limits_of(replace(QUESTION, limits="1.3x cheapest"))
    assert limits.deadline_s is None
    assert limits.budget_usd == 1.3 * 0.0446
    assert not job_of(QUESTION).elastic


def test_the_quotas_of_a_small_account_are_quotas_of_the_catalog() -> None:
    catalog = snapshot()
    known = {(quota.name, quota.market) for quota in catalog.quotas if quota.provider == "aws"}
    assert set(SMALL_ACCOUNT) <= known
    choice = choice_of(replace(QUESTION, quotas="small account"), catalog)
    assert choice.providers == ("aws",)
    assert len(choice.quotas) == len(SMALL_ACCOUNT)


def test_what_is_written_is_read_back_as_it_was(tmp_path: Path) -> None:
    first = plan(rented("spot"), rented("on_demand"))
    asked = Asked(QUESTION, 0.5, "ok", 0.0, "searched", first, None, judged_at(90.0))
    path = tmp_path / "answers.jsonl"
    path.write_text(line(asked) + "\n", encoding="utf-8")
    assert read(path) == [asked]
    assert read(tmp_path / "none.jsonl") == []


def test_the_table_counts_mixes_savings_and_what_got_worse() -> None:
    mixed, pure = plan(rented("spot"), rented("on_demand"), goal=90.0), plan(rented("spot"))
    asked = Asked(
        QUESTION, 0.5, "ok", 0.0, "searched", mixed, pure, judged_at(90.0), judged_at(100.0),
        before=plan(rented("spot"), goal=80.0),
    )  # fmt: skip
    text = tables([asked], [])
    assert "| gang, 24h, none | 1 | 1 | 1 | 0 | 0 | 10.0, 10.0% | 0 | 0 |" in text
    assert "+12.50%" in text
    refused = replace(asked, first=None, before=None, refusal="on demand: 1x p5.48xlarge")
    assert "on demand: 1x p5.48xlarge" in tables([refused], [])


def test_a_stricter_question_has_no_better_plan() -> None:
    cheap, dear = plan(rented("spot"), goal=90.0), plan(rented("spot"), goal=100.0)
    wide, narrow = QUESTION, replace(QUESTION, quotas="96 vCPU")
    asked = [Asked(wide, 0.5, "ok", 0.0, "searched", dear), found(narrow, cheap)]
    assert [words.split(";")[0] for words in worse_than_stricter(asked)] == [
        "resnet18-cifar10 | 24h | none | gang: +11.11%, 2x p5.48xlarge spot"
    ]
    assert not list(worse_than_stricter([found(wide, cheap), found(narrow, dear)]))
    refused = replace(asked[0], first=None)
    assert "no plan" in next(iter(worse_than_stricter([refused, asked[1]])))
    # What the search met counts, where a simpler plan within a tie leads.
    assert not list(worse_than_stricter([replace(asked[0], least=90.0), asked[1]]))


def test_questions_are_stricter_by_quota_limits_and_how_the_job_runs() -> None:
    def worse(one: Question, other: Question) -> bool:
        dear = found(one, plan(rented("spot"), goal=2.0))
        return bool(list(worse_than_stricter([dear, found(other, CHEAP)])))

    elastic = replace(QUESTION, runs_as="default")
    small, narrow = (replace(QUESTION, quotas=each) for each in ("small account", "96 vCPU"))
    assert worse(elastic, QUESTION)
    assert not worse(QUESTION, elastic)
    assert worse(QUESTION, small)
    assert not worse(small, QUESTION)
    assert worse(replace(QUESTION, quotas="192 vCPU"), small)
    assert not worse(narrow, small)
    assert not worse(small, narrow)
    assert worse(QUESTION, replace(QUESTION, limits="24h, overhead 5%"))
    assert not worse(QUESTION, replace(QUESTION, limits="1.3x cheapest"))


def test_a_plan_that_mixes_nothing_is_not_judged_again() -> None:
    asked = ask(QUESTION, snapshot(), None, None)
    assert asked.status == "ok"
    assert asked.first is not None
    assert not asked.first.mixes
    assert asked.least <= asked.first.goal
    assert (asked.unmixed, asked.judged, asked.judged_unmixed) == (None, (), ())


def test_a_plan_is_judged_and_evaluated_again_as_it_was() -> None:
    catalog = snapshot()
    once, search, table = answered(QUESTION, catalog)
    assert once.first is not None
    again = found_again(search, once.first)
    assert again is not None
    assert record(again, search.problem.limits) == once.first
    runs = judged(table[0], search.problem.limits, None)[0]
    assert runs.runs == 100_000
    assert abs(runs.cost_usd / once.first.cost_usd - 1.0) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["resnet50-imagenet", "sd-xl"])
def test_no_other_fallback_of_a_leading_cluster_is_better_than_the_best_plan(preset: str) -> None:
    """Those between two that are tried were not, and one of them cost 7 and 11 % less."""
    catalog, question = snapshot(), Question(preset, "2x fastest", "none", "default")
    search = PlanPool(problem_of(question, catalog, choice_of(question, catalog)))
    found, limits = search.best, search.problem.limits
    leading = [c for c in found.plans if c.fallback >= 0]
    others = [
        search.builder.build(replace(candidate, fallback=row)).plan
        for candidate in leading[:8]
        for row in range(len(search.sites.sites[candidate.site].fallbacks))
    ]
    least = min(goal_value_of(plan, limits) for plan in others if meets(plan, limits))
    best = search.builder.build(found.best).plan  # with the thresholds of its policy
    # Search paths choose, and without thresholds: 3.5 % of sd-xl are left (2026-11-29).
    assert goal_value_of(best, limits) <= least * 1.04


def test_mixes_on_demand_are_found_where_those_with_spot_use_the_search_up() -> None:
    question = Question("mixtral-8x7b-sft", "24h", "96 vCPU", "default")
    catalog = snapshot()
    choice = replace(choice_of(question, catalog), market="on_demand")
    found = ranked_plans(PlanPool(problem_of(question, catalog, choice)), 1).plans
    assert len(found[0].plan.machines) > 1
    assert {m.market for m in found[0].plan.machines} == {"on_demand"}
