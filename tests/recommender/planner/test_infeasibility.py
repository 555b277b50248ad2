"""An answer without plans names what is in the way, in words that can be typed."""

import re
from dataclasses import replace
from functools import cache

import pytest

from recommender.errors import UsageError
from recommender.inputs.units import parse_duration
from recommender.job.jobfile import find_job
from recommender.plan.answer import Answer, Infeasible, SensitivityStep
from recommender.plan.effort import doubted_cost_usd
from recommender.plan.limits import Choice, GpuFilter, Limits, Progress, QuotaLimit
from recommender.planner.plan_builder import is_uninterrupted
from recommender.text import usd
from tests.recommender.optimize.samples import sampled
from tests.recommender.planning import HOUR, NOW, recommend
from tests.shipped import every_cloud, snapshot

HERE = Choice(regions=("us-east-1",), instances=("g4dn.xlarge", "p3.16xlarge", "p4d.24xlarge"))


def why(
    job: str, limits: Limits, choice: Choice = HERE, gone: Progress | None = None
) -> Infeasible:
    """Why a job has no plan."""
    progress = gone or Progress()
    answer = recommend(
        find_job(job), limits, choice, catalog=snapshot(), progress=progress, now=NOW
    )
    assert answer.infeasible is not None
    return answer.infeasible


def test_a_budget_is_suggested_too_where_the_fastest_plans_are_far_over_it() -> None:
    found = why("resnet50-imagenet", Limits(budget_usd=5.0), Choice(providers=("gcp",)))
    assert found.relaxed[0].change.startswith("--budget ")
    assert found.relaxed[0].plan is not None
    assert "relaxing a single limit" not in " ".join(found.binding)


@pytest.mark.parametrize("spent", [0.0, 300.0])
def test_a_budget_of_twice_the_mean_is_explained(spent: float) -> None:
    """It would be confusing to read that a plan of 417 USD needs 722 USD."""
    limits = Limits(budget_usd=spent + 0.01)
    found = why("resnet50-imagenet", limits, gone=Progress(spent_usd=spent))
    plan = found.relaxed[0].plan
    assert plan is not None
    told = re.search(
        r"minimum .*: (\S+) USD on average, up to (\S+) USD in 95 %", found.binding[-1]
    )
    assert told is not None
    assert float(told.group(1)) == pytest.approx(plan.estimate.cost.mean, rel=0.05)
    assert float(told.group(2)) >= 0.98 * plan.estimate.cost.p95


@pytest.mark.slow
def test_the_sentence_of_a_budget_is_of_the_plan_in_the_table() -> None:
    """Not of the plan that was found near the minimum: one sentence said 126 USD of 131."""
    limits = Limits(deadline_s=24 * HOUR, budget_usd=20.0)
    found = why("llama3-8b-sft", limits, Choice())
    step = next(step for step in found.relaxed if step.change.startswith("--budget"))
    assert step.plan is not None
    sentence = next(each for each in found.binding if each.startswith(step.change))
    assert f" {usd(step.plan.estimate.cost.mean)} USD on average" in sentence


@pytest.mark.parametrize("spent", [0.0, 4.99, 300.0])
def test_a_budget_that_is_too_small_comes_with_one_that_would_do(spent: float) -> None:
    limits = Limits(budget_usd=spent + 0.01, max_machines=4)
    found = why("resnet50-imagenet", limits, gone=Progress(spent_usd=spent))
    step = found.relaxed[0]
    budget = float(re.fullmatch(r"--budget ([0-9.e+]+)", step.change).group(1))  # type: ignore[union-attr]
    job = find_job("resnet50-imagenet")
    again = recommend(
        job,
        Limits(budget_usd=budget, max_machines=4, objective="cost"),
        HERE,
        catalog=snapshot(),
        progress=Progress(spent_usd=spent),
        now=NOW,
    )
    assert again.status == "ok"
    assert budget - spent < 3 * again.plans[0].estimate.cost.mean
    if spent:
        assert found.binding[0] == f"--spent {spent:g} leaves 0.01 USD of the budget"


def test_a_deadline_is_suggested_for_the_whole_job_not_for_what_is_left() -> None:
    gone = Progress(elapsed_s=20 * HOUR)
    found = why("resnet50-imagenet", Limits(deadline_s=20.1 * HOUR, max_machines=4), gone=gone)
    assert found.binding[0] == "--elapsed 20h leaves 6m of the deadline"
    steps = [each for each in found.relaxed if each.change.startswith("--deadline")]
    assert steps
    for step in steps:
        hours = re.match(r"--deadline (?:(\d+)d)?(?:(\d+)h)?", step.change)
        assert hours is not None
        assert 24 * int(hours[1] or 0) + int(hours[2] or 0) >= 20


