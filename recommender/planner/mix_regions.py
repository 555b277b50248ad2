"""The regions in which clusters of several types are looked for, the most promising first."""

import numpy as np

from recommender.market.sites import SitePools
from recommender.planner.problem import Problem

# Regions tried where quotas bind or mixes are asked for: of the cheapest work and of most compute.
CHEAPEST, FASTEST = 6, 2


def mix_regions(problem: Problem, likely: set[tuple[str, str]]) -> SitePools:
    """The sites of the likely regions for mixes and, where these often pay, of others."""
    if problem.choice.mix == "no" or problem.limits.max_machines < 2 or not problem.rows:
        return SitePools()
    chosen = likely | (_regions(problem) if searched_in_full(problem) else set())
    o = problem.catalog.offers
    rows = [row for row in problem.rows if (o.provider[row], o.region[row]) in chosen]
    return problem.site_space.builder.region_sites(rows, problem.single_type_sites)


def searched_in_full(problem: Problem) -> bool:
    """Whether mixes are looked for in many regions: where they often pay, or were asked for."""
    choice = problem.choice
    asked = choice.mix == "yes" or choice.checkpoint_to == "anchor"
    return asked or bool(problem.job.elastic) or problem.quotas_bind


def _regions(problem: Problem) -> set[tuple[str, str]]:
    """Regions by what their work costs with the machines that the deadline needs, and by speed."""
    o, kinds, step_s = problem.catalog.offers, problem.offers.kinds.of, problem.step_s
    quotas, price = problem.facts.quotas, problem.facts.planning_price
    types, machines = problem.catalog.instance_types, problem.limits.max_machines
    offers: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for row in problem.rows:
        key = o.provider[row], o.instance_type[row]
        speed = 1.0 / float(step_s[kinds[key], 0]) if step_s[kinds[key], 0] > 0.0 else 0.0
        if not np.isfinite(step_s[kinds[key], 0]):  # alone it cannot hold the job
            best = step_s[kinds[key]].argmin()
            speed = 1.0 / float(step_s[kinds[key], best] * (best + 1))
        if speed <= 0.0:
            continue
        most = min(quotas.most_machines(types[key], o.market[row], o.region[row]), machines)
        if most >= 1.0:
            place = o.provider[row], o.region[row]
            offers.setdefault(place, []).append((price(row) / speed, speed, most))
    due_s = problem.limits.deadline_s
    needed = 0.0 if due_s is None else problem.steps_left / due_s
    ranked = {place: _filled(mine, needed, machines) for place, mine in offers.items()}
    by_cost = sorted(ranked, key=lambda place: (ranked[place][0], place))
    by_speed = sorted(ranked, key=lambda place: (-ranked[place][1], place))
    return {*by_cost[:CHEAPEST], *by_speed[:FASTEST]}


def _filled(
    offers: list[tuple[float, float, float]], needed: float, machines: int
) -> tuple[float, float]:
    """The price per work of a region at a speed, cheapest work first, and its most speed.

    The relaxation of the program of `optimize/mixes.py` under one limit on machines.
    """
    usd = speed = most = left = 0.0
    left = float(machines)
    for per_work, each, count in sorted(offers):
        taken = min(count, left, max((needed - speed) / each, 1.0 if speed == 0.0 else 0.0))
        usd, speed, left = usd + per_work * each * taken, speed + each * taken, left - taken
        if speed >= needed or left <= 0.0:
            break
    for _, each, count in sorted(offers, key=lambda offer: -offer[1])[:machines]:
        most += each * min(count, float(machines))
    short = max(needed / max(speed, 1e-30), 1.0)
    return usd / max(speed, 1e-30) * short**4, most
