"""Which of the user's quotas a pool falls under, found without asking each of them.

An account has thousands of quotas (families, regions, markets), a catalog as many pools: asked one
by one, 10,000 of them took longer than the search. Of two on the same the lesser one holds.
"""

from collections.abc import Iterable, Sequence

from recommender.plan.limits import QuotaLimit


class QuotaIndex:
    """The user's quotas by provider, name, market and region."""

    def __init__(self, limits: Iterable[QuotaLimit]) -> None:
        least: dict[tuple[str, str, str, str, str], QuotaLimit] = {}
        for limit in limits:
            family = limit.quota_family.casefold()
            key = (limit.provider, family, limit.market, limit.region, limit.unit)
            known = least.get(key)
            if known is None or limit.amount < known.amount:
                least[key] = limit
        self._limits = tuple(least.values())
        self._found: dict[tuple[str, str], dict[tuple[str, str], list[int]]] = {}
        for number, (provider, family, market, region, _) in enumerate(least):
            places = self._found.setdefault((provider, family), {})
            places.setdefault((market, region), []).append(number)

    def __bool__(self) -> bool:
        return bool(self._limits)

    def of(
        self, provider: str, market: str, region: str, names: Sequence[str]
    ) -> tuple[QuotaLimit, ...]:
        """The quotas of a place that bear one of some names, in the order they were given."""
        numbers: set[int] = set()
        for name in names:
            places = self._found.get((provider, name.casefold()))
            if places is not None:
                for place in (("any", ""), ("any", region), (market, ""), (market, region)):
                    numbers.update(places.get(place, ()))
        return tuple(self._limits[number] for number in sorted(numbers))
