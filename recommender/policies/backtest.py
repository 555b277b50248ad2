"""Back-tests: policies × traces × job settings on recorded markets, against two yardsticks.

Every row is made by one pure function of plain data (`judge`), so that callers may spread rows
over processes or machines. The yardsticks of a trace and setting are the greedy rule and the
optimum with the trace known; gap closed = (greedy - policy) / (greedy - optimum), by sums.

A piece of work holds plain data and judges itself by nothing else, so the rows do not depend on
where or in which order they are made.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.policies.availability_fit import ZoneClass, of_zone, zone_class
from recommender.policies.optimal import SemiMarkov
from recommender.policies.replay import optimum, replay, windows
from recommender.policies.rules import Greedy, SpotOnly
from recommender.policies.state import ModePrices, Policy, Task

EVERY_S = 4 * 3600.0  # between start moments
RETRIES = 3  # times a piece of work is tried again after an error of its worker


@dataclass(frozen=True, slots=True)
class BacktestTrace:
    """One zone's recorded availability: the part to learn from, and the part to evaluate on."""

    name: str
    tick_s: float
    past: Bools  # (ticks,) before the judged part; may be empty for rules that learn nothing
    judged: Bools  # (ticks,)
    prices: ModePrices | None = None  # of this zone; None: those of the back-test
    one_fewer: Bools | None = None  # (ticks,) judged part for a gang of one spot machine fewer


@dataclass(frozen=True, slots=True)
class Bounds:
    """The yardsticks of one trace and setting; USD per window."""

    starts: Ints
    greedy_usd: Floats
    optimum_usd: Floats


@dataclass(frozen=True, slots=True)
class BacktestRow:
    """One line of the table: a policy on all windows of one trace and setting.

    A run that does not end within the series is late, at what it cost until then.
    """

    policy: str
    trace: str
    task: Task
    windows: int
    mean_usd: float
    p50_usd: float
    p90_usd: float
    late_share: float
    greedy_usd: float  # mean
    optimum_usd: float  # mean

    @property
    def gap_closed(self) -> float | None:
        """Share of the way from greedy to the optimum; None where greedy is optimal."""
        return closed(self.greedy_usd, self.mean_usd, self.optimum_usd)


class Contender(Protocol):
    """A policy that takes part in a backtest."""

    @property
    def name(self) -> str:
        """Name in the table."""

    def enter(self, trace: BacktestTrace, prices: ModePrices) -> tuple[Policy, ModePrices]:
        """The policy for a trace, and what its machines cost."""


@dataclass(frozen=True, slots=True)
class FixedRule:
    """A rule that learns nothing from the past."""

    policy: Policy

    @property
    def name(self) -> str:
        """The rule's own name."""
        return self.policy.name

    def enter(self, trace: BacktestTrace, prices: ModePrices) -> tuple[Policy, ModePrices]:
        """The rule at the market's prices."""
        return self.policy, prices


@dataclass(frozen=True, slots=True)
class FittedPolicy:
    """The cost-optimal policy, fitted to the trace's past; without one, to its class."""

    kind: ZoneClass | None = None  # zones like it; None: only the trace's own past
    confidence: float = 1.0
    name: str = "cost-optimal"

    def enter(self, trace: BacktestTrace, prices: ModePrices) -> tuple[Policy, ModePrices]:
        """Fit to the past only: the evaluated part is not looked at."""
        if len(trace.past) > 1:
            kind = self.kind or zone_class([trace.past], trace.tick_s)
            law = of_zone(trace.past, trace.tick_s, kind)
        elif self.kind is not None:
            law = self.kind.unwatched
        else:
            raise UsageError(f"trace {trace.name} has no past and no class to stand for it")
        return SemiMarkov(law, self.confidence, self.name), prices


