"""Whole answers: filters obeyed, limits met, sums that add up, the same twice."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recommender.api import calls
from recommender.catalogs.catalog import Catalog
from recommender.errors import UsageError
from recommender.inputs.units import brief_duration, parse_duration
from recommender.plan.answer import Answer, SensitivityStep
from recommender.plan.limits import OTHERS, Choice, GpuFilter, Limits, Progress, QuotaLimit
from recommender.plan.plan import Plan
from tests.recommender.optimize.samples import sampled, thinned
from tests.recommender.planning import (
    HOUR,
    NOW,
    ask,
    curve_of,
    everything,
    job,
    machines_of,
    recommend,
    small,
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return small()


QUESTIONS: dict[str, dict[str, float]] = {
    "deadline": {"deadline_s": 24 * HOUR},
    "tight deadline": {"deadline_s": 8 * HOUR},
    "budget": {"budget_usd": 60.0},
    "hourly": {"hourly_usd": 4.0},
    "deadline and budget": {"deadline_s": 30 * HOUR, "budget_usd": 80.0},
    "no limit": {},
}


USUAL = ("deadline", "budget", "hourly", "no limit")


@pytest.fixture(scope="module", params=sampled(QUESTIONS, USUAL))
def answered(request: pytest.FixtureRequest, catalog: Catalog) -> tuple[Limits, Answer]:
    limits = QUESTIONS[request.param]
    return Limits(max_machines=6, **limits), ask(catalog, **limits)  # type: ignore[arg-type]


def test_an_answer_has_plans_and_says_how_sure_it_is(answered: tuple[Limits, Answer]) -> None:
    _, answer = answered
    assert answer.status == "ok"
    assert answer.infeasible is None
    assert 1 <= len(answer.plans) <= 12
    assert answer.proof.plans_simulated > 0
    assert 0.0 <= answer.proof.gap <= 1.0
    assert 3 <= len(answer.baselines) <= 4


def test_the_program_has_the_best_plan_and_divides_work_as_it_does(
    answered: tuple[Limits, Answer],
) -> None:
    answer = answered[1]
    program, best = answer.program, answer.plans[answer.best - 1]
    assert program is not None
    assert program.status == "optimal"
    assert 0.0 <= program.plan_share <= 1.0 + 1e-9
    assert 0.0 <= program.saving < 1.0
    on_spot = any(machines.market == "spot" for machines in best.machines)
    late = 0.0 if best.fallback is None else best.fallback.work_share
    spot = sum(each.share for each in program.plan_shares if each.spot)
    assert spot == pytest.approx(1.0 - late if on_spot else 0.0)
    assert sum(each.share for each in program.plan_shares) == pytest.approx(1.0)
    assert program.spot_share + program.on_demand_share == pytest.approx(1.0)
    if program.plan_share > 0.999:
        assert program.spot_share == pytest.approx(spot, abs=0.001)


def test_the_items_of_a_bill_sum_to_the_expected_cost(answered: tuple[Limits, Answer]) -> None:
    for plan in everything(answered[1]):
        items = sum(item.usd for item in plan.estimate.bill)
        # Items of less than half a cent are left out.
        assert items == pytest.approx(plan.estimate.cost.mean, abs=0.03)


def test_no_item_of_a_bill_is_negative_beyond_what_a_list_saves(
    answered: tuple[Limits, Answer],
) -> None:
    for plan in everything(answered[1]):
        *named, _ = plan.estimate.bill
        assert all(item.usd > 0 for item in named)


def test_the_parts_of_the_time_sum_to_the_time_shown(answered: tuple[Limits, Answer]) -> None:
    for plan in everything(answered[1]):
        split, time = plan.estimate.split, plan.estimate.time.p50
        parts = [getattr(split, name) for name in split.__slots__]
        assert sum(parts) == pytest.approx(time, rel=0.03)
        assert min(parts) >= 0.0


def test_every_limit_is_met(answered: tuple[Limits, Answer]) -> None:
    limits, answer = answered
    for plan in answer.plans:
        e = plan.estimate
        assert e.chance >= limits.confidence or answer.goal == "frontier"
        assert sum(m.count for m in plan.machines) <= limits.max_machines
        if limits.hourly_usd is not None:
            assert plan.usd_per_hour <= limits.hourly_usd
            assert plan.fallback is None or plan.fallback.usd_per_hour <= limits.hourly_usd
        if limits.budget_usd is not None:
            assert e.cost.mean <= limits.budget_usd
        if limits.deadline_s is not None:
            assert e.time.p50 <= limits.deadline_s
        assert e.cost.p05 <= e.cost.p50 <= e.cost.p95
        assert e.time.p05 <= e.time.p50 <= e.time.p95
        assert e.time.p05 <= e.time.trimmed_mean <= e.time.p95
        assert 0.0 <= e.chance <= 1.0
        assert 0.0 <= e.overhead < 1.0


def test_no_plan_is_below_the_lower_bounds(answered: tuple[Limits, Answer]) -> None:
    for plan in everything(answered[1]):
        assert plan.estimate.cost.mean >= answered[1].lower_bound_usd * 0.99
        assert plan.estimate.time.trimmed_mean >= answered[1].lower_bound_s * 0.99


def test_plans_come_in_the_order_of_the_goal(answered: tuple[Limits, Answer]) -> None:
    limits, answer = answered
    costs = [p.estimate.cost.mean for p in answer.plans]
    times = [p.estimate.time.trimmed_mean for p in answer.plans]
    if answer.goal == "cost":
        assert costs[0] <= min(costs) * 1.02
    if answer.goal == "time" and limits.objective == "time":  # else in the order of value
        assert times[0] <= min(times) * 1.02
    if answer.goal == "frontier":
        assert costs == sorted(costs)
        curve = [p.estimate.time.trimmed_mean for p in curve_of(answer)]
        assert len(curve) > 1
        assert curve == sorted(curve, reverse=True)


def test_what_a_limit_is_worth_is_what_asking_again_gives(
    answered: tuple[Limits, Answer], catalog: Catalog
) -> None:
    limits, answer = answered
    if limits.deadline_s is None:
        return
    longer_s = limits.deadline_s * 1.5
    longer = replace(limits, deadline_s=longer_s)
    again = recommend(job(), longer, catalog=catalog, now=NOW).plans[0].estimate
    step = next(
        s for s in answer.sensitivity if s.change == f"--deadline {brief_duration(longer_s)}"
    )
    shown = answer.plans[0] if step.plan is None else step.plan
    assert shown.estimate.cost.mean == pytest.approx(again.cost.mean, rel=0.02)
    assert again.cost.mean <= answer.plans[0].estimate.cost.mean * 1.01


def test_the_same_problem_gives_the_same_answer(catalog: Catalog) -> None:
    """Planned again: `recommend` of these tests would repeat what it said."""
    limits = Limits(max_machines=6, deadline_s=24 * HOUR)
    again = calls.recommend(job(), limits, Choice(), catalog=catalog, now=NOW)
    assert again == ask(catalog, deadline_s=24 * HOUR)


def test_another_seed_gives_other_paths_and_nearly_the_same_price(catalog: Catalog) -> None:
    limits = Limits(deadline_s=24 * HOUR, max_machines=6)
    costs = [
        recommend(job(), limits, catalog=catalog, now=NOW, seed=s).plans[0].estimate.cost.mean
        for s in (7, 8, 9)
    ]
    assert len(set(costs)) == 3
    assert max(costs) < 1.1 * min(costs)


DAY = {"deadline_s": 24 * HOUR}


def regions(plan: Plan) -> set[str]:
    return {m.region for m in machines_of(plan)} | {s.region for s in plan.sites}


@pytest.mark.parametrize("region", ["us-west-2", "eu-*"])
def test_only_regions_requested_are_used(catalog: Catalog, region: str) -> None:
    answer = ask(catalog, choice=Choice(regions=(region,)), **DAY)
    wanted = {"us-west-2": {"us-west-2"}, "eu-*": {"eu-west-1"}}[region]
    assert all(regions(plan) == wanted for plan in everything(answer))


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_only_providers_requested_are_used(catalog: Catalog, provider: str) -> None:
    answer = ask(catalog, choice=Choice(providers=(provider,)), **DAY)
    assert {m.provider for p in everything(answer) for m in machines_of(p)} == {provider}


def test_only_zones_requested_are_used(catalog: Catalog) -> None:
    choice = Choice(zones=("us-east-1-b",), market="spot")
    for plan in everything(ask(catalog, choice=choice, **DAY)):
        assert {s.zone for s in plan.sites} == {"us-east-1-b"}


def test_only_gpus_requested_are_used(catalog: Catalog) -> None:
    answer = ask(catalog, choice=Choice(gpus=(GpuFilter("T4", per_machine=4),)), **DAY)
    assert {m.instance_type for p in answer.plans for m in p.machines} == {"g4dn.12xlarge"}


@pytest.mark.parametrize("denied", thinned(["us-east-1", "gcp", "g4dn.*", "g4dn.xlarge"], 2))
def test_nothing_denied_is_used(catalog: Catalog, denied: str) -> None:
    for plan in everything(ask(catalog, choice=Choice(deny=(denied,)), **DAY)):
        for m in machines_of(plan):
            assert denied not in (m.region, m.provider, m.instance_type)
            assert denied != "g4dn.*" or not m.instance_type.startswith("g4dn.")
        assert denied not in {s.region for s in plan.sites}


@pytest.mark.parametrize("market", ["spot", "on_demand"])
def test_only_the_market_requested_is_used(catalog: Catalog, market: str) -> None:
    answer = ask(catalog, choice=Choice(market=market), **DAY)  # type: ignore[arg-type]
    for plan in answer.plans:
        assert {m.market for m in plan.machines} == {market}
        assert plan.fallback is None


@pytest.mark.parametrize("failover", ["none", "zone", "region"])
def test_a_failover_list_reaches_as_far_as_allowed(catalog: Catalog, failover: str) -> None:
    choice = Choice(failover=failover, market="spot", providers=("aws",))  # type: ignore[arg-type]
    seen = [plan.sites for plan in ask(catalog, choice=choice, deadline_s=400 * HOUR).plans]
    assert seen
    assert all(len(sites) <= 4 for sites in seen)
    if failover == "none":
        assert all(len(sites) == 1 for sites in seen)
    if failover == "zone":
        assert all(len({s.region for s in sites}) == 1 for sites in seen)
    if failover == "region":
        assert any(len({s.region for s in sites}) > 1 for sites in seen)
    for sites in seen:
        prices = [s.usd_per_hour for s in sites]
        assert prices == sorted(prices)
        assert prices[-1] <= 1.6 * prices[0] * (1 + 1e-9)


def quota(amount: float, unit: str = "vcpu", market: str = "any", region: str = "") -> Choice:
    limit = QuotaLimit("aws", "g", market, region, unit, amount)  # type: ignore[arg-type]
    return Choice(quotas=(limit,), quotas_known=True, providers=("aws",))


@pytest.mark.parametrize("machines", [1, 3, 5])
def test_the_last_machine_of_a_quota_is_used(catalog: Catalog, machines: int) -> None:
    choice = replace(quota(4.0 * machines), instances=("g4dn.xlarge",), market="on_demand")
    answer = ask(catalog, choice=choice, budget_usd=500.0)
    assert max(sum(m.count for m in p.machines) for p in answer.plans) == machines


@pytest.mark.parametrize("amount", sampled((4.0, 10.0, 24.0, 100.0), (10.0, 100.0)))
def test_no_plan_needs_more_than_a_quota(catalog: Catalog, amount: float) -> None:
    vcpus = {"g4dn.xlarge": 4, "g4dn.2xlarge": 8, "g4dn.12xlarge": 48}
    answer = ask(catalog, choice=quota(amount), **DAY)
    inside = tuple(s for s in answer.sensitivity if "quota" not in s.change)  # not of wider ones
    why = answer.infeasible
    if why is not None:
        relaxed = tuple(s for s in why.relaxed if "quota" not in s.change)
        why = replace(why, relaxed=relaxed)
    for plan in everything(replace(answer, sensitivity=inside, infeasible=why)):
        assert sum(m.count * vcpus[m.instance_type] for m in plan.machines) <= amount
        if plan.fallback is not None:
            fallback = plan.fallback.machines
            assert sum(m.count * vcpus[m.instance_type] for m in fallback) <= amount


def test_a_spot_quota_of_zero_leaves_on_demand(catalog: Catalog) -> None:
    spot = quota(0.0, market="spot")
    others = QuotaLimit("aws", OTHERS, "on_demand", "", "vcpu", math.inf)
    answer = ask(catalog, choice=replace(spot, quotas=(*spot.quotas, others)), **DAY)
    assert answer.status == "ok"
    assert {m.market for p in everything(answer) for m in p.machines} == {"on_demand"}
    assert ask(catalog, choice=spot, **DAY).status == "infeasible"  # what is not listed is 0


def test_quotas_of_zero_everywhere_leave_nothing(catalog: Catalog) -> None:
    answer = ask(catalog, choice=quota(0.0), **DAY)
    assert answer.status == "infeasible"
    assert not answer.plans


IMPOSSIBLE = {
    "deadline": {"deadline_s": 2 * HOUR},
    "budget": {"budget_usd": 15.0},
    "hourly": {"hourly_usd": 0.15},
    "deadline and budget": {"deadline_s": 12 * HOUR, "budget_usd": 35.0},
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_done_is_reported_with_what_could(catalog: Catalog, name: str) -> None:
    answer = ask(catalog, **IMPOSSIBLE[name])
    # Mixes within a budget are not ruled out by a bound: that none was found is all that is said.
    assert answer.status == ("unknown" if "budget" in name else "infeasible")
    assert not answer.plans
    failed = answer.infeasible
    assert failed is not None
    assert failed.fastest is not None
    assert failed.cheapest is not None
    assert failed.fastest.estimate.time.mean <= failed.cheapest.estimate.time.mean
    assert failed.cheapest.estimate.cost.mean <= failed.fastest.estimate.cost.mean
    words = " ".join([*failed.binding, *(step.change for step in failed.relaxed)])
    assert any(f"--{part}" in words for part in name.split(" and "))


FIELDS = {"--deadline": "deadline_s", "--budget": "budget_usd", "--hourly": "hourly_usd"}


def suggested(change: str) -> tuple[str, float]:
    """The limit that a suggestion names, and a little more than its value, in our units."""
    flag, value = change.split()[:2]
    number = parse_duration(value, flag) if flag == "--deadline" else float(value)
    return FIELDS[flag], number * 1.02


@pytest.mark.parametrize("name", sampled(IMPOSSIBLE, ("deadline", "hourly")))
def test_a_suggested_limit_is_one_that_can_be_met(catalog: Catalog, name: str) -> None:
    limits = IMPOSSIBLE[name]
    failed = ask(catalog, **limits).infeasible
    assert failed is not None
    tried = 0
    for step in failed.relaxed:
        if step.plan is None or step.change.split()[0] not in FIELDS:
            continue
        field, value = suggested(step.change)
        assert ask(catalog, **(limits | {field: value})).status == "ok", step.change
        tried += 1
    assert tried or name == "deadline and budget"


def test_what_is_done_and_spent_is_taken_off(catalog: Catalog) -> None:
    whole = ask(catalog, **DAY)
    limits = Limits(deadline_s=30 * HOUR, max_machines=6)
    half = recommend(job(), limits, catalog=catalog, progress=Progress(0.5, 6 * HOUR, 5.0), now=NOW)
    assert half.plans[0].estimate.cost.mean < 0.7 * whole.plans[0].estimate.cost.mean


def test_a_discount_lowers_on_demand_prices_of_its_provider_only(catalog: Catalog) -> None:
    asked = {"instances": ("g4dn.xlarge",), "regions": ("us-east-1",)}
    for market, share in (("on_demand", 0.8), ("spot", 1.0)):
        plain, less = (
            ask(catalog, choice=Choice(**asked, market=market, discounts=d), budget_usd=900.0)
            for d in ((), (("aws", 0.2),))
        )
        usd = [a.plans[0].machines[0].usd_per_hour for a in (plain, less)]
        assert usd[1] == pytest.approx(share * usd[0])
        cost = [a.plans[0].estimate.cost.mean / a.plans[0].machines[0].count for a in (plain, less)]
        assert cost[1] / cost[0] == pytest.approx(share, abs=0.03)
    other = Choice(providers=("gcp",), discounts=(("aws", 0.2),))
    gcp = [ask(catalog, choice=c, **DAY).plans[0] for c in (other, Choice(providers=("gcp",)))]
    assert gcp[0].estimate.cost == gcp[1].estimate.cost


def test_spot_that_never_stops_makes_spot_as_sure_as_the_speed_is_known(catalog: Catalog) -> None:
    calm = Choice(market="spot", mtbf_h=1e6, prices_as_quoted=True)
    plan = ask(catalog, choice=calm, deadline_s=400 * HOUR, confidence=0.5).plans[0]
    assert plan.estimate.interruptions < 0.05  # faults of the machine remain
    assert plan.estimate.split.lost_s < 0.02 * plan.estimate.time.mean


def test_on_demand_certain_to_be_there_is_never_worse(catalog: Catalog) -> None:
    sure = Choice(market="on_demand", on_demand_obtainable=1.0)
    never = Choice(market="on_demand", on_demand_obtainable=0.0)
    times = [ask(catalog, choice=c, budget_usd=300.0).plans[0].estimate.time for c in (sure, never)]
    assert times[0].mean <= times[1].mean
    assert np.isfinite(times[1].mean)


def test_a_mix_is_found_where_quotas_leave_no_single_type(catalog: Catalog) -> None:
    """Neither two machines of one GPU nor one machine of two ends in time; all three do."""
    quotas = (
        QuotaLimit("gcp", "n1-standard-8", "any", "", "machine", 2.0),
        QuotaLimit("gcp", "n1-standard-16", "any", "", "machine", 1.0),
    )
    choice = Choice(providers=("gcp",), market="on_demand", quotas=quotas, quotas_known=True)
    answer = ask(catalog, choice=choice, deadline_s=34 * HOUR)
    assert answer.status == "ok"
    assert {m.instance_type: m.count for m in answer.plans[0].machines} == {
        "n1-standard-8+1xT4": 2,
        "n1-standard-16+2xT4": 1,
    }
    assert ask(catalog, choice=replace(choice, mix="no"), deadline_s=34 * HOUR).plans == ()


def test_next_to_a_mix_a_limit_is_worth_what_asking_with_mixes_again_saves(
    catalog: Catalog,
) -> None:
    """Planned again with one machine type, wider quotas seemed to save 3.49 USD."""

    def asked(hours: float, machines: float = 2.0) -> Answer:
        quotas = tuple(
            QuotaLimit("gcp", name, "any", "", "machine", machines)
            for name in ("n1-standard-8", "n1-standard-16")
        )
        choice = Choice(providers=("gcp",), market="on_demand", quotas=quotas, quotas_known=True)
        limits = Limits(deadline_s=hours * HOUR, max_machines=6)
        return recommend(job(), limits, choice, catalog=catalog, now=NOW, worth=True)

    answer, looser = asked(27.0), asked(28.0)
    assert len(answer.plans[0].machines) == 2
    told = {step.change: step.plan for step in answer.sensitivity if step.plan}
    again = {"--deadline 40h30m": asked(40.5), "every quota × 1.5": asked(27.0, machines=3.0)}
    assert set(told) == set(again)
    for change, plan in told.items():
        (least, *_) = again[change].plans
        assert plan.estimate.cost.mean == pytest.approx(least.estimate.cost.mean, rel=0.01)
    assert answer.program is not None
    (worth,) = answer.program.worth
    saved = answer.plans[0].estimate.cost.mean - looser.plans[0].estimate.cost.mean
    assert worth.limit == "deadline"
    assert worth.gain == pytest.approx(saved, rel=0.05)


@pytest.mark.parametrize("family", ["P", "g4d", "Running On-Demand"])
def test_a_quota_that_limits_nothing_is_refused(catalog: Catalog, family: str) -> None:
    limit = QuotaLimit("aws", family, "any", "", "vcpu", 0.0)
    with pytest.raises(UsageError, match=f"unknown aws quota '{family}'"):
        ask(catalog, choice=Choice(quotas=(limit,), quotas_known=True), **DAY)


def test_a_quota_may_be_written_in_capitals(catalog: Catalog) -> None:
    limit = QuotaLimit("aws", "G4DN", "any", "", "vcpu", 0.0)
    choice = Choice(quotas=(limit,), quotas_known=True, providers=("aws",))
    assert ask(catalog, choice=choice, **DAY).status == "infeasible"


def test_what_wider_quotas_are_worth_is_reported_where_there_are_quotas(catalog: Catalog) -> None:
    def last(amount: float) -> SensitivityStep:
        return ask(catalog, choice=quota(amount), budget_usd=500.0).sensitivity[-1]

    assert last(8.0).change == "every quota × 1.5"
    assert "sooner" in last(8.0).effect
    assert last(10_000.0).effect == "the same plan"
    assert "quota" not in ask(catalog, budget_usd=500.0).sensitivity[-1].change


def test_no_quota_request_is_advised_for_own_machines(catalog: Catalog) -> None:
    mine = QuotaLimit("own", "lab", "any", "", "machine", 1.0)
    choice = Choice(quotas=(mine,), quotas_known=False)
    assert not any(
        "quota" in each.change for each in ask(catalog, choice=choice, budget_usd=500.0).sensitivity
    )


def test_where_nothing_is_offered_the_answer_says_so(catalog: Catalog) -> None:
    answer = ask(catalog, choice=Choice(gpus=(GpuFilter("H100"),)), **DAY)
    assert answer.status == "infeasible"
    assert answer.infeasible is not None
    assert answer.infeasible.fastest is None
    assert "no offer is left" in answer.infeasible.binding[0]
    assert "not among --gpu" in answer.infeasible.binding[0]


@pytest.mark.parametrize(
    ("limits", "progress", "message"),
    [
        ({"deadline_s": 24 * HOUR}, Progress(elapsed_s=30 * HOUR), "leaves nothing of --deadline"),
        ({"budget_usd": 24.0}, Progress(spent_usd=24.0), "leaves nothing of --budget"),
    ],
)
def test_a_limit_that_is_used_up_is_a_mistake(
    catalog: Catalog, limits: dict[str, float], progress: Progress, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        recommend(job(), Limits(**limits), catalog=catalog, progress=progress, now=NOW)  # type: ignore[arg-type]


def test_a_program_that_cannot_be_written_is_a_mistake(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--save-lp .* cannot be written"):
        recommend(
            job(), Limits(**DAY), catalog=catalog, save_lp=tmp_path / "none" / "x.lp", now=NOW
        )


def test_the_chance_at_a_known_speed_varies_with_the_market_only(catalog: Catalog) -> None:
    """On demand nothing but speed and a rare queue or fault can make a plan late."""
    on_demand = Choice(market="on_demand", on_demand_obtainable=1.0, instances=("g4dn.12xlarge",))
    plan = ask(
        catalog, choice=on_demand, deadline_s=30 * HOUR, confidence=0.5, max_machines=1
    ).plans[0]
    estimate = plan.estimate
    assert estimate.chance < 0.97
    assert estimate.chance_if_speed_known > 0.99


def test_of_regions_that_take_as_long_the_cheapest_is_advised(catalog: Catalog) -> None:
    """eu-west-1 costs 12 % more than us-east-1 and comes first in the alphabet."""
    on_demand = Choice(market="on_demand", providers=("aws",))
    for limits in ({"budget_usd": 2000.0}, {"hourly_usd": 60.0}):
        answer = ask(catalog, choice=on_demand, **limits)
        assert all(m.region.startswith("us-") for m in answer.plans[0].machines)


def test_flop_per_usd_is_the_useful_work_over_the_list_price_of_its_hours(catalog: Catalog) -> None:
    on_demand = Choice(market="on_demand", instances=("g4dn.12xlarge",))
    plan = ask(catalog, choice=on_demand, budget_usd=2000.0, max_machines=1).plans[0]
    hours = job().steps * plan.estimate.step.step_s / HOUR
    assert plan.flopp == pytest.approx(job().total_flop / (3.912 * hours))
