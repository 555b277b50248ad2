"""The program of a site: can any cluster still beat a cutoff? Named rows over named counts.

    x_e machines of entry e, y_e whether it is used, z_k one level k of clusters, w any spot,
    R_k compute and v_k speed inside level k (the fastest machine = 1)

For a cutoff F on the cost, `better` asks bill·W < F with W = steps·B/v: linear in x and v, since
a ratio of linear forms is below a number where their difference is negative (W. Dinkelbach,
"On nonlinear fractional programming", Management Science 13(7), 1967). An infeasible program
proves that no cluster which is not excluded beats the cutoff.
"""

import re
from collections.abc import Sequence

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.optimize.linear_program import Model
from recommender.optimize.lower_bounds import ROUNDING
from recommender.optimize.program_data import ProgramData, hazard_bands, least_bill
from recommender.optimize.site_bounds import least_quantile
from recommender.performance.clusters import spreads_of


@dataclass(frozen=True, slots=True)
class Excluded:
    """Clusters that were looked at: exactly these entries, with so many machines."""

    entries: tuple[int, ...]
    min_machines: int  # machines; a range of the levels, or everything
    max_machines: int


def entry_names(r: ProgramData) -> tuple[str, ...]:
    """A readable name of each entry: instance type, market and row."""
    e, names = r.site.entries, r.space.columns.names
    found = []
    for row, (kind, spot) in enumerate(zip(e.kind, e.spot, strict=True)):
        plain = re.sub(r"\W+", "_", names[kind].split("/")[-1])
        found.append(f"{plain}_{'spot' if spot else 'od'}_{row}")
    return tuple(found)


def program(
    r: ProgramData, band: tuple[float, float], cutoff: float, excluded: Sequence[Excluded] = ()
) -> Model:
    """The program of a site for one band of hazards and a cutoff on the goal."""
    place = re.sub(r"\W+", "_", f"{r.site.provider}_{r.site.region}").strip("_")
    model = Model(f"better_mix_in_{place}")
    names = entry_names(r)
    _unknowns(model, r, names)
    _counts(model, r, names)
    _rates(model, r, names)
    _limits(model, r, names)
    if len(hazard_bands(r)) > 1:
        _hazard(model, r, names, band)
    _goal(model, r, names, least_bill(r, band, cutoff), cutoff)
    for number, cut in enumerate(excluded):
        _exclude(model, r, names, number, cut)
    return model


def _unknowns(model: Model, r: ProgramData, names: Sequence[str]) -> None:
    most = r.space.limits.max_machines
    for name, cap in zip(names, r.site.entries.cap, strict=True):
        model.whole(f"x_{name}", 0, min(int(cap), most))
        model.whole(f"y_{name}", 0, 1)
    for level in r.levels:
        top = level.max_machines * float(r.compute.max())
        model.whole(f"z_{level.name}", 0, 1)
        model.real(f"R_{level.name}", top)
        model.real(f"v_{level.name}", top)
    model.whole("w_spot", 0, 1)
    model.whole("n", 1, most)


