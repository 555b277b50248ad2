"""The regions in which clusters of several types are looked for, the most promising first."""

from recommender.catalogs.frozen import dataclass
from recommender.market.sites import SitePools
from recommender.optimize.mixes import machine_s
from recommender.planner.problem import Problem

# Regions tried where quotas bind or mixes are asked for: of the cheapest work, and of each provider
# those with the most compute, of both markets and on demand.
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


Place = tuple[str, str]  # provider and region


@dataclass(frozen=True, slots=True)
class _Offer:
    """Machines of one offer that may be rented in a region."""

    usd_per_work: float
    speed: float  # of one machine
    most: float  # machines
    spot: bool


def _regions(problem: Problem) -> set[Place]:
    """Regions by what their work costs with the machines that the deadline needs, and by speed."""
    offers, machines = _offers(problem), problem.limits.max_machines
    due_s = problem.limits.deadline_s
    needed = 0.0 if due_s is None else problem.steps_left / due_s
    by_cost = sorted(offers, key=lambda place: (_filled(offers[place], needed, machines), place))
    chosen = set(by_cost[:CHEAPEST])
    for provider in {place[0] for place in offers}:
        mine = [place for place in offers if place[0] == provider]
        for spot in (True, False):
            by_speed = sorted(mine, key=lambda place: (-_most_speed(offers[place], spot), place))
            chosen |= set(by_speed[:FASTEST])
    return chosen


def _offers(problem: Problem) -> dict[Place, list[_Offer]]:
    o, kinds, step_s = problem.catalog.offers, problem.offers.kinds.of, problem.step_s
    quotas, price = problem.facts.quotas, problem.facts.planning_price
    types, machines = problem.catalog.instance_types, problem.limits.max_machines
    one_s = machine_s(step_s)
    found: dict[Place, list[_Offer]] = {}
    for row in problem.rows:
        key = o.provider[row], o.instance_type[row]
        speed = 1.0 / float(one_s[kinds[key]])  # 0 if no cluster of it can hold the job
        most = min(quotas.most_machines(types[key], o.market[row], o.region[row]), machines)
        if speed > 0.0 and most >= 1.0:
            spot = o.market[row] == "spot"
            offer = _Offer(price(row) / speed, speed, float(int(most)), spot)
            found.setdefault((o.provider[row], o.region[row]), []).append(offer)
    return found


def _most_speed(offers: list[_Offer], spot: bool) -> float:
    """The compute of a region, of spot machines too or on demand alone."""
    return sum(each.speed * each.most for each in offers if spot or not each.spot)


def _filled(offers: list[_Offer], needed: float, machines: int) -> float:
    """The price per work of a region at a speed, cheapest work first; worse where it is too slow.

    The relaxation of the program of `optimize/mixes.py` under one limit on machines.
    """
    usd, speed, left = 0.0, 0.0, float(machines)
    for each in sorted(offers, key=lambda offer: offer.usd_per_work):
        wanted = max((needed - speed) / each.speed, 1.0 if speed == 0.0 else 0.0)
        taken = min(each.most, left, wanted)
        usd, speed = usd + each.usd_per_work * each.speed * taken, speed + each.speed * taken
        left -= taken
        if speed >= needed or left <= 0.0:
            break
    return usd / max(speed, 1e-30) * max(needed / max(speed, 1e-30), 1.0) ** 4
