"""The quotas of an account and, on request, spot placement scores.

Quotas are found by their names, because codes differ between sources and new families get new ones.
A score of 1 to 10 says how likely a request is to succeed now. It is not an interruption rate and
not part of an offer, so it is only reported. AWS accepts about ten new queries a day per account
(docs of GetSpotPlacementScores), and scores fewer than three types always low.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.aws.client import Caller
from recommender.catalogs.providers.contract import QuotaValue
from recommender.catalogs.providers.quotas import folded, value_of
from recommender.catalogs.schema import InstanceType, Quota

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


SETTING = "RECOMMEND_AWS_SCORES"
_QUESTIONS = 10
_TYPES = 3
_REGIONS = 10  # a question may name no more


def quota_names(quotas: Iterable[Quota]) -> dict[str, Quota]:
    """AWS's quotas that limit machines of the catalog, by the folded form of their names."""
    return {folded(quota.name): quota for quota in quotas if quota.provider == "aws"}


def read_quotas(
    caller: Caller, region: str, names: Mapping[str, Quota]
) -> tuple[tuple[QuotaValue, ...], tuple[str, ...]]:
    """Read an account's quotas in a region, and return which names were not listed.

    Raises:
        ProviderError: they cannot be read.
    """
    client = caller.quotas(region)
    listing = client.get_paginator("list_service_quotas").paginate(ServiceCode="ec2")
    found: dict[str, QuotaValue] = {}
    for page in caller.pages("servicequotas:ListServiceQuotas", listing):
        for quota in page.get("Quotas", []):
            known, amount = names.get(folded(quota.get("QuotaName", ""))), quota.get("Value")
            if known and amount is not None and isfinite(amount) and amount >= 0:
                found[known.name] = value_of(known, region, amount)
    missing = sorted({quota.name for quota in names.values()} - found.keys())
    return tuple(found[name] for name in sorted(found)), tuple(missing)


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
