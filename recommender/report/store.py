"""The result of a refresh, and the contents of the store of catalog versions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recommender.catalogs.frozen import dataclass
from recommender.report import formatting as fmt
from recommender.report.formatting import age_hours
from recommender.report.json_output import picked
from recommender.report.page import Page, headings

if TYPE_CHECKING:
    from recommender.catalogs.store import FetchTime, Store


_SHOWN = 5  # names listed of each kind; all are in the JSON
_RESULTS = {"published": "new", "partial": "new in part", "kept": "last good kept"}
_OUTCOMES = {
    "published": "all providers updated",
    "partial": "some providers updated",
    "nothing": "nothing published",
}


def refresh_page(facts: Mapping[str, Any]) -> Page:
    """One row per provider, then the refused rows and the reasons."""
    columns = headings("provider:", "result:", "new", "kept", "refused", "note:")
    providers = facts["providers"]
    return Page(
        title=_title(facts),
        columns=columns,
        rows=tuple(_row(each) for each in providers),
        flexible=len(columns) - 1,
        below=tuple(_below(facts, providers)),
        facts=facts,
    )


def _title(facts: Mapping[str, Any]) -> str:
    text = f"Refresh: {_OUTCOMES[facts['outcome']]}"
    if facts["dry_run"]:
        return f"{text} (dry run: nothing was written)"
    return f"{text}, version {facts['version']}" if facts["version"] else text


def _row(report: Mapping[str, Any]) -> tuple[str, ...]:
    notes = [*report["reasons"], *report["alerts"], *report["warnings"]]
    return (
        fmt.provider(report["provider"]),
        _RESULTS[report["result"]],
        f"{sum(report['offers'].values()):,}",
        f"{report['kept']:,}",
        f"{len(report['quarantined']):,}",
        "; ".join(fmt.clean(note) for note in notes[:_SHOWN]),
    )


def _below(facts: Mapping[str, Any], providers: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [fmt.clean(line) for line in (*facts["problems"], *facts["notes"])]
    for report in providers:
        name = fmt.provider(report["provider"])
        if report["rules"]:
            rules = ", ".join(f"{count:,} {rule}" for rule, count in report["rules"].items())
            lines.append(f"{name} quarantined: {rules.replace('_', ' ')}")
        for row in report["quarantined"][:_SHOWN]:
            lines.append(fmt.clean(f"{row['what']}: {row['reason']}"))
        hidden = len(report["quarantined"]) - _SHOWN
        if hidden > 0:
            lines.append(f"and {hidden:,} more, all in the JSON report: -o json")
        for place in report["failed"][:_SHOWN]:
            where = " ".join(word for word in (place["region"], place["market"]) if word)
            lines.append(fmt.clean(f"{name} {where} not read: {place['reason']}"))
        for machine in report["unknown_types"][:_SHOWN]:
            text = f"{name} {machine['instance_type']} ({machine['gpu']}): {machine['reason']}"
            lines.append(fmt.clean(text))
    return lines


def attempt_line(attempt: Mapping[str, Any]) -> str:
    """The last refresh in one line; empty if there was none."""
    if not attempt:
        return ""
    try:
        bad = [p for p in attempt["providers"] if p["result"] != "published"]
        text = f"last refresh {attempt['finished']}: {_OUTCOMES[attempt['outcome']]}"
        why = [f"{fmt.provider(p['provider'])}: {p['reasons'][0]}" for p in bad if p["reasons"]]
    except (LookupError, TypeError):
        return "the report of the last refresh is damaged"
    return fmt.clean("; ".join([text, *attempt["problems"], *why]))


# Beyond these a price is worth a warning: measured drift of spot and on-demand prices.
_OLD_H = {"spot": 24.0, "on_demand": 168.0, "reserved_block": 168.0}


@dataclass(frozen=True, slots=True)
class Held:
    """The facts about a store that a page reports, apart from its offers."""

    root: str
    current: str | None  # the version that is used, which need not be the one that holds
    names: tuple[str, ...]
    fetched: "tuple[FetchTime, ...]"
    attempt: dict[str, Any]


def held(store: "Store", version: str) -> Held:
    """The contents of a store, and the ages of the current version ("" for none of its own)."""
    fetched = store.fetch_times(version) if version else ()
    return Held(str(store.root), version or None, store.names(), fetched, store.last_attempt())


def with_store(page: Page, store: Held) -> Page:
    """Add the store's versions, the ages of fetched data, and the last refresh to a page."""
    facts = {
        **page.facts,
        "store": store.root,
        "held": store.current,
        "versions": list(store.names),
        "fetched": [
            {
                **picked(f, "provider", "market"),
                "region": f.region or None,
                "fetched_at": f.fetched_at,
                "reason": f.reason or None,
            }
            for f in store.fetched
        ],
        "last_refresh": store.attempt or None,
    }
    return replace(page, below=(*page.below, *_lines(store)), facts=facts)


def _lines(store: Held) -> list[str]:
    lines = [*_ages(store.fetched)]
    attempt = attempt_line(store.attempt)
    if attempt:
        lines.append(attempt)
    if store.names:
        lines.append(f"{len(store.names)} versions kept: recommend catalog diff, rollback")
    return lines


def _ages(fetched: "Sequence[FetchTime]") -> list[str]:
    """Hours since the newest fetch, and what is older or was not fetched again, and why."""
    ages = [(f, *age_hours(f.fetched_at)) for f in fetched]
    if not ages:
        return []
    lines = [f"fetched {_ago(min(hours for _, hours, _ in ages))}"]
    if any(ahead for _, _, ahead in ages):
        lines.append("some offers were fetched in the future by this clock: their age counts as 0")
    late = [(f, h) for f, h, _ in ages if f.reason or h > _OLD_H.get(f.market, 24.0)]
    late.sort(key=lambda each: each[0].reason in ("", "not asked"))  # first what failed
    for f, hours in late[:_SHOWN]:
        where = f"{fmt.provider(f.provider)} {fmt.market(f.market)}"
        where += f" {fmt.clean(f.region)}" if f.region else ""
        lines.append(f"{where} {_ago(hours)}: {fmt.clean(f.reason) or 'no refresh since'}")
    if len(late) > _SHOWN:
        lines.append(f"and {len(late) - _SHOWN} more: -o json")
    return lines


def _ago(hours: float) -> str:
    return "just now" if hours < 1 / 60 else f"{fmt.duration(hours * 3600)} ago"
