"""The refresh from end to end: fetch, validate rows and batch, draft, publish, report."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from recommender.catalogs import files, history
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError, StoreError
from recommender.catalogs.fetch import Notify, ignore_message
from recommender.catalogs.files import Step, no_step
from recommender.catalogs.load import SNAPSHOT, load
from recommender.catalogs.providers.clients import Maker
from recommender.catalogs.providers.contract import OFFERS, Wanted
from recommender.catalogs.providers.redact import redacted
from recommender.catalogs.refresh.collect import Collected, Deadlines, collect
from recommender.catalogs.refresh.draft import (
    Draft,
    catalog_of,
    serialize_version,
    start_draft,
    usd_per_gpu,
    with_fetched,
    with_newer_shipped,
    with_reason,
)
from recommender.catalogs.refresh.past import Past
from recommender.catalogs.refresh.reference import Reference, Validated
from recommender.catalogs.refresh.report import ProviderReport, RefreshReport, facts
from recommender.catalogs.refresh.validate import validate
from recommender.catalogs.registry import CLOUDS, SPOT_AUCTIONS
from recommender.catalogs.schema import Offer
from recommender.catalogs.store import (
    LAST_ATTEMPT,
    Store,
    newest_good,
    next_number,
    publish,
    write_lock,
)
from recommender.catalogs.validation import CANARIES, Canary, new_problems, read_canaries

_BEHIND = timedelta(minutes=5)
COPIES = "copies"  # of public files, in the store's folder

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The current time."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """The options of a refresh."""

    store: Store
    makers: Mapping[str, Maker]  # by provider
    dry_run: bool = False
    accept: bool = False  # a person has looked at what changed
    base: Path = SNAPSHOT  # the tables that this program ships
    canaries: Path = CANARIES
    deadlines: Deadlines = field(default_factory=Deadlines)
    clock: Clock = utc_now
    notify: Notify = ignore_message
    at: Step = no_step


def refresh(order: RefreshRequest) -> RefreshReport:
    """Fetch from the providers and publish a new version of the accepted offers.

    Raises:
        StoreError: another refresh is running, or the store cannot be written at all.
        CatalogError: the clock is wrong, or the shipped tables are damaged.
    """
    if order.dry_run:  # only reads
        return _refresh(order)
    with write_lock(order.store):
        files.remove_left_overs(order.store.root / COPIES)
        try:
            return _noted(order.store, _refresh(order))
        except CatalogError as error:
            now, said = order.clock().astimezone(UTC), redacted(str(error))
            _noted(order.store, RefreshReport(now, now, False, "", "", (said,), (), ()))
            raise


def _refresh(order: RefreshRequest) -> RefreshReport:
    started = order.clock().astimezone(UTC)
    base = load(order.base)
    _check_clock(started, base)
    found = newest_good(order.store)
    last = found.catalog if found.name else base
    fetch_times = order.store.fetch_times(found.name) if found.name else ()
    draft = with_newer_shipped(start_draft(base, last, fetch_times), base)
    for name in draft.offers.keys() - order.makers.keys():
        draft = with_reason(draft, name, "not asked")
    notes = [*found.skipped, *_clock_notes(started, draft)]
    canaries = _canaries(order)
    collected = collect(order.makers, _wanted(order, base, draft, started), order.deadlines)
    past = Past(order.store, found.name, base, started.date())
    seen = _seen(past.report)
    reports = []
    for name in order.makers:
        try:
            draft, report = _take(name, collected[name], draft, base, order, past, canaries)
        except Exception as error:  # what is odd in one provider's rows never costs the others
            said = f"its rows could not be checked ({type(error).__name__}: {error})"
            draft, report = _left(name, f"{said}; please report it", draft, collected[name])
        report = replace(report, alerts=(*report.alerts, *_unseen(report, seen)))
        reports.append(report)
        order.notify(
            f"{name}: {report.result}" + (f", {report.reasons[0]}" if report.reasons else "")
        )
    version = ""
    problems: list[str] = []
    if any(report.result != "kept" for report in reports) and not order.dry_run:
        made = RefreshReport(
            started, _now(order, started), False, found.name, "", (), tuple(notes), tuple(reports)
        )
        version, problems = _publish(order, base, draft, made, past)
        notes += _keep_history(order) if version else []
    return RefreshReport(
        started=started,
        finished=_now(order, started),
        dry_run=order.dry_run,
        before=found.name,
        version=version,
        problems=tuple(problems),
        notes=tuple(notes),
        providers=tuple(reports),
    )


def _now(order: RefreshRequest, started: datetime) -> datetime:
    return max(order.clock().astimezone(UTC), started)


def _check_clock(now: datetime, base: Catalog) -> None:
    """A moment before the shipped prices were read cannot be the present."""
    newest = max(base.offers.as_of, default="")
    if now.date().isoformat() < newest:
        raise CatalogError(
            f"the clock says {now:%Y-%m-%d}, but the shipped prices are of {newest}; "
            "set the clock and refresh again"
        )


def _clock_notes(now: datetime, draft: Draft) -> list[str]:
    ahead = f"{now + _BEHIND:%Y-%m-%dT%H:%M:%SZ}"
    newest = max((f.fetched_at for f in draft.fetch_times), default="")
    if newest <= ahead:
        return []
    return [f"the clock went back: the last refresh was at {newest}; ages count from then as 0"]


def _wanted(order: RefreshRequest, base: Catalog, draft: Draft, now: datetime) -> dict[str, Wanted]:
    machines = catalog_of(base, draft).instance_types
    return {
        name: Wanted(
            types={t.instance_type: t for t in machines.values() if t.provider == name},
            gpus=base.gpus,
            now=now,
            parts=OFFERS,
            copies=None if order.dry_run else order.store.root / COPIES,
            progress=_labelled(name, order.notify),
        )
        for name in order.makers
    }


def _labelled(name: str, notify: Notify) -> Notify:
    return lambda message: notify(f"{name}: {message}")


def _canaries(order: RefreshRequest) -> Sequence[Canary]:
    """The shipped canaries, with updates from the store."""
    own = order.store.root / "canaries.csv"
    found = [*read_canaries(order.canaries), *(read_canaries(own) if own.exists() else ())]
    return list({(c.provider, c.instance_type, c.region): c for c in found}.values())


def _take(
    name: str,
    collected: Collected,
    draft: Draft,
    base: Catalog,
    order: RefreshRequest,
    past: Past,
    canaries: Sequence[Canary],
) -> tuple[Draft, ProviderReport]:
    """Renew one provider's offers in the draft, or say why its last good ones stay."""
    fetched = collected.fetched
    before_rows = draft.offers.get(name, ())
    if fetched is None or name not in CLOUDS:
        reason = collected.problem or "no guard knows this provider"
        return _left(name, reason, draft, collected)
    last = catalog_of(base, draft)
    validated = validate(fetched, _reference(name, base, last, draft, order, past))
    fetched = replace(fetched, failed=(*fetched.failed, *validated.failed))
    problems = list(validated.problems)
    new = with_fetched(draft, base, fetched, validated)
    if not problems:
        problems = new_problems(catalog_of(base, new), last, name, canaries)
    if not problems:
        past.take(name, fetched.parts, validated.held, order.accept)
    fresh = Counter(offer.market for offer in validated.offers)
    rows = new.offers.get(name, ())
    held = _waiting(name, validated)
    partial = bool(fetched.failed or held)
    report = ProviderReport(
        provider=name,
        result="kept" if problems else "partial" if partial else "published",
        reasons=tuple(problems or _partial_reasons(fetched.failed, held)),
        seconds=collected.seconds,
        offers={} if problems else dict(sorted(fresh.items())),
        kept=len(before_rows) if problems else len(rows) - len(validated.offers),
        counters=fetched.counters,
        failed=fetched.failed,
        alerts=validated.alerts,
        warnings=fetched.warnings,
        ignored=validated.ignored,
        unknown_types=fetched.unknown_types,
        quarantined=(*fetched.quarantined, *validated.quarantined),
        gone=() if problems else validated.gone,
    )
    return (with_reason(draft, name, f"refused: {problems[0]}") if problems else new), report


