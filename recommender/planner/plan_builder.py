"""From a candidate of the search to a plan that can be printed: followed again, and itemised."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.market.facts import Pool
from recommender.market.quotas import quota_of, used_by, yours
from recommender.market.sites import SitePools
from recommender.optimize.checkpoint_paths import saves_of
from recommender.optimize.evaluate import Plans, gang_of, limits_kept, path_inputs_of
from recommender.optimize.incumbent import Candidate
from recommender.optimize.space import PATHS, Site, Space
from recommender.performance.step import explain
from recommender.plan.limits import MEAN_LIMITS, Limits
from recommender.plan.plan import (
    BillItem,
    Checkpointing,
    Estimate,
    Fallback,
    Machines,
    Need,
    Plan,
    SpotFacts,
    Spread,
    TimeSplit,
)
from recommender.plan.plan import Site as Place
from recommender.planner.problem import PRINTED, Question
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.outcomes import quantiles, trimmed_mean, trimmed_rows
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.text import duration, usd

if TYPE_CHECKING:
    from recommender.policies.thresholds import TwoThresholds


UNPAID = 0.5  # of a plan's cost, from which on free spot time is worth a note
EVEN_SPEED = 0.95  # of the spot cluster, from which on a fallback counts as fast as it


@dataclass(frozen=True)
class Presenter:
    """Turns candidates of one set of sites into plans."""

    question: Question
    built: SitePools
    other: Limits | None = None  # than the question's limits
    made: dict[Candidate, Plan] = field(default_factory=dict)

    def under(self, limits: Limits) -> "Presenter":
        """The same under other limits: their deadline decides when a fallback starts."""
        return Presenter(self.question, self.built, limits)

    def keeping(self, candidates: Iterable[Candidate]) -> Iterator[Plan]:
        """The plans of those candidates that keep the limits in the printed figures as well."""
        return (plan for plan in map(self.plan, candidates) if keeps(plan, self.limits))

    @property
    def limits(self) -> Limits:
        """The limits that its plans are followed under."""
        return self.other or self.question.limits

    @cached_property
    def _space(self) -> Space:
        return replace(self.question.space(self.built), limits=self.limits)

    def plan(self, candidate: Candidate, labels: tuple[str, ...] = ()) -> Plan:
        """The whole plan, its figures from the histories behind everything printed."""
        if candidate not in self.made:
            self.made[candidate] = self._plan(candidate)
        return replace(self.made[candidate], labels=labels)

    def journey(self, candidate: Candidate) -> PathInputs:
        """What the time and the bill of a candidate depend on: one row."""
        return self._journey(candidate)[2]

    def hourly_usd(self, candidate: Candidate) -> float:
        """Most USD per hour ever paid: at the dearest place, fees and fallback included."""
        site, one, journeys = self._journey(candidate)
        spot = np.where(site.entries.spot, site.entries.max_usd_per_hour, 0.0)
        running = float(journeys.base_usd_per_hour[0] + one.counts[0] @ spot)
        return max(running, float(journeys.fallback_usd_per_hour[0]))

    def candidate_of(self, plan: Plan) -> Candidate:
        """The candidate that a plan was made of, by its estimate, which later changes keep."""
        return next(c for c, made in self.made.items() if made.estimate is plan.estimate)

    def _journey(self, candidate: Candidate) -> tuple[Site, Plans, PathInputs]:
        site = self.built.sites[candidate.site].only(np.array(candidate.entries))
        one = Plans(
            np.array([candidate.counts]),
            np.array([candidate.checkpoint_path]),
            np.array([candidate.fallback]),
        )
        journeys, _ = path_inputs_of(self._space, site, one)
        return site, one, journeys

    def _plan(self, candidate: Candidate) -> Plan:
        space = self._space
        site, one, journeys = self._journey(candidate)
        # What another fallback could save is asked by the search alone.
        one_plan = replace(journeys, best_fallback_usd_per_hour=np.full(1, np.inf))
        h = simulate_paths(one_plan, space.limits.deadline_s, PRINTED, space.seed)
        pools = [self.built.pools[candidate.site][e] for e in candidate.entries]
        machines = self._machines(pools, candidate.counts)
        usd_per_hour = sum(m.count * m.usd_per_hour for m in machines)
        checkpointing, tier = self._checkpointing(space, site, one, journeys)
        estimate = self._estimate(space, site, one, one_plan, h, machines, tier)
        hours = float(journeys.work_s[0]) / 3600.0
        flop = self.question.steps_left * self.question.job.global_batch
        flop *= self.question.job.flop_per_sample
        return Plan(
            machines=machines,
            sites=self._places(pools),
            checkpointing=checkpointing,
            fallback=self._fallback(site, candidate, journeys, h, pools),
            estimate=estimate,
            usd_per_hour=usd_per_hour + sum(m.count * m.usd_per_hour for m in tier),
            gpus=sum(m.count * m.gpus for m in machines),
            flopp=flop / max(usd_per_hour * hours, 1e-12),
            needs=self._needs(pools, candidate.counts),
            notes=_unpaid(journeys, h),
            spot=self._spot_facts(space, site, one, pools, h),
        )

    def _machines(self, pools: list[Pool], counts: tuple[int, ...]) -> tuple[Machines, ...]:
        return tuple(
            self._machine(pool.rows[0], count) for pool, count in zip(pools, counts, strict=True)
        )

    def _machine(self, row: int, count: int) -> Machines:
        o = self.question.catalog.offers[row]
        t = self.question.catalog.type_of(o)
        return Machines(
            count=count,
            provider=o.provider,
            instance_type=o.instance_type,
            market=o.market,
            gpu=t.gpu,
            gpus=t.gpus,
            region=o.region,
            zone=o.zone,
            usd_per_hour=self.question.facts.listed_usd(row),
            price_kind=o.kind,
            price_flag=o.flag,
            as_of=o.as_of,
        )

    def _places(self, pools: list[Pool]) -> tuple[Place, ...]:
        """The failover list of the first spot pool; mixes share it inside their region."""
        spot = next((pool for pool in pools if pool.spot), None)
        if spot is None:
            return ()
        o = self.question.catalog.offers
        return tuple(Place(o.region[r], o.zone[r], o.usd_per_hour[r], o.flag[r]) for r in spot.rows)

    def _checkpointing(
        self, space: Space, site: Site, one: Plans, journeys: PathInputs
    ) -> tuple[Checkpointing, tuple[Machines, ...]]:
        fleet = space.fleet(site, one.counts)
        notice = gang_of(space, site.entries, one.counts).notice_s
        saves = saves_of(space, site, fleet, one.counts, one.checkpoint_path, notice)
        tier: tuple[Machines, ...] = ()
        if saves.tier_type[0] >= 0:
            row = int(site.tier.offer[saves.tier_type[0]])
            tier = (self._machine(row, int(saves.tier_count[0])),)
        return Checkpointing(
            path=PATHS[int(one.checkpoint_path[0])],
            interval_s=float(journeys.interval_s[0]) if one.checkpoint_path[0] else math.nan,
            stall_s=float(saves.stall_s[0]),
            transfer_s=float(saves.transfer_s[0]),
            restore_s=float(saves.restore_s[0]),
            notice_s=float(notice[0]),
            notice_covers=bool(saves.notice_saves[0] > 0),
            machines=tier,
        ), tier

    def _fallback(
        self, site: Site, candidate: Candidate, j: PathInputs, h: Paths, pools: list[Pool]
    ) -> Fallback | None:
        if candidate.fallback < 0:
            return None
        row = candidate.fallback
        machines = self._machine(int(site.fallbacks.offer[row]), int(site.fallbacks.count[row]))
        rule = self._rule(site, row, j, pools)
        return Fallback(
            machines=(machines,),
            usd_per_hour=float(site.fallbacks.usd_per_hour[row]),
            speed=float(j.fallback_speed[0]),
            reserve_s=float(j.reserve_s[0] + j.fallback_start_s[0]),
            probability=float((h.fallback_s > 0).mean()),
            wait_above=None if rule is None else rule.wait,
            back_above=None if rule is None else rule.back,
        )

    def _rule(
        self, site: Site, row: int, j: PathInputs, pools: list[Pool]
    ) -> "TwoThresholds | None":
        """When to wait for spot and when to go back, from the tables of its class.

        They hold for all-spot clusters and on-demand ones at least as fast.
        """
        speed, deadline_s = float(j.fallback_speed[0]), self.limits.deadline_s
        law = self.question.facts.spot_class(pools[0].type, pools[0].rows)
        mixed = not site.entries.spot.all()
        if deadline_s is None or law is None or mixed or speed < EVEN_SPEED:
            return None
        from recommender.policies.state import Prices, Task
        from recommender.policies.thresholds import shipped_rule

        task = Task(float(j.work_s[0]), deadline_s, float(j.changeover_s[0]))
        usd = float(site.fallbacks.usd_per_hour[row]) / speed
        return shipped_rule(law.spot_class, task, Prices(float(j.spot_usd_per_hour[0]), usd))

    def _estimate(
        self,
        space: Space,
        site: Site,
        one: Plans,
        j: PathInputs,
        h: Paths,
        machines: tuple[Machines, ...],
        tier: tuple[Machines, ...],
    ) -> Estimate:
        known = replace(j, speed_sigma=np.zeros(1))
        sure = simulate_paths(known, space.limits.deadline_s, PRINTED, space.seed)
        running, rows = float(h.running_s.mean()), trimmed_rows(h.time_s[0])
        return Estimate(
            cost=_spread(h.cost_usd[0], float(h.expected_usd.mean())),
            time=_spread(h.time_s[0], float(h.time_s.mean())),
            chance=float(limits_kept(space.limits, h).mean()),
            chance_if_speed_known=float(limits_kept(space.limits, sure).mean()),
            interruptions=float(h.interruptions.mean()),
            overhead=max(0.0, 1.0 - float(h.trained_s.mean()) / max(running, 1.0)),
            split=_time_split(j, h, rows),
            step=explain(space.job, space.columns, space.fleet(site, one.counts), 0),
            bill=self._bill(site, one, j, h, machines, tier),
            speed_sigma=float(j.speed_sigma[0]),
            price_sigma=float(j.spot_price_sigma[0]),
        )

    def _bill(
        self,
        site: Site,
        one: Plans,
        j: PathInputs,
        h: Paths,
        machines: tuple[Machines, ...],
        tier: tuple[Machines, ...],
    ) -> tuple[BillItem, ...]:
        """The expected bill, line by line; the lines sum to the expected cost."""
        spot_h = float(h.spot_s.mean()) / 3600.0
        all_h = float((h.time_s - h.queued_s).mean()) / 3600.0  # on-demand is paid from its start
        items, fees, zones = [], 0.0, 0.0
        for m, paid in zip(machines, site.entries.usd_per_hour.tolist(), strict=True):
            hours = m.count * (spot_h if m.market == "spot" else all_h)
            fee = self.question.facts.running_fees(m.provider, m.market)
            name = f"{m.count}x {m.instance_type} {m.market.replace('_', '-')}"
            items.append(BillItem(name, m.usd_per_hour * hours))
            fees += fee * hours
            zones += (paid - fee - m.usd_per_hour) * hours
        for m in tier:
            fees += m.count * self.question.facts.running_fees(m.provider, m.market) * all_h
        items += [
            BillItem(f"{m.count}x {m.instance_type} checkpoints", m.count * m.usd_per_hour * all_h)
            for m in tier
        ]
        if one.fallback[0] >= 0:
            fall = float(h.fallback_s.mean()) / 3600.0 * float(j.fallback_usd_per_hour[0])
            items.append(BillItem("on-demand fallback", fall))
        items.append(BillItem("data: egress to the region", float(j.fixed_usd[0])))
        moves = float(h.interruptions.mean()) * float(j.usd_per_interruption[0])
        items.append(BillItem("checkpoints moved between regions", moves))
        if one.checkpoint_path[0] != 0:
            items.append(BillItem("checkpoint storage", site.store_usd_per_hour * all_h))
        items.append(BillItem("disks and addresses", fees))
        items.append(BillItem("failover to more expensive zones", zones))
        return tuple(item for item in items if abs(item.usd) >= 0.005)

    def _needs(self, pools: list[Pool], counts: tuple[int, ...]) -> tuple[Need, ...]:
        needs = []
        for pool, count in zip(pools, counts, strict=True):
            market = "spot" if pool.spot else "on_demand"
            quota = quota_of(self.question.facts, pool.type, market)
            if quota is None:
                continue
            region = self.question.catalog.offers.region[pool.rows[0]]
            amount = count * used_by(pool.type, quota.unit)
            mine = yours(self.question.facts, pool, quota.unit)
            needs.append(Need(quota.name, amount, quota.unit, region, quota.default_new, mine))
        return tuple(needs)

    def _spot_facts(
        self, space: Space, site: Site, one: Plans, pools: list[Pool], h: Paths
    ) -> SpotFacts | None:
        """The law of a pool, and what the plan's histories met of it."""
        spot = next((pool for pool in pools if pool.spot), None)
        facts = self.question.facts
        law = None if spot is None else facts.spot_class(spot.type, spot.rows)
        if spot is None or law is None:
            return None
        gang = gang_of(space, site.entries, one.counts)
        up = float(1.0 / (1.0 + np.exp(-gang.availability_logit[0])))
        user = self.question.choice.mtbf_h is not None
        waits = h.waiting_s[0]
        median, longest = quantiles(waits, 0.5, 0.95)
        return SpotFacts(
            name=law.spot_class,
            run_mean_s=float(site.entries.run_mean_s[site.entries.spot][0]),
            gang_run_mean_s=float(gang.run_mean_s[0]),
            outage_mean_s=float(gang.run_mean_s[0]) * (1.0 - up) / up,
            availability=up,
            co_interruption=law.co_interruption,
            basis="--mtbf" if user else law.basis,
            as_of=law.as_of,
            waiting_p50_s=median,
            waiting_p95_s=longest,
            never_waits=float((waits <= 0.0).mean()),
        )


