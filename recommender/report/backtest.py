"""A backtest as a table: policies under each job setting, over all traces or one by one."""

from collections.abc import Sequence
from dataclasses import asdict

from recommender.catalogs.frozen import dataclass
from recommender.inputs import units
from recommender.policies.backtest import BacktestRow, closed_by_sums
from recommender.policies.state import Task
from recommender.report import formatting as fmt
from recommender.report.page import Page, Rows, headings

SCHEMA = "recommend.backtest/v1"
COLUMNS = (
    "setting", "policy", "trace", "windows", "mean_usd", "p50_usd", "p90_usd", "late_share",
    "gap_closed", "greedy_usd", "optimum_usd",
)  # fmt: skip
ZONE_POLICIES = ("failover", "multi-region")  # of one job over the zones of all traces
_TOGETHER = (
    "failover and multi-region: one job that may move between the zones of all traces; closed is "
    "the gap between failover and the optimum in hindsight over all of them."
)


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """The result of one policy under one job setting, on one trace or (trace "") on all."""

    setting: str  # "48h/52h/6m": work, deadline, changeover
    policy: str
    trace: str
    windows: int
    mean_usd: float
    p50_usd: float | None  # of one trace
    p90_usd: float | None
    late_share: float
    gap_closed: float | None  # share of the way from greedy to the optimum
    greedy_usd: float
    optimum_usd: float


def policy_results(rows: Sequence[BacktestRow], by_trace: bool) -> list[PolicyResult]:
    """Sums over the traces for each setting and policy, then single traces on request."""
    groups: dict[tuple[str, str], list[BacktestRow]] = {}
    for row in rows:
        groups.setdefault((_setting(row.task), row.policy), []).append(row)
    found = [
        _over_traces(setting, policy, of_policy) for (setting, policy), of_policy in groups.items()
    ]
    if not by_trace:
        return found
    return found + [
        PolicyResult(
            _setting(r.task), r.policy, r.trace, r.windows, r.mean_usd, r.p50_usd, r.p90_usd,
            r.late_share, r.gap_closed, r.greedy_usd, r.optimum_usd,
        )
        for r in rows
    ]  # fmt: skip


def _over_traces(setting: str, policy: str, rows: Sequence[BacktestRow]) -> PolicyResult:
    windows = sum(row.windows for row in rows)

    def mean(name: str) -> float:
        return float(sum(row.windows * getattr(row, name) for row in rows)) / windows

    one = rows[0] if len(rows) == 1 else None
    return PolicyResult(
        setting=setting,
        policy=policy,
        trace="",
        windows=windows,
        mean_usd=mean("mean_usd"),
        p50_usd=None if one is None else one.p50_usd,
        p90_usd=None if one is None else one.p90_usd,
        late_share=mean("late_share"),
        gap_closed=closed_by_sums(rows),
        greedy_usd=mean("greedy_usd"),
        optimum_usd=mean("optimum_usd"),
    )


def _setting(task: Task) -> str:
    parts = (task.work_s, task.deadline_s, task.changeover_s)
    return "/".join(units.brief_duration(part) for part in parts)


def page(found: Sequence[PolicyResult], traces: int, split: str) -> Page:
    """One row per setting and policy; with traces named, one for each of them as well."""
    columns = headings("job:", "policy:", "windows", "mean", "p50", "p90", "late", "closed")
    return Page(
        title=f"Backtest on {fmt.plural(traces, 'trace')}, USD per run",
        columns=columns,
        rows=tuple(_row(each) for each in found),
        flexible=0,
        below=(
            f"{split} Job: work, deadline and changeover of a run. Closed: share of the gap "
            "between the greedy rule and the optimum in hindsight that is closed, from sums over "
            "all windows. Late: share of the runs that miss the deadline.",
            *((_TOGETHER,) if any(each.policy in ZONE_POLICIES for each in found) else ()),
        ),
        facts={"schema": SCHEMA, "rows": [asdict(each) for each in found]},
        sheet=lambda: _sheet(found),
    )


def _row(each: PolicyResult) -> tuple[str, ...]:
    name = f"{each.setting}\n{fmt.clean(each.trace)}" if each.trace else each.setting
    return (
        name,
        each.policy,
        f"{each.windows:,}",
        *(
            "" if usd is None else f"{usd:.2f}"
            for usd in (each.mean_usd, each.p50_usd, each.p90_usd)
        ),
        fmt.percent(each.late_share),
        "" if each.gap_closed is None else f"{each.gap_closed:.2f}",
    )


def _sheet(found: Sequence[PolicyResult]) -> Rows:
    """The rows in the order of `COLUMNS`."""
    rows: list[Sequence[str]] = [COLUMNS]
    for each in found:
        figures = (
            each.mean_usd, each.p50_usd, each.p90_usd, each.late_share, each.gap_closed,
            each.greedy_usd, each.optimum_usd,
        )  # fmt: skip
        written = ("" if x is None else f"{x:.6g}" for x in figures)
        rows.append((each.setting, each.policy, fmt.clean(each.trace), str(each.windows), *written))
    return rows
