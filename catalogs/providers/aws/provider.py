"""AWS: list prices of all regions, spot prices of the account's regions, Capacity Blocks.

Uses credentials of the standard chain (minimal permissions: deploy/aws-iam-policy.json). Without
them, or if the Price List API cannot be read, on-demand prices come from AWS's price pages, and
spot prices stay as they were. AWS does not sell flex-start.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.providers.aws import assemble
from recommender.catalogs.providers.aws.client import HOME, Caller, Tasks
from recommender.catalogs.providers.aws.machines import Machines, machines_of
from recommender.catalogs.providers.aws.price_list import Listed, Listing, list_prices, merged
from recommender.catalogs.providers.aws.quotas import (
    quota_names,
    read_quotas,
    score_notes,
    scores_wanted,
)
from recommender.catalogs.providers.aws.regions import RegionRead, account_regions, read_region
from recommender.catalogs.providers.contract import Failed, Fetched, QuotaValue, Wanted
from recommender.catalogs.providers.http import Patience
from recommender.catalogs.providers.public.aws import (
    ADVISOR,
    DOCUMENTS,
    PAGES,
    Ranges,
    listed_prices,
    read_advisor,
)
from recommender.catalogs.providers.quotas import QuotasRead
from recommender.catalogs.schema import InstanceType, Market

_REGIONS_AT_ONCE = 8
_NO_CREDENTIALS = ProviderError(
    "aws", "credentials", "no credentials were found; see `aws configure` or set AWS_PROFILE"
)


@dataclass(frozen=True, slots=True)
class Prices:
    """The list prices, or why there are none."""

    listing: Listing
    source: str
    failed: tuple[Failed, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Places:
    """Where the public files are."""

    documents: str = DOCUMENTS
    advisor: str = ADVISOR


@dataclass(slots=True)
class _Notes:
    """What is gathered on the way."""

    failed: list[Failed] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    errors: list[ProviderError] = field(default_factory=list)


class Aws:
    """A client of AWS."""

    name = "aws"

    def __init__(self, places: Places | None = None, patience: Patience | None = None) -> None:
        self._places, self._patience = places or Places(), patience

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read everything requested; see `Provider.fetch`."""
        caller = Caller(wanted, self._patience)
        if wanted.parts == {"quotas"}:
            return _fetched_quotas(caller)
        return self._offers(caller, time.monotonic())

    def _offers(self, caller: Caller, began: float) -> Fetched:
        wanted, notes = caller.wanted, _Notes()
        try:
            known = caller.has_credentials()
        except ProviderError as error:
            notes.warnings.append(error.reason)
            known = False
        pricing = None
        if "on_demand" in wanted.parts:
            pricing = Tasks({"": partial(self._prices, caller, known)}, 1)
        advice = Tasks({"": partial(self._advice, caller)}, 1)
        reads = _regions(caller, known, notes)
        machines = machines_of({name: read.machines for name, read in reads.items()}, wanted)
        if reads and scores_wanted():
            notes.warnings += score_notes(caller, caller.ec2(HOME))
        prices = _done(pricing, wanted, notes)
        if prices and prices.source == assemble.API and machines.new:
            prices = _with_new(caller, prices, machines, notes)
        return _fetched(
            caller, began, reads, machines, prices, _ranges(advice, wanted, notes), notes
        )

    def _advice(self, caller: Caller) -> Ranges:
        with caller.web() as web:
            return read_advisor(web, self._places.advisor)

    def _prices(self, caller: Caller, known: bool) -> Prices:
        warnings: tuple[str, ...] = ()
        machines: Mapping[str, InstanceType | None] = caller.wanted.types
        if known:
            try:
                listing = list_prices(caller, machines)
                caller.wanted.progress(f"{listing.rows} list prices")
                return Prices(merged([listing]), assemble.API)
            except ProviderError as error:
                caller.wanted.check_time("aws")
                warnings = (f"{error.reason}; the public price pages are read",)
        with caller.web() as web:
            found, failed = listed_prices(web, caller.wanted, self._places.documents)
        if not found:
            raise next(iter(failed.values()))
        lost = tuple(Failed(region, "on_demand", e.reason) for region, e in failed.items())
        return Prices(_listing(found), PAGES, lost, warnings)


def provider() -> Aws:
    """Make the client; credentials come from boto3's standard chain."""
    return Aws()


def _listing(prices: Mapping[tuple[str, str], float]) -> Listing:
    found = [Listed(name, region, usd) for (name, region), usd in prices.items()]
    return Listing(found, rows=len(found))


def _regions(caller: Caller, known: bool, notes: _Notes) -> dict[str, RegionRead]:
    """Read the account's regions; what fails is noted for spot prices and blocks."""
    wanted = caller.wanted
    try:
        if not known:
            raise _NO_CREDENTIALS
        regions = account_regions(caller)
    except ProviderError as error:
        notes.errors.append(error)
        notes.failed += [Failed("", market, error.reason) for market in _by_region(wanted)]
        return {}
    chosen = [name for name in regions.enabled if not wanted.regions or name in wanted.regions]
    shut = [name for name in wanted.regions if name not in regions.enabled]
    notes.failed += [Failed(name, "", "not enabled in this account") for name in shut]
    if regions.disabled and not wanted.regions:
        names = ", ".join(regions.disabled)
        notes.warnings.append(f"not enabled in this account, so without spot prices: {names}")
    clients = {name: caller.ec2(name) for name in chosen}
    tasks = {name: partial(read_region, caller, client, name) for name, client in clients.items()}
    found, failed = Tasks(tasks, _REGIONS_AT_ONCE).results(wanted)
    notes.errors += failed.values()
    for market in _by_region(wanted):
        notes.failed += _lost({name: error.reason for name, error in failed.items()}, market, found)
    spot = {name: e.reason for name, read in found.items() if (e := read.spot_error)}
    notes.errors += [read.spot_error for read in found.values() if read.spot_error]
    notes.failed += _lost(spot, "spot", found.keys() - spot.keys())
    return found


