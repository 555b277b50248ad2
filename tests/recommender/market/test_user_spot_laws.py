"""A user's law stands where it was measured, and nowhere else."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recommender.catalogs.catalog import Catalog
from recommender.market.offer_facts import Facts, Pool
from recommender.market.sites import SiteBuilder
from recommender.market.user_spot_laws import (
    law_of_failover_list,
    user_law,
    with_user_law,
)
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits, OfferLaw
from tests.catalogs.small import machine
from tests.recommender import planning
from tests.recommender.optimize.samples import sampled
from tests.recommender.traces.test_law_store import LAW
from tests.shipped import snapshot

T4 = machine(provider="aws", instance_type="g4dn.xlarge", gpu="T4", gpus=1)
CLASS = replace(
    snapshot().spot_classes[0],
    spot_class="small",
    run_mean_s=12_000.0,
    run_sigma=1.9,
    outage_sigma=1.4,
    availability=0.6,
    availability_slope=0.13,
    zone_sd=1.4,
    co_interruption=0.9,
    correlation_region=0.37,
    held=False,
    basis="measured",
)


def law(place: str, name: str, run_mean_s: float = 7200.0) -> OfferLaw:
    return replace(LAW, provider="aws", place=place, machine=name, run_mean_s=run_mean_s)


@pytest.mark.parametrize(
    ("laws", "chosen"),
    [
        ([law("*", "T4"), law("us-east-1", "T4")], 1),
        ([law("us-east-1", "T4"), law("us-east-1-a", "T4")], 1),
        ([law("us-east-1-a", "T4"), law("us-east-1", "g4dn.xlarge")], 0),
        ([law("us-east-1", "T4:1"), law("us-east-1", "t4")], 0),
        ([law("us-east-1", "T4:1"), law("us-east-1", "G4DN.XLARGE")], 1),
        ([law("*", "T4", 1.0), law("*", "T4", 2.0)], 1),
    ],
)
def test_the_narrowest_law_counts(laws: list[OfferLaw], chosen: int) -> None:
    assert user_law(laws, T4, "us-east-1", "us-east-1-a") is laws[chosen]


@pytest.mark.parametrize(
    "other",
    [law("us-west-2", "T4"), law("*", "T4:4"), law("*", "L4"), replace(LAW, machine="T4")],
)
def test_a_law_of_another_offer_does_not_count(other: OfferLaw) -> None:
    assert user_law([other], T4, "us-east-1", "us-east-1-a") is None


def test_what_a_trace_does_not_show_stays_as_it_was() -> None:
    own = with_user_law(CLASS, law("*", "T4"))
    assert (own.run_mean_s, own.run_sigma, own.availability) == (7200.0, 1.5, 0.7)
    assert (own.zone_sd, own.availability_slope, own.co_interruption) == (1.4, 0.13, 0.9)
    assert (own.basis, own.as_of) == ("your trace", "2026-03-16")
    assert own.spot_class == "zone a, 2026-03-01 to 2026-03-15"
    assert own.correlation_region == 0.37


def test_short_runs_of_one_machine_move_the_slope() -> None:
    """Runs of mean 1200·e^(σ²/2) s have their median at 20 minutes: half are expected short."""
    base = replace(CLASS, run_mean_s=1200.0 * math.exp(0.5 * 1.9**2), availability_slope=1.0)
    alike, more, all_short = (replace(law("*", "T4"), short_runs=x) for x in (0.5, 0.7, 1.0))
    assert with_user_law(base, alike).availability_slope == pytest.approx(1.0, abs=1e-5)
    assert with_user_law(base, more).availability_slope == pytest.approx(1.0 - 0.2 * 2.6, abs=1e-5)
    assert (
        with_user_law(base, all_short).availability_slope == 0.0
    )  # a gang loses nothing, not less


def test_a_measured_gang_counts_more_than_short_runs() -> None:
    both = replace(law("*", "T4"), short_runs=0.9, availability_slope=3.0)
    assert with_user_law(CLASS, both).availability_slope == 3.0


def test_the_spread_of_levels_is_never_below_the_class_s() -> None:
    narrow, wide = (replace(law("*", "T4"), zone_sd=sd) for sd in (0.3, 2.2))
    assert with_user_law(CLASS, narrow).zone_sd == 1.4
    assert with_user_law(CLASS, wide).zone_sd == 2.2


def test_a_list_of_zones_meets_in_the_middle() -> None:
    own = with_user_law(CLASS, law("us-east-1", "T4", 3000.0))
    assert law_of_failover_list([CLASS, CLASS]) is CLASS
    assert law_of_failover_list([own, own]) is own
    mixed = law_of_failover_list([CLASS, own])
    assert mixed.run_mean_s == pytest.approx(math.sqrt(12_000.0 * 3000.0))
    odds = math.sqrt(0.6 / 0.4 * 0.7 / 0.3)
    assert mixed.availability == pytest.approx(odds / (1 + odds))
    assert mixed.basis == "your trace, 1 of 2 zones"
    assert mixed.run_sigma == CLASS.run_sigma  # the first zone's


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The small catalog: T4 machines in three AWS regions and one of Google's."""
    return planning.written(tmp_path_factory.mktemp("catalog"))


