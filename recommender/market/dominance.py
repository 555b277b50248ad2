"""Removes offers that a similar one dominates, because no best plan contains them.

A list of quotes has a hundred thousand rows and a few dozen kinds of machines, and a cloud rents
the same machine in thirty regions. They differ in the price and little else.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import ge

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.market.offer_entries import OfferEntries
from recommender.market.offer_facts import Facts, Pool, copies_usd
from recommender.market.quota_rows import max_machines_by_quota


def undominated(
    alike: Sequence[Hashable],
    usd: Sequence[float],
    merits: Sequence[tuple[float, ...]],
    machines: Sequence[float],
    most: int,
) -> list[int]:
    """Select offers that no cheaper similar one matches in everything else that counts.

    Of each kind, the cheapest are kept until `most` machines can be rented together, and more
    expensive ones that have more of something. `merits` are the columns where more is better.
    """
    kept: list[int] = []
    first: dict[Hashable, int] = {}  # of each kind
    known: dict[int, list[tuple[float, ...]]] = defaultdict(list)  # what none before has more of
    total = [0.0] * len(usd)
    for place in sorted(range(len(usd)), key=usd.__getitem__):
        kind, has = first.setdefault(alike[place], place), merits[place]
        beaten = any([_matches(other, has) for other in known[kind]])
        if beaten and total[kind] >= most:
            continue
        kept.append(place)
        total[kind] += min(machines[place], most)
        if not beaten:
            known[kind] = [each for each in known[kind] if not _matches(has, each)] + [has]
    return sorted(kept)


def undominated_by_count(
    alike: Sequence[Hashable], usd: Sequence[float], machines: Sequence[float], most: int
) -> list[int]:
    """Like `undominated`, for offers that differ only in price and number of machines.

    It compares a hundred thousand offers at once: for each kind, sorted by price, the largest
    number of a single cheaper offer and the sum of all of them.
    """
    if not len(usd):
        return []
    numbers: dict[Hashable, int] = {}
    kinds = np.array([numbers.setdefault(kind, len(numbers)) for kind in alike])
    order = np.lexsort((np.asarray(usd), kinds))
    kind = kinds[order]
    # No part of a machine can be rented; a limit of 4 is 4 and a little more.
    whole = np.minimum(np.asarray(machines)[order] + 1e-6, most).astype(np.int64)
    cheapest = np.flatnonzero(np.diff(kind, prepend=-1))[kind]
    sums = np.cumsum(whole) - whole
    together = sums - sums[cheapest]
    steps = kind * (most + 1)  # kinds on different levels: none reaches into the next
    largest = np.maximum.accumulate(whole + steps)
    largest = np.concatenate(([-1], largest[:-1])) - steps  # below 0 where no offer is cheaper
    kept = (whole > largest) | (together < most)
    return sorted(order[kept].tolist())


def _matches(some: tuple[float, ...], others: tuple[float, ...]) -> bool:
    return all(map(ge, some, others))


@dataclass(frozen=True)
class OwnOffers:
    """The user's own offers, compared by row, so that dominated rows create no machine."""

    facts: Facts
    kinds: Mapping[tuple[str, str], int]
    max_machines: int

    def undominated(self, rows: Sequence[int]) -> list[int]:
        """Select rows that the same hardware in the same region does not dominate.

        Spot machines of one name in several locations stay, because they replace each other.
        """
        o = self.facts.catalog.offers
        own = [row for row in rows if o.provider[row] == OWN]
        places = Counter(o.instance_type[row] for row in own if o.market[row] == "spot")
        names = (o.instance_type[row] for row in own)
        several = (name if places[name] > 1 else "" for name in names)
        apart = zip((o.region[row] for row in own), several, strict=True)
        usd = [self.facts.planning_price(row) for row in own]
        kept = self._kept(own, usd, apart)
        return [row for row in rows if o.provider[row] != OWN or row in kept]

    def undominated_anywhere(self, rows: Sequence[int]) -> list[int]:
        """Select rows of single-location machines that the same hardware elsewhere does not
        dominate.

        This applies the rule of `undominated_pools` before pools are built.
        """
        o, fees = self.facts.catalog.offers, self.facts.running_fees
        own = [row for row in rows if o.provider[row] == OWN]
        places = Counter(o.instance_type[row] for row in own if o.market[row] == "spot")
        spot = [r for r in own if o.market[r] == "spot" and places[o.instance_type[r]] == 1]
        spot.sort(key=o.instance_type.__getitem__)
        single = [*(row for row in own if o.market[row] != "spot"), *spot]
        price = self.facts.planning_price
        usd = [price(r) + fees(OWN, o.market[r], o.instance_type[r]) for r in single]
        beaten = {*single} - self._kept(single, usd, ((),) * len(single))
        return [row for row in rows if row not in beaten]

    def _kept(
        self, rows: Sequence[int], usd: Sequence[float], apart: Iterable[Hashable]
    ) -> set[int]:
        """The own offers that none beats of the same hardware, market and capacity."""
        facts, o, types = self.facts, self.facts.catalog.offers, self.facts.catalog.instance_types
        names, markets = [o.instance_type[row] for row in rows], [o.market[row] for row in rows]
        kinds = [self.kinds[OWN, name] for name in names]
        traced = "spot" if facts.choice.spot_laws else ""  # where each place may have its own law
        places = (row if market == traced else 0 for row, market in zip(rows, markets, strict=True))
        counted = (name in facts.counted for name in names)
        there = list(zip(kinds, markets, counted, places, strict=True))
        some = dict(zip(there, zip(names, markets, rows, strict=True), strict=True))
        laws = {  # worked out once for all alike
            key: facts.there(types[OWN, name], market, (row,))
            for key, (name, market, row) in some.items()
        }
        terms = (facts.stated_terms(OWN, m, name) for m, name in zip(markets, names, strict=True))
        kind_of_terms = (t and replace(t, instance_type="") for t in terms)
        ways = map(laws.__getitem__, there)
        alike = list(zip(kinds, markets, ways, apart, kind_of_terms, strict=True))
        machines = [math.inf] * len(rows)
        if any(quota.provider == OWN for quota in facts.choice.quotas):
            last = dict(zip(kinds, names, strict=True))
            like = {kind: types[OWN, name] for kind, name in last.items()}
            regions, hardware = (o.region[row] for row in rows), map(like.__getitem__, kinds)
            machines = list(map(facts.quotas.most_own, names, hardware, markets, regions))
        kept = undominated_by_count(alike, usd, machines, self.max_machines)
        return {rows[place] for place in kept}


