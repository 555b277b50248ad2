"""`recommend backtest`: fallback policies on recorded markets, against the best possible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recommender.cli.error_collector import ErrorCollector
from recommender.cli.groups import command_app
from recommender.cli.options import PageFlags, SheetFlags, TraceFlags, Word, Words
from recommender.cli.output import put_json, sheet_format, show_page
from recommender.cli.screen import progress, write_text
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.text import shown

if TYPE_CHECKING:
    from recommender.arrays import Floats
    from recommender.policies.backtest import BacktestRow, BacktestTrace, Contender, Work, Workers
    from recommender.policies.backtest_zones import ZoneContender
    from recommender.policies.state import ModePrices, Task
    from recommender.report.backtest import Standing
    from recommender.traces.trace import Trace as Series

SETTINGS = ("48h/52h/6m", "48h/60h/6m", "24h/36h/12m", "24h/48h/6m")
POLICIES = ("on-demand", "spot-only", "greedy", "uniform-progress", "cost-optimal")
WAITING = ("single-anchor", "tiering")  # DeepVM's architectures, without a deadline
TOGETHER = ("failover", "multi-region")  # of one job that may move between the traces' zones
# p3.2xlarge in us-west-2, the market of the published comparison (Wu et al., NSDI 2024).
SPOT_USD, ON_DEMAND_USD = 0.9731, 3.06


@dataclass(frozen=True, slots=True)
class TrialFlags:
    """What is replayed, at which prices."""

    job: Annotated[
        Words,
        typer.Option(
            "--job",
            help="Work/deadline/changeover of a run (48h/52h/6m and three more); repeatable.",
            metavar="W/D/C",
        ),
    ] = None
    policy: Annotated[
        Words,
        typer.Option(
            help="Only this policy; repeatable. single-anchor and tiering are DeepVM's; failover "
            "and multi-region take all traces as zones between which one job may move.",
            metavar="|".join((*POLICIES, *WAITING, *TOGETHER)),
        ),
    ] = None
    confidence: Annotated[
        Word,
        typer.Option(help="Chance that cost-optimal meets the deadline (100%).", metavar="SHARE"),
    ] = None
    machines: Annotated[
        Word, typer.Option(help="Machines that must be up together (1).", metavar="N")
    ] = None
    spot_usd: Annotated[
        Word,
        typer.Option(
            help=f"Spot price per hour, or one per trace: 3.9,4.5 ({SPOT_USD}).", metavar="USD"
        ),
    ] = None
    on_demand_usd: Annotated[
        Word,
        typer.Option(help=f"On-demand price per hour, likewise ({ON_DEMAND_USD}).", metavar="USD"),
    ] = None
    receivers_usd: Annotated[
        Word,
        typer.Option(
            help="Price per hour of the machines that tiering keeps for checkpoints.", metavar="USD"
        ),
    ] = None
    move_usd: Annotated[
        Word, typer.Option(help="Price of a move to another region (0).", metavar="USD")
    ] = None
    past: Annotated[
        Word,
        typer.Option(help="First share of each trace, to fit policies to (50%).", metavar="SHARE"),
    ] = None
    every: Annotated[
        Word, typer.Option(help="Time between two starts of a run (4h).", metavar="TIME")
    ] = None


@dataclass(frozen=True, slots=True)
class WorkerFlags:
    """Where the work is done."""

    engine: Annotated[
        Word, typer.Option(help="What runs the work (serial).", metavar="serial|loky|dask")
    ] = None
    jobs: Annotated[
        Word, typer.Option(help="Processes of loky or Dask (one per core).", metavar="N")
    ] = None
    dask_address: Annotated[
        Word, typer.Option(help="A Dask cluster that is already running.", metavar="ADDRESS")
    ] = None


def backtest(
    files: Annotated[
        list[str], typer.Argument(help="Trace files, gzipped or not.", metavar="FILE...")
    ],
    trace: TraceFlags,
    trial: TrialFlags,
    worker: WorkerFlags,
    flags: SheetFlags,
    by_trace: Annotated[
        bool, typer.Option("--by-trace", help="One more row for each trace.")
    ] = False,
) -> None:
    """Fallback policies replayed on recorded markets: cost, lateness, gap to the optimum.

    Policies are fitted to the first part of each trace and evaluated on the rest.

    \b
    recommend backtest us-west-2a.json us-west-2b.json --job 24h/36h/6m
    """
    from recommender.policies.backtest import run
    from recommender.report import backtest as backtest_view

    errors = ErrorCollector()
    past = errors.parse(trial.past, "--past", units.parse_share, 0.5)
    where = _workers(worker, errors)
    form = sheet_format(flags)
    work, traces = _work(files, trace, trial, past, errors)
    with progress("back-test", len(work), least=8) as tick:
        rows = run(work, where, tick)
    found = _standings(rows, by_trace)
    split = f"Evaluated on the last {100 * (1 - past):.0f} % of each trace."
    page = backtest_view.page(found, traces, split)
    if form == "json":
        put_json(page.facts)
    elif form == "csv":
        from recommender.report import csv_markdown

        write_text(csv_markdown.table(backtest_view.COLUMNS, backtest_view.cells(found)))
    else:
        show_page(page, PageFlags(color=flags.color))


def _workers(flags: WorkerFlags, errors: ErrorCollector) -> "Workers":
    from recommender.policies.backtest import ENGINES, Workers

    return Workers(
        engine="dask"
        if flags.dask_address
        else errors.choose(flags.engine, "--engine", ENGINES, "serial"),
        jobs=errors.parse(flags.jobs, "--jobs", units.parse_whole, -1),
        address=flags.dask_address or "",
    )


def _work(
    files: Sequence[str], trace: TraceFlags, trial: TrialFlags, past: float, errors: ErrorCollector
) -> "tuple[tuple[Work, ...], int]":
    """Every trace under every job setting, and how many traces; mistakes are raised together."""
    from recommender.policies.backtest import pieces
    from recommender.policies.backtest_zones import market_of, zones_pieces
    from recommender.policies.state import ModePrices

    tasks = errors.parse_all(trial.job or SETTINGS, "--job", _task)
    spot = errors.parse(trial.spot_usd, "--spot-usd", _prices, (SPOT_USD,))
    full = errors.parse(trial.on_demand_usd, "--on-demand-usd", _prices, (ON_DEMAND_USD,))
    move = errors.parse(trial.move_usd, "--move-usd", units.parse_money, 0.0)
    every_s = errors.parse(trial.every, "--every", units.parse_duration, 4 * 3600.0)
    sure = errors.parse(trial.confidence, "--confidence", units.parse_share, 1.0)
    count = errors.parse(trial.machines, "--machines", units.whole_of("8", most=1024), 1)
    every = (*POLICIES, *WAITING, *TOGETHER)
    wanted = [errors.choose(word, "--policy", every, "") for word in trial.policy or POLICIES]
    receivers = errors.parse(trial.receivers_usd, "--receivers-usd", units.parse_money, 0.0)
    _check_waiting(wanted, count, trial.receivers_usd, errors)
    errors.raise_all()
    single = [name for name in wanted if name not in TOGETHER]
    together = [name for name in wanted if name in TOGETHER]
    series = _series(files, trace, len(single) < len(wanted))
    spots, fulls = _each(spot, series, "--spot-usd"), _each(full, series, "--on-demand-usd")
    prices = [ModePrices(*pair) for pair in zip(spots, fulls, strict=True)]
    traces = _traces(series, count, past, prices, bool(together))
    work: list[Work] = []
    if single:
        entered = [
            *_contenders(single, traces, sure),
            *_waiting(single, count, receivers),
        ]
        work += pieces(entered, traces, tasks, prices[0], every_s)
    if together:
        market = market_of(traces, prices[0], _moves(series, move))
        work += zones_pieces(_movers(together), market, tasks, every_s)
    return tuple(work), len(traces)


def _check_waiting(
    wanted: Sequence[str], machines: int, receivers: str | None, errors: ErrorCollector
) -> None:
    if "single-anchor" in wanted and machines < 2:
        errors.problems.append(
            "--policy single-anchor keeps one machine of several on-demand; "
            "give --machines 2 or more"
        )
    if ("tiering" in wanted) != (receivers is not None):
        errors.problems.append("--policy tiering and --receivers-usd need each other; give both")


def _waiting(wanted: Sequence[str], machines: int, receivers: float) -> "list[Contender]":
    """DeepVM's two architectures: they wait for spot with a standing bill."""
    from recommender.policies.backtest import SingleAnchor, Tiering

    found: list[Contender] = []
    if "single-anchor" in wanted:
        found.append(SingleAnchor(machines))
    if "tiering" in wanted:
        found.append(Tiering(receivers))
    return found


