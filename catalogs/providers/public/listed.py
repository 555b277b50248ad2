"""What a public list says, as the offers of a fetch: known machines, with the list's own date."""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from statistics import median

from recommender.catalogs import files
from recommender.catalogs.bounds import check_table, read_plain_file
from recommender.catalogs.errors import ProviderError
from recommender.catalogs.provider_info import ANY_REGION
from recommender.catalogs.providers.contract import (
    Counters,
    Fetched,
    Quarantined,
    UnknownType,
    Wanted,
    read_offer,
)
from recommender.catalogs.providers.http import Web
from recommender.catalogs.providers.quotas import shipped_places
from recommender.catalogs.registry import CLOUDS
from recommender.catalogs.schema import Market, Offer, Source

MAX_BYTES = 64_000_000  # of a table; the largest real ones have some 3 MB
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """A price of a whole machine, as a public list states it."""

    instance_type: str  # by the name that the catalog has for it
    region: str
    zone: str
    market: Market
    usd_per_hour: float
    gpu: str = ""  # as the list names it: of machines that the catalog does not know
    gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class PublicList:
    """The rows of a public list, its own date, and what was left out of it."""

    rows: tuple[Row, ...]
    day: date  # of the data, not of a file
    source: Source
    ignored: int = 0  # rows known not to be meant
    refused: tuple[Quarantined, ...] = ()


def fetched(provider: str, wanted: Wanted, web: Web, found: PublicList) -> Fetched:
    """The offers of a list that name known machines.

    Raises:
        ProviderError: it names none, or is of a day to come.
    """
    if found.day > wanted.now.date():
        raise ProviderError(provider, "format", f"the list is of {found.day}, which is to come")
    known = [row for row in found.rows if row.instance_type in wanted.types]
    rows, refused = _placed(provider, known)
    if not rows:
        raise ProviderError(provider, "format", "no price of a known machine; has it changed?")
    day = found.day.isoformat()
    return Fetched(
        provider=provider,
        started=wanted.now,
        finished=wanted.now,
        markets=frozenset(row.market for row in rows) & wanted.listed_markets,
        offers=tuple(_offer(row, wanted, day) for row in rows),
        sources=(found.source,),
        unknown_types=tuple(_unknown(found.rows, wanted)),
        quarantined=(*found.refused, *refused),
        counters=Counters(
            calls=web.calls,
            retries=web.retries,
            raw_rows=len(found.rows) + found.ignored + len(found.refused),
            ignored=found.ignored,
            bytes=web.bytes,
        ),
        machines=frozenset(row.instance_type for row in rows),
        since=day,
    )


def _placed(provider: str, rows: Iterable[Row]) -> tuple[list[Row], list[Quarantined]]:
    """Rows where the catalog places a machine: once, if it has one price wherever it is in stock.

    Machines times regions is no statement of stock. Where such prices differ, none is believed, but
    of a marketplace, where each is another host's: there it is the median of the hosts.
    """
    places = shipped_places(provider)
    anywhere = {name for name, regions in places.items() if set(regions) == {ANY_REGION}}
    kept, refused = [], []
    prices: dict[tuple[str, Market], dict[float, Row]] = defaultdict(dict)
    for row in rows:
        if row.instance_type in anywhere:
            prices[row.instance_type, row.market].setdefault(row.usd_per_hour, row)
        else:
            kept.append(row)
    for (name, market), found in sorted(prices.items()):
        if CLOUDS[provider].marketplace:
            kept.append(Row(name, ANY_REGION, "", market, median(found)))
            continue
        if len(found) > 1:
            what = f"{provider} {name} {ANY_REGION} {market}"
            reason = f"has several prices: {', '.join(f'{usd:g}' for usd in sorted(found))}"
            refused.append(Quarantined(provider, what, reason, "regions_differ"))
            continue
        (row,) = found.values()
        kept.append(Row(name, ANY_REGION, "", market, row.usd_per_hour))
    return kept, refused


def _offer(row: Row, wanted: Wanted, day: str) -> Offer:
    machine, usd = wanted.types[row.instance_type], row.usd_per_hour
    return read_offer(machine, row.region, row.market, usd, source=1, as_of=day, zone=row.zone)


def _unknown(rows: Iterable[Row], wanted: Wanted) -> Iterator[UnknownType]:
    """Machines with GPUs that the catalog has no hardware of, so that plans cannot use them."""
    others = [row for row in rows if row.gpus and row.instance_type not in wanted.types]
    regions = Counter(name for name, _ in {(row.instance_type, row.region) for row in others})
    for name, row in sorted({row.instance_type: row for row in others}.items()):
        yield UnknownType(name, row.gpu, row.gpus, regions[name], "its hardware is not known")


def newest_file(web: Web, wanted: Wanted, name: str, version: str, address: str) -> bytes:
    """A file of a version, or its copy if that is of the same one; a full disk loses the copy only.

    Raises:
        ProviderError: it cannot be read.
    """
    path = wanted.copies / name if wanted.copies else None
    head = f"{version}\n".encode()
    held = b""
    if path is not None:
        try:
            held = read_plain_file(path, MAX_BYTES)
        except (OSError, ValueError):
            held = b""
    if held.startswith(head):
        return held.removeprefix(head)
    content = web.content(address)
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace_file(path, head + content)
        except OSError:
            return content
    return content


def table_rows(provider: str, content: bytes, columns: Iterable[str]) -> Iterator[Cells]:
    """The rows of a CSV file that has at least these columns.

    Raises:
        ProviderError: it is none.
    """
    try:
        text = content.decode()
        check_table(text)
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True, restval="")
        missing = sorted(set(columns) - set(table.fieldnames or ()))
        if missing:
            raise ValueError(f"no column {', '.join(missing)}")
        yield from table
    except (ValueError, csv.Error) as error:
        reason = f"the list is of no known form ({error})"
        raise ProviderError(provider, "format", reason[:200]) from None