def undominated_pools(entries: OfferEntries, pools: list[Pool]) -> list[Pool]:
    """Select pools of own machines that the same hardware elsewhere does not dominate."""
    if not pools or pools[0].type.provider != OWN:
        return pools
    facts, regions = entries.facts, entries.facts.catalog.offers.region
    alike = [
        (
            pool.kind,
            pool.market,
            len(pool.rows),
            len({regions[row] for row in pool.rows}),
            facts.there(pool.type, pool.market, pool.rows),
            replace(facts.terms(pool.type, pool.market), instance_type=""),
        )
        for pool in pools
    ]
    most, usd = entries.max_machines, [entries.machine_usd(pool) for pool in pools]
    machines = [max_machines_by_quota(facts, pool) for pool in pools]
    merits = [
        (min(each, most), -entries.max_usd(pool))
        for each, pool in zip(machines, pools, strict=True)
    ]
    return [pools[place] for place in undominated(alike, usd, merits, machines, most)]


def regions_worth_renting(entries: OfferEntries, pools: Sequence[Pool]) -> list[Pool]:
    """For each type and market, the cheapest region or list, and others with more of something.

    Without spot, the regions of a type differ only in price, whether the price was quoted, the
    remaining quota, and the location of the data; lists also in their length.
    """
    facts, most = entries.facts, entries.max_machines
    offers, price = facts.catalog.offers, facts.planning_price
    usd = [entries.machine_usd(pool) for pool in pools]

    def by_price(place: int) -> tuple[int, float, int, float, float]:
        pool, first = pools[place], pools[place].rows[0]
        return pool.kind, usd[place], -len(pool.rows), copies_usd(facts, (first,)), price(first)

    order = sorted(range(len(pools)), key=by_price)
    ordered = [pools[place] for place in order]
    machines = [min(max_machines_by_quota(facts, pool), most) for pool in ordered]
    merits = [
        (
            each,
            -copies_usd(facts, pool.rows),
            -entries.max_usd(pool),
            float(offers.kind[pool.rows[0]] != "derived"),
            float(len(pool.rows)) if each >= 1.0 else 0.0,
        )
        for each, pool in zip(machines, ordered, strict=True)
    ]
    kinds, usd = [(p.kind, p.market) for p in ordered], [usd[place] for place in order]
    return [ordered[place] for place in undominated(kinds, usd, merits, machines, most=0)]