def _prices(words: str, name: str) -> tuple[float, ...]:
    return tuple(units.parse_money(word, name) for word in words.split(","))


def _each(prices: Sequence[float], series: "Sequence[Series]", name: str) -> Sequence[float]:
    """One price per series."""
    if len(prices) not in (1, len(series)):
        raise UsageError(f"{name}: {len(prices)} prices for {len(series)} traces; give one or all")
    return prices if len(prices) == len(series) else list(prices) * len(series)


def _moves(series: "Sequence[Series]", usd: float) -> "Floats":
    """The price of a move between any two zones; none inside a region that is known."""
    import numpy as np

    regions = [each.place.region or f"trace {i}" for i, each in enumerate(series)]
    return np.array([[usd * (a != b) for b in regions] for a in regions])


def _task(word: str, name: str) -> "Task":
    from recommender.policies.state import Task
    from recommender.report import formatting as fmt

    parts = word.split("/")
    if len(parts) != 3:
        raise UsageError(f"{name} {shown(word)}: write work/deadline/changeover, as 48h/52h/6m")
    task = Task(*(units.parse_duration(part, name) for part in parts))
    if task.slack_s < 0.0:
        least = fmt.duration(task.work_s + task.changeover_s)
        raise UsageError(
            f"{name} {shown(word)}: work and changeover take {least}, longer than the deadline; "
            f"write a deadline of {least} or more"
        )
    return task


