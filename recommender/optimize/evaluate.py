"""The full model of a plan: from machines, checkpoint path and fallback to cost, time and chance.

`path_inputs_of` converts plans to the inputs of the simulation; `values_of` simulates them and
evaluates their paths under the limits. The pool, the printed plans and the exhaustive oracle of the
tests use these two functions.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.optimize.checkpoint_paths import Saves, saves_of
from recommender.optimize.space import ANCHOR, NONE, OBJECT_STORE, Entries, Site, Space
from recommender.performance.checkpoint import best_interval
from recommender.performance.clusters import Clusters
from recommender.performance.parameter_server import cluster_spread, servers_of
from recommender.performance.step import STRATEGY_OF_ROW
from recommender.plan.limits import MEAN_LIMITS, PATH_LIMITS, TOLERANCE, Limits, PathFigures
from recommender.risk.laws import gang_doublings, gang_hazard
from recommender.risk.normal_law import normal_quantile
from recommender.risk.on_demand_wait import OnDemandLaw
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import MAX_LISTED_ZONES
from recommender.risk.run_statistics import trimmed_mean

# Seconds of a changeover besides boot, image and restore: rendezvous of the ranks 20 s and the
# first slow steps 60 s (review of published start-up logs, docs/models.md).
RENDEZVOUS_S = 80.0
# Time that the fallback rule reserves besides the wait for its machines: one save and the decision.
RESERVE_S = 120.0
# Layouts of `step.STRATEGY_OF_ROW` that restart on another number of machines by themselves.
RESHARDED = np.array([strategy.whole_network for strategy in STRATEGY_OF_ROW])
# Standard errors by which an overhead on the paths of a search may exceed the printed one. Over
# twelve questions the two differed by 0.5 to 1 of them (sd; November 2026).
OVERHEAD_ERRORS = 2.0
# Logit that means "always there".
ALWAYS_UP_LOGIT = 40.0


@dataclass(frozen=True, slots=True)
class Plans(Table):
    """Plans of one site: which machines, which checkpoint path, which fallback (-1: none)."""

    counts: Ints  # (plans, entries)
    checkpoint_path: Ints  # (plans,)
    fallback: Ints  # (plans,)


@dataclass(frozen=True, slots=True)
class Values(Table):
    """Goals and figures of plans; shape (plans,). `goal_value` is inf if a limit is not met.

    On the paths of a search a limit may be missed by their error.
    """

    goal_value: Floats
    cost_usd: Floats  # expected
    time_s: Floats  # trimmed mean
    chance: Floats  # all limits met
    overhead: Floats
    meets_limits: Bools  # whether they meet the limits on these paths, without an error

    def with_rows(self, rows: Ints, values: "Values") -> "Values":
        """Replace the values of some plans."""
        changed = Values(*(getattr(self, name).copy() for name in self.__slots__))
        for name in self.__slots__:
            getattr(changed, name)[rows] = getattr(values, name)
        return changed


@dataclass(frozen=True, slots=True)
class Gang(Table):
    """The capacity law of a cluster's spot part, by the names of path inputs; shape (plans,)."""

    run_mean_s: Floats
    run_sigma: Floats
    outage_sigma: Floats
    availability_logit: Floats
    zone_sd: Floats
    zone_count: Floats
    correlation: Floats
    runs_from_start: Bools
    minimum_s: Floats
    free_s: Floats
    spot_price_sigma: Floats
    has_spot: Bools
    notice_s: Floats

    @property
    def inputs(self) -> dict[str, Any]:
        """What path inputs hold of them."""
        return {name: getattr(self, name) for name in self.__slots__[:-2]}


