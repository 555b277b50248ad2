"""Offers that another like them beats: they are in no best plan, and the search need not meet them.

A list of quotes has a hundred thousand rows and a few dozen kinds of machines; a cloud rents the
same machine in thirty regions. What differs is the price and little besides.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from operator import ge

from recommender.catalogs.registry import OWN
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import Facts, Pool
from recommender.market.quota_rows import max_machines_by_quota


def undominated(
    alike: Sequence[Hashable],
    usd: Sequence[float],
    besides: Sequence[tuple[float, ...]],
    machines: Sequence[float],
    most: int,
) -> list[int]:
    """The places of the offers that no cheaper one like them matches in all that counts besides.

    Of each kind the cheapest stay until `most` machines can be rented together, and dearer ones
    that have more of something, `besides` being what is better if there is more of it.
    """
    kept: list[int] = []
    known: dict[Hashable, list[tuple[float, ...]]] = defaultdict(list)
    total: dict[Hashable, float] = defaultdict(float)
    for place in sorted(range(len(usd)), key=usd.__getitem__):
        kind, has = alike[place], besides[place]
        if total[kind] < most or not any(_matches(other, has) for other in known[kind]):
            kept.append(place)
            known[kind].append(has)
            total[kind] += min(machines[place], most)
    return sorted(kept)


def _matches(some: tuple[float, ...], others: tuple[float, ...]) -> bool:
    return all(map(ge, some, others))


def undominated_rows(
    facts: Facts, kinds: Mapping[tuple[str, str], int], rows: Sequence[int], most: int
) -> list[int]:
    """Offers without those of the user's own that the same hardware beats in the same region.

    Spot machines of one name in several places stay, since they stand in for each other.
    """
    o, types = facts.catalog.offers, facts.catalog.instance_types
    own = [row for row in rows if o.provider[row] == OWN]
    in_places = Counter(o.instance_type[row] for row in own if o.market[row] == "spot")
    alike: list[Hashable] = []
    for row in own:
        name, market = o.instance_type[row], o.market[row]
        several = name if market == "spot" and in_places[name] > 1 else ""
        law = facts.there(types[OWN, name], market, (row,))
        alike.append((kinds[OWN, name], market, o.region[row], law, several))
    usd = [facts.planning_price(row) for row in own]
    quotas = any(quota.provider == OWN for quota in facts.choice.quotas)
    machines = [math.inf] * len(own)
    if quotas:
        places = ((types[OWN, o.instance_type[r]], o.market[r], o.region[r]) for r in own)
        machines = [facts.quotas.most_machines(*place) for place in places]
    besides = [(min(each, most),) for each in machines]
    kept = {own[place] for place in undominated(alike, usd, besides, machines, most)}
    return [row for row in rows if o.provider[row] != OWN or row in kept]


def undominated_pools(entries: OfferEntries, pools: list[Pool]) -> list[Pool]:
    """Pools of the user's own machines without those that the same hardware beats elsewhere."""
    if not pools or pools[0].type.provider != OWN:
        return pools
    facts, regions = entries.facts, entries.facts.catalog.offers.region
    alike = [
        (
            pool.kind,
            pool.spot,
            len(pool.rows),
            len({regions[row] for row in pool.rows}),
            facts.there(pool.type, "spot" if pool.spot else "on_demand", pool.rows),
        )
        for pool in pools
    ]
    most, usd = entries.max_machines, [entries.machine_usd(pool) for pool in pools]
    machines = [max_machines_by_quota(facts, pool) for pool in pools]
    besides = [
        (min(each, most), -entries.max_usd(pool))
        for each, pool in zip(machines, pools, strict=True)
    ]
    return [pools[place] for place in undominated(alike, usd, besides, machines, most)]


def regions_worth_renting(entries: OfferEntries, pools: Sequence[Pool]) -> list[Pool]:
    """Of each type the cheapest region, and dearer ones that have more of something.

    On demand the machines of a type differ by region in nothing but their price, whether
    anybody quoted it, what the quotas leave, and where the data are. A cluster has one region.
    """
    offers, price = entries.facts.catalog.offers, entries.facts.planning_price
    ordered = sorted(pools, key=lambda pool: (pool.kind, price(pool.rows[0])))
    machines = [max_machines_by_quota(entries.facts, pool) for pool in ordered]
    besides = [
        (each, -entries.fixed_usd(pool), float(offers.kind[pool.rows[0]] != "derived"))
        for each, pool in zip(machines, ordered, strict=True)
    ]
    kinds, usd = [pool.kind for pool in ordered], [price(pool.rows[0]) for pool in ordered]
    return [ordered[place] for place in undominated(kinds, usd, besides, machines, most=0)]
