"""What runs a plan behaves by its own rules: against arithmetic, on capacity that never comes."""

from dataclasses import replace

import pytest

from recommender.plan.limits import Limits
from recommender.plan.plan import Plan
from recommender.risk.policy import failover_round_s
from recommender.risk.spot_capacity import CLASS_CAPACITY
from recommender.simulation.executors import AS_COUNTED, executor_runs
from tests.recommender.export.runs import GCP, ON_DEMAND
from tests.recommender.risk.cases import PLAIN, path_inputs

HOUR = 3600.0
LIMITS = Limits(deadline_s=100 * HOUR)
NEVER = -8.0  # logit of capacity whose outages last five years
RESCUED = path_inputs({
    **PLAIN, "availability_logit": NEVER, "run_mean_s": 50_000.0, "fallback_speed": 1.0,
    "fallback_usd_per_hour": 20.0, "fallback_start_s": 600.0, "reserve_s": 900.0,
})  # fmt: skip


def runs(executor: str, plan: Plan = GCP.plan) -> dict[str, tuple[float, float, float, float]]:
    """Cost, time, chance and share of the runs with on-demand machines, by executor."""
    found = executor_runs(executor, plan, RESCUED, LIMITS, CLASS_CAPACITY, 64, 7)
    return {r.name: (r.cost.mean, r.time.p50, r.chance, r.fallback_share) for r in found}


def test_skypilot_rents_on_demand_after_one_round_and_the_plan_when_time_is_short():
    found = runs("skypilot")
    work_s, start_s = PLAIN["work_s"], 600.0
    usd = 20.0 * (work_s + start_s) / HOUR
    counted, listed = found[AS_COUNTED], found["skypilot, on-demand ends its list"]
    assert listed == pytest.approx((usd, failover_round_s(1) + start_s + work_s, 1.0, 1.0))
    assert counted == pytest.approx((usd, 100 * HOUR - 900.0, 1.0, 1.0))


def test_without_a_manual_switch_nothing_takes_over_and_the_deadline_is_missed():
    for executor in ("skypilot", "terraform", "slurm", "torchrun"):
        alone = runs(executor)[f"{executor}, no switch"]
        assert alone[1] > 100 * HOUR
        assert alone[2:] == (0.0, 0.0)


@pytest.mark.parametrize("executor", ["aws-cli", "gcloud", "azure-cli"])
def test_the_scripts_of_the_clouds_follow_the_rule_of_the_plan(executor: str):
    assert list(runs(executor)) == [AS_COUNTED]


def test_on_demand_machines_of_another_number_cannot_end_the_list():
    late = GCP.plan.fallback
    assert late is not None
    two = replace(late, machines=(replace(late.machines[0], count=2),))
    assert "skypilot, on-demand ends its list" not in runs(
        "skypilot", replace(GCP.plan, fallback=two)
    )
    assert list(runs("skypilot", ON_DEMAND.plan)) == [AS_COUNTED]


def test_dstack_stays_in_the_first_zone():
    assert list(runs("dstack")) == [AS_COUNTED, "dstack, no switch, one zone"]
