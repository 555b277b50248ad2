"""The machines that the user rents now, or names, as one more plan to compare with."""

from dataclasses import replace

from recommender.errors import UsageError
from recommender.inputs.units import Comparison
from recommender.market.offer_facts import Pool
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import OBJECT_STORE
from recommender.plan.limits import Choice
from recommender.planner.plan_builder import Evaluated, PlanBuilder
from recommender.planner.problem import Problem
from recommender.text import nearest

# What the user knows better than the catalog holds for these machines as well.
_KNOWN_BETTER = ("prices_as_quoted", "mtbf_h", "discounts", "on_demand_obtainable", "spot_laws")


def current_setup(problem: Problem, machines: Comparison, flag: str = "--compare") -> Evaluated:
    """Machines that the user names, as a plan with its chance to keep the limits.

    One region, checkpoints in a bucket, no fallback. Raises `UsageError` where nobody offers them
    or they cannot train the job.
    """
    limits = problem.limits
    everything = replace(
        problem,
        choice=Choice(
            accelerator="any",
            arch="any",
            failover="none",
            instances=(machines.instance_type,),
            **{name: getattr(problem.choice, name) for name in _KNOWN_BETTER},
        ),
        limits=replace(limits, max_machines=max(machines.count, limits.max_machines)),
    )
    site, entry = _place(everything, machines, flag)
    candidate = Candidate(site, (entry,), (machines.count,), OBJECT_STORE, -1, 0, 0, 0, 0, 0)
    return PlanBuilder(everything, everything.single_type_sites).build(candidate).labelled("today")


def _place(problem: Problem, machines: Comparison, flag: str) -> tuple[int, int]:
    """Site and entry of the machines; the cheapest region where none is named."""
    sites = problem.single_type_sites
    found = [
        (sites.sites[s].entries.usd_per_hour[e], s, e)
        for s, pools in enumerate(sites.pools)
        for e, pool in enumerate(pools)
        if _is_named(problem, pool, machines)
    ]
    if not found:
        where = f" in {machines.region}" if machines.region else ""
        names = [name for _, name in problem.catalog.instance_types]
        raise UsageError(
            f"{flag}: no {machines.market.replace('_', '-')} offer of {machines.instance_type}"
            f"{where} that can train this job{_hint(machines.instance_type, names)}"
        )
    _, site, entry = min(found)
    return site, entry


def _is_named(problem: Problem, pool: Pool, machines: Comparison) -> bool:
    region = problem.catalog.offers.region[pool.rows[0]]
    return pool.spot == (machines.market == "spot") and machines.region in ("", region)


def _hint(word: str, names: list[str]) -> str:
    meant = nearest(word, names)
    return f"; did you mean {meant}?" if meant and meant != word else ""