def _reference(
    name: str, base: Catalog, last: Catalog, draft: Draft, order: RefreshRequest, past: Past
) -> Reference:
    """What one provider's fetch is measured against."""
    offers = draft.offers.get(name, ())
    return Reference(
        provider=name,
        types={t.instance_type: t for t in last.instance_types.values() if t.provider == name},
        gpus=base.gpus,
        last=offers,
        usd_per_gpu=usd_per_gpu(last),
        today=past.today,
        accept=order.accept,
        regions=_known_regions(base, offers, name),
        zones={offer.zone: offer.region for offer in offers if offer.zone},
        history=past.history(name),
        fetch_times=[f for f in draft.fetch_times if f.provider == name],
    )


def _known_regions(base: Catalog, last: Sequence[Offer], provider: str) -> frozenset[str]:
    """The regions of a provider that were offered, or that data were sent to."""
    offers = zip(base.offers.provider, base.offers.region, strict=True)
    shipped = {region for name, region in offers if name == provider}
    sent = {each.to_region for each in base.egress if each.provider == provider}
    return frozenset(shipped | sent | {offer.region for offer in last})


def _left(
    name: str, reason: str, draft: Draft, collected: Collected
) -> tuple[Draft, ProviderReport]:
    """Leave a provider's offers as they were."""
    rows, said = draft.offers.get(name, ()), redacted(reason)
    report = ProviderReport(name, "kept", (said,), collected.seconds, {}, len(rows))
    return with_reason(draft, name, said), report


