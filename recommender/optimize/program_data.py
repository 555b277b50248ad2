"""What a cluster of a site costs at least and trains at most, in sums: the data of a program.

    bill   >= Σ price_e·x_e, spot prices times the least share that is charged
    speed  <= R·B/(B + b0·N)                        R = Σ compute_e·x_e, N GPUs
    speed  <= R·B/((1-ω)·(B + b0·N) + c·R)          c: step time on infinitely fast GPUs

Where the network may be cut, b0 is the share of it that GPUs lose which share its layers. The
speed in the last line is concave in R, so its tangents are rows. c is the step function itself at
infinite compute, best memory and links of a *level*: how many machines, the GPUs of the
largest, the slowest network in use. Bounds are tested against every plan of small spaces.
"""

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.lower_bounds import least_speed_factor, paid_share
from recommender.optimize.space import Site, Space
from recommender.optimize.spot_time_bounds import (
    BEYOND,
    CHANGEOVER_GRID_S,
    FIRST_S,
    HANDOVER_RATIO,
    POINTS,
    RATIO,
    spot_time_ratio_at,
)
from recommender.performance.clusters import Clusters, spreads_of
from recommender.performance.memory import bytes_of, largest_micro_batch
from recommender.performance.priors import prior_of
from recommender.performance.step import steps
from recommender.performance.strategies import divides_states, least_bytes, least_penalty
from recommender.risk.laws import further_hazard

ENDLESS = 1e30  # samples/s of a GPU that takes no time
NETWORKS = 3  # classes of networks told apart
TANGENTS = 4  # of each level's speed
STEPWISE = 4  # up to this many machines every number is its own level
WIDER = 1.35  # then levels get wider by this factor
BAND = 1.25  # hazards of one band differ by this factor
ALIKE = 0.98  # levels whose speeds differ by less become one


@dataclass(frozen=True, slots=True)
class Level:
    """Clusters alike in number of machines, largest machine and slowest network."""

    name: str
    min_machines: int  # machines
    max_machines: int
    gpus: float  # of the largest machine
    network: float  # bytes/s of the slowest machine, at least
    tangents: tuple[tuple[float, float], ...]  # speed <= intercept + slope·R


@dataclass(frozen=True, slots=True)
class ProgramData:
    """A site's entries as columns of a program; arrays have shape (entries,)."""

    space: Space
    site: Site
    compute: Floats  # of the fastest machine = 1
    speed: Floats  # the same, less what its own GPUs lose to small batches
    unit: float  # samples/s of the fastest machine
    gpus_needed: Floats  # GPUs a cluster must have to hold the job besides this entry
    hazard_first: Floats  # per hour, of the first machine of an entry
    hazard_more: Floats  # of each further one
    levels: tuple[Level, ...]
    fallback_usd: float  # least bill of the whole work on a fallback; inf: none
    fallback_s: float
    factor: float  # mean of true over predicted time, at least


def relaxed(space: Space, site: Site, with_levels: bool = True) -> ProgramData:
    """The columns of a site; without levels they are quick, and enough for quick bounds."""
    e, c = site.entries, space.columns
    compute = np.maximum(c.compute_per_s[e.kind], 1e-30)
    unit = float(compute.max())
    batch = float(space.job.global_batch)
    penalty = least_penalty(space.job, prior_of(space.job))
    factor = float(least_speed_factor(space, spreads_of(c, e.kind)).min())
    hazard = np.where(e.spot, 3600.0 / np.maximum(e.run_mean_s, 1.0), 0.0)
    faults = space.job.fault_rate_per_hour
    fall = site.fallbacks
    has_fallback = len(fall) > 0 and space.limits.deadline_s is not None and bool(e.spot.any())
    work = space.steps_left * factor
    fallback_usd = (
        float((fall.usd_per_hour * fall.step_s).min()) * work / 3600.0 if has_fallback else np.inf
    )
    return ProgramData(
        space=space,
        site=site,
        compute=compute / unit,
        speed=compute / unit * batch / (batch + penalty * c.gpus[e.kind]),
        unit=unit,
        gpus_needed=_gpus_needed(space, e.kind),
        hazard_first=hazard + faults,
        hazard_more=hazard * further_hazard(2, e.co_interruption) + faults,
        levels=_levels(space, site, compute, unit) if with_levels else (),
        fallback_usd=fallback_usd,
        fallback_s=float(fall.step_s.min()) * work if has_fallback else np.inf,
        factor=factor,
    )


