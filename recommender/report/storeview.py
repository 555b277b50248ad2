"""What a store holds, for the page of `recommend catalog status`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recommender.report import text
from recommender.report.age import age_hours
from recommender.report.pages import Page
from recommender.report.refreshview import attempt_line

if TYPE_CHECKING:
    from catalogs.versions import Fetched, Store

_SHOWN = 5
# Beyond these a price is worth a warning: measured drift of spot and on-demand prices.
_OLD_H = {"spot": 24.0, "on_demand": 168.0, "reserved_block": 168.0}


@dataclass(frozen=True, slots=True)
class Held:
    """What is said of a store beside its offers."""

    root: str
    current: str | None  # the version that is used, which need not be the one that holds
    names: tuple[str, ...]
    fetched: "tuple[Fetched, ...]"
    attempt: dict[str, Any]


def held(store: "Store", version: str) -> Held:
    """What a store holds, and the ages of the version that is used ("" for none of its own)."""
    fetched = store.fetched(version) if version else ()
    return Held(str(store.root), version or None, store.names(), fetched, store.last_attempt())


def with_store(page: Page, store: Held) -> Page:
    """The page with the store's versions, the ages of what was fetched, and the last refresh."""
    facts = {
        **page.facts,
        "store": store.root,
        "held": store.current,
        "versions": list(store.names),
        "fetched": [
            {
                "provider": f.provider,
                "market": f.market,
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


def _ages(fetched: "Sequence[Fetched]") -> list[str]:
    """Hours since the newest fetch, and what is older or was not fetched again, and why."""
    ages = [(f, *age_hours(f.fetched_at)) for f in fetched]
    if not ages:
        return []
    lines = [f"fetched {_ago(min(hours for _, hours, _ in ages))}"]
    if any(ahead for _, _, ahead in ages):
        lines.append("some offers were fetched in the future by this clock: their age counts as 0")
    late = [(f, h) for f, h, _ in ages if f.reason or h > _OLD_H.get(f.market, 24.0)]
    for f, hours in late[:_SHOWN]:
        where = f"{text.provider(f.provider)} {text.market(f.market)}"
        where += f" {text.clean(f.region)}" if f.region else ""
        lines.append(f"{where} {_ago(hours)}: {text.clean(f.reason) or 'no refresh since'}")
    if len(late) > _SHOWN:
        lines.append(f"and {len(late) - _SHOWN} more: -o json")
    return lines


def _ago(hours: float) -> str:
    return "just now" if hours < 1 / 60 else f"{text.duration(hours * 3600)} ago"
