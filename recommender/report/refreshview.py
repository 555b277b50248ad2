"""What a refresh did, and what the store holds: pages made from the reports themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

from recommender.report import text
from recommender.report.lines import Column
from recommender.report.pages import Page

_SHOWN = 5  # names listed of each kind; all are in the JSON
_RESULTS = {"published": "new", "partial": "new in part", "kept": "last good kept"}
_OUTCOMES = {
    "published": "all providers renewed",
    "partial": "some providers renewed",
    "nothing": "nothing published",
}


def refresh_page(facts: Mapping[str, Any]) -> Page:
    """One row per provider, then what was not believed and why."""
    columns = (
        Column("provider", right=False),
        Column("result", right=False, gap=2),
        Column("new", gap=2),
        Column("kept", gap=2),
        Column("refused", gap=2),
        Column("note", right=False),
    )
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
    said = f"Refresh: {_OUTCOMES[facts['outcome']]}"
    if facts["dry_run"]:
        return f"{said} (dry run: nothing was written)"
    return f"{said}, version {facts['version']}" if facts["version"] else said


def _row(report: Mapping[str, Any]) -> tuple[str, ...]:
    notes = [*report["reasons"], *report["alerts"], *report["warnings"]]
    return (
        text.provider(report["provider"]),
        _RESULTS[report["result"]],
        f"{sum(report['offers'].values()):,}",
        f"{report['kept']:,}",
        f"{len(report['quarantined']):,}",
        "; ".join(text.clean(note) for note in notes[:_SHOWN]),
    )


def _below(facts: Mapping[str, Any], providers: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [text.clean(line) for line in (*facts["problems"], *facts["notes"])]
    for report in providers:
        name = text.provider(report["provider"])
        if report["rules"]:
            rules = ", ".join(f"{count:,} {rule}" for rule, count in report["rules"].items())
            lines.append(f"{name} quarantined: {rules.replace('_', ' ')}")
        for row in report["quarantined"][:_SHOWN]:
            lines.append(text.clean(f"{row['what']}: {row['reason']}"))
        hidden = len(report["quarantined"]) - _SHOWN
        if hidden > 0:
            lines.append(f"and {hidden:,} more, all in the JSON report: -o json")
        for place in report["failed"][:_SHOWN]:
            where = " ".join(word for word in (place["region"], place["market"]) if word)
            lines.append(text.clean(f"{name} {where} not read: {place['reason']}"))
        for machine in report["unknown_types"][:_SHOWN]:
            said = f"{name} {machine['instance_type']} ({machine['gpu']}): {machine['reason']}"
            lines.append(text.clean(said))
    return lines


def attempt_line(attempt: Mapping[str, Any]) -> str:
    """The last refresh in one line; empty where there was none."""
    if not attempt:
        return ""
    try:
        bad = [p for p in attempt["providers"] if p["result"] != "published"]
        said = f"last refresh {attempt['finished']}: {_OUTCOMES[attempt['outcome']]}"
        why = [f"{text.provider(p['provider'])}: {p['reasons'][0]}" for p in bad if p["reasons"]]
    except (LookupError, TypeError):
        return "the report of the last refresh is damaged"
    return text.clean("; ".join([said, *attempt["problems"], *why]))
