"""The parts of one plan as they are printed: machines, checkpoints, fallback, estimate, bill."""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import is_confidential
from recommender.market.contract import terms_of
from recommender.market.offer_facts import Pool
from recommender.market.quota_rows import needs_of, rented_of
from recommender.optimize.candidate import Candidate
from recommender.optimize.chance import sure_chances
from recommender.optimize.evaluate import (
    Plans,
    Reduced,
    chance_of,
    deciding_overhead,
    largest_used,
    servers_usd_per_hour,
)
from recommender.optimize.space import Site, Space
from recommender.performance.checkpoint import CHECKPOINT_PATHS, as_good_intervals
from recommender.performance.clusters import clusters_of
from recommender.performance.parameter_server import servers_of
from recommender.performance.step import explain, safer_setting
from recommender.plan.limits import PATH_LIMITS
from recommender.plan.plan import (
    BillItem,
    Checkpointing,
    Estimate,
    Fallback,
    Machines,
    Need,
    OnDemandFacts,
    Plan,
    SpotFacts,
    Spread,
    StepSplit,
    TimeSplit,
)
from recommender.plan.plan import Site as Place
from recommender.planner.evidence import evidence_of
from recommender.planner.plan_notes import (
    FULL,
    batch_note,
    capacity_note,
    commitment_note,
    elastic_note,
    free_time_note,
    memory_note,
    servers_note,
)
from recommender.planner.problem import PRINTED, Problem
from recommender.risk.monte_carlo import simulate_paths, simulate_with_known_speed
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.policy import has_thresholds
from recommender.risk.run_statistics import (
    ROUNDING,
    checkpoint_overhead,
    middle_rows,
    quantiles,
    trimmed_mean,
)

# Smaller lines of a bill are left out: of one below a dollar those below a share of it.
MIN_ITEM_USD, MIN_ITEM_SHARE = 0.005, 2e-3


