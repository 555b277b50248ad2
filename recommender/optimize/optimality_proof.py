"""The proof by programs: region by region, no cluster is left that could beat the best plan.

solve -> round -> check every row -> evaluate every plan of the entries found -> exclude them ->
solve again with the cutoff of the best plan so far; infeasible means proven.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Literal

import numpy as np

from recommender.arrays import Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.entry_sets import counts_lower_bounds
from recommender.optimize.linear_program import Solution, solve, write
from recommender.optimize.program_data import ProgramData, hazard_bands, least_bill, relaxed
from recommender.optimize.program_rows import Excluded, entry_names, program
from recommender.optimize.search_state import EPSILON, SearchState, expand_clusters
from recommender.optimize.space import Site, Space, within_quota

Band = tuple[float, float]

WHOLE = 20_000  # clusters of one set of entries that are looked at in one go
BLOCK = 5_000
TRIED = (0.35, 0.1)  # the same by programs
SITES = 3  # regions that the programs last for at least
PROGRAM_LIMIT_S = 1.0  # for one program: nearly all take less
SLOW = 1  # programs of a band that may run into their time limit
OPTIMALITY_GAP = 0.2  # solutions only say where to look next, so nearly best ones do
GAPS = (
    0.01,
    0.03,
    0.1,
    0.2,
    0.35,
    0.5,
    0.65,
    0.8,
)  # tried, in this order, where the proof stops early


@dataclass(frozen=True, slots=True)
class ProgramProof:
    """What the programs proved of the best plan; `gap` is the share it could still be beaten by."""

    status: Literal["optimal", "gap", "infeasible"]
    gap: float
    programs: int


@dataclass(slots=True)
class _ProgramBudget:
    """How many programs were solved, and how many may be."""

    max_programs: int
    solved: int = 0
    max_for_site: int = 0

    def solve(
        self, r: ProgramData, band: Band, cutoff: float, excluded: list[Excluded]
    ) -> Solution:
        """One more program; that none is better is proven by its rows, not by its optimum."""
        self.solved += 1
        return solve(program(r, band, cutoff, excluded), PROGRAM_LIMIT_S, OPTIMALITY_GAP)

    @property
    def exhausted(self) -> bool:
        """Whether no more programs may be solved."""
        return self.solved >= min(self.max_programs, self.max_for_site)

    def next_site(self) -> None:
        """A new region: it may use its share of programs."""
        self.max_for_site = self.solved + max(self.max_programs // SITES, 1)


def prove(space: Space, state: SearchState, most_programs: int) -> ProgramProof:
    """Prove that no mix of any region beats the best plan, or find the plan that does.

    Better plans met on the way enter `found`. Clusters of one entry are the search's own proof
    where a site is not searched for them.
    """
    # Plans within the slack are the search's; only better ones matter here.
    work, gap, strict = _ProgramBudget(most_programs), 0.0, replace(state, slack=0.0)
    ready = [(i, relaxed(space, s, False)) for i, s in enumerate(space.sites) if _mixes(s)]
    for _, index, r in sorted((_quick_ratio(r), i, r) for i, r in ready):
        gap = max(gap, _prove_site(space, index, r, strict, work))
    state.best_goal, state.plans_evaluated = strict.best_goal, strict.plans_evaluated
    if gap > 0.0:
        return ProgramProof("gap", gap, work.solved)
    return ProgramProof("optimal" if state.incumbents else "infeasible", 0.0, work.solved)


def _mixes(site: Site) -> bool:
    """Whether clusters of several entries, or any at all, are to be looked for at a site."""
    return bool(site.region) and len(site.entries) >= (1 if site.singles else 2)


def _cutoff(state: SearchState) -> float:
    return state.best_goal * (1.0 - EPSILON)


def _prove_site(
    space: Space, index: int, r: ProgramData, state: SearchState, work: _ProgramBudget
) -> float:
    """The gap that a site leaves open."""
    work.next_site()
    gaps = [_fallback_gap(r, state), _elastic_gap(r, state)]
    gaps += [_prove_band(space, index, r, band, state, work) for band in hazard_bands(r)]
    return max(gaps)


def _prove_band(
    space: Space,
    index: int,
    whole: ProgramData,
    band: Band,
    state: SearchState,
    work: _ProgramBudget,
) -> float:
    """The gap that clusters of a site within a band of hazards leave open."""
    for quick in (True, False):  # the second bound is tighter, and takes time
        rows = _improving_entries(whole, band, _cutoff(state), quick)
        if not len(rows):
            return 0.0
    r = relaxed(space, whole.site.only(rows))
    excluded: list[Excluded] = []
    slow = 0
    while r.levels:
        if work.exhausted:
            return _gap(r, band, state, excluded)
        solution = work.solve(r, band, _cutoff(state), excluded)
        if solution.status == "infeasible":
            break
        if solution.status == "unknown":
            return _gap(r, band, state, excluded)
        slow += solution.status == "found"
        if slow > SLOW:
            return _gap(r, band, state, excluded)
        cut = _explored(r, solution)
        for counts in _clusters(space, r, cut, state):
            expand_clusters(space, index, rows[np.array(cut.entries)], counts, state)
        excluded.append(cut)
    return 0.0


def _fallback_gap(r: ProgramData, state: SearchState) -> float:
    """How much better a spot plan could be that does all of its work on the cheapest fallback."""
    least = r.fallback_s if r.space.limits.goal == "time" else r.fallback_usd
    if not np.isfinite(state.best_goal):
        return 0.0
    gap = 1.0 - least / state.best_goal
    return gap if gap > EPSILON else 0.0


def _elastic_gap(r: ProgramData, state: SearchState) -> float:
    """How much better an elastic mix could be that mostly trains on its on-demand part."""
    on_demand = ~r.site.entries.spot
    mixed = r.space.job.elastic and on_demand.any() and not on_demand.all()
    if not mixed or r.space.limits.goal == "time" or not np.isfinite(state.best_goal):
        return 0.0
    least = float((r.site.entries.usd_per_hour / r.speed)[on_demand].min()) * _work_hours(r)
    gap = 1.0 - least / state.best_goal
    return gap if gap > EPSILON else 0.0


def _work_hours(r: ProgramData) -> float:
    """Hours of the whole job on the fastest machine at perfect scaling."""
    return r.space.steps_left * r.space.job.global_batch * r.factor / r.unit / 3600.0


def _quick_ratio(r: ProgramData) -> float:
    """Least bill per speed of a site's entries: none of its mixes is below (mediant)."""
    return float((least_bill(r, hazard_bands(r)[0], np.inf, quick=True) / r.speed).min())


