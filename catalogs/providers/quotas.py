"""Quotas of an account, as read from a provider and in the format of `--quota`."""

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recommender.catalogs.load import load_snapshot
from recommender.catalogs.providers.contract import Counters, Failed, Fetched, QuotaValue, Wanted
from recommender.catalogs.schema import Quota

_COLUMNS = ("provider", "family", "market", "region", "unit", "amount")


def quota_text(quotas: Sequence[QuotaValue]) -> str:
    """The quotas as sorted CSV, the same bytes each time."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for q in sorted(quotas, key=lambda q: (q.provider, q.family, q.market, q.region)):
        writer.writerow([q.provider, q.family, q.market, q.region, q.unit, f"{q.amount:.15g}"])
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class QuotasRead:
    """The quotas of an account, and what could not be read."""

    values: tuple[QuotaValue, ...]
    failed: tuple[Failed, ...]
    warnings: tuple[str, ...]

    def as_fetched(self, provider: str, wanted: Wanted, counters: Counters) -> Fetched:
        """The quotas as the result of a provider."""
        return Fetched(
            provider=provider,
            started=wanted.now,
            finished=wanted.now,
            markets=frozenset(),
            offers=(),
            sources=(),
            failed=self.failed,
            quotas=self.values,
            warnings=self.warnings,
            counters=counters,
        )


def value_of(quota: Quota, region: str, amount: float) -> QuotaValue:
    """How much of a quota an account has in a region."""
    return QuotaValue(
        provider=quota.provider,
        family=quota.name,
        market="spot" if quota.market == "spot" else "on_demand",
        region=region,
        unit="gpu" if quota.unit == "gpu" else "vcpu",
        amount=amount,
    )


def folded(name: str) -> str:
    """A name without case and with single spaces: the clouds' lists differ from themselves."""
    return " ".join(name.casefold().split())


Places = Mapping[str, Mapping[str, tuple[str, ...]]]  # zones ("" if unknown) by type and region


def shipped_places(provider: str) -> Places:
    """The regions and zones of each machine of a provider in the shipped snapshot."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    o = load_snapshot().offers
    for seller, name, region, zone in zip(
        o.provider, o.instance_type, o.region, o.zone, strict=True
    ):
        if seller == provider:
            found[name][region].add(zone)
    # A price of a whole region names no zone; where others do, it is no further place.
    return {
        name: {
            region: tuple(sorted(zones - {""} or zones))
            for region, zones in sorted(regions.items())
        }
        for name, regions in sorted(found.items())
    }
