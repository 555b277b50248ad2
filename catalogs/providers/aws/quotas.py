"""The quotas of an account and, on request, spot placement scores.

Quotas are found by their names, because codes differ between sources and new families get new ones.
A score of 1 to 10 says how likely a request is to succeed now. It is not an interruption rate and
not part of an offer, so it is only reported. AWS accepts about ten new queries a day per account
(docs of GetSpotPlacementScores), and scores fewer than three types always low.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.aws.client import Caller
from recommender.catalogs.providers.contract import QuotaValue
from recommender.catalogs.schema import InstanceType, Quota

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


_ON_DEMAND, _SPOT = re.compile(r"Running On-Demand .+"), re.compile(r"All .+ Spot .+")
SETTING = "RECOMMEND_AWS_SCORES"
_QUESTIONS = 10
_TYPES = 3
_REGIONS = 10  # a question may name no more


def quota_names(quotas: tuple[Quota, ...]) -> dict[str, str]:
    """The names of AWS's quotas that limit machines of the catalog, by their folded form."""
    return {_folded(quota.name): quota.name for quota in quotas if quota.provider == "aws"}


def read_quotas(
    caller: Caller, region: str, names: Mapping[str, str]
) -> tuple[tuple[QuotaValue, ...], tuple[str, ...]]:
    """Read an account's quotas in a region, and return which names were not listed.

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


def scores_wanted() -> bool:
    """Whether the environment requests scores."""
    return os.environ.get(SETTING, "") == "1"


def score_notes(caller: Caller, client: "EC2Client") -> tuple[str, ...]:
    """Query the scores of each GPU with at least three machines; one line for each."""
    groups = list(_groups(caller.wanted.types).items())[:_QUESTIONS]
    notes: list[str] = []
    for gpu, names in groups:
        try:
            zones = _scores(caller, client, names)
        except ProviderError as error:
            return (*notes, f"no spot placement scores of {gpu} and what follows: {error.reason}")
        best = ", ".join(f"{zone} {score}" for score, zone in zones)
        notes.append(f"spot placement now, one machine with {gpu}, of 10: {best or 'no zone'}")
    return tuple(notes)


def _scores(caller: Caller, client: "EC2Client", names: Sequence[str]) -> list[tuple[int, str]]:
    listing = client.get_paginator("get_spot_placement_scores").paginate(
        InstanceTypes=list(names),
        TargetCapacity=1,
        TargetCapacityUnitType="units",
        SingleAvailabilityZone=True,
        RegionNames=list(caller.wanted.regions[:_REGIONS]),  # none: all regions
    )
    found = [
        (each.get("Score", 0), each.get("AvailabilityZoneId") or each.get("Region", ""))
        for page in caller.pages("ec2:GetSpotPlacementScores", listing)
        for each in page.get("SpotPlacementScores", [])
    ]
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def _groups(types: Mapping[str, InstanceType]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, machine in sorted(types.items()):
        if machine.gpu and machine.status in ("open", "spot_only"):
            groups.setdefault(machine.gpu, []).append(name)
    return dict(_large(groups))


def _large(groups: Mapping[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    return ((gpu, names) for gpu, names in sorted(groups.items()) if len(names) >= _TYPES)
