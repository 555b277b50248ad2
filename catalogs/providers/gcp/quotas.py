"""The quotas of a Google Cloud project by region, for `recommend catalog quotas`.

Compute Engine lists them with its regions, as metrics: NVIDIA_A100_GPUS is the quota that the
console calls "NVIDIA A100 GPUs". The newest GPUs are counted only by the Cloud Quotas service;
their names are reported as missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Failed, QuotaValue, Wanted
from recommender.catalogs.providers.gcp.client import PROJECT, Settings
from recommender.catalogs.providers.http import Web
from recommender.catalogs.providers.quotas import QuotasRead, value_of
from recommender.catalogs.schema import Quota

_ALL = "GPUS_ALL_REGIONS"  # limits the GPUs of all regions together; 0 for a new project


def read_quotas(
    web: Web, settings: Settings, wanted: Wanted, quotas: Iterable[Quota]
) -> QuotasRead:
    """Read the quotas of all regions, or of some.

    Raises:
        ProviderError: there is no project, or Compute Engine cannot be read.
    """
    if not settings.project:
        raise ProviderError("gcp", "credentials", f"set {PROJECT} to the project to read")
    known = {_metric(q.name): q for q in quotas if q.provider == "gcp"}
    values: list[QuotaValue] = []
    failed: list[Failed] = []
    try:
        for region in _regions(web, settings):
            name = str(region["name"])
            if wanted.regions and name not in wanted.regions:
                continue
            if "quotaStatusWarning" in region:
                failed.append(Failed(name, "", "its quotas could not be counted"))
            else:
                values += _values(name, region["quotas"], known)
        warnings = [*_missing(values, known), *_limit(web, settings)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"the regions have no known form ({type(error).__name__})"
        raise ProviderError("gcp", "format", reason) from error
    read = {value.region for value in values} | {place.region for place in failed}
    failed += [Failed(name, "", "no such region") for name in wanted.regions if name not in read]
    return QuotasRead(tuple(values), tuple(failed), tuple(warnings))


def _regions(web: Web, settings: Settings) -> Iterator[Any]:
    address = f"{settings.compute}/compute/v1/projects/{settings.project}/regions?maxResults=500"
    for page in web.pages(address, "items", "nextPageToken"):
        yield from page.get("items", ())


def _values(
    region: str, rows: Iterable[Mapping[str, Any]], known: Mapping[str, Quota]
) -> Iterator[QuotaValue]:
    for row in rows:
        quota, amount = known.get(str(row["metric"])), float(row["limit"])
        if quota is not None and isfinite(amount) and amount >= 0:
            yield value_of(quota, region, amount)


def _missing(values: Iterable[QuotaValue], known: Mapping[str, Quota]) -> Iterator[str]:
    found = {value.family for value in values}
    for quota in known.values():
        if quota.name not in found:
            yield f"no value of the quota {quota.name!r}; see the console"


def _limit(web: Web, settings: Settings) -> Iterator[str]:
    """Say how many GPUs all regions may hold together: no row of a quota file says that."""
    project = web.json(f"{settings.compute}/compute/v1/projects/{settings.project}")
    for row in project.get("quotas", ()):
        if row["metric"] == _ALL:
            yield f"GPUs (all regions): {float(row['limit']):g}, whatever each region allows"


def _metric(name: str) -> str:
    return "_".join(name.upper().split())