def values_of(space: Space, inputs: PathInputs) -> Values:
    """Simulate plans and evaluate their paths under the limits."""
    limits, found = space.limits, space.cache.outcomes(inputs, space.limits.deadline_s)
    time, chance = trimmed_mean(found.time_s), chance_of(limits, found, inputs)
    found = replace(found, overhead=deciding_overhead(space, inputs, found.overhead))
    possible = chance >= space.min_chance - 1e-12
    met = chance >= limits.confidence - 1e-12
    least = found
    if space.printed is not None:
        least = replace(found, overhead=found.overhead - OVERHEAD_ERRORS * found.overhead_error)
    for limit, most in limits.given(MEAN_LIMITS):
        possible &= limit.of_means(least) <= most
        met &= limit.of_means(found) <= most
    goal = time if limits.goal == "time" else found.expected_usd
    goal = np.where(possible, goal, np.inf)
    return Values(goal, found.expected_usd, time, chance, found.overhead, met)


def deciding_overhead(space: Space, inputs: PathInputs, overhead: Floats) -> Floats:
    """The overheads of plans, given those on the space's own paths; (plans,).

    Under a limit those of one sample whatever the seed: no answer hangs on that.
    """
    if space.limits.max_overhead is None or space.of_overhead is space.cache:
        return overhead
    return space.of_overhead.outcomes(inputs, space.limits.deadline_s).overhead


def limits_met(limits: Limits, runs: PathFigures) -> Bools:
    """Which runs meet every limit on a run; (plans, paths)."""
    ok = np.ones(runs.time_s.shape, dtype=bool)
    for limit, most in limits.given(PATH_LIMITS):
        ok &= limit.of_paths(runs) <= most
    return ok


def chance_of(limits: Limits, runs: PathFigures, plans: PathInputs) -> Floats:
    """The chance that plans fit the memory and their runs meet every limit; (plans,)."""
    return np.asarray(limits_met(limits, runs).mean(axis=-1) * plans.fits)


@dataclass(frozen=True, slots=True)
class Reduced(Table):
    """Simulation inputs of plans of one site, and the parts they were computed from."""

    inputs: PathInputs
    allowed: Bools  # (plans,)
    max_usd_per_hour: Floats  # of the cluster, at the most expensive places
    step_s: Floats
    fleet: Clusters
    gang: Gang
    saves: Saves


def path_inputs_of(space: Space, site: Site, plans: Plans) -> tuple[PathInputs, Bools]:
    """Convert plans to simulation inputs, and return which are allowed at all."""
    found = reduced(space, site, plans)
    return found.inputs, found.allowed


def reduced(space: Space, site: Site, plans: Plans) -> Reduced:
    """Plans as path inputs with the best checkpoint interval, and their parts."""
    draft = drafts_of(space, site, plans)
    inputs, usd = with_best_interval(draft.inputs), site.entries.usd_per_save
    if usd.any():
        saves = np.where(plans.checkpoint_path == NONE, 0.0, inputs.work_s / inputs.interval_s)
        leaves = largest_used(usd, plans.counts) * (saves + 1.0)  # and the trained model
        inputs = replace(inputs, fixed_usd=inputs.fixed_usd + leaves)
    return replace(draft, inputs=inputs)


def with_best_interval(drafts: PathInputs) -> PathInputs:
    """Set the best checkpoint interval; without checkpoints, one longer than the work."""
    best = best_interval(
        drafts.run_mean_s,
        drafts.run_sigma,
        drafts.changeover_s,
        drafts.stall_s,
        drafts.interval_s,
        drafts.notice_saves,
    )
    never = 10.0 * np.maximum(drafts.work_s, 1.0)
    return replace(drafts, interval_s=np.where(np.isfinite(best), best, never))


