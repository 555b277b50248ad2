"""A catalog version before publication: the last good one with some providers renewed."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from recommender.catalogs import MANIFEST
from recommender.catalogs.catalog import Catalog, Offers
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.refresh.reference import (
    MAX_SPOT_SHARE,
    Validated,
    failure_reason,
    held_key,
    offer_key,
    place_of,
)
from recommender.catalogs.schema import InstanceType, Offer, Source
from recommender.catalogs.serialize import manifest_entry, manifest_text, table_bytes
from recommender.catalogs.store import REPORT, FetchTime, VersionFiles
from recommender.catalogs.tables import REQUIRED, TABLES, Row
from recommender.catalogs.validation import on_demand_prices

OWN_SOURCES = 1000  # sources of a refresh are numbered above; those of the snapshot below
_WRITTEN = ("offers", "instance_types", "sources")


@dataclass(frozen=True, slots=True)
class Draft:
    """The differences from the shipped tables: offers, machines, sources, fetch times."""

    offers: Mapping[str, tuple[Offer, ...]]  # by provider
    types: tuple[InstanceType, ...]  # machines that the shipped table does not hold
    sources: tuple[Source, ...]
    fetch_times: tuple[FetchTime, ...]


def start_draft(base: Catalog, last: Catalog, fetch_times: Sequence[FetchTime]) -> Draft:
    """The last good version on the shipped tables."""
    numbers = _Numbers(base.sources, last.sources)
    by_key = last.source_by_key
    grouped: dict[str, list[Offer]] = {}
    for offer in last.offers:
        number = numbers.of(by_key[offer.source])
        same = offer if number == offer.source else replace(offer, source=number)
        grouped.setdefault(offer.provider, []).append(same)
    types = [
        replace(machine, source=numbers.of(by_key[machine.source]))
        for key, machine in last.instance_types.items()
        if key not in base.instance_types
    ]
    return _pruned(
        Draft(
            {name: tuple(rows) for name, rows in sorted(grouped.items())},
            tuple(types),
            numbers.all(),
            tuple(fetch_times) or shipped_fetch_times(last),
        ),
        base,
    )


def shipped_fetch_times(catalog: Catalog) -> tuple[FetchTime, ...]:
    """The fetch times of a catalog without a refresh: the dates of its newest prices."""
    return tuple(
        FetchTime(
            d.provider, d.market, "", f"{d.newest}T00:00:00Z", "from the shipped snapshot", False
        )
        for d in catalog.price_dates()
    )


def with_newer_shipped(draft: Draft, base: Catalog) -> Draft:
    """Replace a provider's offers by the shipped ones if those are newer.

    This matters after an upgrade, for a provider that no refresh can read any more.
    """
    new = shipped_fetch_times(base)
    offers, fetch_times = dict(draft.offers), list(draft.fetch_times)
    for name in sorted({f.provider for f in new}):
        own = [f for f in new if f.provider == name]
        held = max((f.fetched_at for f in fetch_times if f.provider == name), default="")
        if held < min(f.fetched_at for f in own):
            offers[name] = tuple(offer for offer in base.offers if offer.provider == name)
            fetch_times = [f for f in fetch_times if f.provider != name] + own
    return _pruned(replace(draft, offers=offers, fetch_times=tuple(fetch_times)), base)


def with_fetched(draft: Draft, base: Catalog, fetched: Fetched, validated: Validated) -> Draft:
    """Replace the offers of one provider by the fetched ones, where it was read."""
    numbers = _Numbers(base.sources, draft.sources)
    own = {source.source: numbers.of(source) for source in fetched.sources}
    described = min(own.values(), default=0)
    fresh = [replace(offer, source=own[offer.source]) for offer in validated.offers]
    before = draft.offers.get(fetched.provider, ())
    stays = [offer for offer in before if _stays(offer, fetched, validated)]
    older = _below_listed(stays, fresh)
    return _pruned(
        Draft(
            {**draft.offers, fetched.provider: tuple(_ordered([*fresh, *older]))},
            (*draft.types, *(replace(machine, source=described) for machine in validated.types)),
            numbers.all(),
            (
                *(f for f in draft.fetch_times if f.provider != fetched.provider),
                *_fetched(draft, fetched),
            ),
        ),
        base,
    )


def with_reason(draft: Draft, provider: str, reason: str) -> Draft:
    """The unchanged draft, with the reason why a provider was not renewed."""
    fetch_times = tuple(
        replace(f, reason=reason) if f.provider == provider else f for f in draft.fetch_times
    )
    return replace(draft, fetch_times=fetch_times)


def catalog_of(base: Catalog, draft: Draft) -> Catalog:
    """Convert the draft to a catalog."""
    rows = [offer for name in sorted(draft.offers) for offer in draft.offers[name]]
    columns: dict[str, Any] = {
        each.name: list(map(attrgetter(each.name), rows)) for each in fields(Offers)
    }
    for name in ("usd_per_hour", "uncertainty"):
        columns[name] = array("d", columns[name])
    types: dict[tuple[str, str], InstanceType] = dict(base.instance_types)
    types |= {(machine.provider, machine.instance_type): machine for machine in draft.types}
    return replace(
        base,
        offers=Offers(**columns),
        instance_types=types,
        sources=draft.sources,
    )


def usd_per_gpu(catalog: Catalog) -> dict[str, float]:
    """The typical on-demand price of each GPU, over all providers and regions."""
    prices: dict[str, list[float]] = {}
    for (provider, name, _), usd in on_demand_prices(catalog).items():
        machine = catalog.instance_types[provider, name]
        if machine.gpu:
            prices.setdefault(machine.gpu, []).append(usd / machine.gpus)
    return {gpu: median(found) for gpu, found in prices.items()}


def _stays(offer: Offer, fetched: Fetched, validated: Validated) -> bool:
    unread = not fetched.replaces(offer)
    failed = bool(failure_reason(fetched.failed, offer.region, offer.market))
    held = held_key(offer) in validated.held
    return unread or failed or held


def _below_listed(older: Sequence[Offer], fresh: Sequence[Offer]) -> list[Offer]:
    """Without older spot prices that today's on-demand prices have overtaken."""
    keys = {offer_key(offer) for offer in fresh}
    listed = {place_of(o): o.usd_per_hour for o in [*older, *fresh] if o.market == "on_demand"}
    return [
        offer
        for offer in older
        if offer_key(offer) not in keys
        and (
            offer.market != "spot"
            or offer.usd_per_hour < MAX_SPOT_SHARE * listed.get(place_of(offer), float("inf"))
        )
    ]