def test_a_refusal_names_what_most_people_would_rent_besides_the_least_that_a_limit_needs() -> None:
    """432 USD rent a stranger's host for 13 days; 890 a cloud's machine overnight."""
    asked, job = Limits(budget_usd=200.0), find_job("bert-large-pretrain")
    answer = recommend(job, asked, catalog=every_cloud(), now=NOW)
    assert answer.infeasible is not None
    known = [(step, step.plan) for step in answer.infeasible.relaxed if step.plan is not None]
    step, plan = min(known, key=lambda each: doubted_cost_usd(each[1], "time"))
    assert is_uninterrupted(plan)
    assert plan.is_promised
    assert plan.estimate.time.p50 < 24 * HOUR
    raised = float(step.change.removeprefix("--budget "))
    assert plan.estimate.cost.p95 <= raised < 1.05 * plan.estimate.cost.p95
    assert any(float(other.change.removeprefix("--budget ")) < raised for other, _ in known[:1])


def test_limits_of_the_sensitivity_are_those_of_the_whole_job_too() -> None:
    gone = Progress(elapsed_s=100 * HOUR, spent_usd=1000.0)
    answer = recommend(
        find_job("resnet50-imagenet"),
        Limits(deadline_s=148 * HOUR, budget_usd=1500.0, max_machines=4),
        HERE,
        catalog=snapshot(),
        progress=gone,
        now=NOW,
    )
    changes = [step.change for step in answer.sensitivity]
    assert {"--deadline 5d9h", "--deadline 7d4h"} & set(changes)  # 100 h + 48 h x 0.6 or 1.5
    assert {"--budget 1300", "--budget 1750"} & set(changes)


def test_what_is_used_up_is_refused_before() -> None:
    with pytest.raises(UsageError, match="--spent 20 leaves nothing of --budget 20"):
        why("resnet50-imagenet", Limits(budget_usd=20.0), gone=Progress(spent_usd=20.0))


EVERYWHERE = Choice(instances=("g4dn.xlarge", "p4d.24xlarge", "p5en.48xlarge", "p6-b300.48xlarge"))


PRESETS = sampled(("gpt2-124m", "resnet50-imagenet", "llama3-8b-sft"), ("llama3-8b-sft",))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("aim", ["time", "cost"])
def test_the_fastest_and_the_cheapest_are_the_plans_of_those_questions(
    preset: str, aim: str
) -> None:
    found = why(preset, Limits(deadline_s=1.0), EVERYWHERE)
    named = found.fastest if aim == "time" else found.cheapest
    free = Limits(objective=aim)  # type: ignore[arg-type]
    asked = recommend(find_job(preset), free, EVERYWHERE, catalog=snapshot(), now=NOW).plans[0]
    assert named is not None
    assert [(m.count, m.instance_type, m.market, m.region) for m in named.machines] == [
        (m.count, m.instance_type, m.market, m.region) for m in asked.machines
    ]
    assert named.estimate.cost.mean == pytest.approx(asked.estimate.cost.mean)
    assert named.estimate.time.trimmed_mean == pytest.approx(asked.estimate.time.trimmed_mean)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_deadline_far_away_does_not_hide_the_fastest_plan(preset: str) -> None:
    job, times = find_job(preset), []
    for limits in (Limits(objective="time"), Limits(objective="time", deadline_s=24 * HOUR)):
        plan = recommend(job, limits, EVERYWHERE, catalog=snapshot(), now=NOW).plans[0]
        times.append(plan.estimate.time.trimmed_mean)
    assert times[1] <= times[0] * 1.01


@pytest.mark.parametrize(
    ("limits", "flag"),
    [
        pytest.param(Limits(deadline_s=60.0), "--deadline", marks=pytest.mark.slow),
        (Limits(budget_usd=1.0, confidence=0.8), "--budget"),
    ],
)
def test_much_less_than_the_limit_that_is_named_leaves_no_plan(limits: Limits, flag: str) -> None:
    step = next(s for s in why("resnet50-imagenet", limits).relaxed if s.change.startswith(flag))
    value = step.change.split()[1]
    least = (
        {"deadline_s": 0.85 * parse_duration(value)}
        if flag == "--deadline"
        else {"budget_usd": 0.85 * float(value)}
    )
    assert why("resnet50-imagenet", replace(limits, **least)).relaxed  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["L40S", "A100"])