@dataclass(frozen=True)
class PlanDetails:
    """The figures of a candidate, computed once, and the parts of its plan."""

    problem: Problem
    space: Space
    candidate: Candidate
    site: Site  # with the candidate's entries only
    pools: tuple[Pool, ...]  # behind each of these entries
    fallback_pools: tuple[Pool, ...]  # behind its fallback; none without one
    row: Plans  # the candidate as a plan of the site: one row
    reduced: Reduced  # its path inputs, gang and checkpoints: one row

    @property
    def inputs(self) -> PathInputs:
        """The simulation inputs of the candidate: one row."""
        return self.reduced.inputs

    @cached_property
    def paths(self) -> Paths:
        """The paths behind all printed figures."""
        return self._simulated[0]

    @cached_property
    def _simulated(self) -> tuple[Paths, Paths]:
        """The plan, and as if its speed were known; only needed with limits on runs."""
        asked = (self.inputs, self.space.limits.deadline_s, PRINTED, self.space.seed)
        if any(self.space.limits.given(PATH_LIMITS)):
            return simulate_with_known_speed(*asked)
        paths = simulate_paths(*asked)
        return paths, paths

    def plan(self) -> Plan:
        """The whole plan."""
        listed_usd = sum(m.count * m.usd_per_hour for m in self.machines)
        hours = float(self.inputs.work_s[0]) / 3600.0
        flop = self.problem.steps_left * self.problem.job.global_batch
        flop *= self.problem.job.flop_per_sample
        return Plan(
            machines=self.machines,
            sites=self.sites,
            move_after_s=float(self.inputs.move_after_s[0]),
            checkpointing=self.checkpointing(),
            fallback=self._fallback,
            estimate=self._estimate(),
            usd_per_hour=self.usd_per_hour,
            max_usd_per_hour=self.max_usd_per_hour,
            gpus=sum(m.count * m.gpus for m in self.machines),
            flopp=flop / max(listed_usd * hours, 1e-12),
            needs=self._needs(),
            notes=self._notes(),
            spot=self._spot_facts(),
            evidence=evidence_of(self.problem, self.pools),
            on_demand=self._on_demand_facts,
        )

    @property
    def usd_per_hour(self) -> float:
        """List price while everything runs."""
        rented = (*self.machines, *self.tier)
        return sum(m.count * m.usd_per_hour for m in rented) + self._servers_usd_per_hour

    @property
    def max_usd_per_hour(self) -> float:
        """Largest USD per hour, at the most expensive location, with fees and fallback."""
        entries, inputs = self.site.entries, self.inputs
        spot = np.where(entries.spot, entries.max_usd_per_hour, 0.0)
        running = float(inputs.base_usd_per_hour[0] + self.row.counts[0] @ spot)
        return max(running, float(inputs.fallback_usd_per_hour[0]))

    @cached_property
    def machines(self) -> tuple[Machines, ...]:
        """The training machines, at the first location of their failover list."""
        pools = zip(self.pools, self.candidate.counts, strict=True)
        return tuple(self._machine(pool.rows[0], count) for pool, count in pools)

    @cached_property
    def tier(self) -> tuple[Machines, ...]:
        """The CPU machines that receive checkpoints in memory, if any."""
        saves = self.reduced.saves
        if saves.tier_type[0] < 0:
            return ()
        row = int(self.site.tier.offer[saves.tier_type[0]])
        return (self._machine(row, int(saves.tier_count[0])),)

    def _machine(self, row: int, count: int) -> Machines:
        o = self.problem.catalog.offers[row]
        t = self.problem.catalog.type_of(o)
        return Machines(
            count=count,
            provider=o.provider,
            instance_type=o.instance_type,
            market=o.market,
            gpu=t.gpu,
            gpus=t.gpus,
            region=o.region,
            zone=o.zone,
            usd_per_hour=self.problem.facts.listed_usd(row),
            price_kind=o.kind,
            price_flag=o.flag,
            as_of=o.as_of,
            confidential=is_confidential(o.provider, o.instance_type),
            terms=terms_of(self.problem.facts, o),
        )

    @cached_property
    def _spot_pool(self) -> Pool | None:
        """The first spot pool; mixes share its failover list inside their region."""
        return next((pool for pool in self.pools if pool.spot), None)

    @property
    def sites(self) -> tuple[Place, ...]:
        """The failover list of the spot machines, or of machines that are all on demand."""
        return self._listed(self._spot_pool or self.pools[0])

    def _listed(self, pool: Pool) -> tuple[Place, ...]:
        """The failover list of a pool; nothing where on-demand machines have one region."""
        if not pool.spot and len(pool.rows) == 1:
            return ()
        o, usd = self.problem.catalog.offers, self.problem.facts.listed_usd
        return tuple(Place(o.region[r], o.zone[r], usd(r), o.flag[r]) for r in pool.rows)

    def checkpointing(self) -> Checkpointing:
        """How it saves."""
        saves, path, p = self.reduced.saves, self.candidate.checkpoint_path, self.inputs
        as_good = as_good_intervals(
            p.run_mean_s, p.run_sigma, p.changeover_s, p.stall_s, saves.interval_min_s,
            p.notice_saves,
        )  # fmt: skip
        return Checkpointing(
            path=CHECKPOINT_PATHS[path],
            interval_s=float(p.interval_s[0]) if path else math.nan,
            stall_s=float(saves.stall_s[0]),
            transfer_s=float(saves.transfer_s[0]),
            restore_s=float(saves.restore_s[0]),
            notice_s=float(self.reduced.gang.notice_s[0]),
            notice_covers=bool(saves.notice_saves[0] > 0),
            as_good_s=as_good if path else (math.nan, math.nan),
            machines=self.tier,
            lag_s=float(saves.lag_s[0]),
        )

    @property
    def fallback_machines(self) -> tuple[Machines, ...]:
        """The machines that take over if spot stays away; empty without a fallback."""
        row, counts = self.candidate.fallback, self.site.fallbacks.count
        return tuple(self._machine(pool.rows[0], int(counts[row])) for pool in self.fallback_pools)

    @cached_property
    def _fallback(self) -> Fallback | None:
        row, fallbacks, inputs = self.candidate.fallback, self.site.fallbacks, self.inputs
        if row < 0:
            return None
        return Fallback(
            machines=self.fallback_machines,
            sites=self._listed(self.fallback_pools[0]),
            usd_per_hour=float(fallbacks.usd_per_hour[row]),
            speed=float(inputs.fallback_speed[0]),
            reserve_s=float(inputs.handover_s[0]),
            wait_above=float(inputs.wait_above[0]) if has_thresholds(inputs)[0] else None,
            back_above=float(inputs.back_above[0]) if has_thresholds(inputs)[0] else None,
            changeover_s=float(inputs.changeover_s[0]),
            caution=float(inputs.cautious_work_s[0] / max(inputs.work_s[0], 1e-9)),
            probability=float((self.paths.fallback_s > 0).mean()),
            work_share=self._fallback_work_share(),
        )

    def fallback_step(self) -> StepSplit:
        """A step on the fallback's machines, which has a layout and micro-batches of its own."""
        fallbacks, columns = self.site.fallbacks, self.space.columns
        counts = np.zeros((1, len(columns.gpus)), dtype=np.int64)
        counts[0, fallbacks.kind[self.candidate.fallback]] = self.fallback_machines[0].count
        return explain(self.space.job, columns, clusters_of(columns, counts), 0)

    def _fallback_work_share(self) -> float:
        """Mean share of the job's work that the fallback does."""
        inputs, paths = self.inputs, self.paths
        trains_s = np.maximum(paths.fallback_s - inputs.fallback_start_s[0], 0.0)
        return float((trains_s * inputs.fallback_speed[0] / paths.work_s).mean())

    @cached_property
    def chance(self) -> float:
        """The chance that all limits are met; near the one asked, on more paths."""
        printed = chance_of(self.space.limits, self.paths, self.inputs)
        return float(sure_chances(self.space, self.inputs, printed)[0])

    def _estimate(self) -> Estimate:
        space, inputs = self.space, self.inputs
        paths, sure = self._simulated
        lost = deciding_overhead(space.on_printed_paths(), inputs, checkpoint_overhead(paths))
        return Estimate(
            cost=spread_of(paths.cost_usd[0], float(paths.expected_usd.mean())),
            time=spread_of(paths.time_s[0], float(paths.time_s.mean())),
            chance=self.chance,
            chance_if_speed_known=float(chance_of(space.limits, sure, inputs)[0]),
            interruptions=float(paths.interruptions.mean()),
            overhead=float(lost[0]),
            split=_time_split(inputs, paths, middle_rows(paths.time_s[0])),
            step=self._step,
            bill=self._bill(),
            speed_sigma=float(inputs.speed_sigma[0]),
            price_sigma=float(inputs.spot_price_sigma[0]),
            interrupted=float((paths.interruptions[0] > 0).mean()),
            interruptions_p95=quantiles(paths.interruptions[0], 0.95)[0],
        )

    @cached_property
    def _step(self) -> StepSplit:
        """A step of the cluster, and the memory of one of its GPUs."""
        return explain(self.space.job, self.space.columns, self.reduced.fleet, 0)

    def _bill(self) -> tuple[BillItem, ...]:
        """The expected bill, line by line; the lines sum to the expected cost.

        Lines that would be printed as nothing are left out.
        """
        inputs, paths = self.inputs, self.paths
        all_h = self._paid_h
        machines, fees_usd, zones_usd, risen_usd = self._machine_items()
        fall_h = float(paths.fallback_s.mean()) / 3600.0 * (self.candidate.fallback >= 0)
        data_usd = float(largest_used(self.site.entries.fixed_usd, self.row.counts)[0])
        stores = self.candidate.checkpoint_path != 0
        items = [
            *machines,
            *(
                (f"{m.count}x {m.instance_type} checkpoints", m.count * m.usd_per_hour * all_h)
                for m in self.tier
            ),
            ("parameter servers", self._servers_usd_per_hour * all_h),
            ("on-demand fallback", fall_h * float(inputs.fallback_usd_per_hour[0])),
            ("data: egress to all regions of the list", data_usd),
            ("egress of checkpoints and the trained model", float(inputs.fixed_usd[0]) - data_usd),
            (
                "checkpoints moved between regions",
                float(paths.moves.mean()) * float(inputs.usd_per_move[0]),
            ),
            ("checkpoint storage", self.site.store_usd_per_hour * all_h * stores),
            ("disks and addresses", fees_usd),
            ("failover to more expensive zones", zones_usd),
            ("expected rise of old quotes", risen_usd),
        ]
        total = sum(usd for _, usd in items)
        least = MIN_ITEM_USD if total >= 1.0 else MIN_ITEM_SHARE * total
        return tuple(BillItem(name, usd) for name, usd in items if abs(usd) >= least)

    @property
    def _servers_usd_per_hour(self) -> float:
        """Price of the parameter servers, fees included."""
        return float(servers_usd_per_hour(self.space, self.site, self.row.counts)[0])

    @cached_property
    def _paid_h(self) -> float:
        """Hours that machines without spot are paid: from their start, in whole steps."""
        needed_s = self.paths.time_s - self.paths.queued_s
        return float(self.inputs.rented_s(needed_s).mean()) / 3600.0

    def _machine_items(self) -> tuple[list[tuple[str, float]], float, float, float]:
        """A line for the machines of each entry, their fees, what costlier zones and time add."""
        facts = self.problem.facts
        spot_h = float(self.paths.spot_s.mean()) / 3600.0
        items, fees, zones, risen = [], 0.0, 0.0, 0.0
        paid_usd = self.site.entries.usd_per_hour.tolist()
        for m, pool, paid in zip(self.machines, self.pools, paid_usd, strict=True):
            hours = m.count * (spot_h if m.market == "spot" else self._paid_h)
            fee = facts.running_fees(m.provider, m.market, m.instance_type)
            name = f"{m.count}x {m.instance_type} {m.market.replace('_', '-')}"
            items.append((name, m.usd_per_hour * hours))
            fees += fee * hours
            planned = facts.planning_price(pool.rows[0])
            zones += (paid - fee - planned) * hours
            risen += (planned - m.usd_per_hour) * hours
        for m in self.tier:
            fee = facts.running_fees(m.provider, m.market, m.instance_type)
            fees += m.count * fee * self._paid_h
        return items, fees, zones, risen

    def _needs(self) -> tuple[Need, ...]:
        facts = self.problem.facts
        cluster = rented_of(facts, self.pools, self.candidate.counts)
        types = facts.catalog.instance_types
        cluster += [
            (types[m.provider, m.instance_type], m.market, m.region, m.count) for m in self.tier
        ]
        counts = [m.count for m in self.fallback_machines]
        return needs_of(facts, cluster, rented_of(facts, self.fallback_pools, counts))

    def _notes(self) -> tuple[str, ...]:
        """What to know of the plan besides its figures."""
        job, inputs, paths = self.problem.job, self.inputs, self.paths
        servers = int(servers_of(job, self.row.counts.sum(axis=1))[0])
        gpus, space = sum(m.count * m.gpus for m in self.machines), self.space
        safer = ""  # a setting that surely fits the memory, where this one may not
        if self._step.memory_share > FULL:
            safer = safer_setting(space.job, space.columns, self.reduced.fleet, 0)
        return (
            *capacity_note(self._on_demand_facts, self.chance),
            *batch_note(job, gpus),
            *memory_note(job, self._step, gpus, safer),
            *servers_note(servers, self._servers_usd_per_hour),
            *elastic_note(inputs, paths),
            *free_time_note(inputs, paths),
            *commitment_note(self.problem.facts, self.pools[0]),
        )

    @cached_property
    def _on_demand_facts(self) -> OnDemandFacts | None:
        """What the plan's paths met of the wait for on-demand machines."""
        inputs, paths = self.inputs, self.paths
        from_start = not self.site.entries.spot.all()
        if not from_start and self.candidate.fallback < 0:
            return None
        wait_s = paths.queued_s + paths.fallback_queued_s
        asked = np.full(wait_s.shape, from_start) | (paths.fallback_s > 0.0)
        sure = replace(paths, time_s=paths.time_s - wait_s)
        at_once = min(float(inputs.at_once[0]), float(inputs.fallback_at_once[0]))
        return OnDemandFacts(
            needed=float(asked.mean()),
            at_once=at_once,
            late=float((wait_s > 3600.0).mean()),
            wait_p95_s=quantiles(wait_s[asked], 0.95)[0] if asked.any() else 0.0,
            chance_if_at_once=float(chance_of(self.space.limits, sure, inputs)[0]),
        )

    def _spot_facts(self) -> SpotFacts | None:
        """The law of a pool, and what the plan's paths met of it."""
        spot, facts, gang = self._spot_pool, self.problem.facts, self.reduced.gang
        law = None if spot is None else facts.spot_class(spot.type, spot.rows)
        if law is None:
            return None
        up = float(1.0 / (1.0 + np.exp(-gang.availability_logit[0])))
        user = self.problem.choice.mtbf_h is not None
        waits = self.paths.waiting_s[0]
        median, longest = quantiles(waits, 0.5, 0.95)
        return SpotFacts(
            name=law.spot_class,
            run_mean_s=float(self.site.entries.run_mean_s[self.site.entries.spot][0]),
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


def spread_of(values: Floats, mean: float) -> Spread:
    """A figure of simulated runs as printed; `mean` is a less noisy estimate."""
    low, half, high, most = quantiles(values, 0.05, 0.5, 0.95, 0.99)
    return Spread(mean, low, half, high, float(trimmed_mean(values)), most)


def _time_split(inputs: PathInputs, paths: Paths, rows: Ints) -> TimeSplit:
    """Where the time of these paths goes; lost work is what the other parts leave."""

    def mean(values: Floats) -> float:
        return float(values[0, rows].mean())

    def rest(*parts: float) -> float:
        left = total - sum(parts)
        return left if left > ROUNDING * total else 0.0

    total, work, waiting = mean(paths.time_s), mean(paths.trained_s), mean(paths.waiting_s)
    # Runs shorter than a changeover do not take all of it, and a fallback may start at once.
    start = min(float(inputs.changeover_s[0]), rest(work, waiting))
    restart = mean(paths.restarts_s) + float((paths.fallback_s[0, rows] > 0).mean()) * float(
        inputs.fallback_start_s[0]
    )
    restart = min(restart, rest(work, waiting, start))
    saving = work * float(inputs.stall_s[0] / max(inputs.interval_s[0], 1.0))
    saving = min(saving, rest(work, waiting, start, restart))
    lost = rest(work, waiting, start, restart, saving)
    return TimeSplit(start, work, saving, lost, restart, waiting)