def _waiting(provider: str, validated: Validated) -> int:
    """How many held prices wait for a person; auctions' moves are believed once they last."""
    return sum(provider not in SPOT_AUCTIONS or market != "spot" for *_, market in validated.held)


def _seen(report: Mapping[str, Any]) -> frozenset[str]:
    """What the refresh that made the version that holds had quarantined."""
    try:
        rows = [row for each in report.get("providers", ()) for row in each["quarantined"]]
        return frozenset(str(row["what"]) for row in rows)
    except (LookupError, TypeError, AttributeError):
        return frozenset()


def _unseen(report: ProviderReport, seen: frozenset[str]) -> list[str]:
    """Say how much of what was quarantined is new: a new machine, or a name that has changed."""
    new = [row for row in report.quarantined if row.what not in seen]
    if not new:
        return []
    return [f"{len(new)} of {len(report.quarantined)} quarantined rows are new"]


def _partial_reasons(failed: Sequence[object], held: int) -> list[str]:
    reasons = [f"{len(failed)} places could not be read"] if failed else []
    return [*reasons, f"{held} changed prices are held back"] if held else reasons


def _publish(
    order: RefreshRequest, base: Catalog, draft: Draft, report: RefreshReport, past: Past
) -> tuple[str, list[str]]:
    """Publish the draft; give the version's name, or what kept it from being published."""
    order.notify("publishing")
    number = next_number(order.store)
    said = {**facts(report), "accepted": past.accepted, "parts": past.parts}
    content = serialize_version(order.base, base, draft, said, report.finished, number)
    try:
        return publish(order.store, content, report.finished, order.at), []
    except CatalogError as error:  # full disk, or a version that cannot be read back
        return "", [str(error)]


def _keep_history(order: RefreshRequest) -> list[str]:
    """Append to the history; what fails here fails after publishing, and is made up for later."""
    if not history.has_pyarrow():
        return [history.MISSING]
    try:
        order.at("history")
        history.write_history(order.store)
    except StoreError as error:
        return [f"the history was not written: {error}"]
    return []


def _noted(store: Store, report: RefreshReport) -> RefreshReport:
    """Keep what this refresh did, for `catalog status`; a full disk costs only the note."""
    text = json.dumps(facts(report), indent=1) + "\n"
    try:
        files.replace_file(store.root / LAST_ATTEMPT, text.encode())
    except OSError as error:
        note = f"{LAST_ATTEMPT} was not written: {error.strerror}"
        return replace(report, notes=(*report.notes, note))
    return report