def _counts(model: Model, r: ProgramData, names: Sequence[str]) -> None:
    """One level, its number of machines, and which entries it may hold."""
    c, e = r.space.columns, r.site.entries
    x, z = [f"x_{name}" for name in names], [f"z_{level.name}" for level in r.levels]
    model.row("one", dict.fromkeys(z, 1.0), "=", 1.0)
    model.row("count", dict.fromkeys(x, 1.0) | {"n": -1.0}, "=", 0.0)
    least = {z[k]: -float(level.min_machines) for k, level in enumerate(r.levels)}
    model.row("count_least", {"n": 1.0} | least, ">=", 0.0)
    most = {z[k]: -float(level.max_machines) for k, level in enumerate(r.levels)}
    model.row("count_most", {"n": 1.0} | most, "<=", 0.0)
    if not r.site.singles:
        model.row("mix", {f"y_{name}": 1.0 for name in names}, ">=", 2.0)
    for i, name in enumerate(names):
        cap = float(min(int(e.cap[i]), r.space.limits.max_machines))
        model.row(f"use_{name}", {f"x_{name}": 1.0, f"y_{name}": -cap}, "<=", 0.0)
        model.row(f"used_{name}", {f"x_{name}": 1.0, f"y_{name}": -1.0}, ">=", 0.0)
        allows = [
            level.network <= c.network_bytes_per_s[e.kind[i]] and c.gpus[e.kind[i]] <= level.gpus
            for level in r.levels
        ]
        if not all(allows):
            fits = {z[k]: -1.0 for k, good in enumerate(allows) if good}
            model.row(f"level_{name}", {f"y_{name}": 1.0} | fits, "<=", 0.0)
        if e.spot[i]:
            model.row(f"spot_{name}", {f"y_{name}": 1.0, "w_spot": -1.0}, "<=", 0.0)
    spots = {f"y_{name}": 1.0 for i, name in enumerate(names) if e.spot[i]}
    model.row("spot", {"w_spot": 1.0} | {y: -1.0 for y in spots}, "<=", 0.0)


def _rates(model: Model, r: ProgramData, names: Sequence[str]) -> None:
    """Speed of the level in use: no more than its machines, less what its links lose."""
    x = [f"x_{name}" for name in names]
    total = {f"R_{level.name}": -1.0 for level in r.levels}
    model.row("compute", dict(zip(x, r.compute.tolist(), strict=True)) | total, "=", 0.0)
    speeds = _speeds(r)
    model.row("rate", speeds | {x[i]: -float(s) for i, s in enumerate(r.speed)}, "<=", 0.0)
    for level in r.levels:
        mine = (f"z_{level.name}", f"R_{level.name}", f"v_{level.name}")
        top = level.max_machines * float(r.compute.max())
        model.row(f"inside_{level.name}", {mine[1]: 1.0, mine[0]: -top}, "<=", 0.0)
        for number, (constant, slope) in enumerate(level.tangents):
            terms = {mine[2]: 1.0, mine[0]: -constant, mine[1]: -slope}
            model.row(f"rate_{level.name}_{number}", terms, "<=", 0.0)
    for name, values in (("prepare", "prepare_per_s"), ("fetch", "fetch_per_s")):
        feed = getattr(r.space.columns, values)[r.site.entries.kind] / r.unit
        if np.isfinite(feed).all():
            model.row(name, speeds | {x[i]: -float(f) for i, f in enumerate(feed)}, "<=", 0.0)


def _speeds(r: ProgramData) -> dict[str, float]:
    return {f"v_{level.name}": 1.0 for level in r.levels}


def _limits(model: Model, r: ProgramData, names: Sequence[str]) -> None:
    """Quotas, memory, the price per hour, and time and money where no fallback steps in."""
    e, limits, site = r.site.entries, r.space.limits, r.site
    for number, (use, quota) in enumerate(zip(site.quota_use, site.quota, strict=True)):
        terms = {f"x_{name}": float(u) for name, u in zip(names, use, strict=True)}
        model.row(f"quota_{number}", terms, "<=", float(quota))
    gpus = r.space.columns.gpus[e.kind]
    for i, name in enumerate(names):
        if r.gpus_needed[i] > gpus[i]:
            held = {f"x_{other}": float(g) for other, g in zip(names, gpus, strict=True)}
            model.row(f"memory_{name}", held | {f"y_{name}": -float(r.gpus_needed[i])}, ">=", 0.0)
    if limits.hourly_usd is not None:
        max_prices = zip(names, e.max_usd_per_hour, strict=True)
        price = {f"x_{name}": float(p) for name, p in max_prices}
        model.row("hourly", price, "<=", limits.hourly_usd)
    if limits.deadline_s is not None:
        slowest = _speed_for(r, (limits.deadline_s - _start_s(r)) / _quantile(r, False))
        _unless_fallback(model, r, "deadline", slowest)
    if limits.budget_usd is not None and not np.isfinite(r.fallback_usd):
        kept = _quantile(r, True) * np.where(e.spot & (e.free_s > 60.0), 0.0, e.usd_per_hour)
        bill = {f"x_{name}": float(p) for name, p in zip(names, kept, strict=True)}
        paid = {v: -_usd_per_hour(r, limits.budget_usd) for v in _speeds(r)}
        model.row("budget", bill | paid, "<=", 0.0)