@dataclass(frozen=True, slots=True)
class SingleAnchor:
    """DeepVM's Single Anchor: n - 1 spot machines and one on-demand machine that is always kept.

    As a policy (Kim et al., CCGrid 2024; their code names no rule for lost spot): wait until
    spot is back; the anchor with the checkpoint is paid all the time. `prices` are those of the
    whole cluster of `machines`; availability is that of n - 1 machines (`Trace.one_fewer`).
    """

    machines: int
    name: str = "DeepVM single anchor"

    def enter(self, trace: BacktestTrace, prices: ModePrices) -> tuple[Policy, ModePrices]:
        """Spot or wait, with the anchor on the bill."""
        anchor = prices.on_demand / self.machines
        spot = prices.spot * (self.machines - 1) / self.machines + anchor
        return SpotOnly(self.name), ModePrices(spot, prices.on_demand, prices.idle + anchor)


@dataclass(frozen=True, slots=True)
class Tiering:
    """DeepVM's Tiering: all machines spot, checkpoints on on-demand CPU machines always kept."""

    receivers_usd_per_hour: float
    name: str = "DeepVM tiering"

    def enter(self, trace: BacktestTrace, prices: ModePrices) -> tuple[Policy, ModePrices]:
        """Spot or wait, with the receivers on the bill."""
        more = self.receivers_usd_per_hour
        return SpotOnly(self.name), ModePrices(
            prices.spot + more, prices.on_demand, prices.idle + more
        )


def bounds(
    trace: BacktestTrace, task: Task, prices: ModePrices, every_s: float = EVERY_S
) -> Bounds:
    """Greedy and optimum of every window whose deadline lies inside the judged part."""
    starts = windows(len(trace.judged), trace.tick_s, task, every_s)
    if len(starts) == 0:
        raise UsageError(
            f"trace {trace.name}: the evaluated part is "
            f"{len(trace.judged) * trace.tick_s / 3600:.0f} "
            f"h long, shorter than the deadline of {task.deadline_s / 3600:.0f} h"
        )
    greedy = replay(Greedy(), trace.judged, trace.tick_s, starts, task, prices).cost_usd
    best = optimum(trace.judged, trace.tick_s, starts, task, prices)
    return Bounds(starts, greedy, best)


