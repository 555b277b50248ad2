"""The quotas of an account that apply to a machine, by market and region."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Literal

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import CLOUDS, OWN
from recommender.catalogs.schema import InstanceType, Quota
from recommender.plan.limits import ACCOUNTS, OTHERS, QuotaLimit

# Limits over the limits of families: they bind every machine of the cloud, of a market or of all.
OVER = {"azure": ("Total Regional vCPUs",), "gcp": ("GPUS_ALL_REGIONS",)}

NO_QUOTA = "none"  # the quota market of machines that count on none


class QuotaIndex:
    """The user's quotas, indexed by provider, name, market and region.

    An account has thousands of quotas (families, regions, markets) and a catalog as many pools.
    Checking 10,000 of them one by one took longer than the search. Of two for the same thing the
    smaller applies.
    """

    def __init__(self, limits: Iterable[QuotaLimit]) -> None:
        least: dict[tuple[str, str, str, str, str], QuotaLimit] = {}
        for limit in limits:
            family = limit.quota_family.casefold()
            key = (limit.provider, family, limit.market, limit.region, limit.unit)
            known = least.get(key)
            if known is None or limit.amount < known.amount:
                least[key] = limit
        self._limits = tuple(least.values())
        self._found: dict[tuple[str, str, str], list[int]] = {}
        for number, (provider, family, _, region, _) in enumerate(least):
            self._found.setdefault((provider, family, region), []).append(number)

    def of(
        self, provider: str, market: str, region: str, names: Sequence[str]
    ) -> tuple[QuotaLimit, ...]:
        """The quotas of a location with one of these names, in the order given."""
        find = self._found.get
        numbers = {
            number
            for name in names
            for where in ("", region)
            for number in find((provider, name.casefold(), where), ())
        }
        found = (self._limits[number] for number in sorted(numbers))
        return tuple([limit for limit in found if limit.market in ("any", market)])


@dataclass(frozen=True)
class AccountQuotas:
    """The quotas that apply to a machine; unlisted ones of a listed cloud are 0."""

    catalog: Catalog
    limits: Sequence[QuotaLimit]

    @cached_property
    def given(self) -> frozenset[str]:
        """The clouds with given quotas."""
        return frozenset(limit.provider for limit in self.limits) & frozenset(CLOUDS)

    def of(self, t: InstanceType, market: str, region: str) -> tuple[QuotaLimit, ...]:
        """The quotas that apply to a machine; one of 0 if its cloud's list does not name it."""
        if market == NO_QUOTA:
            return ()
        key = (t.provider, t.instance_type, market, region)
        if key not in self._found:
            self._found[key] = self._of(t, market, region)
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[str, str, str, str], tuple[QuotaLimit, ...]]:
        return {}

    def _of(self, t: InstanceType, market: str, region: str) -> tuple[QuotaLimit, ...]:
        quota, named = self.quota(t, market), self._named(t, market, region)
        over = self._index.of(t.provider, market, region, OVER.get(t.provider, ()))
        if t.gpus == 0:
            over = tuple(each for each in over if each.unit == "vcpu")
        if named:
            shared = () if quota is None else self._shared(quota, region)
            return tuple(dict.fromkeys((*named, *shared, *over)))
        if t.provider not in self.given:
            return ()
        name = t.quota_family if quota is None else quota.name
        return (QuotaLimit(t.provider, name, "any", "", "machine", 0.0),)

    def _named(self, t: InstanceType, market: str, region: str) -> tuple[QuotaLimit, ...]:
        """The user's quotas that name a machine, or those of all others."""
        place, names = (t.provider, market, region), quota_names(t, self.quota(t, market))
        return self._index.of(*place, names) or self._index.of(*place, (OTHERS,))

    @cached_property
    def _shared(self) -> Callable[[Quota, str], tuple[QuotaLimit, ...]]:
        """One quota of the provider, in a region, whose families the user gave one by one.

        Their machines count together, up to the most that is given for one of them.
        """
        return cache(self._joint)

    def _joint(self, quota: Quota, region: str) -> tuple[QuotaLimit, ...]:
        types = self._types_by_quota.get((quota.provider, quota.name, quota.market), [])
        named = [(t, self._named(t, quota.market, region)) for t in types]
        given = [(t, limits) for t, limits in named if limits]
        if not given:
            return ()
        most = max(_most(t, limits) * quota_use(t, quota.unit) for t, limits in given)
        if math.isinf(most) or set.intersection(*(set(limits) for _, limits in given)):
            return ()  # unlimited, or under one name already
        everywhere = all(limit.region == "" for _, limits in given for limit in limits)
        place = "" if everywhere else region
        market, unit = _bought(quota.market), _counted(quota)
        return (QuotaLimit(quota.provider, quota.name, market, place, unit, round(most, 6)),)

    @cached_property
    def _types_by_quota(self) -> dict[tuple[str, str, str], list[InstanceType]]:
        """The machines of each quota that several families share."""
        families: dict[tuple[str, str, str], set[str]] = {}
        for q in self._quotas.values():
            families.setdefault((q.provider, q.name, q.market), set()).add(q.quota_family)
        types: dict[tuple[str, str], list[InstanceType]] = {}
        for provider, name in self.catalog.instance_types:  # own ones, many, are not made here
            if provider in self.given:
                t = self.catalog.instance_types[provider, name]
                types.setdefault((provider, t.quota_family), []).append(t)
        return {
            key: [t for family in sorted(shared) for t in types.get((key[0], family), ())]
            for key, shared in families.items()
            if len(shared) > 1
        }

    @cached_property
    def _index(self) -> QuotaIndex:
        return QuotaIndex(self.limits)

    def quota(self, t: InstanceType, market: str) -> Quota | None:
        """The provider's quota for a machine in a market."""
        return self._quotas.get((t.provider, t.quota_family, market))

    @cached_property
    def _quotas(self) -> dict[tuple[str, str, str], Quota]:
        quotas = reversed(self.catalog.quotas)  # of several of a family the first counts
        return {(q.provider, q.quota_family, q.market): q for q in quotas}

    def most_machines(self, t: InstanceType, market: str, region: str) -> float:
        """The largest number of machines of a type that a region's quotas allow."""
        if not self.limits:
            return float("inf")
        return _most(t, self.of(t, market, region))

    def most_own(self, name: str, like: InstanceType, market: str, region: str) -> float:
        """The number of one of the user's own machines; `like` has the same hardware."""
        place, index = (OWN, market, region), self._index
        return _most(like, index.of(*place, (name,)) or index.of(*place, (OTHERS,)))