def _goal(model: Model, r: ProgramData, names: Sequence[str], bill: Floats, cutoff: float) -> None:
    """What beats the cutoff: less cost than it, or less time."""
    if r.space.limits.goal == "time":
        model.objective = {v: -1.0 for v in _speeds(r)}
        start = 0.0 if np.isfinite(r.fallback_s) else _start_s(r)
        if np.isfinite(cutoff):
            _unless_fallback(model, r, "better", _speed_for(r, (cutoff - start) / r.factor), cutoff)
        return
    usd = {f"x_{name}": float(p) for name, p in zip(names, bill, strict=True)}
    left = cutoff - float(r.site.entries.fixed_usd.min())
    if np.isfinite(cutoff):
        usd |= {v: -_usd_per_hour(r, max(left, 0.0) / r.factor) for v in _speeds(r)}
        model.row("better", usd, "<=", 0.0)
    model.objective = usd


def _unless_fallback(
    model: Model, r: ProgramData, name: str, speed: float, cutoff: float = np.inf
) -> None:
    """At least this speed; clusters with spot may be faster through their fallback."""
    free = speed if np.isfinite(r.fallback_s) and (r.fallback_s < cutoff) else 0.0
    model.row(name, _speeds(r) | {"w_spot": free}, ">=", speed)


def _start_s(r: ProgramData) -> float:
    """Least time from the request to the first step."""
    return float(r.site.entries.boot_s.min()) + RENDEZVOUS_S


def _speed_for(r: ProgramData, work_s: float) -> float:
    """Least speed that does the job's work in a time; beyond every cluster if there is none."""
    most = 2.0 * r.space.limits.max_machines
    if work_s <= 0.0:
        return most
    return min(r.space.steps_left * r.space.job.global_batch / (work_s * r.unit), most)


def _usd_per_hour(r: ProgramData, usd: float) -> float:
    """Bill at speed 1 that spends a sum on the job's work."""
    return usd * 3600.0 * r.unit / (r.space.steps_left * r.space.job.global_batch)


def _quantile(r: ProgramData, money: bool) -> float:
    """What true time (or cost, no spot price rising) over predicted is at least, if kept."""
    e, columns = r.site.entries, r.space.columns
    price_sigma = float(e.price_sigma.max()) if money else 0.0
    least = least_quantile(r.space, spreads_of(columns, e.kind), price_sigma)
    return least * (1.0 - ROUNDING)


def _hazard(model: Model, r: ProgramData, names: Sequence[str], band: tuple[float, float]) -> None:
    """Λ0 <= Σ λ_e·(ρ_e·y_e + (1-ρ_e)·x_e) <= Λ1, interruptions per hour."""
    terms: dict[str, float] = {}
    for name, first, more in zip(names, r.hazard_first, r.hazard_more, strict=True):
        terms |= {f"y_{name}": float(first - more), f"x_{name}": float(more)}
    model.row("hazard_least", terms, ">=", band[0])
    model.row("hazard_most", terms, "<=", band[1])


def _exclude(
    model: Model, r: ProgramData, names: Sequence[str], number: int, cut: Excluded
) -> None:
    """Leave out clusters of exactly these entries in a range of levels."""
    inside = set(cut.entries)
    terms = {f"y_{name}": 1.0 if i in inside else -1.0 for i, name in enumerate(names)}
    limit = len(inside) - 1.0
    some = [
        f"z_{k.name}"
        for k in r.levels
        if cut.min_machines <= k.min_machines and k.max_machines <= cut.max_machines
    ]
    if len(some) < len(r.levels):
        terms |= dict.fromkeys(some, 1.0)
        limit += 1.0
    model.row(f"seen_{number}", terms, "<=", limit)