def keeps(plan: Plan, limits: Limits) -> bool:
    """Whether a plan keeps its limits in enough of the histories behind its printed figures."""
    means = all(limit.of_plan(plan) <= most for limit, most in limits.given(MEAN_LIMITS))
    return means and plan.estimate.chance >= limits.confidence


def is_derived(plan: Plan) -> bool:
    """Whether nobody quoted the price of some of its machines."""
    return any(m.price_kind == "derived" for m in plan.machines)


def is_steady(plan: Plan) -> bool:
    """Whether all its machines are on-demand ones."""
    return all(m.market == "on_demand" for m in plan.machines)


def saving(plan: Plan, steady: Plan | None) -> float | None:
    """Share of the cost that a plan saves against one without spot."""
    if steady is None:
        return None
    return 1.0 - plan.estimate.cost.mean / steady.estimate.cost.mean


def _unpaid(j: PathInputs, h: Paths) -> tuple[str, ...]:
    """That much of a plan's spot time is free, where runs end within their free first hour.

    The rule is the provider's, but nobody watched it hold for a machine taken dozens of times.
    """
    if j.free_s[0] <= 0.0:
        return ()
    up_s = float((h.running_s - h.fallback_s).mean())
    hours = max(up_s - float(h.spot_s.mean()), 0.0) / 3600.0
    value, cost = hours * float(j.spot_usd_per_hour[0]), float(h.expected_usd.mean())
    if value < UNPAID * cost:
        return ()
    return (
        f"{duration(3600.0 * hours)} on spot are not billed: the provider charges nothing for a "
        f"run that it ends within {duration(float(j.free_s[0]))}; charged, they would cost "
        f"{usd(value)} USD more. Do not count on it for many short runs",
    )


def _spread(values: Floats, mean: float) -> Spread:
    low, half, high = quantiles(values, 0.05, 0.5, 0.95)
    return Spread(mean, low, half, high, float(trimmed_mean(values)))


def _time_split(j: PathInputs, h: Paths, rows: Ints) -> TimeSplit:
    """Where the time of these histories goes; lost work is what the other parts leave."""

    def mean(values: Floats) -> float:
        return float(values[0, rows].mean())

    total, work, waiting = mean(h.time_s), mean(h.trained_s), mean(h.waiting_s)
    # Runs shorter than a changeover do not take all of it, and a fallback may start at once.
    start = min(float(j.changeover_s[0]), max(total - work - waiting, 0.0))
    restart = mean(h.restarts_s) + float((h.fallback_s[0, rows] > 0).mean()) * float(
        j.fallback_start_s[0]
    )
    restart = min(restart, max(total - work - waiting - start, 0.0))
    saving = work * float(j.stall_s[0] / max(j.interval_s[0], 1.0))
    saving = min(saving, max(total - start - work - restart - waiting, 0.0))
    lost = max(total - start - work - restart - waiting - saving, 0.0)
    return TimeSplit(start, work, saving, lost, restart, waiting)