def quotas_of_account(word: str, catalog: Catalog) -> tuple[QuotaLimit, ...]:
    """What a new account may run ("default-new"), or as much as anybody needs ("granted")."""
    if word == ACCOUNTS["old"]:
        return tuple(
            QuotaLimit(provider, OTHERS, "any", "", "machine", math.inf)
            for provider in dict.fromkeys(quota.provider for quota in catalog.quotas)
        )
    stated = tuple(
        QuotaLimit(t.provider, t.instance_type or OTHERS, _bought(t.market), "", "machine", most)
        for t in catalog.billing
        if (most := t.new_account) is not None
    )
    return stated + tuple(
        QuotaLimit(q.provider, q.quota_family, _bought(q.market), "", _counted(q), q.default_new)
        for q in catalog.quotas
    )


def _bought(market: str) -> Literal["spot", "on_demand"]:
    return "spot" if market == "spot" else "on_demand"


def _counted(quota: Quota) -> Literal["gpu", "vcpu"]:
    return "gpu" if quota.unit == "gpu" else "vcpu"


def _most(t: InstanceType, limits: Iterable[QuotaLimit]) -> float:
    most = float("inf")
    for each in limits:
        use = quota_use(t, each.unit)
        if use > 0:
            most = min(most, each.amount / use)
    return most + 1e-9


def quota_names(t: InstanceType, quota: Quota | None) -> tuple[str, ...]:
    """The names by which a user may give the quotas of a machine.

    These are its family's code in the catalog ("p5", "H100"), the machine family ("p5en",
    "a3-highgpu"), their prefixes ("P", "a3", "NC"), and the full name.
    """
    known = [t.quota_family, t.family]
    cloud = CLOUDS.get(t.provider)
    if cloud is not None:
        begins = (re.match(cloud.family_pattern, name) for name in (t.quota_family, t.family))
        known += [found[0] for found in begins if found]
    known += [] if quota is None else [quota.name]
    return tuple(dict.fromkeys(name for name in known if name))


def quota_use(t: InstanceType, unit: str) -> float:
    """How much of a quota one machine uses."""
    if unit == "machine":
        return 1.0
    return float(t.vcpus if unit == "vcpu" else t.gpus)