def _gpus_needed(space: Space, kind: Ints) -> Floats:
    """Fewest GPUs over which the states must be cut for a machine to hold its share."""
    needs = least_bytes(space.job, bytes_of(space.job, prior_of(space.job)))
    most = int(space.limits.max_machines * space.columns.gpus.max())
    cut = np.arange(1.0, most + 1.0) if divides_states(space.job) else np.ones(1)
    memory = space.columns.memory_bytes[kind]
    again = np.array([True])
    held = needs.states / cut[None]
    fits = [largest_micro_batch(needs, np.full(len(cut), m), held, again)[0] for m in memory]
    plain = np.array([False])
    also = [largest_micro_batch(needs, np.full(len(cut), m), held, plain)[0] for m in memory]
    good = np.maximum(np.array(fits), np.array(also)).reshape(len(kind), len(cut)) >= 1
    return np.where(good.any(axis=1), cut[good.argmax(axis=1)], most + 1.0)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A level before its tangents."""

    gpus: float
    network: float
    overhead_s: float  # step seconds if computing took no time
    min_gpus: float  # GPUs
    span: tuple[float, float]  # compute

    def top(self, batch: float) -> float:
        """About the largest speed."""
        return 1.0 / (batch / self.span[1] + self.overhead_s)


def _levels(space: Space, site: Site, compute: Floats, unit: float) -> tuple[Level, ...]:
    """Every level of a site that can run the job; those of one speed become one."""
    levels = []
    for least, most in machine_ranges(space.limits.max_machines):
        shapes = _shapes(space, site.entries.kind, compute, least, most)
        tops = [shape.top(space.job.global_batch) for shape in shapes]
        if shapes and min(tops) >= ALIKE * max(tops):
            shapes = [_together(shapes)]
        for shape in shapes:
            name = f"n{least}_{most}_g{shape.gpus:.0f}_net{shape.network / 1e6:.0f}"
            span = shape.span[0] / unit, shape.span[1] / unit
            tangents = _tangents(space, shape.overhead_s, shape.min_gpus, span, unit)
            levels.append(Level(name, least, most, shape.gpus, shape.network, tangents))
    return tuple(levels)


def _together(shapes: list[_Shape]) -> _Shape:
    """The best of several shapes, open to every entry of theirs."""
    return _Shape(
        gpus=max(shape.gpus for shape in shapes),
        network=min(shape.network for shape in shapes),
        overhead_s=min(shape.overhead_s for shape in shapes),
        min_gpus=min(shape.min_gpus for shape in shapes),
        span=(min(s.span[0] for s in shapes), max(s.span[1] for s in shapes)),
    )


def _shapes(space: Space, kind: Ints, compute: Floats, least: int, most: int) -> list[_Shape]:
    """Largest machine and slowest network of clusters of so many machines."""
    network, gpus = space.columns.network_bytes_per_s[kind], space.columns.gpus[kind]
    shapes = []
    for slowest, fastest in _classes(network):
        for largest in np.unique(gpus):
            mine = (network >= slowest) & (gpus <= largest)
            if not (mine & (gpus == largest)).any():
                continue
            latest = _least_step(space, kind[mine], least, most, float(largest), fastest)
            fewest = (least - 1) * float(gpus[mine].min()) + float(largest)
            span = least * float(compute[mine].min()), most * float(compute[mine].max())
            if np.isfinite(latest):
                shapes.append(_Shape(float(largest), slowest, latest, fewest, span))
    return shapes


def machine_ranges(most: int) -> list[tuple[int, int]]:
    """Ranges of the number of machines, finer where there are few."""
    ranges, least = [], 1
    while least <= most:
        top = least if least <= STEPWISE else min(int(least * WIDER), most)
        ranges.append((least, top))
        least = top + 1
    return ranges


def _classes(network: Floats) -> list[tuple[float, float]]:
    """Slowest and fastest bandwidth of each class of networks."""
    values = np.unique(network)
    parts = np.array_split(values, min(NETWORKS, len(values)))
    return [(float(part[0]), float(part[-1])) for part in parts]


def _least_step(
    space: Space, kind: Ints, least: int, most: int, largest: float, network: float
) -> float:
    """Step seconds of the best cluster of a level if computing took no time."""
    c, small = space.columns, float(space.columns.gpus[kind].min())
    rows = [
        (n, total)
        for n in range(least, most + 1)
        for total in np.arange((n - 1) * small + largest, n * largest + 0.5)
    ]
    n, total = np.array(rows).T
    same = c.gpus[kind] == largest

    def all_of(value: float) -> Floats:
        return np.full(len(n), float(value))

    fleet = Clusters(
        kind=np.full(len(n), -1),
        machines=n,
        gpus=total,
        gpus_per_machine=all_of(largest),
        compute_per_s=all_of(ENDLESS),
        memory_bytes=all_of(c.memory_bytes[kind].max()),
        network_bytes_per_s=all_of(network),
        network_half_bytes=all_of(c.network_half_bytes[kind].min()),
        network_latency_s=all_of(c.network_latency_s[kind].min()),
        intra_bytes_per_s=all_of(c.intra_bytes_per_s[kind[same]].max()),
        prepare_per_s=all_of(np.inf),
        fetch_per_s=all_of(np.inf),
        host_bytes_per_s=all_of(1.0),
        disk_bytes_per_s=all_of(1.0),
    )
    return float(steps(space.job, c, fleet).step_s.min())


def _tangents(
    space: Space, latest: float, fewest: float, span: tuple[float, float], unit: float
) -> tuple[tuple[float, float], ...]:
    """Rows above the speed of a level: its line without waiting, then tangents with it.

    f(R) = R·B/(a + c·R) has the tangent f(R0) + f'(R0)·(R - R0), f' = a·B/(a + c·R0)².
    """
    batch, prior = float(space.job.global_batch), prior_of(space.job)
    arithmetic = batch + least_penalty(space.job, prior) * fewest
    rows = [(0.0, batch / arithmetic)]
    # Behind parameter servers all compute may hide behind the turns of other workers.
    shown = 0.0 if space.job.sync == "parameter_server" else 1.0 - prior.overlap
    a, c = shown * arithmetic, latest * unit
    if a <= 0.0:
        return (*rows, (batch / c, 0.0)) if c > 0.0 else tuple(rows)
    for at in np.unique(np.geomspace(span[0], span[1], TANGENTS)):
        slope = a * batch / (a + c * at) ** 2
        rows.append((float(at * batch / (a + c * at) - slope * at), float(slope)))
    return tuple(rows)


def hazard_bands(r: ProgramData) -> list[tuple[float, float]]:
    """Ranges of interruptions per hour whose programs differ; one where nothing is free.

    Where the first hour of an interrupted machine is free, shorter runs are charged less. The
    ranges are those of the tables of S. Without spot there is no hazard: in the first range.
    """
    e, limits = r.site.entries, r.space.limits
    top = float(r.hazard_first.max(initial=0.0)) * limits.max_machines * 1.001
    if limits.goal == "time" or not (e.free_s[e.spot] > 60.0).any():
        return [(0.0, top)]
    power = int(np.floor(np.log(float(r.hazard_first[e.spot].min())) / np.log(BAND))) + 1
    bands = [(0.0, BAND**power)]
    while bands[-1][1] < top:
        bands.append((BAND**power, BAND ** (power + 1)))
        power += 1
    return bands


def least_bill(
    r: ProgramData, band: tuple[float, float], cutoff: float, quick: bool = False
) -> Floats:
    """Least USD per hour of work of each entry, in clusters of a band of hazards.

    Charged share of spot: `paid_share`, and S(W)/W of `spot_time_bounds.py` where handing the work
    to a fallback at any moment could not pay: S rises at most in proportion to its price, so a
    fallback of bill F for the whole work leaves at least F·share/HANDOVER_RATIO.
    """
    e = r.site.entries
    if not e.spot.any():
        return e.usd_per_hour
    sigmas = np.unique(e.run_sigma[e.spot])
    # Without free hours charges fall as runs get longer: the longest run of an entry bounds all.
    ends: tuple[float, ...] = ()
    shortest = e.run_mean_s
    if (e.free_s[e.spot] > 60.0).any():
        ends = 3600.0 / band[1], 3600.0 / max(band[0], band[1] / BAND)
        shortest = np.full(len(e), ends[0])
    share = np.min([paid_share(shortest, np.full(len(e), s), e.free_s) for s in sigmas], axis=0)
    if r.space.limits.goal != "time" and not quick:
        tight = np.maximum(share, _tight_share(r, ends, sigmas))
        if r.fallback_usd * float(tight[e.spot].min()) / HANDOVER_RATIO >= cutoff:
            share = tight
    return np.where(e.spot, e.usd_per_hour * share, e.usd_per_hour)


def _tight_share(r: ProgramData, ends: tuple[float, ...], sigmas: Floats) -> Floats:
    """Least S(W)/W of each entry over every run law and work that its clusters could have."""
    e, space = r.site.entries, r.space
    flop = space.job.global_batch * space.steps_left * r.factor / r.unit
    fast = flop / (r.speed.max() * space.limits.max_machines)
    share = np.zeros(len(e))
    first = min(int(np.floor(np.log(fast / FIRST_S) / np.log(RATIO))), POINTS - 2)
    away = np.floor((e.boot_s + RENDEZVOUS_S) / CHANGEOVER_GRID_S) * CHANGEOVER_GRID_S
    for i in np.flatnonzero(e.spot):
        law = float(e.free_s[i]), float(away[i])
        runs = ends or (float(f"{e.run_mean_s[i]:.3g}") * 1.01,)
        share[i] = BEYOND * min(
            spot_time_ratio_at(space.path_count, space.seed, run, float(sigma), *law, point)
            for run in runs
            for sigma in sigmas
            for point in range(first, POINTS)
        )
    return share
