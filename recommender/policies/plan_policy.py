"""The fallback policy of one plan: its dynamic programme, its grid of choices, its table as CSV.

The programme knows one gang on spot, on-demand machines as fast, and a start that costs the same
on both. A plan maps onto it so:

    work          training time on the cluster, stretched by its saves
    deadline      the plan's, less what it keeps in reserve beyond a start
    changeover    the longer start of the two, and the work that an interruption loses
    spot, idle    the machines' prices; what is paid all along (an anchor, storage) at all times
    on-demand     USD per hour of the cluster's work on the fallback
    law           the runs and outages of the gang in poor, usual and good zones of its class;
                  a failover list shortens outages and skips those that another zone bridges
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.plan.answer import PolicyFacts
from recommender.plan.plan import Fallback
from recommender.policies.availability import Availability, Chain, chain
from recommender.policies.availability_fit import POINTS, WEIGHTS, of_class
from recommender.policies.optimal import expected_usd
from recommender.policies.policy_table import NEVER, PolicyTable, first_cheapest, policy_table
from recommender.policies.state import NONE, ON_DEMAND, SPOT, ModePrices, Task
from recommender.policies.thresholds import SAFETY_NET, TwoThresholds, rule_usd
from recommender.risk.laws import logistic
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import MAX_LISTED_ZONES

AS_FAST = 0.95  # of the spot cluster, from which on a fallback counts as fast as it
TICKS = 360  # of a table, from the start to the deadline
MIN_TICK_S = 120.0
NAMES = ("wait", "spot", "on-demand")
STEPS = 24  # of time left, and of work left
_RUNNING = ("none", "spot", "on-demand")


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """The inputs of the dynamic program for one plan."""

    task: Task
    prices: ModePrices
    law: Availability
    tick_s: float
    fixed_usd: float  # paid whatever happens, besides the prices

    @property
    def chain(self) -> Chain:
        """The law seen once per tick."""
        return chain(self.law, self.tick_s)

    def table(self) -> PolicyTable:
        """Costs to go at every slack up to the deadline: for any work left, reachable or not."""
        whole = self.with_work(self.tick_s)
        return policy_table(self.chain, whole.task, self.prices, self.tick_s)

    def with_work(self, work_s: float) -> "PolicyProblem":
        """This problem with more or less work to do."""
        return replace(self, task=replace(self.task, work_s=work_s))


def why_no_policy(inputs: PathInputs, deadline_s: float | None) -> str | None:
    """Why the programme has nothing to say of a plan (one row), in words; None where it has."""
    if deadline_s is None:
        return "there is no deadline"
    if float(inputs.spot_usd_per_hour[0]) <= 0.0:
        return "the plan rents no spot"
    if float(inputs.elastic_share[0]) > 0.0:
        return "the plan trains on while its spot machines are down, which the model cannot express"
    if float(inputs.move_after_s[0]) > 0.0:
        return "the plan waits before its checkpoint moves, which the model cannot express"
    speed = float(inputs.fallback_speed[0])
    if speed <= 0.0:
        return "the plan waits for spot and has no on-demand fallback"
    if speed < AS_FAST:
        return (
            f"its fallback is {100.0 * speed:.0f} % as fast as the spot cluster, "
            "which the model cannot express"
        )
    task = _task(inputs, deadline_s)
    if task.deadline_s - task.work_s <= 2.0 * task.changeover_s:
        return "the deadline leaves no time to wait for spot: on-demand from the start"
    return None


def problem_of(inputs: PathInputs, deadline_s: float | None) -> PolicyProblem:
    """The problem of one plan (one row); raises `UsageError` where there is none."""
    why = why_no_policy(inputs, deadline_s)
    if why is not None or deadline_s is None:
        raise UsageError(f"no policy for this plan: {why}; see `rule` under the plan")
    task, always = _task(inputs, deadline_s), float(inputs.base_usd_per_hour[0])
    speed = max(float(inputs.fallback_speed[0]), 1e-9)
    on_demand = float(inputs.fallback_usd_per_hour[0]) / speed
    return PolicyProblem(
        task=task,
        prices=ModePrices(always + float(inputs.spot_usd_per_hour[0]), always + on_demand, always),
        law=_law(inputs),
        tick_s=max(task.deadline_s / TICKS, MIN_TICK_S),
        fixed_usd=float(inputs.fixed_usd[0]),
    )


def time_per_training_time(inputs: PathInputs) -> float:
    """Time on the machines per time of training: saves hold it up."""
    return 1.0 + float(inputs.stall_s[0] / max(inputs.interval_s[0], 1.0))


def _task(inputs: PathInputs, deadline_s: float) -> Task:
    """Where the fallback is a little slower, what it needs longer is taken off the deadline."""
    work_s = float(inputs.work_s[0]) * time_per_training_time(inputs)
    lost_s = (1.0 - float(inputs.notice_saves[0])) * 0.5 * float(inputs.interval_s[0])
    start_s = max(float(inputs.changeover_s[0]), float(inputs.fallback_start_s[0]))
    slower_s = max(1.0 / float(inputs.fallback_speed[0]) - 1.0, 0.0) * work_s
    due_s = deadline_s - float(inputs.reserve_s[0]) - slower_s
    return Task(work_s, max(due_s, 1.0), start_s + lost_s)


def _law(inputs: PathInputs) -> Availability:
    """Poor, usual and good zones as in the engine (`risk/spot_capacity.py`), to first order.

    Each other zone of the list is down with 1 - up·(1 - correlation), its level averaged.
    """
    logit, zone_sd = float(inputs.availability_logit[0]), float(inputs.zone_sd[0])
    zone_count = min(int(inputs.zone_count[0]), MAX_LISTED_ZONES)
    levels = logistic(logit + zone_sd * np.asarray(POINTS))
    down = 1.0 - float(WEIGHTS @ levels) * (1.0 - float(inputs.correlation[0]))
    listed = of_class(
        float(inputs.run_mean_s[0]),
        max(float(inputs.run_sigma[0]), 1e-3),
        max(float(inputs.outage_sigma[0]), 1e-3),
        float(logistic(np.array(logit))),
        zone_sd,
        float(inputs.zone_count[0]),
    )
    return replace(listed, elsewhere=1.0 - down ** (zone_count - 1))


ROWS, COLUMNS = 8, 5  # of the grid shown: time left (squares of eighths), work left
LATE_USD = 0.5 * float(NEVER)  # a cost to go above it is that of a deadline missed


def beliefs(law: Chain) -> tuple[Floats, Floats]:
    """What is known at a random moment of an outage, and of a run: (states,) each."""
    away, there = np.where(law.up, 0.0, law.usual), np.where(law.up, law.usual, 0.0)
    return away / away.sum(), there / there.sum()


def rule_of(fallback: Fallback | None) -> TwoThresholds | None:
    """The shipped two-threshold rule that a plan carries."""
    if fallback is None or fallback.wait_above is None or fallback.back_above is None:
        return None
    return TwoThresholds(fallback.wait_above, fallback.back_above)


def policy_facts(
    inputs: PathInputs, deadline_s: float | None, rule: TwoThresholds | None
) -> PolicyFacts:
    """The policy of a plan (one row), what it costs next to simpler rules, and a coarse grid."""
    why = why_no_policy(inputs, deadline_s)
    if why is not None:
        return PolicyFacts(why_not=why)
    problem = problem_of(inputs, deadline_s)
    law, task = problem.chain, problem.task
    table = problem.table()
    times = tuple(task.deadline_s * (k / ROWS) ** 2 for k in range(ROWS, 1, -1))
    works = tuple(task.work_s * k / COLUMNS for k in range(COLUMNS, 0, -1))
    away, there = beliefs(law)

    def choice(left: int, work_s: float, up: bool, belief: Floats) -> str | None:
        here = np.array([up]), belief[None]
        (mode,), usd = _choices(table, left, NONE, work_s, task.changeover_s, *here)
        return None if usd[0] >= LATE_USD else NAMES[mode]  # None: cannot be in time

    def cells(up: bool, belief: Floats) -> tuple[tuple[str | None, ...], ...]:
        lefts = [min(round(time_s / problem.tick_s), table.ticks) for time_s in times]
        return tuple(tuple(choice(left, w, up, belief) for w in works) for left in lefts)

    def usd(some: TwoThresholds) -> float:
        spent = rule_usd(some, law, task, problem.prices, problem.tick_s)
        return problem.fixed_usd + spent

    return PolicyFacts(
        fallback_usd=usd(SAFETY_NET),
        rule_usd=None if rule is None else usd(rule),
        full_usd=problem.fixed_usd + expected_usd(table, law, task),
        tick_s=problem.tick_s,
        time_left_s=times,
        work_left_s=works,
        spot_up=cells(True, there),
        spot_away=cells(False, away),
    )


CSV_COLUMNS = (
    "time_left_h",
    "work_left_h",
    "running",  # what runs before the choice: none, spot, on-demand
    "spot",  # up, away
    "zone",  # 1 is the poorest kind of zone of the class
    "age_from_h",  # of the run or outage
    "age_to_h",  # empty: no end
    "decision",  # wait, spot, on-demand
    "usd_to_go",
)


def policy_csv(problem: PolicyProblem, words: str) -> str:
    """The table as text, a comment with what it holds for first; lines end in LF.

    Points from which the deadline cannot be met are left out.
    """
    made = io.StringIO(newline="")
    made.write(f"# {' '.join(words.split())}\n")
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows(_rows(problem))
    return made.getvalue()


def words_of(problem: PolicyProblem) -> str:
    """The inputs of the dynamic program in words."""
    task, prices = problem.task, problem.prices
    return (
        f"work {task.work_s / 3600.0:.6g} h; deadline {task.deadline_s / 3600.0:.6g} h, reserve "
        f"subtracted; a start {task.changeover_s / 3600.0:.4g} h; USD/h: spot {prices.spot:.6g}, "
        f"on-demand {prices.on_demand:.6g}, waiting {prices.idle:.6g}; "
        f"steps of {problem.tick_s:.6g} s"
    )


def _rows(problem: PolicyProblem) -> Iterator[Sequence[str]]:
    law, task = problem.chain, problem.task
    table = problem.table()
    states, changeover_s = list(_states(problem)), task.changeover_s
    every = law.up, np.eye(len(law.up))
    met = law.usual > 0.0  # ages below a tick never occur
    for left in sorted({round(table.ticks * k / STEPS) for k in range(1, STEPS + 1)}, reverse=True):
        for k in range(STEPS, 0, -1):
            work_s = task.work_s * k / STEPS
            time_h, work_h = left * problem.tick_s / 3600.0, work_s / 3600.0
            for mode in (NONE, SPOT, ON_DEMAND):
                decision, usd = _choices(table, left, mode, work_s, changeover_s, *every)
                for place, state in enumerate(states):
                    if met[place] and usd[place] < LATE_USD and (law.up[place] or mode != SPOT):
                        yield (
                            f"{time_h:.6g}", f"{work_h:.6g}", _RUNNING[mode], *state,
                            NAMES[decision[place]], f"{usd[place]:.6g}",
                        )  # fmt: skip


def _choices(
    table: PolicyTable,
    left: int,
    mode: int,
    work_s: float,
    changeover_s: float,
    up: Bools,
    belief: Floats,
) -> tuple[list[int], Floats]:
    """The cheapest choice of each belief (beliefs, states), and its cost, with `left` ticks to go.

    `up`: whether spot is there (beliefs,). Ties go to spot, then to waiting, as in the policy.
    """
    spare, order = left * table.tick_s - work_s, (SPOT, NONE, ON_DEMAND)
    usd = np.empty((len(order), len(up)))
    for place, new in enumerate(order):
        slack = spare - (0.0 if new in (NONE, mode) else changeover_s)
        usd[place] = table.at(left, new, belief, np.full(len(up), slack))
    usd[0] = np.where(up, usd[0], np.inf)
    best = first_cheapest(usd)
    return [int(order[place]) for place in best], usd.min(axis=0)


def _states(problem: PolicyProblem) -> Iterator[tuple[str, str, str, str]]:
    """Side, kind of zone and age of every state, in the order of the chain."""
    edges = [0.0, *problem.law.edges_h]
    ends = [*(f"{edge:g}" for edge in problem.law.edges_h), ""]
    for regime in range(len(problem.law.exits_per_hour)):
        for side in ("away", "up"):
            for begin, end in zip(edges, ends, strict=True):
                yield side, str(regime + 1), f"{begin:g}", end