def _fetched(draft: Draft, fetched: Fetched) -> list[FetchTime]:
    """When each market of a provider was read: now, or before where that failed."""
    name, now = fetched.provider, _read_at(fetched)
    before = [f for f in draft.fetch_times if f.provider == name]
    found: list[FetchTime] = []
    for market in sorted({*fetched.markets, *(f.market for f in before)}):
        older = [f for f in before if f.market == market]
        whole = (
            failure_reason(fetched.failed, "", market) if market in fetched.markets else "not asked"
        )
        if whole:
            found += [replace(f, reason=f.reason or whole) for f in older]
            continue
        found.append(FetchTime(name, market, "", now, "", True))
        found += _left(draft, fetched, market, older)
    return found


def _read_at(fetched: Fetched) -> str:
    """The moment of what was read; of a public list its own day."""
    if fetched.since:
        return f"{max(offer.as_of for offer in fetched.offers)}T00:00:00Z"
    return f"{fetched.finished:%Y-%m-%dT%H:%M:%SZ}"


def _left(
    draft: Draft, fetched: Fetched, market: str, older: Sequence[FetchTime]
) -> list[FetchTime]:
    """The regions of a market that failed, each with its own age."""
    dates = {f.region: f for f in older}
    regions = {o.region for o in draft.offers.get(fetched.provider, ()) if o.market == market}
    return [
        replace(dates.get(region) or dates[""], region=region, reason=why)
        for region in sorted(regions)
        if (why := failure_reason(fetched.failed, region, market))
        and (region in dates or "" in dates)
    ]


def _ordered(offers: Iterable[Offer]) -> list[Offer]:
    return sorted(offers, key=offer_key)


def _pruned(draft: Draft, base: Catalog) -> Draft:
    """Without machines and sources that nothing names any more."""
    named = {(o.provider, o.instance_type) for rows in draft.offers.values() for o in rows}
    types = tuple(t for t in draft.types if (t.provider, t.instance_type) in named)
    used = {o.source for rows in draft.offers.values() for o in rows} | {t.source for t in types}
    own = {source.source for source in base.sources}
    with_reason = tuple(s for s in draft.sources if s.source in own or s.source in used)
    return replace(draft, types=types, sources=with_reason)


