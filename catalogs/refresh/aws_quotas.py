"""The quotas of an account, for `recommend catalog quotas`.

Quotas are found by their names: codes differ between sources, and new families get new ones.
"""

import re
from collections.abc import Iterator, Mapping
from math import isfinite

from catalogs.refresh.aws_calls import Caller
from catalogs.refresh.harvest import QuotaValue
from catalogs.schema import Quota

_ON_DEMAND, _SPOT = re.compile(r"Running On-Demand .+"), re.compile(r"All .+ Spot .+")


def quota_names(quotas: tuple[Quota, ...]) -> dict[str, str]:
    """The names of AWS's quotas that limit machines of the catalog, by their folded form."""
    return {_folded(quota.name): quota.name for quota in quotas if quota.provider == "aws"}


def read_quotas(
    caller: Caller, region: str, names: Mapping[str, str]
) -> tuple[tuple[QuotaValue, ...], tuple[str, ...]]:
    """Read an account's quotas in a region, and say which of the names it did not list.

    Raises:
        ProviderError: they cannot be read.
    """
    client = caller.quotas(region)
    listing = client.get_paginator("list_service_quotas").paginate(ServiceCode="ec2")
    found: dict[str, float] = {}
    for page in caller.pages("servicequotas:ListServiceQuotas", listing):
        for quota in page.get("Quotas", []):
            name, amount = names.get(_folded(quota.get("QuotaName", ""))), quota.get("Value")
            if name and amount is not None and isfinite(amount) and amount >= 0:
                found[name] = amount
    missing = sorted(set(names.values()) - found.keys())
    return tuple(_values(region, found)), tuple(missing)


def _values(region: str, found: Mapping[str, float]) -> Iterator[QuotaValue]:
    for name, amount in sorted(found.items()):
        if _ON_DEMAND.fullmatch(name):
            yield QuotaValue("aws", name, "on_demand", region, "vcpu", amount)
        elif _SPOT.fullmatch(name):
            yield QuotaValue("aws", name, "spot", region, "vcpu", amount)


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())