def _lost(reasons: Mapping[str, str], market: Market, rest: object) -> list[Failed]:
    """One line for each lost region, or for all of them where they were lost alike."""
    if not rest and len(set(reasons.values())) == 1:
        return [Failed("", market, next(iter(reasons.values())))]
    return [Failed(region, market, reason) for region, reason in sorted(reasons.items())]


def _by_region(wanted: Wanted) -> Sequence[Market]:
    markets: tuple[Market, ...] = ("spot", "reserved_block")
    return [market for market in markets if market in wanted.parts]


def _done(tasks: Tasks[Prices] | None, wanted: Wanted, notes: _Notes) -> Prices | None:
    if tasks is None:
        return None
    found, failed = tasks.results(wanted)
    for error in failed.values():
        notes.errors.insert(0, error)
        notes.failed.append(Failed("", "on_demand", error.reason))
        return Prices(Listing(), "")
    prices = found[""]
    if not prices.listing.prices:
        error = ProviderError("aws", "format", "the price list holds no on-demand price")
        notes.errors.insert(0, error)
        notes.failed.append(Failed("", "on_demand", error.reason))
    notes.failed += prices.failed
    notes.warnings += prices.warnings
    return prices


def _with_new(caller: Caller, prices: Prices, machines: Machines, notes: _Notes) -> Prices:
    """The prices of machines that the catalog did not know before."""
    names = {machine.instance_type: machine for machine in machines.new}
    try:
        more = list_prices(caller, names)
    except ProviderError as error:
        notes.warnings.append(f"{len(names)} new machines without a list price: {error.reason}")
        return prices
    return Prices(merged([prices.listing, more]), prices.source, prices.failed)


def _ranges(tasks: Tasks[Ranges], wanted: Wanted, notes: _Notes) -> Ranges:
    found, failed = tasks.results(wanted)
    notes.warnings += [f"no ranges of interruption: {error.reason}" for error in failed.values()]
    return found.get("", {})


def _fetched(
    caller: Caller,
    began: float,
    reads: Mapping[str, RegionRead],
    machines: Machines,
    prices: Prices | None,
    ranges: Ranges,
    notes: _Notes,
) -> Fetched:
    wanted = caller.wanted
    listing = prices.listing if prices else Listing()
    notes.failed += assemble.lost_blocks(reads, notes.warnings)
    blocks_read = "reserved_block" in wanted.parts and assemble.blocks_allowed(reads)
    made = assemble.Maker(wanted, machines.new, ranges)
    listed, unsold = made.on_demand(listing, reads)
    offers = [*listed, *made.by_zone(reads)]
    if not offers:
        raise notes.errors[0] if notes.errors else ProviderError("aws", "format", "no offers")
    if unsold:
        notes.warnings.append(f"{unsold} list prices of machines not sold in the region")
    rows, ignored = assemble.counts(listing, reads)
    ignored += unsold + made.unknown_quotes(reads)
    return Fetched(
        provider="aws",
        started=wanted.now,
        finished=wanted.now + timedelta(seconds=time.monotonic() - began),
        markets=wanted.listed_markets | ({"reserved_block"} if blocks_read else set()),
        offers=tuple(offers),
        sources=assemble.sources(prices.source if prices else ""),
        types=machines.new,
        unknown_types=machines.unknown,
        quarantined=assemble.quarantined(listing, reads),
        failed=tuple(notes.failed),
        warnings=(*notes.warnings, *machines.warnings),
        counters=caller.counters(rows, ignored),
    )


def _fetched_quotas(caller: Caller) -> Fetched:
    """Read the account's quotas in its regions."""
    wanted = caller.wanted
    if not caller.has_credentials():
        raise _NO_CREDENTIALS
    regions = account_regions(caller)
    names = quota_names(load_snapshot().quotas)
    chosen = [name for name in regions.enabled if not wanted.regions or name in wanted.regions]
    tasks = {name: partial(read_quotas, caller, name, names) for name in chosen}
    found, failed = Tasks(tasks, _REGIONS_AT_ONCE).results(wanted)
    shut = {name: "not enabled in this account" for name in wanted.regions if name not in chosen}
    lost = shut | {name: error.reason for name, error in failed.items()}
    quotas: list[QuotaValue] = [value for values, _ in found.values() for value in values]
    if not quotas and failed:
        raise next(iter(failed.values()))
    missing = sorted({name for _, names_ in found.values() for name in names_})
    read = QuotasRead(
        tuple(quotas),
        tuple(Failed(name, "", reason) for name, reason in sorted(lost.items())),
        tuple(f"no value of the quota {name!r} in some region" for name in missing),
    )
    return read.as_fetched("aws", wanted, caller.counters(len(quotas), 0))