def asked(
    catalog: Catalog, *laws: OfferLaw, instances: tuple[str, ...] = (), **limits: Any
) -> Answer:
    choice = Choice(
        providers=("aws",),
        market="spot",
        failover="none",
        mix="no",
        spot_laws=laws,
        instances=instances,
    )
    return planning.ask(catalog, choice=choice, **limits)


def first_region(answer: Answer) -> str:
    return answer.plans[0].machines[0].region


def test_a_plan_follows_the_law_of_its_zone_and_says_so(catalog: Catalog) -> None:
    one = {"instances": ("g4dn.xlarge",), "max_machines": 1, "budget_usd": 100.0}
    plain = asked(catalog, **one)  # the fastest for the money
    home = first_region(plain)
    bad = replace(law(home, "T4:1"), availability=0.02, run_mean_s=600.0, zone_sd=0.1)
    moved = asked(catalog, bad, **one)
    assert first_region(moved) != home
    assert not any("your trace" in text for text in moved.assumptions)
    good = replace(law(home, "T4:1"), availability=0.99, run_mean_s=900_000.0, zone_sd=0.1)
    stayed = asked(catalog, good, **one)
    assert first_region(stayed) == home
    spot = stayed.plans[0].spot
    assert spot is not None
    assert (spot.run_mean_s, spot.basis) == (900_000.0, "your trace")
    sentence = "spot law: your trace of zone a, 2026-03-01 to 2026-03-15, fitted 2026-03-16"
    assert sentence in stayed.assumptions
    assert stayed.plans[0].estimate.time.mean < plain.plans[0].estimate.time.mean


def test_a_law_of_a_region_without_plans_changes_nothing(catalog: Catalog) -> None:
    elsewhere = replace(law("mars-1", "T4"), availability=0.5)
    assert asked(catalog, elsewhere).plans == asked(catalog).plans


def test_a_list_is_charged_by_the_zone_that_is_up(catalog: Catalog) -> None:
    """Two zones: the second is paid while the first, known to be there a third, is away."""
    home = replace(law("us-east-1-a", "T4:1"), availability=1 / 3)
    o = catalog.offers
    rows = [
        r
        for r in range(len(o))
        if (o.instance_type[r], o.market[r], o.region[r]) == ("g4dn.xlarge", "spot", "us-east-1")
    ]
    facts = Facts(catalog, Choice(spot_laws=(home,)), planning.job(), planning.NOW)
    t = catalog.instance_types["aws", "g4dn.xlarge"]
    builder = SiteBuilder(
        facts, Limits().max_machines, {("aws", "g4dn.xlarge"): 0}, np.ones((1, 1)), 1.0
    )
    second = facts.spot_class(t).availability
    weights = (1 / 3, 2 / 3 * second)
    price = sum(w * facts.planning_price(r) for w, r in zip(weights, rows, strict=True))
    expected = price / sum(weights) + facts.running_fees("aws", "spot")
    assert builder.entries.machine_usd(Pool(tuple(rows), "spot", 0, t)) == pytest.approx(expected)
    assert facts.spot_class(t, rows).basis == "your trace, 1 of 2 zones"


@pytest.mark.parametrize("deadline_h", sampled((None, 30.0), (30.0,)))
@pytest.mark.parametrize("run_h", sampled((0.3, 3.0, 40.0), (3.0,)))
def test_the_search_stays_exact_under_own_laws(
    catalog: Catalog, deadline_h: float | None, run_h: float
) -> None:
    """The best plan is no worse than the best of every instance type requested alone."""
    own = replace(law("us-east-1", "T4:1"), run_mean_s=run_h * 3600.0, run_sigma=0.7)
    deadline = None if deadline_h is None else deadline_h * 3600.0
    limits = {"deadline_s": deadline, "budget_usd": 400.0 if deadline is None else None}
    whole = asked(catalog, own, **limits)
    for name in ("g4dn.xlarge", "g4dn.12xlarge"):
        for region in ("us-east-1", "eu-west-1"):
            choice = Choice(
                regions=(region,), instances=(name,), market="spot", failover="none", mix="no",
                spot_laws=(own,),
            )  # fmt: skip
            part = planning.ask(catalog, choice=choice, **limits)
            if part.status == "ok":
                assert goal(whole, deadline) <= goal(part, deadline) * 1.001


def goal(answer: Answer, deadline: float | None) -> float:
    """What is minimised, of the best plan by it: cost under a deadline, else time."""
    plan = answer.plans[answer.best - 1]
    return plan.estimate.time.trimmed_mean if deadline is None else plan.estimate.cost.mean