def test_a_price_per_hour_is_the_least_that_pays_for_a_plan_and_its_fallback(gpu: str) -> None:
    """A fallback is one of those that the price allows, not of those under the limit asked for."""
    choice = Choice(gpus=(GpuFilter(gpu),), mix="no")
    asked = Limits(deadline_s=10 * HOUR, hourly_usd=1.0)
    step = next(
        s for s in why("llama3-8b-lora", asked, choice).relaxed if s.change.startswith("--hourly")
    )
    usd_per_hour = float(step.change.split()[1])

    def found(share: float) -> Answer:
        limits = replace(asked, hourly_usd=share * usd_per_hour)
        job = find_job("llama3-8b-lora")
        return recommend(job, limits, choice, catalog=snapshot(), now=NOW)

    assert found(1.0).plans
    assert not found(0.9).plans


@pytest.mark.slow
def test_a_higher_price_per_hour_is_worth_what_the_question_with_it_gains() -> None:
    choice = Choice(gpus=(GpuFilter("L40S"),), mix="no")
    limits = Limits(deadline_s=18 * HOUR, hourly_usd=60.0)
    job = find_job("llama3-8b-lora")
    first = recommend(job, limits, choice, catalog=snapshot(), now=NOW)
    step = next(s for s in first.sensitivity if s.change == "--hourly 90")
    then = recommend(job, replace(limits, hourly_usd=90.0), choice, catalog=snapshot(), now=NOW)
    assert step.plan is not None
    least = min(plan.estimate.cost.mean for plan in then.plans)
    assert step.plan.estimate.cost.mean == pytest.approx(least, rel=0.01)


@pytest.mark.slow
def test_a_budget_is_the_least_that_the_question_with_it_is_answered_for() -> None:
    """Estimates alone named 249 USD where 200 USD has a plan."""
    job, choice = "llama3-8b-lora", Choice(instances=("a2-highgpu-1g", "g2-standard-8"))
    asked = Limits(deadline_s=16 * HOUR, budget_usd=15.0)
    step = next(s for s in why(job, asked, choice).relaxed if s.change.startswith("--budget"))
    least = float(step.change.split()[1])
    for share, some in ((1.0, True), (0.85, False)):
        limits = replace(asked, budget_usd=share * least)
        found = recommend(find_job(job), limits, choice, catalog=snapshot(), now=NOW)
        assert bool(found.plans) == some


def test_infeasible_is_reported_only_where_every_mix_is_ruled_out() -> None:
    """Ten minutes are too few for any cluster; a little less than the least may do for a mix."""
    asked, gcp = find_job("llama3-8b-sft"), Choice(providers=("gcp",))
    hopeless = recommend(asked, Limits(deadline_s=HOUR / 6), gcp, catalog=snapshot(), now=NOW)
    assert hopeless.status == "infeasible"
    assert hopeless.infeasible is not None
    assert hopeless.infeasible.unexplored == ""
    near = recommend(asked, Limits(deadline_s=1.5 * HOUR), gcp, catalog=snapshot(), now=NOW)
    assert near.status == "unknown"
    assert near.infeasible is not None
    assert "--prove" in near.infeasible.unexplored


@cache
def too_slow_within_two_days() -> Infeasible:
    """A job that no plan ends in time."""
    return why("t5-3b", Limits(deadline_s=48 * HOUR), Choice(providers=("gcp",)))


def test_the_nearest_plans_are_ones_to_act_on() -> None:
    """A deadline a little longer costs much less, and a lower chance is enough."""
    found = why("gpt2-xl", Limits(deadline_s=6 * HOUR), Choice(providers=("gcp",)))
    least, longer, less_sure = found.relaxed
    assert least.plan is not None
    assert longer.plan is not None
    assert longer.plan.estimate.cost.mean < 0.8 * least.plan.estimate.cost.mean
    due_s = [parse_duration(step.change.split()[1]) for step in (least, longer)]
    assert due_s[0] < due_s[1] < 1.25 * due_s[0]
    assert less_sure.change.startswith("--confidence 0.")
    assert not [s for s in found.binding if "95 %" in s or "typically" in s]


