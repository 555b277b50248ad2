"""`recommend backtest`: fallback policies on recorded markets, against the best possible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recommender import units
from recommender.cli.flags import PageFlags, SheetFlags, TraceFlags, Word, Words
from recommender.cli.pager import put_json, sheet_form, show_page
from recommender.cli.progress import progress
from recommender.cli.reader import Reader
from recommender.cli.screen import put
from recommender.errors import UsageError
from recommender.text import shown

if TYPE_CHECKING:
    from recommender.backtest import Contender, Row, Trace
    from recommender.backtesting import Piece, Workers
    from recommender.replay.state import Task
    from recommender.report.backtestview import Standing

SETTINGS = ("48h/52h/6m", "48h/60h/6m", "24h/36h/12m", "24h/48h/6m")
POLICIES = ("on-demand", "spot-only", "greedy", "uniform-progress", "cost-optimal")
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
        Words, typer.Option(help="Only this policy; repeatable.", metavar="|".join(POLICIES))
    ] = None
    confidence: Annotated[
        Word, typer.Option(help="Chance of cost-optimal to be in time (100%).", metavar="SHARE")
    ] = None
    machines: Annotated[
        Word, typer.Option(help="Machines that must be up together (1).", metavar="N")
    ] = None
    spot_usd: Annotated[
        Word, typer.Option(help=f"Spot price per hour ({SPOT_USD}).", metavar="USD")
    ] = None
    on_demand_usd: Annotated[
        Word, typer.Option(help=f"On-demand price per hour ({ON_DEMAND_USD}).", metavar="USD")
    ] = None
    past: Annotated[
        Word, typer.Option(help="First share of each trace, to learn from (50%).", metavar="SHARE")
    ] = None
    every: Annotated[
        Word, typer.Option(help="Time between two starts of a run (4h).", metavar="TIME")
    ] = None


@dataclass(frozen=True, slots=True)
class WorkerFlags:
    """Where the work is done."""

    engine: Annotated[
        Word, typer.Option(help="Where the work is done (serial).", metavar="serial|loky|dask")
    ] = None
    jobs: Annotated[
        Word, typer.Option(help="Processes of loky or Dask (one per core).", metavar="N")
    ] = None
    dask_address: Annotated[
        Word, typer.Option(help="A Dask cluster that runs already.", metavar="ADDRESS")
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
        bool, typer.Option("--by-trace", help="A row for each trace as well.")
    ] = False,
) -> None:
    """Fallback policies replayed on recorded markets: cost, delay, and how near to the best.

    What a policy learns, it learns from the first part of each trace; it is judged on the rest.

    \b
    recommend backtest us-west-2a.json us-west-2b.json --job 24h/36h/6m
    """
    from recommender.backtesting import run
    from recommender.report import backtestview

    read = Reader()
    past = read.value(trial.past, "--past", units.parse_share, 0.5)
    where = _workers(worker, read)
    form = sheet_form(flags)
    work = _work(files, trace, trial, past, read)
    with progress("back-test", len(work), least=8) as tick:
        rows = run(work, where, tick)
    found = _standings(rows, by_trace)
    split = f"Judged on the last {100 * (1 - past):.0f} % of each trace."
    page = backtestview.page(found, len({piece.trace.name for piece in work}), split)
    if form == "json":
        put_json(page.facts)
    elif form == "csv":
        from recommender.report import csvview

        put(csvview.table(backtestview.COLUMNS, backtestview.cells(found)))
    else:
        show_page(page, PageFlags(color=flags.color))


def _workers(flags: WorkerFlags, read: Reader) -> "Workers":
    from recommender.backtesting import ENGINES, Workers

    return Workers(
        engine="dask"
        if flags.dask_address
        else read.choice(flags.engine, "--engine", ENGINES, "serial"),
        jobs=read.value(flags.jobs, "--jobs", units.parse_whole, -1),
        address=flags.dask_address or "",
    )


def _work(
    files: Sequence[str], trace: TraceFlags, trial: TrialFlags, past: float, read: Reader
) -> "tuple[Piece, ...]":
    """Every trace under every job setting; all mistakes of the flags are raised together."""
    from recommender.backtesting import pieces
    from recommender.replay.state import Prices

    tasks = read.values(trial.job or SETTINGS, "--job", _task)
    spot = read.value(trial.spot_usd, "--spot-usd", units.parse_money, SPOT_USD)
    full = read.value(trial.on_demand_usd, "--on-demand-usd", units.parse_money, ON_DEMAND_USD)
    every_s = read.value(trial.every, "--every", units.parse_duration, 4 * 3600.0)
    sure = read.value(trial.confidence, "--confidence", units.parse_share, 1.0)
    count = read.value(trial.machines, "--machines", units.parse_whole, 1)
    wanted = [read.choice(word, "--policy", POLICIES, "") for word in trial.policy or POLICIES]
    read.stop()
    traces = _traces(files, trace, count, past)
    return pieces(_contenders(wanted, traces, sure), traces, tasks, Prices(spot, full), every_s)


def _task(word: str, name: str) -> "Task":
    from recommender.replay.state import Task

    parts = word.split("/")
    if len(parts) != 3:
        raise UsageError(f"{name} {shown(word)}: write work/deadline/changeover, as 48h/52h/6m")
    return Task(*(units.parse_duration(part, name) for part in parts))


def _traces(
    files: Sequence[str], flags: TraceFlags, machines: int, past: float
) -> "tuple[Trace, ...]":
    """Each series cut into what may be learnt from and what is judged."""
    from recommender.backtest import Trace
    from recommender.cli.commands.trace import chosen_series

    made = []
    for each in chosen_series(list(files), flags):
        if not len(each.t_s):
            raise UsageError(f"{shown(each.name)}: only prices; a back-test needs machines up")
        tick_s = each.step_s or TICK_S
        up = each.up(machines, tick_s)
        cut = int(len(up) * past)
        made.append(Trace(each.name, tick_s, up[:cut], up[cut:]))
    return tuple(made)


TICK_S = 300.0  # of traces whose changes are exact


def _contenders(
    wanted: Sequence[str], traces: "Sequence[Trace]", confidence: float
) -> "list[Contender]":
    from recommender.backtest import Fitted, Rule
    from recommender.fallback.fit import zone_class
    from recommender.replay.rules import Greedy, OnDemand, SpotOnly, UniformProgress

    rules: dict[str, Any] = {
        "on-demand": OnDemand, "spot-only": SpotOnly, "greedy": Greedy,
        "uniform-progress": UniformProgress,
    }  # fmt: skip
    found: list[Contender] = [Rule(rules[name]()) for name in wanted if name in rules]
    if "cost-optimal" in wanted:
        alike = [t.past for t in traces if t.tick_s == traces[0].tick_s and len(t.past) > 1]
        kind = zone_class(alike, traces[0].tick_s) if alike else None
        found.append(Fitted(kind, confidence))
    return found


def _standings(rows: "Sequence[Row]", by_trace: bool) -> "list[Standing]":
    """Sums over the traces for each setting and policy, then single traces where asked."""
    from recommender.report.backtestview import Standing

    groups: dict[tuple[str, str], list[Row]] = {}
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


def _all(setting: str, policy: str, rows: "Sequence[Row]") -> "Standing":
    from recommender.backtest import closed_by_sums
    from recommender.report.backtestview import Standing

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
