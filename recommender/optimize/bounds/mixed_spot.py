"""Lower bound of the cost of clusters of several types, from simulations of each type alone.

A cluster of several spot types in one region is up while all of its types are. For an entry e with
a share w_e of the compute R, so with x_e = w_e·R/r_e machines,

    price            Σ p_e·x_e                         = Σ w_e·p_e·R/r_e
    interruptions    Σ λ_e·(ρ_e + x_e·(1 - ρ_e))       ≥ Σ w_e·λ_e·(ρ_e + R/r_e·(1 - ρ_e))
    -log(up)         Σ d_e(x_e)                        about ≥ Σ w_e·d_e(R/r_e)

so it is no better than a mean of its types, each alone with the same compute, in a number of
machines that need not be whole. Such a mean costs no less than the best of them: what is saved by a
more reliable type is paid at its price. (The last two steps hold up to `MARGIN`, which tests check
against the full model of mixes.) On-demand machines next to a spot part, or a fallback, do any part
of the work, at any moment until the deadline, at the least price that on-demand compute has. So

    cost ≥ min over e and R of E[min over t of B(t) + κ·(W - P(t))]

with B the bill of e alone for t, P its work with free and immediate saves on the paths of a search,
and κ·W the bill of all work on demand. R is taken in ranges, each with the law of its least and the
speed of its largest compute. The lines of the training step (`performance/step_bounds.py`) include
what two machines or more have to send.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.bounds.cluster import min_speed_factor, paid_share
from recommender.optimize.bounds.site import lines_of
from recommender.optimize.bounds.spot_time import ideal_spot_inputs
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.space import Entries, Site, Space
from recommender.performance.clusters import multi_machine_spreads
from recommender.performance.step_bounds import Shortest
from recommender.risk.laws import RUN_FAMILY, gang_doublings, gang_hazard
from recommender.risk.monte_carlo import simulate_sample
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.random_numbers import random_numbers, time_factors
from recommender.risk.run_statistics import mean_error
from recommender.risk.spot_capacity import CLASS_CAPACITY, zones_of

GROWTH = 1.5  # of the compute, from the least to the largest of a range
MOST_RUNS = 32  # drawn for a bound; of longer jobs they repeat
CORE = 0.5  # of the compute, on demand: more of it is bounded by its price alone
MORE_OFTEN = (1.25, 1.5, 2.0)  # interruptions with further types, over those of one alone
AT_ONCE = 24  # simulated before the least bound is known again
MARGIN = 0.97  # means of types, grid, and runs that repeat
ERRORS = 1.0  # standard errors of a search's paths


@dataclass(frozen=True, slots=True)
class _Alone:
    """Single spot types, each with a range of compute; shape (ranges,)."""

    inputs: PathInputs
    usd: Floats  # least bill of the whole work, if all spot time is charged and no more

    def take(self, rows: Ints | Bools) -> "_Alone":
        """Some of them."""
        return _Alone(self.inputs.take(rows), self.usd[rows])


def min_mix_usd(space: Space, sites: Sequence[Site], cutoff: float) -> float:
    """Lower bound of any cluster of several entries of a region; the cutoff if none is below it.

    `sites` are those of the providers, each with the entries of all its regions.
    """
    lines, least, parts = lines_of(space), cutoff, list[_Alone]()
    for site in sites:
        entries = _best_of_each_law(site.entries)
        mine = [_alone(space, site, entries, lines, cutoff)] if len(entries) else []
        parts += mine
        least = min(least, _mostly_on_demand_usd(space, site, lines, mine, cutoff))
    if not parts:
        return least
    inputs = PathInputs.joined([part.inputs for part in parts])
    ranges = _Alone(inputs, np.concatenate([part.usd for part in parts]))
    order = np.argsort(ranges.usd, kind="stable")
    for begin in range(0, len(order), AT_ONCE):
        some = order[begin : begin + AT_ONCE]
        some = some[ranges.usd[some] < least]
        if not len(some):
            break
        least = min(least, float(_min_usd(space, ranges.inputs.take(some)).min()))
    return least


def _mostly_on_demand_usd(
    space: Space, site: Site, lines: Shortest, spot: Sequence[_Alone], cutoff: float
) -> float:
    """Least cost of mixes of which on-demand machines have a share `CORE` or more."""
    on_demand = site.entries.take(~site.entries.spot)
    if not len(on_demand):
        return np.inf
    all_gpus = np.full((int(lines.memory.max()) + 1, 1), lines.most_gpus)
    usd = float(_on_demand_usd(space, site, lines, all_gpus)[0])
    rest = min([usd, cutoff, *(float(part.usd.min(initial=np.inf)) for part in spot)])
    sigma = multi_machine_spreads(space.columns, on_demand.kind).min()
    usd *= float(min_speed_factor(space, np.array([sigma]))[0])
    return CORE * usd + (1.0 - CORE) * min(rest, usd)


def _best_of_each_law(e: Entries) -> Entries:
    """One entry for each spot type and law, as good as the best region that has them."""
    e = e.take(e.spot)
    laws = np.stack(
        [e.kind, e.run_mean_s, e.run_sigma, e.outage_sigma, e.zone_sd, e.zone_count,
         e.co_interruption, e.runs_from_start, e.availability_slope], axis=1
    )  # fmt: skip
    _, of = np.unique(laws, axis=0, return_inverse=True)
    groups = [np.flatnonzero(of.ravel() == group) for group in range(int(of.max(initial=-1)) + 1)]

    def best(name: str, largest: bool) -> Floats:
        values = getattr(e, name)
        return np.array([values[g].max() if largest else values[g].min() for g in groups])

    if not groups:
        return e
    return replace(
        e.take(np.array([group[0] for group in groups])),
        usd_per_hour=best("usd_per_hour", False),
        boot_s=best("boot_s", False),
        correlation=best("correlation", False),
        availability_logit=best("availability_logit", True),
        free_s=best("free_s", True),
        minimum_s=best("minimum_s", False),
    )


def _alone(space: Space, site: Site, e: Entries, lines: Shortest, cutoff: float) -> _Alone:
    """Every type alone with each compute, of those that may cost less than the cutoff."""
    columns, speed = space.columns, space.columns.compute_per_s[e.kind]
    most = space.limits.max_machines * float(columns.compute_per_s.max())
    count = int(np.ceil(np.log(most / speed.min()) / np.log(GROWTH))) + 1
    row, machines = np.repeat(np.arange(len(e)), count), np.tile(GROWTH ** np.arange(count), len(e))
    inside = speed[row] * machines <= most
    row, machines = row[inside], machines[inside]
    compute = speed[row] * machines
    gpus = _most_gpus(space, lines, compute * GROWTH / (1.0 - CORE))
    on_demand_usd = _on_demand_usd(space, site, lines, gpus)
    step_s = _step_s(space, lines, e.kind[row], compute, gpus)
    gang = np.minimum(machines, space.limits.max_machines)
    run_mean_s = e.run_mean_s[row] / gang_hazard(gang, e.co_interruption[row])
    sigma = multi_machine_spreads(columns, e.kind).min(axis=0)[row]
    away_s = e.boot_s[row] + RENDEZVOUS_S
    usd = e.usd_per_hour[row] * machines * step_s[0] * space.steps_left / 3600.0
    usd *= _more_is_free(run_mean_s, e.run_sigma[row], e.free_s[row], away_s)
    paid = paid_share(run_mean_s, e.run_sigma[row], e.free_s[row])
    least = MARGIN * np.minimum(usd * paid, on_demand_usd) * min_speed_factor(space, sigma)
    may = np.flatnonzero(least < cutoff)
    row, gang, usd, work_s = row[may], gang[may], usd[may], step_s[1][may] * space.steps_left
    inputs = ideal_spot_inputs(work_s, 1.0, 1.0, 0.0, e.runs_from_start[row].astype(bool))
    lost = e.availability_slope[row] * gang_doublings(gang)
    return _Alone(
        replace(
            inputs,
            speed_sigma=sigma[may],
            run_mean_s=run_mean_s[may],
            run_sigma=e.run_sigma[row],
            outage_sigma=e.outage_sigma[row],
            availability_logit=e.availability_logit[row] - lost,
            zone_sd=e.zone_sd[row],
            zone_count=e.zone_count[row],
            correlation=e.correlation[row],
            changeover_s=away_s[may],
            notice_saves=np.ones(len(row)),
            spot_usd_per_hour=usd / work_s * 3600.0,
            minimum_s=e.minimum_s[row],
            free_s=e.free_s[row],
            best_fallback_usd_per_hour=on_demand_usd[may] / work_s * 3600.0,
        ),
        least[may],
    )


def _more_is_free(mean_s: Floats, sigma: Floats, free_s: Floats, away_s: Floats) -> Floats:
    """How much less is charged per useful second if further types interrupt more often; (ranges,).

    Where early interruptions are free, that may save more than the changeovers cost.
    """

    def charged(often: float) -> Floats:
        mean = mean_s / often
        long = mean * RUN_FAMILY.min_long_share(free_s, mean, sigma)
        return long / np.maximum(RUN_FAMILY.excess(away_s, mean, sigma), 1e-9)

    once = np.maximum(charged(1.0), 1e-9)
    least = np.min([charged(often) / once for often in MORE_OFTEN], axis=0)
    return np.where(free_s > 60.0, np.minimum(least, 1.0), 1.0)


def _most_gpus(space: Space, lines: Shortest, compute: Floats) -> Ints:
    """Most GPUs of mixes of so much compute whose smallest memory is each; (memories, ranges)."""
    columns = space.columns
    each = columns.compute_per_s / np.maximum(columns.gpus, 1)
    memories = int(lines.memory.max()) + 1
    slowest = [
        each[(lines.memory >= m) & (each > 0.0)].min(initial=np.inf) for m in range(memories)
    ]
    gpus = np.floor(compute / np.array(slowest)[:, None] + 1e-6)
    return np.asarray(np.clip(gpus, 2, lines.most_gpus), dtype=np.int64)


def _step_s(
    space: Space, lines: Shortest, kind: Ints, compute: Floats, gpus: Ints
) -> tuple[Floats, Floats]:
    """Least step of mixes with a type, with the least and most compute of a range; (ranges,).

    The smallest memory of a mix is at most that of the type; `gpus` has shape (memories, ranges).
    """
    columns = space.columns
    each = float((columns.compute_per_s / np.maximum(columns.gpus, 1)).max())
    fewest = np.maximum(np.ceil(compute / columns.compute_per_s.max() - 1e-6), 2).astype(np.int64)
    first = np.maximum(np.ceil(compute / each - 1e-6), 2).astype(np.int64)
    network, start, inside_s = lines.network[kind], lines.start[kind], lines.inside_s[kind]
    least = np.full((2, len(kind)), np.inf)
    for memory, most in enumerate(gpus):
        own = np.minimum(memory, lines.memory[kind])
        found = lines.of(network, start, inside_s, own, fewest, first, np.maximum(first, most))
        for place, amount in enumerate((compute, compute * GROWTH)):
            step_s = np.max([seconds + samples / amount for seconds, samples in found], axis=0)
            least[place] = np.minimum(least[place], step_s)
    return least[0], least[1]


def _on_demand_usd(space: Space, site: Site, lines: Shortest, gpus: Ints) -> Floats:
    """Least bill of all work at the predicted speed, on demand or on a fallback; (ranges,)."""
    e, fall, least = site.entries, site.fallbacks, np.full(gpus.shape[1], np.inf)
    if len(fall) and space.limits.deadline_s is not None:
        least[:] = float((fall.usd_per_hour * fall.step_s).min())
    kind, one = e.kind[~e.spot], np.ones(gpus.shape[1], dtype=np.int64)
    price = e.usd_per_hour[~e.spot] / np.maximum(space.columns.compute_per_s[kind], 1e-30)
    for memory, most in enumerate(gpus):
        usd = float(price[lines.memory[kind] >= memory].min(initial=np.inf))
        fastest, none = (len(lines.traffic_s) - 1) * one, np.zeros(len(one))
        most = np.maximum(most, 1)
        samples = lines.of(fastest, 0 * one, none, memory * one, one, one, most)[0][1]
        least = np.minimum(least, usd * samples)
    return least * space.steps_left / 3600.0


def _min_usd(space: Space, p: PathInputs) -> Floats:
    """Least expected cost with any help on demand; (ranges,)."""
    useful_s = RUN_FAMILY.excess(p.changeover_s, p.run_mean_s, p.run_sigma)
    many = p.work_s > 0.5 * MOST_RUNS * useful_s
    found = np.empty(len(p))
    for rows, usd in ((np.flatnonzero(many), _in_the_mean), (np.flatnonzero(~many), _of_paths)):
        if len(rows):
            found[rows] = MARGIN * usd(space, p.take(rows))
    return found


def _of_paths(space: Space, p: PathInputs) -> Floats:
    """Least expected cost of jobs of few runs, simulated; (ranges,).

    Of the paths that may be late, those count on which spot machines alone cost least.
    """
    limits, paths = space.limits, space.cache.path_count
    sample = random_numbers(paths, MOST_RUNS, space.seed)
    found: Paths = simulate_sample(p, limits.deadline_s, sample, CLASS_CAPACITY)[0]
    helped = found.usd_with_any_fallback
    error = ERRORS * mean_error(helped, found.work_s)
    saved = _late(space, helped, found.expected_usd)
    return np.asarray(helped.mean(axis=1) - saved - error)


def _in_the_mean(space: Space, p: PathInputs) -> Floats:
    """Least expected cost of jobs of many runs, which are all like their mean; (ranges,)."""
    paths, due_s = space.cache.path_count, space.limits.deadline_s
    sample = random_numbers(paths, MOST_RUNS, space.seed)
    zones = zones_of(p, sample)
    useful_s = RUN_FAMILY.excess(p.changeover_s, p.run_mean_s, p.run_sigma)[:, None]
    long_share = RUN_FAMILY.min_long_share(p.free_s, p.run_mean_s, p.run_sigma)
    paid = np.where(p.free_s > 60.0, long_share, 1.0) * p.run_mean_s
    work_s = p.work_s[:, None] * time_factors(p.speed_sigma[:, None], sample.speed)
    cycle_s = zones.run_s + zones.outage_s * zones.others_down
    spot_usd = (p.spot_usd_per_hour * paid)[:, None] / np.maximum(useful_s, 1e-9) * work_s / 3600.0
    usd = p.best_fallback_usd_per_hour[:, None] * work_s / 3600.0
    usd = np.where(np.isfinite(usd), usd, spot_usd)
    share = 1.0 if due_s is None else np.minimum(useful_s / cycle_s * due_s / work_s, 1.0)
    helped = np.minimum(usd, usd + share * (spot_usd - usd))
    error = ERRORS * mean_error(helped, work_s)
    saved = _late(space, helped, np.minimum(spot_usd, usd))
    return np.asarray(helped.mean(axis=1) - saved - error)


def _late(space: Space, helped: Floats, alone: Floats) -> Floats:
    """What paths that may be late save if spot machines alone do all of the work; (ranges,)."""
    paths = helped.shape[1]
    may_be_late = int((1.0 - space.limits.confidence) * paths + 1e-9)
    saved = np.sort(np.maximum(helped - alone, 0.0), axis=1)
    return np.asarray(saved[:, paths - may_be_late :].sum(axis=1) / paths)