def drafts_of(space: Space, site: Site, plans: Plans) -> Reduced:
    """Plans as path inputs with the shortest possible interval, and their parts."""
    entries, counts = site.entries, plans.counts
    fleet, found = space.timed(site, counts)
    step_s = found.step_s
    gang = gang_of(space, entries, counts)
    saves = saves_of(space, site, fleet, counts, plans.checkpoint_path, gang.notice_s)
    boot = largest_used(entries.boot_s, counts)
    # An interruption before a save is safe loses it: as if the run had begun so much later.
    changeover = boot + RENDEZVOUS_S + saves.restore_s + saves.lag_s
    share = elastic_share(space, site, counts, step_s, gang, found.row)
    work = np.where(np.isfinite(step_s), step_s, 0.0) * space.steps_left
    on_demand = ~entries.spot
    held = np.where(entries.spot, 0, counts)
    services = saves.usd_per_hour + servers_usd_per_hour(space, site, counts)
    base = counts[:, on_demand] @ entries.usd_per_hour[on_demand] + services
    spot = counts[:, entries.spot] @ entries.usd_per_hour[entries.spot]
    terms = _fallback_terms(space, site, plans.fallback, step_s, saves.stall_s, saves.restore_s)
    at_start, replaced = _on_demand_laws(entries, counts)
    sigma = cluster_spread(space.job, space.columns, fleet, found, entries.kind, counts)
    careful = caution(space, sigma)
    inputs = PathInputs(
        work_s=work,
        speed_sigma=sigma,
        fits=found.fits,
        base_usd_per_hour=base,
        base_minimum_s=largest_used(entries.minimum_s, held),
        base_step_s=largest_used(entries.step_s, held),
        base_end_s=largest_used(np.where(entries.booked, entries.notice_s, 0.0), held),
        spot_usd_per_hour=spot,
        fixed_usd=largest_used(entries.fixed_usd, counts),
        usd_per_move=largest_used(entries.usd_per_move, counts),
        move_after_s=largest_used(entries.move_after_s, counts),
        **gang.inputs,
        changeover_s=changeover,
        interval_s=saves.interval_min_s,
        stall_s=saves.stall_s,
        notice_saves=saves.notice_saves,
        elastic_share=share,
        boot_s=np.where(share > 0.0, boot, 0.0),
        # Its ranks meet, and each of its machines reads the whole checkpoint.
        resize_s=np.where(share > 0.0, RENDEZVOUS_S + saves.restore_s, 0.0),
        **terms,
        cautious_work_s=work * np.where(share > 0.0, 1.0, careful),
        at_once=at_start.at_once,
        wait_s=at_start.wait_s,
        replaced_at_once=replaced.at_once,
        replaced_wait_s=replaced.wait_s,
    )
    hourly = counts @ entries.max_usd_per_hour + services
    allowed = np.isfinite(step_s) & saves.possible
    allowed &= space.limits.at_every_moment(counts.sum(axis=1), hourly)
    allowed &= work * careful + changeover <= min_used(entries.maximum_s, held)
    allowed &= _fallback_ok(space, plans.fallback >= 0, gang.has_spot, terms)
    return Reduced(inputs, allowed, hourly, step_s, fleet, gang, saves)


def caution(space: Space, sigma: Floats) -> Floats:
    """True over predicted time that is exceeded as often as the limits may be missed; (plans,)."""
    share = np.array([min(max(space.limits.confidence, 0.5), 0.999)])  # below 1: some speed is last
    return np.asarray(np.exp(normal_quantile(share)[0] * sigma))


def servers_usd_per_hour(space: Space, site: Site, counts: Ints) -> Floats:
    """The price of parameter servers; (plans,). Each is the cheapest CPU machine of the site.

    They are on demand, because all workers stop without them. The fallback's time omits them.
    """
    if not len(site.tier.usd_per_hour):
        return np.zeros(len(counts))
    servers = servers_of(space.job, counts.sum(axis=1))
    return np.asarray(servers * float(site.tier.usd_per_hour.min()))


def _on_demand_laws(entries: Entries, counts: Ints) -> tuple[OnDemandLaw, OnDemandLaw]:
    """The waits for all of a cluster at its start, and for one in place of one that failed.

    Machines of several entries are all there when the scarcest are.

    A cluster starts in the first region of its list that has them, and stays there: a machine that
    failed is replaced where the others are. Those of a cluster with spot ones are replaced while it
    waits for spot.
    """
    used = np.where(entries.spot, 0, counts)
    with_spot = np.asarray((counts[:, entries.spot] > 0).any(axis=1))
    alone = np.where(with_spot[:, None], 0, used)
    one = OnDemandLaw(entries.at_once, entries.wait_s)
    gang = one.of_gang(np.maximum(counts, 1), entries.availability_slope)

    def scarcest(law: OnDemandLaw, counts: Ints) -> OnDemandLaw:
        at_once = np.minimum(min_used(law.at_once, counts), 1.0)
        return OnDemandLaw(at_once, largest_used(law.wait_s, counts))

    regions = np.minimum(min_used(entries.zone_count, used), MAX_LISTED_ZONES)
    return scarcest(gang, used).of_list(regions), scarcest(one, alone)


