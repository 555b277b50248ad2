"""`recommend backtest`: fallback policies on recorded markets, against the best possible."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.flags import Word, Words, argument, flag, switch
from recommender.cli.groups import command_app
from recommender.cli.options import PageFlags, TraceFlags, WorkerFlags
from recommender.cli.output import form_of, show_page
from recommender.cli.request import workers_of
from recommender.cli.screen import progress
from recommender.errors import UsageError
from recommender.inputs import units

if TYPE_CHECKING:
    from recommender.policies.backtest import Piece
    from recommender.simulation.backtest_work import BacktestSettings

SETTINGS = ("48h/52h/6m", "48h/60h/6m", "24h/36h/12m", "24h/48h/6m")
POLICIES = ("on-demand", "spot-only", "greedy", "uniform-progress", "cost-optimal")
WAITING = ("single-anchor", "tiering")  # DeepVM's architectures, without a deadline
TOGETHER = ("failover", "multi-region")  # of one job that may move between the traces' zones
# p3.2xlarge in us-west-2, the market of the published comparison (Wu et al., NSDI 2024).
SPOT_USD, ON_DEMAND_USD = 0.9731, 3.06
_sure = partial(units.parse_share, one=True, instead="write a share such as 95% or 100%")
_usd_or_none = partial(units.parse_money, zero=True)


@dataclass(frozen=True, slots=True)
class TrialFlags:
    """What is replayed, at which prices."""

    job: Words = flag(
        "W/D/C",
        "Work/deadline/changeover of a job (48h/52h/6m and three more); repeatable.",
        "--job",
    )
    policy: Words = flag(
        (*POLICIES, *WAITING, *TOGETHER),
        "Only this policy; repeatable. single-anchor and tiering are DeepVM's; failover "
        "and multi-region take all traces as zones between which one job may move.",
    )
    confidence: Word = flag("SHARE", "Probability that cost-optimal meets the deadline (100%).")
    machines: Word = flag("N", "Machines that must be up together (1).")
    spot_usd: Word = flag("USD", f"Spot price per hour, or one per trace: 3.9,4.5 ({SPOT_USD}).")
    on_demand_usd: Word = flag("USD", f"On-demand price per hour, likewise ({ON_DEMAND_USD}).")
    receivers_usd: Word = flag("USD", "Price per hour of the checkpoint machines of tiering.")
    move_usd: Word = flag("USD", "Cost of a move to another region (0).")
    past: Word = flag("SHARE", "First part of each trace, to which policies are fitted (50%).")
    every: Word = flag("TIME", "Time between the starts of two jobs (4h).")


def backtest(
    trace: TraceFlags,
    trial: TrialFlags,
    worker: WorkerFlags,
    flags: PageFlags,
    files: list[str] = argument(
        "FILE...", "Trace files; may be gzipped. sample: the shipped trace."
    ),
    by_trace: bool = switch("Print a row for each trace as well."),
) -> None:
    """Replay fallback policies on recorded markets: cost, lateness, gap to the optimum.

    Policies are fitted to the first part of each trace and evaluated on the rest.

    \b
    recommend backtest sample --job 24h/36h/6m --every 48h
    recommend backtest us-west-2a.json us-west-2b.json --job 24h/36h/6m
    """
    from recommender.policies.backtest import run
    from recommender.report import backtest as backtest_view

    errors = ErrorCollector()
    past = errors.parse(trial.past, "--past", units.parse_share, 0.5)
    where = workers_of(worker, 1, errors)
    form = form_of(flags)
    work, traces = _work(files, trace, trial, past, errors)
    with progress("back-test", len(work)) as tick:
        rows = run(work, where, tick)
    found = backtest_view.policy_results(rows, by_trace)
    split = f"Evaluated on the last {100 * (1 - past):.0f} % of each trace."
    show_page(backtest_view.page(found, traces, split), form)


def _work(
    files: Sequence[str], trace: TraceFlags, trial: TrialFlags, past: float, errors: ErrorCollector
) -> "tuple[tuple[Piece, ...], int]":
    """Every trace under every job setting, and how many traces; mistakes are raised together."""
    from recommender.cli.commands.trace import chosen_series
    from recommender.policies.state import ModePrices
    from recommender.simulation.backtest_work import check_series, work_of

    settings = _settings(trial, past, errors)
    spot = errors.parse(trial.spot_usd, "--spot-usd", _prices, (SPOT_USD,))
    on_demand = errors.parse(trial.on_demand_usd, "--on-demand-usd", _prices, (ON_DEMAND_USD,))
    errors.raise_all()
    series = chosen_series(list(files), trace)
    check_series(series, settings)
    spots = _one_each(spot, len(series), "--spot-usd")
    on_demands = _one_each(on_demand, len(series), "--on-demand-usd")
    prices = [ModePrices(*pair) for pair in zip(spots, on_demands, strict=True)]
    return work_of(series, prices, settings), len(series)


def _settings(trial: TrialFlags, past: float, errors: ErrorCollector) -> "BacktestSettings":
    from recommender.simulation.backtest_work import BacktestSettings, parse_task

    policies = (*POLICIES, *WAITING, *TOGETHER)
    found = BacktestSettings(
        tasks=errors.parse_all(trial.job or SETTINGS, "--job", parse_task),
        policies=[errors.choose(p, "--policy", policies, "") for p in trial.policy or POLICIES],
        machines=errors.parse(trial.machines, "--machines", units.whole_of("8", most=1024), 1),
        past_share=past,
        every_s=errors.parse(trial.every, "--every", units.parse_duration, 4 * 3600.0),
        confidence=errors.parse(trial.confidence, "--confidence", _sure, 1.0),
        receivers_usd=errors.parse(trial.receivers_usd, "--receivers-usd", _usd_or_none, 0.0),
        move_usd=errors.parse(trial.move_usd, "--move-usd", _usd_or_none, 0.0),
    )
    _check_waiting(found.policies, found.machines, trial.receivers_usd, errors)
    return found


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


def _prices(words: str, name: str) -> tuple[float, ...]:
    return tuple(units.parse_money(word, name) for word in words.split(","))


def _one_each(prices: Sequence[float], traces: int, name: str) -> Sequence[float]:
    """One price per trace."""
    if len(prices) not in (1, traces):
        raise UsageError(f"{name}: {len(prices)} prices for {traces} traces; give one or all")
    return prices if len(prices) == traces else list(prices) * traces


command = command_app("backtest", backtest)