def _series(files: Sequence[str], flags: TraceFlags, together: bool) -> "tuple[Series, ...]":
    """The series of the files; those of one market must have begun at one moment."""
    from recommender.cli.commands.trace import chosen_series

    found = chosen_series(list(files), flags)
    for each in found:
        if not len(each.t_s):
            raise UsageError(f"{shown(each.name)}: only prices; a backtest needs machines up")
    starts = {each.start for each in found if each.start is not None}
    if together and len(starts) > 1:
        raise UsageError(
            "failover and multi-region need traces that begin at one moment; these begin at "
            + ", ".join(start.isoformat() for start in sorted(starts))
        )
    return found


def _traces(
    series: "Sequence[Series]",
    machines: int,
    past: float,
    prices: "Sequence[ModePrices]",
    together: bool,
) -> "tuple[BacktestTrace, ...]":
    """Each series cut into what may be learnt from and what is judged.

    Those of one market are first cut to the shortest.
    """
    from recommender.policies.backtest import BacktestTrace

    ticks = [each.step_s or TICK_S for each in series]
    ups = [each.up(machines, tick_s) for each, tick_s in zip(series, ticks, strict=True)]
    if not any(up.any() for up in ups):
        had = int(max(each.machines.max() for each in series))
        then = f", {had} at most; write fewer" if had else "; watch another zone"
        raise UsageError(f"--machines {machines}: no trace ever has as many up{then}")
    most = min(map(len, ups)) if together and len(set(ticks)) == 1 else None
    made = []
    for each, up, tick_s, usd in zip(series, ups, ticks, prices, strict=True):
        cut = int(len(up[:most]) * past)
        fewer = each.up(machines - 1, tick_s)[cut:most] if machines > 1 else None
        made.append(BacktestTrace(each.name, tick_s, up[:cut], up[cut:most], usd, fewer))
    return tuple(made)


TICK_S = 300.0  # of traces whose changes are exact


def _contenders(
    wanted: Sequence[str], traces: "Sequence[BacktestTrace]", confidence: float
) -> "list[Contender]":
    from recommender.policies.availability_fit import zone_class
    from recommender.policies.backtest import FittedPolicy, FixedRule
    from recommender.policies.rules import Greedy, OnDemand, SpotOnly, UniformProgress

    rules: dict[str, Any] = {
        "on-demand": OnDemand, "spot-only": SpotOnly, "greedy": Greedy,
        "uniform-progress": UniformProgress,
    }  # fmt: skip
    found: list[Contender] = [FixedRule(rules[name]()) for name in wanted if name in rules]
    if "cost-optimal" in wanted:
        alike = [t.past for t in traces if t.tick_s == traces[0].tick_s and len(t.past) > 1]
        kind = zone_class(alike, traces[0].tick_s) if alike else None
        found.append(FittedPolicy(kind, confidence))
    return found


def _movers(wanted: Sequence[str]) -> "list[ZoneContender]":
    from recommender.policies.backtest_zones import FittedZones, ZoneRule
    from recommender.policies.replay_zones import Failover

    made: dict[str, ZoneContender] = {
        "failover": ZoneRule(Failover()), "multi-region": FittedZones(),
    }  # fmt: skip
    return [made[name] for name in wanted]


def _standings(rows: "Sequence[BacktestRow]", by_trace: bool) -> "list[Standing]":
    """Sums over the traces for each setting and policy, then single traces where asked."""
    from recommender.report.backtest import Standing

    groups: dict[tuple[str, str], list[BacktestRow]] = {}
    for row in rows:
        groups.setdefault((_setting(row.task), row.policy), []).append(row)
    found = [_all(setting, policy, mine) for (setting, policy), mine in groups.items()]
    if not by_trace:
        return found
    return found + [
        Standing(
            _setting(r.task), r.policy, r.trace, r.windows, r.mean_usd, r.p50_usd, r.p90_usd,
            r.late_share, r.gap_closed, r.greedy_usd, r.optimum_usd,
        )
        for r in rows
    ]  # fmt: skip


def _all(setting: str, policy: str, rows: "Sequence[BacktestRow]") -> "Standing":
    from recommender.policies.backtest import closed_by_sums
    from recommender.report.backtest import Standing

    windows = sum(row.windows for row in rows)

    def mean(name: str) -> float:
        return float(sum(row.windows * getattr(row, name) for row in rows)) / windows

    one = rows[0] if len(rows) == 1 else None
    return Standing(
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


def _setting(task: "Task") -> str:
    parts = (task.work_s, task.deadline_s, task.changeover_s)
    return "/".join(units.brief_duration(part) for part in parts)


command = command_app("backtest", backtest)