def largest_used(values: Floats, counts: Ints) -> Floats:
    """Largest value among the machines used; of entries, or of plans and entries."""
    found: Floats = np.where(counts > 0, values, 0.0).max(axis=1)
    return found


def min_used(values: Floats, counts: Ints) -> Floats:
    """Smallest value among the machines used; of entries, or of plans and entries."""
    found: Floats = np.where(counts > 0, values, np.inf).min(axis=1)
    return found


def gang_of(space: Space, entries: Entries, counts: Ints) -> Gang:
    """The law of a cluster's runs: pools add their hazards, and the least available one sets the
    wait.

    Λ = Σ λ_e·(1 + (x_e - 1)(1 - ρ_e)) + faults of every machine. The logit availability of a gang
    of x machines of one pool is lower by slope·log2(1 + (x - 1)/8); pools multiply. The shape is
    that of the pool with the largest hazard. Clusters without spot have faults only.
    """
    mine, many = np.where(entries.spot, counts, 0), np.maximum(counts, 1)
    used = mine > 0
    hazard = gang_hazard(many, entries.co_interruption)
    hazard = np.where(used, hazard / entries.run_mean_s, 0.0)
    faults = space.job.fault_rate_per_hour / 3600.0 * counts.sum(axis=1)
    lost = entries.availability_slope * gang_doublings(many)
    logit = entries.availability_logit - lost
    up = np.where(used, 1.0 / (1.0 + np.exp(-logit)), 1.0).prod(axis=1)
    has_spot, lead = np.asarray(used.any(axis=1)), hazard.argmax(axis=1)
    bill = np.where(used, counts * entries.usd_per_hour, 0.0)
    price_sigma = (bill * entries.price_sigma).sum(axis=1)

    def of(found: Floats, without: float) -> Floats:
        return np.where(has_spot, found, without)

    return Gang(
        run_mean_s=1.0 / np.maximum(hazard.sum(axis=1) + faults, 1e-12),
        run_sigma=of(entries.run_sigma[lead], 1.0),
        outage_sigma=of(entries.outage_sigma[lead], 1.0),
        availability_logit=of(np.log(up / np.maximum(1.0 - up, 1e-12)), ALWAYS_UP_LOGIT),
        zone_sd=largest_used(entries.zone_sd, mine),
        zone_count=of(min_used(entries.zone_count, mine), 1.0),
        correlation=largest_used(entries.correlation, mine),
        runs_from_start=np.where(has_spot, entries.runs_from_start[lead], True),
        minimum_s=largest_used(entries.minimum_s, mine),
        free_s=of(min_used(entries.free_s, mine), 0.0),
        spot_price_sigma=price_sigma / np.maximum(bill.sum(axis=1), 1e-9),
        has_spot=has_spot,
        notice_s=of(min_used(entries.notice_s, mine), 0.0),
    )


def elastic_share(
    space: Space, site: Site, counts: Ints, step_s: Floats, gang: Gang, row: Ints | None = None
) -> Floats:
    """Speed of the on-demand part alone, relative to the whole cluster; 0 for a gang.

    Both train on the same global batch, the part in more micro-batches. Unless stated otherwise,
    only ranks that run the whole network restart in another number; `row` is that of the whole
    cluster's layout, if known.
    """
    share = np.zeros(len(counts))
    counts = np.where(site.entries.spot[None], 0, counts)
    rows = np.flatnonzero(gang.has_spot & (counts.sum(axis=1) > 0))
    if not space.job.resizes or not len(rows):
        return share
    _, alone = space.timed(site, counts[rows])
    fits = np.isfinite(alone.step_s)  # else the on-demand part cannot hold the job
    if space.job.elastic is None:
        fits &= RESHARDED[alone.row] & (True if row is None else RESHARDED[row[rows]])
    share[rows[fits]] = step_s[rows[fits]] / alone.step_s[fits]
    # Slow spot machines can hold a cluster back; then dropping them is another plan.
    return np.minimum(np.nan_to_num(share, nan=0.0, posinf=0.0), 1.0)


