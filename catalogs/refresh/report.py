"""The report of a refresh: per provider, what was published, kept, refused and why."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from recommender.catalogs.providers.contract import Counters, Failed, Quarantined, UnknownType
from recommender.catalogs.providers.redact import hider

SCHEMA = "recommend.catalog-refresh/v1"

Hide = Callable[[str], str]
Result = Literal["published", "partial", "kept"]  # of one provider
Outcome = Literal["published", "partial", "nothing"]  # of the refresh


@dataclass(frozen=True, slots=True)
class ProviderReport:
    """The result of one provider."""

    provider: str
    result: Result
    reasons: tuple[str, ...]  # why the last good offers stay; empty where all was published
    seconds: float
    offers: Mapping[str, int]  # that are new, by market
    kept: int  # offers of earlier refreshes that stay
    counters: Counters = Counters()
    failed: tuple[Failed, ...] = ()
    alerts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    ignored: Mapping[str, int] | None = None
    unknown_types: tuple[UnknownType, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    gone: tuple[str, ...] = ()  # offers that the provider no longer lists

    @property
    def rules(self) -> dict[str, int]:
        """How many rows each rule has quarantined."""
        return dict(Counter(row.rule for row in self.quarantined).most_common())


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """The result of a refresh."""

    started: datetime
    finished: datetime
    dry_run: bool
    before: str  # the version that held; "" for the shipped snapshot
    version: str  # the version published; "" if none
    problems: tuple[str, ...]  # of publishing itself
    notes: tuple[str, ...]
    providers: tuple[ProviderReport, ...]

    @property
    def outcome(self) -> Outcome:
        """Whether all, some or none of the providers were renewed."""
        if self.problems or all(p.result == "kept" for p in self.providers):
            return "nothing"
        whole = all(p.result == "published" for p in self.providers)
        return "published" if whole else "partial"


def facts(report: RefreshReport) -> dict[str, Any]:
    """The report as JSON, without secrets."""
    hide = hider()
    return {
        "schema": SCHEMA,
        "outcome": report.outcome,
        "dry_run": report.dry_run,
        "started": _moment(report.started),
        "finished": _moment(report.finished),
        "before": report.before or None,
        "version": report.version or None,
        "problems": _clean(report.problems, hide),
        "notes": _clean(report.notes, hide),
        "providers": [_provider(each, hide) for each in report.providers],
    }


def _provider(report: ProviderReport, hide: Hide) -> dict[str, Any]:
    found = _clean(asdict(report), hide)
    return {**found, "ignored": report.ignored or {}, "rules": report.rules}


def _clean(value: Any, hide: Hide) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {key: _clean(each, hide) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, hide) for each in value]
    return value


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