def judge(
    contender: Contender, trace: BacktestTrace, task: Task, prices: ModePrices, within: Bounds
) -> BacktestRow:
    """Replay one contender on one trace and setting."""
    policy, paid = contender.enter(trace, prices)
    anchored = isinstance(contender, SingleAnchor) and trace.one_fewer is not None
    seen = trace.one_fewer if anchored else trace.judged
    assert seen is not None
    result = replay(policy, seen, trace.tick_s, within.starts, task, paid)
    return BacktestRow(
        policy=contender.name,
        trace=trace.name,
        task=task,
        windows=len(within.starts),
        mean_usd=float(result.cost_usd.mean()),
        p50_usd=float(np.quantile(result.cost_usd, 0.5)),
        p90_usd=float(np.quantile(result.cost_usd, 0.9)),
        late_share=float(result.late(task.deadline_s).mean()),
        greedy_usd=float(within.greedy_usd.mean()),
        optimum_usd=float(within.optimum_usd.mean()),
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """One trace under one setting, with every policy that is evaluated on it."""

    contenders: tuple[Contender, ...]
    trace: BacktestTrace
    task: Task
    prices: ModePrices
    every_s: float = EVERY_S

    def rows(self) -> tuple[BacktestRow, ...]:
        """The rows of this piece of work: a pure function of plain data."""
        within = bounds(self.trace, self.task, self.prices, self.every_s)
        one = (self.trace, self.task, self.prices, within)
        return tuple(judge(each, *one) for each in self.contenders)


def pieces(
    contenders: Sequence[Contender],
    traces: Sequence[BacktestTrace],
    tasks: Sequence[Task],
    prices: ModePrices,
    every_s: float = EVERY_S,
) -> tuple[Piece, ...]:
    """The work of a back-test; raises `UsageError` where no trace is as long as a deadline."""
    found = tuple(
        Piece(tuple(contenders), trace, task, trace.prices or prices, every_s)
        for trace in traces
        for task in tasks
        if len(windows(len(trace.judged), trace.tick_s, task, every_s))
    )
    if not found:
        raise too_short(max((len(t.judged) * t.tick_s for t in traces), default=0.0))
    return found


def too_short(longest_s: float) -> UsageError:
    """The error message if no trace is as long as a deadline."""
    return UsageError(
        "no trace is as long as a deadline: the longest evaluated part has "
        f"{longest_s / 3600.0:.3g} "
        "h; give longer traces, a shorter --job, or a smaller --past"
    )


def backtest(
    contenders: Sequence[Contender],
    traces: Sequence[BacktestTrace],
    tasks: Sequence[Task],
    prices: ModePrices,
    every_s: float = EVERY_S,
) -> tuple[BacktestRow, ...]:
    """The whole table, one after the other; traces shorter than a deadline are left out of it."""
    work = pieces(contenders, traces, tasks, prices, every_s)
    return tuple(row for piece in work for row in piece.rows())


def closed(greedy_usd: float, policy_usd: float, optimum_usd: float) -> float | None:
    """Share of the gap between greedy and optimum that a policy closes; None without a gap."""
    gap = greedy_usd - optimum_usd
    return (greedy_usd - policy_usd) / gap if gap > 1e-9 else None


def closed_by_sums(rows: Iterable[BacktestRow]) -> float | None:
    """Share of the gap that one policy closes over many rows, every window counting alike."""
    sums = np.zeros(3)
    for row in rows:
        sums += row.windows * np.array([row.greedy_usd, row.mean_usd, row.optimum_usd])
    return closed(*(float(value) for value in sums))


Engine = Literal["serial", "loky", "dask"]
ENGINES: tuple[Engine, ...] = ("serial", "loky", "dask")


class Work(Protocol):
    """A piece of work."""

    def rows(self) -> tuple[BacktestRow, ...]:
        """Its rows, by nothing but its own data."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes that do the work."""

    engine: Engine = "serial"
    jobs: int = -1  # processes of loky or of a local Dask cluster; -1: all cores
    address: str = ""  # of an existing Dask cluster


def judged(piece: Work) -> tuple[BacktestRow, ...]:
    """The rows of one piece of work."""
    return piece.rows()


def run(
    work: Sequence[Work], workers: Workers, tick: Callable[[int, int], None] | None = None
) -> tuple[BacktestRow, ...]:
    """All rows, in the order of the work; `tick` hears how many pieces are done."""
    rows: list[BacktestRow] = []
    for done, found in enumerate(_each(work, workers), 1):
        rows += found
        if tick is not None:
            tick(done, len(work))
    return tuple(rows)


def _each(work: Sequence[Work], workers: Workers) -> Iterator[tuple[BacktestRow, ...]]:
    if workers.engine == "serial":
        yield from map(judged, work)
    elif workers.engine == "loky":
        joblib: Any = import_module("joblib")  # has no types
        many = joblib.Parallel(n_jobs=workers.jobs, backend="loky", return_as="generator")
        yield from many(joblib.delayed(judged)(piece) for piece in work)
    else:
        with _cluster(workers) as client:
            # Work of a worker that dies is done again by another one.
            for future in client.map(judged, work, pure=False, retries=RETRIES):
                yield future.result()


@contextmanager
def _cluster(workers: Workers) -> Iterator[Any]:
    """A client of the cluster at an address, or of one with processes on this machine."""
    try:
        distributed: Any = import_module("distributed")  # has no types
    except ImportError:
        raise UsageError("--engine dask needs Dask: pip install 'recommend-gpus[dask]'") from None
    if workers.address:
        try:
            client = distributed.Client(workers.address, timeout="10s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--dask-address {workers.address}: no cluster answers there ({error})"
            ) from None
        with client:
            yield client
        return
    count = workers.jobs if workers.jobs > 0 else None
    local = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**local, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