def _fallback_terms(
    space: Space, site: Site, fallback: Ints, step_s: Floats, stall_s: Floats, restore_s: Floats
) -> dict[str, Any]:
    """The fields of path inputs about fallbacks, by name; speed 0 without one."""
    fall, has, zero = site.fallbacks, fallback >= 0, np.zeros(len(fallback))
    names = ("speed", "usd_per_hour", "start_s", "wait_s")
    terms = dict.fromkeys([f"fallback_{name}" for name in names], zero)
    # A search waits to the last moment.
    terms |= {"fallback_at_once": zero + 1.0, "reserve_s": zero}
    terms |= {"wait_above": zero, "back_above": zero + np.inf}
    if not len(fall) or space.limits.deadline_s is None:
        return terms
    some, reserve = fall.take(np.maximum(fallback, 0)), RESERVE_S + stall_s
    return terms | {
        "fallback_speed": np.nan_to_num(np.where(has, step_s / some.step_s, 0.0), posinf=0.0),
        "fallback_usd_per_hour": np.where(has, some.usd_per_hour, 0.0),
        "fallback_start_s": np.where(has, some.boot_s + (RENDEZVOUS_S + restore_s), 0.0),
        "fallback_at_once": np.where(has, some.at_once, 1.0),
        "fallback_wait_s": np.where(has, some.wait_s, 0.0),
        "reserve_s": np.where(has, reserve + some.law.reserve_s(space.limits.confidence), 0.0),
    }


def _fallback_ok(space: Space, has: Bools, has_spot: Bools, terms: dict[str, Floats]) -> Bools:
    """Fallbacks that meet the hourly limit, as above; they are there for spot machines only."""
    most = np.inf if space.limits.hourly_usd is None else space.limits.hourly_usd + TOLERANCE
    cheap = terms["fallback_usd_per_hour"] <= most
    return np.asarray((~has | (has_spot & (terms["fallback_speed"] > 0.0))) & cheap)


def plans_without_fallback(space: Space, site: Site, counts: Ints) -> Plans:
    """Every sensible checkpoint path for these clusters, without a fallback."""
    spot, used = site.entries.spot, counts > 0
    has_spot, held = (np.asarray(used[:, some].any(axis=1)) for some in (spot, ~spot))
    row, path = np.nonzero(sensible_paths(space, has_spot, held))
    paths = np.array(space.checkpoint_paths, dtype=np.int64)
    return Plans(counts[row], paths[path], np.full(len(row), -1))


def sensible_paths(space: Space, has_spot: Bools, has_on_demand: Bools) -> Bools:
    """Which of the checkpoint paths suit clusters of these markets; (clusters, paths)."""
    every = np.ones(len(has_spot), dtype=bool)
    of = {NONE: ~has_spot, OBJECT_STORE: every, ANCHOR: has_spot & has_on_demand}
    return np.stack([of.get(path, has_spot) for path in space.checkpoint_paths], axis=1)


def with_fallbacks(
    space: Space, site: Site, alone: Reduced, of: Ints, fallback: Ints
) -> tuple[PathInputs, Bools]:
    """Plans `of` some without a fallback, each with one, and which are allowed; (pairs,)."""
    saves, step_s = alone.saves, alone.step_s[of]
    terms = _fallback_terms(space, site, fallback, step_s, saves.stall_s[of], saves.restore_s[of])
    inputs = alone.inputs.take(of)
    waits = np.where(inputs.elastic_share > 0.0, 1.0, caution(space, inputs.speed_sigma))
    inputs = replace(inputs, cautious_work_s=inputs.work_s * waits, **terms)
    return inputs, _fallback_ok(space, fallback >= 0, alone.gang.has_spot[of], terms)