@pytest.mark.slow
def test_two_limits_too_tight_together_come_with_a_longer_deadline_that_asks_for_less() -> None:
    limits = Limits(deadline_s=24 * HOUR, budget_usd=1000.0)
    answer = recommend(find_job("t5-3b"), limits, catalog=snapshot(), now=NOW)
    assert answer.infeasible is not None
    least, longer = answer.infeasible.relaxed[:2]
    assert least.plan is not None
    assert longer.plan is not None
    assert longer.plan.estimate.cost.mean < 0.65 * least.plan.estimate.cost.mean
    due_s, budgets = (
        [parse(step.change.split()[place]) for step in (least, longer)]
        for place, parse in ((1, parse_duration), (3, float))
    )
    assert 1.9 * due_s[0] < due_s[1] < 2.1 * due_s[0]
    assert budgets[1] < 0.7 * budgets[0]


@pytest.mark.slow
def test_a_longer_deadline_is_named_where_it_asks_for_much_less_of_the_budget() -> None:
    """The quicker plan may have to end on demand: its mean says little of what it needs."""
    limits = Limits(deadline_s=HOUR / 2, budget_usd=8.0)
    answer = recommend(find_job("vit-b-imagenet"), limits, catalog=snapshot(), now=NOW)
    assert answer.infeasible is not None
    least, longer = answer.infeasible.relaxed
    budgets = [float(step.change.split()[3]) for step in (least, longer)]
    assert budgets[1] < 0.5 * budgets[0]
    for step in (least, longer):
        found = recommend(find_job("vit-b-imagenet"), limits_of(step), catalog=snapshot(), now=NOW)
        assert found.plans


def limits_of(step: SensitivityStep) -> Limits:
    """The deadline and the budget that a step names."""
    _, due, _, usd = step.change.split()
    return Limits(deadline_s=parse_duration(due), budget_usd=float(usd))


@pytest.mark.slow
def test_the_cheapest_plan_named_is_none_that_takes_months() -> None:
    """Of gpt2-xl two machines of one L40S would take two months for 12 USD less."""
    limits = Limits(deadline_s=HOUR)
    small = Choice(instances=("g6e.4xlarge", "p4d.24xlarge"), providers=("aws",))
    quotas = (QuotaLimit("aws", "g", "any", "", "vcpu", 32.0),)
    found = why("gpt2-xl", limits, replace(small, quotas=quotas))
    assert found.cheapest is not None
    assert found.cheapest.estimate.time.trimmed_mean <= 30 * 24 * HOUR


def test_a_mean_between_far_ends_is_reported_with_them() -> None:
    """Whether the fallback is needed decides between 1,000 and 30,000 USD."""
    least = too_slow_within_two_days().relaxed[0]
    assert least.plan is not None
    cost = least.plan.estimate.cost
    assert cost.p95 > 3.0 * cost.p05
    assert f"({usd(cost.p05)} to {usd(cost.p95)})" in least.effect


def test_a_deadline_of_weeks_is_no_advice_for_one_of_two_days() -> None:
    """In one run in twenty the machine is away for weeks; a lower chance is suggested instead."""
    limits = Limits(deadline_s=48 * HOUR, budget_usd=200.0)
    one_place = Choice(instances=("a3-highgpu-4g",), regions=("europe-north1",))
    found = why("llama3-8b-sft", limits, one_place)
    assert found.binding[0] == "no deadline under 8d works, other limits unchanged"
    assert [s.change.split()[0] for s in found.relaxed] == ["--confidence"]


@pytest.mark.parametrize(("batch", "said"), [(128, True), (4096, False)])
def test_a_batch_that_keeps_no_more_machines_busy_is_named(batch: int, said: bool) -> None:
    """256 machines were allowed, 16 were the fastest, and nothing said why."""
    job = replace(find_job("llama3-8b-pretrain"), samples=1.2e8, global_batch=batch)
    choice = Choice(instances=("p5.48xlarge",), market="on_demand")
    limits = Limits(deadline_s=24 * HOUR, max_machines=64)
    found = recommend(job, limits, choice, catalog=snapshot(), now=NOW).infeasible
    assert found is not None
    hint = "a batch of 128 keeps no more than 128 GPUs busy"
    assert any(hint in each for each in found.binding) == said
    assert any("GPUs busy" in each for each in found.binding) == said


def test_a_batch_is_not_named_where_only_the_budget_binds() -> None:
    job = replace(find_job("llama3-8b-pretrain"), samples=1.2e8, global_batch=128)
    choice = Choice(instances=("p5.48xlarge",), market="on_demand")
    limits = Limits(deadline_s=900 * 24 * HOUR, budget_usd=100.0, max_machines=64)
    found = recommend(job, limits, choice, catalog=snapshot(), now=NOW).infeasible
    assert found is not None
    assert not any("GPUs busy" in each for each in found.binding)
