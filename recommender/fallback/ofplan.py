"""A plan as the fallback programme sees it: a task, prices and the law of its spot capacity.

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

from dataclasses import dataclass, replace

import numpy as np

from recommender.errors import UsageError
from recommender.fallback.availability import Availability, Chain, chain
from recommender.fallback.classes import of_class
from recommender.fallback.fit import POINTS, WEIGHTS
from recommender.fallback.table import Table, policy_table
from recommender.replay.state import Prices, Task
from recommender.risk.capacity import logistic
from recommender.risk.draws import SITES
from recommender.risk.plans import Journeys

EVEN_SPEED = 0.95  # of the spot cluster, from which on a fallback counts as fast as it
TICKS = 360  # of a table, from the start to the deadline
LEAST_TICK_S = 120.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What the programme is asked for one plan."""

    task: Task
    prices: Prices
    law: Availability
    tick_s: float
    fixed_usd: float  # paid whatever happens, beside the prices

    @property
    def chain(self) -> Chain:
        """The law seen once per tick."""
        return chain(self.law, self.tick_s)

    def table(self) -> Table:
        """Costs to go at every slack up to the deadline: for any work left, reachable or not."""
        whole = self.with_work(self.tick_s)
        return policy_table(self.chain, whole.task, self.prices, self.tick_s)

    def with_work(self, work_s: float) -> "Problem":
        """The same with more or less to do."""
        return replace(self, task=replace(self.task, work_s=work_s))


def unfit(j: Journeys, deadline_s: float | None) -> str | None:
    """Why the programme has nothing to say of a plan (one row), in words; None where it has."""
    if deadline_s is None:
        return "there is no deadline to keep"
    if float(j.spot_usd_per_hour[0]) <= 0.0:
        return "the plan rents no spot"
    if float(j.elastic_share[0]) > 0.0:
        return "the plan trains on while its spot part is away, which the programme cannot express"
    speed = float(j.fallback_speed[0])
    if speed <= 0.0:
        return "the plan waits for spot and has no on-demand machines to go to"
    if speed < EVEN_SPEED:
        return (
            f"its fallback is {100.0 * speed:.0f} % as fast as the spot cluster, "
            "which the programme cannot express"
        )
    task = _task(j, deadline_s)
    if task.deadline_s - task.work_s <= 2.0 * task.changeover_s:
        return "the deadline leaves no time to wait for spot: on-demand from the start"
    return None


def problem_of(j: Journeys, deadline_s: float | None) -> Problem:
    """The problem of one plan (one row); raises `UsageError` where there is none."""
    why = unfit(j, deadline_s)
    if why is not None or deadline_s is None:
        raise UsageError(f"no policy for this plan: {why}; see `rule` under the plan")
    task, always = _task(j, deadline_s), float(j.base_usd_per_hour[0])
    speed = max(float(j.fallback_speed[0]), 1e-9)
    on_demand = float(j.fallback_usd_per_hour[0]) / speed
    return Problem(
        task=task,
        prices=Prices(always + float(j.spot_usd_per_hour[0]), always + on_demand, always),
        law=_law(j),
        tick_s=max(task.deadline_s / TICKS, LEAST_TICK_S),
        fixed_usd=float(j.fixed_usd[0]),
    )


def stretched(j: Journeys) -> float:
    """Time on the machines per time of training: saves hold it up."""
    return 1.0 + float(j.stall_s[0] / max(j.interval_s[0], 1.0))


def _task(j: Journeys, deadline_s: float) -> Task:
    """Where the fallback is a little slower, what it needs longer is taken off the deadline."""
    work_s = float(j.work_s[0]) * stretched(j)
    lost_s = (1.0 - float(j.notice_saves[0])) * 0.5 * float(j.interval_s[0])
    start_s = max(float(j.changeover_s[0]), float(j.fallback_start_s[0]))
    slower_s = max(1.0 / float(j.fallback_speed[0]) - 1.0, 0.0) * work_s
    due_s = deadline_s - float(j.reserve_s[0]) - slower_s
    return Task(work_s, max(due_s, 1.0), start_s + lost_s)


def _law(j: Journeys) -> Availability:
    """Poor, usual and good zones as in the engine (`risk/capacity.py`), to first order.

    Each other zone of the list is down with 1 - up·(1 - correlation), its level averaged.
    """
    logit, zone_sd = float(j.availability_logit[0]), float(j.zone_sd[0])
    sites = min(int(j.sites[0]), SITES)
    levels = logistic(logit + zone_sd * np.asarray(POINTS))
    down = 1.0 - float(WEIGHTS @ levels) * (1.0 - float(j.correlation[0]))
    listed = of_class(
        float(j.run_mean_s[0]),
        max(float(j.run_sigma[0]), 1e-3),
        max(float(j.outage_sigma[0]), 1e-3),
        float(logistic(np.array(logit))),
        zone_sd,
        float(j.sites[0]),
    )
    return replace(listed, elsewhere=1.0 - down ** (sites - 1))