def _improving_entries(r: ProgramData, band: Band, cutoff: float, quick: bool = False) -> Ints:
    """Entries that a better mix may hold: what one loses, the others must be able to gain.

    Gain of a machine: its share of the cutoff at perfect scaling, less its least bill.
    """
    if r.space.limits.goal == "time" or not np.isfinite(cutoff):
        return np.arange(len(r.speed))
    left = cutoff - float(r.site.entries.fixed_usd.min())
    gain = max(left, 0.0) / _work_hours(r) * r.speed - least_bill(r, band, cutoff, quick)
    others = (r.space.limits.max_machines - 1) * max(float(gain.max()), 0.0)
    good = (gain + others > 0.0) & (r.site.entries.cap > 0)
    most = np.sort(r.hazard_first[good])[-r.space.limits.max_machines :].sum()
    most += r.space.limits.max_machines * r.hazard_more[good].max(initial=0.0)
    return np.flatnonzero(good & (most >= band[0]))


def _gap(r: ProgramData, band: Band, state: SearchState, excluded: list[Excluded]) -> float:
    """A gap that a quick bound or a few more programs can prove where the proof itself stops."""
    if not np.isfinite(state.best_goal):
        return 1.0
    quick = (
        gap for gap in GAPS if not len(_improving_entries(r, band, state.best_goal * (1.0 - gap)))
    )
    least = next(quick, 1.0)
    for gap in TRIED:
        if gap < least:
            if not _proves_none(r, band, state.best_goal * (1.0 - gap), excluded):
                break
            least = gap
    return least


def _proves_none(r: ProgramData, band: Band, cutoff: float, excluded: list[Excluded]) -> bool:
    """Whether no cluster that is not excluded can beat a cutoff."""
    return (
        solve(program(r, band, cutoff, excluded), PROGRAM_LIMIT_S, OPTIMALITY_GAP).status
        == "infeasible"
    )


def _explored(r: ProgramData, solution: Solution) -> Excluded:
    """Which clusters a solution stands for: its set of entries, with any or similar numbers."""
    names, most = entry_names(r), r.space.limits.max_machines
    used = tuple(i for i, name in enumerate(names) if solution.values[f"x_{name}"] > 0.5)
    if comb(most, len(used)) <= WHOLE:
        return Excluded(used, 1, most)
    level = next(k for k in r.levels if solution.values[f"z_{k.name}"] > 0.5)
    return Excluded(used, level.min_machines, level.max_machines)


def _clusters(space: Space, r: ProgramData, cut: Excluded, state: SearchState) -> Iterator[Ints]:
    """Clusters of exactly these entries that may beat the cutoff, best bound first, in blocks."""
    site = r.site.only(np.array(cut.entries))
    for counts in _compositions(cut):
        counts = counts[within_quota(site, counts)]
        if len(counts):
            counts = counts[counts_lower_bounds(space, site, counts) < state.cutoff]
        if not len(counts):
            continue
        lower_bounds = counts_lower_bounds(space, site, counts, tight=True)
        order = np.argsort(lower_bounds, kind="stable")
        good = order[lower_bounds[order] < state.cutoff]
        if len(good):
            yield counts[good]


def _compositions(cut: Excluded) -> Iterator[Ints]:
    """Positive counts of the entries, for each number of machines; in blocks."""
    parts, block = len(cut.entries), []
    for total in range(max(cut.min_machines, parts), cut.max_machines + 1):
        for marks in combinations(range(1, total), parts - 1):
            block.append((0, *marks, total))
            if len(block) == BLOCK:
                yield _gaps(block)
                block = []
    if block:
        yield _gaps(block)


def _gaps(marks: list[tuple[int, ...]]) -> Ints:
    table = np.array(marks, dtype=np.int64)
    counts: Ints = table[:, 1:] - table[:, :-1]
    return counts


def write_lp(
    space: Space, site: Site, path: Path, best: float = np.inf, counts: Ints | None = None
) -> None:
    """Save the program of a site as an .lp file: what would beat the best plan there.

    Of several bands of hazards it is that of the best plan, whose machines are `counts`.
    """
    r = relaxed(replace(space, sites=(site,)), site)
    bands = hazard_bands(r)
    used = np.zeros(0) if counts is None else (counts > 0) * r.hazard_first
    more = 0.0 if counts is None else float(np.maximum(counts - 1, 0) @ r.hazard_more)
    hazard = float(used.sum()) + more
    band = next((b for b in bands if b[0] <= hazard <= b[1]), bands[0])
    write(program(r, band, best * (1.0 - EPSILON)), path)