class _Numbers:
    """Gives each source the number it has had, or the next one."""

    def __init__(self, base: Iterable[Source], last: Iterable[Source]) -> None:
        self._sources = {source.source: source for source in base}
        self._known = {_words(source): source.source for source in self._sources.values()}
        for source in last:
            if source.source > OWN_SOURCES and _words(source) not in self._known:
                self._add(source, source.source)

    def of(self, source: Source) -> int:
        """The number of a source."""
        known = self._known.get(_words(source))
        if known is None:
            known = max([OWN_SOURCES, *self._sources]) + 1
            self._add(source, known)
        return known

    def all(self) -> tuple[Source, ...]:
        """All sources, by number."""
        return tuple(self._sources[number] for number in sorted(self._sources))

    def _add(self, source: Source, number: int) -> None:
        self._sources[number] = replace(source, source=number)
        self._known[_words(source)] = number


def _words(source: Source) -> tuple[str, ...]:
    return source.name, source.licence, source.taken, source.attribution


# How long a version may be served under a signature (`pin.py`): as long as a team may want to live
# with a refresh that fails every night. apt's security lists hold for 7 days, TUF says a day.
SIGNED_FOR = timedelta(days=30)


def serialize_version(
    folder: Path,
    base: Catalog,
    draft: Draft,
    report: Mapping[str, Any],
    now: datetime,
    sequence: int,
) -> VersionFiles:
    """Write the files of a version from the shipped folder and a draft."""
    files: dict[str, bytes] = {}
    entries: dict[str, Any] = {}
    for name, entry in _shipped(folder).items():
        if name not in _WRITTEN:
            files[TABLES[name].file] = _copied(folder / TABLES[name].file, entry["sha256"])
            entries[name] = entry
    types = [*base.instance_types.values(), *draft.types]
    for name, rows in (("instance_types", types), ("sources", list(draft.sources))):
        content = table_bytes(TABLES[name], rows)
        files[TABLES[name].file] = content
        entries[name] = {"file": TABLES[name].file, **manifest_entry(content, len(rows))}
    parts = {}
    for provider, offers in sorted(draft.offers.items()):
        content = table_bytes(TABLES["offers"], offers)
        files[TABLES["offers"].part(provider)] = content
        parts[provider] = manifest_entry(content, len(offers))
    rows_in_all = sum(len(offers) for offers in draft.offers.values())
    entries["offers"] = {"rows": rows_in_all, "parts": parts}
    report_bytes = (json.dumps(report, indent=1) + "\n").encode()
    published = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    files[REPORT] = report_bytes
    files[MANIFEST] = manifest_text(
        entries,
        _rows(base, draft),
        fetched=[asdict(each) for each in draft.fetch_times],
        started=report.get("started", published),  # its day is that of the prices read
        published=published,
        sequence=sequence,  # with the expiry what a signature needs to be worth something
        expires=f"{now + SIGNED_FOR:%Y-%m-%dT%H:%M:%SZ}",
        report={"file": REPORT, "sha256": hashlib.sha256(report_bytes).hexdigest()},
    ).encode()
    return VersionFiles(files)


def _shipped(folder: Path) -> dict[str, Any]:
    tables = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["tables"]
    missing = [name for name in REQUIRED if name not in tables]
    if missing:
        raise CatalogError(f"{folder}: the manifest lists no table {', '.join(missing)}")
    found: dict[str, Any] = tables
    return found


def _copied(path: Path, sha256: str) -> bytes:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CatalogError(f"{path}: sha256 differs from the manifest; install recommend again")
    return content


def _rows(base: Catalog, draft: Draft) -> dict[str, Sequence[Row]]:
    """All rows with a date, for the manifest's list of ages."""
    shipped = {name: getattr(base, name) for name in TABLES.keys() - set(_WRITTEN)}
    return {
        **{
            n: list(rows.values() if isinstance(rows, Mapping) else rows)
            for n, rows in shipped.items()
        },
        "offers": [offer for rows in draft.offers.values() for offer in rows],
        "instance_types": [*base.instance_types.values(), *draft.types],
    }
