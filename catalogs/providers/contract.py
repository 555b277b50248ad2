"""The contract between a refresh and the client of a provider: request and result.

A client of a provider is a module `providers/<name>/provider.py` (aws, gcp, azure) with a function
`provider() -> Provider` that takes nothing: credentials come from the standard chains, from an
environment variable or from a file, never from a flag. A client only *reads and reports*. It
neither compares with older prices nor publishes; that is done for all of them in one place.
Its rules:

* An offer is a whole machine in one place in one market. Where a part of its price is missing,
  no offer is handed over but a `Quarantined` row with the reason.
* Nothing is skipped in silence: what matched no allow-list is `Quarantined`, or counted in
  `Counters.ignored` where it is known not to be meant (another operating system, no GPU VM).
* One region that fails is a `Failed` place, not an exception; its last good offers stay.
* `ProviderError` is raised where nothing useful can be handed over.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.schema import Gpu, InstanceType, Kind, Market, Offer, Source

Part = Literal["on_demand", "spot", "reserved_block", "quotas"]
OFFERS: frozenset[Part] = frozenset({"on_demand", "spot", "reserved_block"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a refresh requests from one provider.

    `types` are the machines of this provider that the catalog can describe, by name: offers of
    other machines need a row in `Fetched.types`. `gpus` are all GPUs that are known, by short
    name. `regions` limits the call; empty means all that the account may use.
    """

    types: Mapping[str, InstanceType]
    gpus: Mapping[str, Gpu]
    now: datetime  # UTC; what `as_of` and `started` are taken from
    parts: frozenset[Part] = frozenset({"on_demand", "spot"})
    regions: tuple[str, ...] = ()
    stop_at: float = float("inf")  # on time.monotonic(): after it no new call is made
    call_timeout_s: float = 30.0  # of one call
    copies: Path | None = None  # a folder for copies of public files, to fetch changes only
    progress: Callable[[str], None] = field(default=lambda message: None)  # one short line

    @property
    def listed_markets(self) -> frozenset[Market]:
        """The requested markets with a price list: on demand and spot."""
        listed: tuple[Market, ...] = ("on_demand", "spot")
        return frozenset(market for market in listed if market in self.parts)

    @property
    def today(self) -> str:
        """The `as_of` date of a price fetched now."""
        return self.now.date().isoformat()

    def check_time(self, provider: str) -> None:
        """Raise after the deadline; call it before every request.

        Raises:
            ProviderError: of kind "timeout".
        """
        if time.monotonic() >= self.stop_at:
            raise ProviderError(provider, "timeout", "the time for this provider is over")


