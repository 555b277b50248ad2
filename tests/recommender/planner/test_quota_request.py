"""With too little quota an answer names the smallest that would do, and where to ask for it."""

from dataclasses import replace

import pytest

from recommender.catalogs.registry import CLOUDS, OWN_CLIENTS
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, GpuFilter, Limits, Progress, QuotaLimit
from recommender.planner.problem import planning_problem
from recommender.planner.quota_request import smallest_requests
from recommender.text import duration
from tests.recommender.optimize.samples import sampled
from tests.recommender.planning import HOUR, NOW, job, recommend
from tests.shipped import snapshot

CATALOG = snapshot()
NEWCOMER = tuple(
    QuotaLimit(
        q.provider, q.quota_family, "spot" if q.market == "spot" else "on_demand", "",
        "gpu" if q.unit == "gpu" else "vcpu", q.default_new,
    )
    for q in CATALOG.quotas
)  # fmt: skip
NEW = Choice(quotas=NEWCOMER, quotas_known=True)
LIMITS = {
    "nothing": Limits(max_machines=6),
    "deadline": Limits(deadline_s=15 * HOUR, max_machines=6),
    "budget": Limits(budget_usd=130.0, max_machines=6),
    "both": Limits(deadline_s=20 * HOUR, budget_usd=120.0, max_machines=6),
    "hourly": Limits(hourly_usd=1.0, max_machines=6),
}


@pytest.mark.parametrize("provider", OWN_CLIENTS)
@pytest.mark.parametrize("name", sampled(LIMITS, ("deadline", "budget")))
def test_what_is_requested_is_enough_and_less_is_not(name: str, provider: str) -> None:
    """Asked again with that quota alone there is a plan on demand, and with a bit less none."""
    limits, choice = LIMITS[name], replace(NEW, providers=(provider,))
    problem = planning_problem(job(), limits, choice, CATALOG, Progress(), NOW, 7)
    (plan,) = smallest_requests(problem)
    (need,) = plan.needs
    assert {m.market for m in plan.machines} == {"on_demand"}
    for share, status in ((1.0, "ok"), (0.99, "infeasible")):
        every = tuple(
            QuotaLimit(provider, q.name, "on_demand", "", unit, share * need.amount)
            for q in CATALOG.quotas
            if q.provider == provider and q.market == "on_demand"
            for unit in ("gpu" if q.unit == "gpu" else "vcpu",)
        )
        asked = replace(choice, quotas=every, market="on_demand", mix="no")
        answer = recommend(job(), limits, asked, catalog=CATALOG, now=NOW)
        assert answer.status == status


def test_a_new_account_learns_which_quotas_to_request_where() -> None:
    choice = replace(NEW, gpus=(GpuFilter("T4"),))  # which all of them have
    answer = recommend(job("3"), LIMITS["deadline"], choice, catalog=CATALOG, now=NOW)
    assert answer.infeasible is not None
    steps = 0
    for name in OWN_CLIENTS:
        cloud = CLOUDS[name]
        (said,) = (line for line in answer.infeasible.binding if f"on {cloud.label}, " in line)
        assert said.endswith(f"request it at {cloud.quota_page}")
        assert cloud.quota_page.startswith("https://")
        asked = (s for s in answer.infeasible.relaxed if s.change.startswith(f"{cloud.label} q"))
        for plan in (step.plan for step in asked if step.plan):
            steps += 1
            assert plan.machines[0].provider == name
            assert f'"{plan.needs[0].name}" in {plan.needs[0].region}' in said
            assert f" USD, {duration(plan.estimate.time.p50)}; request it at" in said
    assert steps


def test_on_spot_one_quota_in_one_region_is_requested() -> None:
    choice = replace(NEW, market="spot")
    problem = planning_problem(job(), Limits(max_machines=4), choice, CATALOG, Progress(), NOW, 7)
    plans = smallest_requests(problem)
    assert len(plans) == len(OWN_CLIENTS)
    for plan in plans:
        (need,) = plan.needs
        assert {m.market for m in plan.machines} == {"spot"}
        assert {site.region for site in plan.sites} == {need.region}


def test_where_more_quota_would_not_help_none_is_requested() -> None:
    hopeless = Limits(deadline_s=60.0, max_machines=2)
    problem = planning_problem(job(), hopeless, NEW, CATALOG, Progress(), NOW, 7)
    assert smallest_requests(problem) == ()
    enough = tuple(replace(q, amount=1e6) for q in NEWCOMER)
    rich = problem.among(replace(NEW, quotas=enough)).under(LIMITS["deadline"])
    assert smallest_requests(rich) == ()


@pytest.mark.slow
def test_a_budget_where_quotas_leave_a_few_spot_machines_alone_has_an_answer() -> None:
    quotas = (
        QuotaLimit("azure", "others", "spot", "eastus", "vcpu", float("inf")),
        QuotaLimit("aws", "P", "on_demand", "us-east-1", "vcpu", 4.0),
    )
    choice, limits = Choice(quotas=quotas, quotas_known=True), Limits(budget_usd=60.0)
    answer = recommend(find_job("llama3-8b-lora"), limits, choice, catalog=CATALOG, now=NOW)
    assert answer.plans or answer.infeasible
