"""The machines that the user rents now, or names, as a plan for comparison."""

from dataclasses import replace

import numpy as np

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.schema import InstanceType
from recommender.errors import UsageError
from recommender.inputs.units import Comparison, format_comparison
from recommender.market.offer_facts import Pool
from recommender.optimize.candidate import Candidate
from recommender.optimize.space import OBJECT_STORE
from recommender.performance.step import why_infeasible
from recommender.plan.limits import Choice
from recommender.planner.plan_builder import Evaluated, PlanBuilder
from recommender.planner.problem import Problem
from recommender.text import shown, unknown

REGIONS_NAMED = 6  # regions that fit into one message
# What the user knows better than the catalog holds for these machines as well.
_KNOWN_BETTER = ("prices_as_quoted", "mtbf_h", "discounts", "on_demand_obtainable", "spot_laws")


def current_setup(problem: Problem, machines: Comparison, flag: str = "--compare") -> Evaluated:
    """Machines that the user names, as a plan with its chance to meet the limits.

    One region, checkpoints in a bucket, no fallback. Raises `UsageError` if they are not offered or
    they cannot train the job.
    """
    limits = problem.limits
    choice = Choice(
        accelerator="any",
        arch="any",
        failover="none",
        instances=(machines.instance_type,),
        **{name: getattr(problem.choice, name) for name in _KNOWN_BETTER},
    )
    limits = replace(limits, max_machines=max(machines.count, limits.max_machines))
    job = replace(problem.job, machines=0)
    everything = problem.under(limits).among(choice).with_job(job)
    there = everything
    if machines.region:  # else a cheaper region would replace it
        there = everything.among(replace(everything.choice, regions=(machines.region,)))
    place = _place(there, machines)
    if place is None:
        raise UsageError(f"{flag} {format_comparison(machines)}: {_why_none(everything, machines)}")
    site, entry = place
    _refuse_unable(there, machines, site, entry, flag)
    candidate = Candidate(site, (entry,), (machines.count,), OBJECT_STORE, -1)
    found = PlanBuilder(there, there.single_type_sites).build(candidate)
    return replace(found, plan=replace(found.plan, labels=("today",)))


def _place(problem: Problem, machines: Comparison) -> tuple[int, int] | None:
    """Site and entry of the machines, of the cheapest region; None where they are not offered."""
    sites = problem.single_type_sites
    found = [
        (sites.sites[s].entries.usd_per_hour[e], s, e)
        for s, pools in enumerate(sites.pools)
        for e, pool in enumerate(pools)
        if _is_named(problem, pool, machines)
    ]
    return min(found)[1:] if found else None


def _is_named(problem: Problem, pool: Pool, machines: Comparison) -> bool:
    region = problem.catalog.offers.region[pool.rows[0]]
    return pool.market == machines.market and machines.region in ("", region)


def _why_none(problem: Problem, machines: Comparison) -> str:
    """Why no offer is one of the machines that were named, and what to name instead."""
    o, name = problem.catalog.offers, machines.instance_type
    known = machine_named(name, problem.catalog)
    if isinstance(known, str):
        return known
    if not known.gpu:
        return f"{shown(name)} has no GPU; name a machine that has one"
    unable = [reason for reason in problem.columns.reasons if reason]
    if unable:
        return f"cannot train this job: {unable[0]}; name other machines"
    sold = sorted(
        {(o.market[r].replace("_", "-"), o.region[r]) for r in problem.offers.allowed.rows}
    )
    if not sold:
        return "it is not offered any more; name machines that can be rented"
    wanted = machines.market.replace("_", "-")
    places = [region for market, region in sold if market == wanted]
    if not places:
        return f"no {wanted} offer of it is known; write {sold[0][0]}"
    where = ", ".join(places[:REGIONS_NAMED]) + (
        f" and {len(places) - REGIONS_NAMED} more" if places[REGIONS_NAMED:] else ""
    )
    return f"it has no {wanted} offer in {machines.region}; name one of its regions: {where}"


def machine_named(word: str, catalog: Catalog) -> InstanceType | str:
    """The machine type of a name, or why there is none."""
    name, types = word.strip().lower(), catalog.instance_types
    key = next((key for key in types if key[1].lower() == name), None)
    if key is not None:
        return types[key]
    sold = [t for t in types.values() if t.gpu]
    having = [t.instance_type for t in sold if t.gpu.lower() == name]
    if having:
        return f"'{shown(word)}' is a GPU; name a machine type that has it, such as {having[0]}"
    names = [t.instance_type for t in sold]
    return unknown("instance type", word, names, "recommend catalog show lists what is sold")


def _refuse_unable(
    problem: Problem, machines: Comparison, site: int, entry: int, flag: str
) -> None:
    """Refuse so many machines of a type as cannot train the job, naming the number."""
    place = problem.single_type_sites.sites[site].only(np.array([entry]))
    space = problem.space(problem.single_type_sites)
    fleet = space.fleet(place, np.array([[machines.count]]))
    why = why_infeasible(problem.job, problem.columns, fleet, 0)
    if not why:
        return
    able = np.flatnonzero(np.isfinite(problem.step_s[int(fleet.kind[0])])) + 1
    instead = "no number of them can; name machines with more GPU memory"
    if len(able):
        near = able[np.abs(able - machines.count).argmin()]
        instead = f"{near} of them can"
    typed = f"{flag} {format_comparison(machines)}"
    raise UsageError(f"{typed}: cannot train this job: {why}; {instead}")