class SeenPages:
    """Ends a listing that repeats itself or never ends."""

    def __init__(self, provider: str, most: int) -> None:
        self._provider, self._left = provider, most
        self._seen: set[bytes] = set()

    def add(self, rows: object) -> None:
        """Note the rows of a page.

        Raises:
            ProviderError: of kind "format": they were listed before, or the pages are too many.
        """
        content = rows if isinstance(rows, bytes) else repr(rows).encode()
        mark = hashlib.sha256(content).digest()
        self._left -= 1
        if self._left < 0 or (rows and mark in self._seen):
            reason = "the pages of a list never end, or repeat themselves"
            raise ProviderError(self._provider, "format", reason)
        self._seen.add(mark)


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that was not understood or not accepted, and so is not offered."""

    provider: str
    what: str  # names the row: instance type, region, SKU description, usage type
    reason: str
    rule: str  # short name to count by: "unknown_description", "missing_part", "unit", ...


@dataclass(frozen=True, slots=True)
class Failed:
    """A region that could not be read; its last good offers stay, with their own age."""

    region: str  # "" for all regions of the market
    market: Market | Literal[""]  # "" for all markets of the region
    reason: str


@dataclass(frozen=True, slots=True)
class PartPrice:
    """The price of a part that machines' prices are added up from; checked before the sums."""

    part: str  # the same every night, and no name of a machine: "core of A2"
    region: str
    market: Market
    usd_per_hour: float
    machines: tuple[str, ...]  # whose prices contain it


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A machine with a GPU that the catalog cannot describe, so plans cannot use it."""

    instance_type: str
    gpu: str  # as the provider names it
    gpus: float  # a fraction where the provider rents out parts of a GPU
    regions: int  # in how many regions it is offered
    reason: str  # "GPU not known", "part of a GPU", "memory not stated", ...


@dataclass(frozen=True, slots=True)
class QuotaValue:
    """How much an account may run: a row of a quota file (`--quota`)."""

    provider: str
    family: str  # the provider's own name of the quota, as in the catalog's quotas table
    market: Literal["on_demand", "spot", "any"]
    region: str  # "" for every region
    unit: Literal["vcpu", "gpu", "machine"]
    amount: float


@dataclass(frozen=True, slots=True)
class Counters:
    """The cost of a fetch: requests, bytes, rows."""

    calls: int = 0
    retries: int = 0
    pages: int = 0
    raw_rows: int = 0  # SKUs, price list items, spot quotes, retail prices: as received
    ignored: int = 0  # of these, known not to be meant
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a provider's fetch.

    `offers` name their `source` by a number of `sources` in this fetch (from 1 on); the
    store renumbers them, and knows a source again by its words: they hold no date. `as_of` of
    a price in force now is `Wanted.today`, even where it last changed weeks ago; of a public list
    it is the list's own date (`since`). Offers carry a zone where the provider prices zones (AWS
    spot: the zone's id, not the account's name of
    it; GCP: every zone that has the machine) and "" where the price holds for the region (AWS
    on-demand, Azure); `kind` ("quote"; "composed" for a sum of parts), `uncertainty` 0,
    `flag` "", `obtainable` (usually that of the type's `status`) and, on AWS spot, the
    `interruption_range`. Spot prices at the floor are flagged, and those that are no bargain
    left out, when the fetch is validated: hand over what was read.
    """

    provider: str
    started: datetime  # UTC
    finished: datetime  # UTC
    markets: frozenset[Market]  # those read: their offers replace all older ones but `failed`
    offers: tuple[Offer, ...]
    sources: tuple[Source, ...]
    types: tuple[InstanceType, ...] = ()  # described by the provider, not in Wanted.types
    unknown_types: tuple[UnknownType, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    parts: tuple[PartPrice, ...] = ()  # of the sums among the offers
    contradicted: tuple[str, ...] = ()  # types whose on-demand prices contradict the provider's own
    failed: tuple[Failed, ...] = ()
    quotas: tuple[QuotaValue, ...] = ()
    warnings: tuple[str, ...] = ()
    counters: Counters = Counters()
    # Of a public list, which names some machines and states its own date: the machines that it
    # names (None: all; the last prices of others stay) and the first day of its prices.
    machines: frozenset[str] | None = None
    since: str = ""

    def replaces(self, offer: Offer) -> bool:
        """Whether what was read is of the same market and machine as an older offer."""
        named = self.machines is None or offer.instance_type in self.machines
        return named and offer.market in self.markets


def read_offer(
    machine: InstanceType,
    region: str,
    market: Market,
    usd_per_hour: float,
    *,
    source: int,
    as_of: str,
    zone: str = "",
    kind: Kind = "quote",
) -> Offer:
    """A price of a known machine as it was read; what it is worth is told when it is validated."""
    return Offer(
        provider=machine.provider,
        instance_type=machine.instance_type,
        region=region,
        zone=zone,
        market=market,
        usd_per_hour=usd_per_hour,
        obtainable=machine.status,
        kind=kind,
        flag="",
        uncertainty=0.0,
        interruption_range=None,
        source=source,
        as_of=as_of,
    )


class Provider(Protocol):
    """A client of one cloud provider."""

    @property
    def name(self) -> str:
        """The provider as catalogs name it: "aws", "gcp", "azure"."""

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read everything requested.

        Raises:
            ProviderError: where nothing can be handed over: no credentials, no connection,
                an answer in no known form, the deadline has passed.
        """


T = TypeVar("T")


class ThreadResult(Generic[T]):
    """The result of a thread, or its failure."""

    def __init__(self) -> None:
        self.future: Future[T] = Future()

    def __enter__(self) -> "Future[T]":
        return self.future

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is not None:
            self.future.set_exception(error)
        return True  # the error travels in the answer, and not to standard error
