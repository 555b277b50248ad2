"""Failover lists: the locations where machines of a type are requested, in order.

For spot these are the cheapest zones of a type; in other markets its cheapest regions, for scarce
types.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import InstanceType
from recommender.market.offer_facts import Facts, Pool, continent, copies_usd, move_usd
from recommender.risk.random_numbers import MAX_LISTED_ZONES

LIST_LENGTHS = (1, 2, MAX_LISTED_ZONES)  # lengths of failover lists that are tried
# For how long people try the same place again before a checkpoint that is costly to move goes to
# another: those of these for which waiting costs no more than the move (`risk/move_after.py`). Half
# an hour spares half of the moves and hardly lengthens the tail, four hours spare three quarters.
MOVE_AFTER_S = (0.5 * 3600.0, 4 * 3600.0)
# Of its machine's price, what an hour of such waiting counts. On 55 questions (2026-11-26) a fourth
# missed plans at up to half of the time, a sixteenth found 3 % at most for 5 % more work. A wage
# would favour large machines, and answers would depend on the currency.
WAITING_SHARE = 1.0 / 8.0
LIST_PRICE_RANGE = 1.6  # a failover list holds no zone more expensive than this times its first
# Regions whose on-demand prices differ by less are listed together: a tie of the table.
ONE_PRICE = 1.002
# So many on-demand regions are listed at higher prices too. Most types have three or four at one
# price; more of them shorten waits little and made searches 14 % slower (2026-11-26).
ENOUGH_REGIONS = 3
# Of machines that are there at once so often one region is enough: each further one is a quota.
SELDOM_SHORT = 0.98


@dataclass(frozen=True)
class FailoverLists:
    """Builds the failover lists of one problem; `kinds` numbers instance types."""

    facts: Facts
    max_machines: int
    kinds: dict[tuple[str, str], int]

    def _spot_by_type(self, rows: Iterable[int]) -> dict[str, list[int]]:
        o = self.facts.catalog.offers
        return self.facts.by([r for r in rows if o.market[r] == "spot"], "instance_type")

    def across_regions(self, rows: Sequence[int]) -> list[Pool]:
        """Lists of the cheapest zones of a type, as far apart as the user and a continent allow."""
        pools: list[Pool] = []
        failover = self.facts.choice.failover
        for mine in self._spot_by_type(rows).values():
            if len(mine) == 1:  # most of a hundred thousand own machines
                pools.append(Pool((mine[0],), "spot", *self._type(mine[0])))
                continue
            if failover == "zone":
                lists = self._lists(self.facts.by(mine, "region").values())
            elif failover == "none":
                lists = self._lists([row] for row in mine)
            else:
                lists = self._on_one_continent(mine)
            patient = [each for pool in lists for each in self._with_move_after(pool)]
            if patient:
                patient += self._staying(mine)
            # By what tells them apart: the hash of a machine takes as long as ten lists.
            pools += {(each.rows, each.move_after_s): each for each in (*lists, *patient)}.values()
        return pools

    def _with_move_after(self, pool: Pool) -> list[Pool]:
        """The list with patience before its checkpoint moves, where a move is worth it."""
        saved_usd = move_usd(self.facts, pool)
        if saved_usd <= 0.0:
            return []
        usd_per_hour = WAITING_SHARE * self.facts.planning_price(pool.rows[0])
        return [
            replace(pool, move_after_s=each)
            for each in MOVE_AFTER_S
            if usd_per_hour * each / 3600.0 <= saved_usd
        ]

    def _staying(self, rows: list[int]) -> list[Pool]:
        """Lists inside one region, none with a cheaper one of as many zones: nothing moves far."""
        return self._cheapest_of_lengths(self._lists(self.facts.by(rows, "region").values()))

    def _on_one_continent(self, rows: list[int]) -> list[Pool]:
        """Lists that stay on a continent, none with a cheaper one of as many zones.

        Data seldom may leave a continent; a large checkpoint costs more to move between two than
        their prices save (11 % of a day of Llama 3.1 70B, 2026-11-27).
        """
        region, found = self.facts.catalog.offers.region, list[Pool]()
        for part in self._by_quota(rows):
            groups: dict[str, list[int]] = {}
            for row in part:
                groups.setdefault(continent(region[row]), []).append(row)
            lists = (pool for group in groups.values() for pool in self._prefixes(self.of(group)))
            found += self._cheapest_of_lengths(lists)
        return found

    def _cheapest_of_lengths(self, pools: Iterable[Pool]) -> list[Pool]:
        """The lists without those that have a cheaper one of as many zones."""
        price = self.facts.planning_price
        kept: dict[int, Pool] = {}
        for pool in sorted(pools, key=lambda each: sum(map(price, each.rows)) / len(each.rows)):
            if not any(length >= len(pool.rows) for length in kept):
                kept[len(pool.rows)] = pool
        return list(kept.values())

    def _lists(self, groups: Iterable[Sequence[int]]) -> list[Pool]:
        """The lists of each group of places, by its quotas and of each length."""
        parts = [part for group in groups for part in self._by_quota(group)]
        return [pool for part in parts for pool in self._prefixes(self.of(part))]

    def _by_quota(self, rows: Sequence[int]) -> list[list[int]]:
        """The places of a type that may hold as many machines, for each such number.

        A list is no longer than its smallest quota: places without one are in no list.
        """
        if not self.facts.choice.quotas:
            return [list(rows)]
        o, by_quota = self.facts.catalog.offers, self.facts.quotas.most_machines
        most = [
            int(min(by_quota(self._type(r)[1], o.market[r], o.region[r]), self.max_machines))
            for r in rows
        ]
        levels = sorted({n for n in most if n > 0}) or [0]
        return [[r for r, n in zip(rows, most, strict=True) if n >= level] for level in levels]

    def _prefixes(self, pool: Pool) -> list[Pool]:
        """A list and its shorter beginnings: fewer zones are cheaper, more are interrupted less."""
        lengths = sorted({min(length, len(pool.rows)) for length in LIST_LENGTHS})
        return [pool.at(pool.rows[:length]) for length in lengths]

    def inside_region(self, rows: Sequence[int]) -> list[Pool]:
        """Lists within one region, for clusters that mix entries."""
        most = 1 if self.facts.choice.failover == "none" else None
        return [self.of(mine[:most]) for mine in self._spot_by_type(rows).values()]

    def across_regions_held(self, pools: Sequence[Pool]) -> list[Pool]:
        """Lists of the cheapest regions of scarce types without spot, from pools of one region.

        The first region that has the machines is used, so regions with the same price are in the
        same lists.
        """
        if self.facts.choice.failover != "region":
            return list(pools)
        found: list[Pool] = []
        for _, mine in sorted(self._by_type(pools).items()):
            found += self._lists_held(mine) if self._is_scarce(mine[0]) else mine
        return found

    def _by_type(self, pools: Sequence[Pool]) -> dict[tuple[str, str, bool], list[Pool]]:
        """Pools by type and market; derived prices form pools of their own, without quoted ones."""
        kind = self.facts.catalog.offers.kind
        found: dict[tuple[str, str, bool], list[Pool]] = {}
        for pool in pools:
            key = pool.type.instance_type, pool.market, kind[pool.rows[0]] == "derived"
            found.setdefault(key, []).append(pool)
        return found

    def _is_scarce(self, pool: Pool) -> bool:
        at_once, wait_s, _ = self.facts.wait(pool.type, pool.market)
        return at_once < SELDOM_SHORT and wait_s > 0.0 and pool.type.provider != OWN

    def _lists_held(self, pools: Sequence[Pool]) -> list[Pool]:
        """Lists of the cheapest regions of a type, and of those that spare copies of the data."""
        price, region = self.facts.planning_price, self.facts.catalog.offers.region
        regions: dict[str, int] = {}
        for row in sorted((pool.rows[0] for pool in pools), key=lambda r: (price(r), r)):
            regions.setdefault(region[row], row)
        copies = {row: copies_usd(self.facts, (row,)) for row in regions.values()}
        lists: dict[tuple[int, ...], None] = {}
        for part in self._by_quota(list(regions.values())):
            cheapest = sorted(part, key=lambda r: (price(r), copies[r], region[r]))
            nearest = sorted(cheapest, key=copies.__getitem__)
            for ordered in (cheapest, nearest):
                for rows in self._beginnings(ordered, copies):
                    lists[tuple(sorted(rows, key=price))] = None
        return [pools[0].at(rows) for rows in lists]

    def _beginnings(self, ordered: list[int], copies: dict[int, float]) -> Iterator[list[int]]:
        """Beginnings of a list whose next region would cost more or need a copy of the data.

        Up to `ENOUGH_REGIONS`, and beyond at the same price.
        """
        prices = list(map(self.facts.planning_price, ordered))
        for length in range(1, min(len(ordered), MAX_LISTED_ZONES) + 1):
            listed, mean = ordered[:length], sum(prices[:length]) / length
            if length == min(len(ordered), MAX_LISTED_ZONES):
                yield listed
            elif prices[length] > ONE_PRICE * mean or copies[ordered[length]] > 0.0:
                yield listed
                if length >= ENOUGH_REGIONS and prices[length] > ONE_PRICE * prices[length - 1]:
                    return

    def of(self, rows: Sequence[int]) -> Pool:
        """The list of some locations: the cheapest first, none much more expensive."""
        o = self.facts.catalog.offers
        ordered = sorted(rows, key=lambda r: (self.facts.planning_price(r), o.region[r], o.zone[r]))
        most = self.facts.planning_price(ordered[0]) * LIST_PRICE_RANGE
        kept = [r for r in ordered if self.facts.planning_price(r) <= most][:MAX_LISTED_ZONES]
        return Pool(tuple(kept), "spot", *self._type(kept[0]))

    def _type(self, row: int) -> tuple[int, InstanceType]:
        o = self.facts.catalog.offers
        key = (o.provider[row], o.instance_type[row])
        return self.kinds[key], self.facts.catalog.instance_types[key]
