"""What a plan comes to as tools run it that cannot do all of it, by the second simulator."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.plan.as_run import IN_BUCKET, NO_SWITCH, ON_VOLUME, ONE_ZONE, lacking, variants
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import AsRun, Plan
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.ranking import ranked_plans
from tests.recommender.planning import HOUR, NOW
from tests.recommender.simulation.agreement import by_events
from tests.shipped import snapshot

DEADLINE_S = 14 * HOUR


@cache
def plans(checkpoint_to: str, market: str, *instances: str) -> list[Evaluated]:
    """The best plans of some machine types, those with a fallback where there are any."""
    choice = Choice(
        checkpoint_to=checkpoint_to,
        providers=("aws",),
        instances=instances,
        mix="no",
        market=market,
    )
    limits = Limits(deadline_s=DEADLINE_S, max_machines=4)
    problem = planning_problem(
        find_job("resnet50-imagenet"), limits, choice, snapshot(), Progress(), NOW, 7
    )
    pool = PlanPool(problem)
    found = ranked_plans(pool, 3).plans
    late = [each for each in found if each.plan.fallback is not None]
    return [pool.builder.in_full(each) for each in late or found]


def by_lack(plan: Plan) -> dict[tuple[str, ...], AsRun]:
    """What it comes to, by what is left out."""
    return {each.lacking: each for each in plan.as_run}


def test_without_a_switch_and_in_one_zone_it_comes_to_what_the_second_simulator_finds() -> None:
    one = plans("object_store", "any", "g5.12xlarge")[0]
    alone = replace(one.inputs, fallback_speed=np.zeros(1))
    found = by_lack(one.plan)[lacking("slurm", one.plan)]
    seen = by_events(alone, DEADLINE_S, 1500, "no switch")
    assert found.cost_usd == pytest.approx(seen["expected_usd"].mean(), rel=0.05)
    assert found.chance == pytest.approx((seen["time_s"] <= DEADLINE_S).mean(), abs=0.04)
    assert found.probability == 0.0
    assert found.chance <= one.plan.estimate.chance


def test_every_variant_of_a_plan_has_figures_and_what_no_tool_lacks_has_none() -> None:
    for one in plans("object_store", "any", "g5.12xlarge"):
        assert [each.lacking for each in one.plan.as_run] == list(variants(one.plan))
        assert all(np.isfinite([each.cost_usd, each.time_s]).all() for each in one.plan.as_run)
        assert one.plan.in_bucket is None


def test_what_is_lacking_depends_on_what_a_plan_does() -> None:
    plan = plans("object_store", "any", "g5.12xlarge")[0].plan
    assert NO_SWITCH in lacking("slurm", plan)
    assert NO_SWITCH not in lacking("gcloud", plan)
    assert NO_SWITCH not in lacking("slurm", replace(plan, fallback=None))
    assert ON_VOLUME in lacking("dstack", plan)
    assert (ONE_ZONE in lacking("dstack", plan)) == (len(plan.sites) > 1)
    safe = replace(plan.checkpointing, path="none")
    assert lacking("dstack", replace(plan, fallback=None, checkpointing=safe)) == ()


def test_a_plan_with_receivers_of_its_own_says_how_it_saves_to_a_bucket() -> None:
    found = plans("memory_tier", "spot", "g6.2xlarge", "p4d.24xlarge")
    assert found
    for one in found:
        stored = one.plan.in_bucket
        assert stored is not None
        assert stored.path == "object_store"
        assert stored.interval_s >= stored.lag_s
        for target in ("aws-cli", "skypilot", "slurm"):
            assert IN_BUCKET in lacking(target, one.plan)
        assert by_lack(one.plan)[lacking("aws-cli", one.plan)].cost_usd > 0.0
