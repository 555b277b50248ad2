"""The pool: the plans of one question, rated once, simulated as they are asked for.

    rate        every cluster in closed form                                  (`rating.py`)
    choose      the first clusters of the linear program                      (`program.py`)
    simulate    these, each with its likely fallbacks, in one batch on common paths
    refine      of the best, every fallback and one machine more or less
    confirm     the best on the printed paths; a chance near the asked one on more paths

Every part of an answer is a selection: some limits, some entries. Clusters are rated once for all
of them, and a plan is simulated once; without a fallback it is the same plan under every deadline.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Self

import numpy as np

from recommender.arrays import Bools, Floats, Ints, Table
from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Candidate, Cluster, ranking_key
from recommender.optimize.chance import ERRORS, chance_error, enough, near, sure_chances
from recommender.optimize.evaluate import Values, chance_of, values_of, with_fallbacks
from recommender.optimize.fallback_choices import choices_of, every_choice
from recommender.optimize.overhead_limit import switched_in_time
from recommender.optimize.program import Columns, better, order, surest
from recommender.optimize.rating import (
    Rated,
    RatedPlans,
    Rough,
    rated,
    rated_plans,
    rough_estimates,
    structural,
)
from recommender.optimize.space import Fallbacks, Masks, Space, chance_less_error
from recommender.optimize.thresholds import with_thresholds
from recommender.optimize.watch import Watch
from recommender.plan.frontier import unbeaten
from recommender.plan.limits import Limits
from recommender.risk.normal_law import normal_quantile
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import trimmed_mean

CHOSEN, NEXT_TO = 60, 12  # clusters simulated for an answer, and for what is said next to it
ROUNDS = 3  # of as many more
MOST_RATED = 2_000  # clusters of one type
REFINED, ALL_FALLBACKS = 4, 3  # clusters whose neighbours are tried, and all of whose fallbacks
CONFIRMED, FEW = 16, 4  # plans simulated on the printed paths at once
BEGUN = 512  # printed paths looked at first where a chance is short on those of a search
# Of the chance: plans that are short by less may meet it with thresholds, so many at once.
SHORT_OF, WITH_POLICY = 0.02, 8
LOOKED_AT, MOST_CONFIRMED = 4, 96  # times as many begun at once; of one selection
# Shares by which a rated goal may be too high, about; with a switch that an overhead limit moves.
RATES_ERROR, SWITCH_ERROR = 0.25, 0.4
PATHS_ERROR = 0.02  # share by which a goal on the paths of a search may be off, about
NEAR_FRONTIER = 1.25  # of the least cost of clusters that are as fast
EPSILON = 1e-4  # a plan must be better by this share to matter
AT_ONCE = 64  # clusters of a proof simulated at once

Key = tuple[int, int]  # a table of rated plans, and a row of it
Choose = Callable[[Space, Fallbacks, Floats], Ints]  # of clusters of some step times


@dataclass(frozen=True, slots=True)
class Simulated(Table):
    """Simulated plans, under some limits; (plans,)."""

    plans: tuple[Candidate, ...]
    inputs: PathInputs  # with the fallback taking over at the last moment
    values: Values

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The plans of several batches, each once."""
        plans = [plan for part in parts for plan in part.plans]
        first = {shape_of(plan): row for row, plan in reversed(list(enumerate(plans)))}
        inputs, values = ([getattr(p, n) for p in parts] for n in ("inputs", "values"))
        every = cls(tuple(plans), PathInputs.joined(inputs), Values.joined(values))
        return every.take(np.array(sorted(first.values())))


def shape_of(plan: Candidate) -> Candidate:
    """A plan without its figures."""
    return Candidate(plan.site, plan.entries, plan.counts, plan.checkpoint_path, plan.fallback)


@dataclass(frozen=True, slots=True)
class Selection:
    """The plans that meet some limits, the best first; none if no plan of the pool does."""

    plans: tuple[Candidate, ...]
    tried: Simulated | None = None  # all that were simulated for it, on the paths of a search
    simulated: int = 0  # how many
    open_bound: float = 0.0  # of a proof: no plan that was left out has a lower goal

    def with_others(self, others: "Selection") -> "Selection":
        """These plans and others."""
        parts = [each.tried for each in (self, others) if each.tried is not None]
        return Selection(
            tuple(sorted(dict.fromkeys((*self.plans, *others.plans)), key=ranking_key)),
            Simulated.joined(parts) if parts else None,
            self.simulated + others.simulated,
            self.open_bound,
        )

    @property
    def best(self) -> Candidate:
        """The best plan; only valid if there is one."""
        return self.plans[0]

    @property
    def goal(self) -> float:
        """The goal of the best plan; inf without one."""
        return self.plans[0].goal_value if self.plans else np.inf


@dataclass(frozen=True, slots=True)
class Among:
    """Which entries of each site may be used, and a name for them."""

    name: str = "any"
    masks: Masks | None = None

    def clusters(self, table: Rated) -> Bools:
        """Which plans of a table use none but these."""
        if self.masks is None:
            return np.ones(len(table), dtype=bool)
        other = ~self.masks[table.index][table.rows]
        uses = (table.plans.counts > 0) & other
        return np.asarray(~uses.any(axis=1))


ANY = Among()


@dataclass(frozen=True)
class Pool:
    """The plans of one question."""

    space: Space
    step_s: Floats  # by kind and number of machines of one type
    watch: Watch = field(default_factory=Watch)
    source: Callable[[Limits], Sequence[Cluster]] | None = None  # None: clusters of one entry
    tables: list[Rated] = field(default_factory=list)  # rated so far
    known: dict[Cluster, list[Key]] = field(default_factory=dict)  # the clusters in them
    rated: dict[Limits, tuple[int, RatedPlans]] = field(default_factory=dict)  # of so many tables
    looked_at: dict[Limits, None] = field(default_factory=dict)  # whose clusters are in them
    selections: dict[tuple[Limits, str, int, float], Selection] = field(default_factory=dict)

    @cached_property
    def rough(self) -> Rough:
        """Every cluster of one entry."""
        return rough_estimates(self.space, self.step_s)

    def under(self, limits: Limits) -> Space:
        """The plan space under other limits."""
        return replace(self.space, limits=limits)

    def select(
        self, limits: Limits, among: Among = ANY, first: int = CHOSEN, below: float = np.inf
    ) -> Selection:
        """The plans that meet some limits, of those that the program puts first.

        Where a plan is known, those that may be better: with a goal `below` its own.
        """
        key = limits, among.name, first, below
        if key not in self.selections:
            self.selections[key] = self._selected(limits, among, first, below)
        return self.selections[key]

    def plans(self, limits: Limits) -> RatedPlans:
        """All rated plans under some limits."""
        if limits not in self.looked_at:
            self.looked_at[limits] = None
            if self.source is None:
                self._rate(self.clusters(self.rough.promising(limits)))
            else:
                self._rate(self.source(limits))
        return self._rated(limits)

    def _rate_better(self, limits: Limits, below: float) -> None:
        """Rate clusters whose goal is roughly below one."""
        if self.source is not None:
            return
        goal = np.where(self.rough.allowed(limits), self.rough.goal(limits), np.inf)
        queue = np.argsort(goal, kind="stable")[:MOST_RATED]
        self._rate(self.clusters(queue[goal[queue] < below]))

    def _rated(self, limits: Limits) -> RatedPlans:
        done, found = self.rated.get(limits, (0, None))
        if found is None or done < len(self.tables):
            new = rated_plans(self.under(limits), self.tables[done:])
            new = replace(new, table=new.table + done)
            found = new if found is None else RatedPlans.joined([found, new])
            self.rated[limits] = len(self.tables), found
        return found

    def clusters(self, rows: Ints) -> list[Cluster]:
        """Clusters of the rough table."""
        some = self.rough.take(rows)
        columns = zip(some.site.tolist(), some.entry.tolist(), some.machines.tolist(), strict=True)
        return [Cluster(site, (entry,), (n,)) for site, entry, n in columns]

    def _rate(self, clusters: Iterable[Cluster]) -> None:
        """Rate clusters that are not yet."""
        free = replace(self.space.limits, hourly_usd=None)
        new = [each for each in dict.fromkeys(clusters) if each not in self.known]
        self.known.update((each, []) for each in new)
        for table in rated(self.under(free), new):
            for row, cluster in enumerate(table.clusters):
                self.known[cluster].append((len(self.tables), row))
            self.tables.append(table)

    def _selected(self, limits: Limits, among: Among, first: int, below: float) -> Selection:
        """The first clusters of the program, simulated; more while these may not hold the best.

        That is while none of them meets the limits, or some that were left are rated better.
        """
        whole, found, done, tried = first >= CHOSEN, Selection(()), set[Key](), None
        best = None if below == np.inf else below
        for _ in range(ROUNDS):
            keys = self._next(limits, among, first, done, best)
            if not keys and best is None and whole:
                best = np.inf  # none is rated well enough: those that are rated surest
                keys = self._next(limits, among, first, done, best)
            if not keys or (found.plans and not whole):
                break
            done |= set(keys)
            new = self.simulate(limits, keys, choices_of)
            tried = new if tried is None else Simulated.joined([tried, new])
            found = self._confirmed(limits, tried, below, CONFIRMED if whole else FEW)
            best = min(found.goal, below)
        if not whole or tried is None or not found.plans:
            return found
        return self._confirmed(limits, self._refined(limits, among, tried), below)

    def _next(
        self, limits: Limits, among: Among, most: int, done: set[Key], best: float | None
    ) -> list[Key]:
        """The clusters that come next, with a checkpoint path.

        First those of the program; then what is rated better than the best plan that was found, or
        what is surest where none was: half of it on demand, whose long waits no scenario shows.
        """
        if best is None:
            rows = order(limits, self.plans(limits))
        elif np.isfinite(best):
            error = RATES_ERROR if limits.max_overhead is None else SWITCH_ERROR
            self._rate_better(limits, best * (1.0 + error))
            rows = better(limits, self.plans(limits), best * (1.0 + error))
        else:
            plans = self.plans(limits)
            rows = surest(limits, plans)
            halves = (rows[plans.places[rows] == 0.0], rows[plans.places[rows] > 0.0])
            each = (self._clusters_among(limits, among, half, done) for half in halves)
            return [key for keys in each for key in keys[: most // 2]]
        return self._clusters_among(limits, among, rows, done)[:most]

    def _clusters_among(
        self, limits: Limits, among: Among, rows: Ints, done: Container[Key] = ()
    ) -> list[Key]:
        """The clusters of some rated plans with a checkpoint path, each once, but those done."""
        plans = self._rated(limits)
        allowed = [among.clusters(table) for table in self.tables]
        found: dict[Key, None] = {}
        for key in zip(plans.table[rows].tolist(), plans.row[rows].tolist(), strict=True):
            if allowed[key[0]][key[1]] and key not in done:
                found[key] = None
        return list(found)

    def simulate(self, limits: Limits, keys: Sequence[Key], choose: Choose | None) -> Simulated:
        """Simulate clusters with a checkpoint path, alone and with the fallbacks chosen; some."""
        space, plans, inputs = self.under(limits), list[Candidate](), list[PathInputs]()
        for number in sorted({table for table, _ in keys}):
            rows = np.array([row for table, row in keys if table == number], dtype=np.int64)
            table = self.tables[number].take(rows)
            inputs.append(table.found.inputs)
            plans += [table.candidate(row, -1) for row in range(len(rows))]
            if limits.deadline_s is None or choose is None or not len(table.site.fallbacks):
                continue
            chosen = choose(space, table.site.fallbacks, table.found.step_s)
            of, column = np.nonzero((chosen >= 0) & table.found.gang.has_spot[:, None])
            fallback = chosen[of, column]
            helped, allowed = with_fallbacks(space, table.site, table.found, of, fallback)
            inputs.append(helped.take(allowed))
            pairs = zip(of[allowed].tolist(), fallback[allowed].tolist(), strict=True)
            plans += [table.candidate(*pair) for pair in pairs]
        joined = PathInputs.joined(inputs)
        values, early = switched_in_time(space, joined, values_of(space, joined))
        plans = [
            replace(plan, early_s=by) if by else plan
            for plan, by in zip(plans, early.tolist(), strict=True)
        ]
        return Simulated(tuple(plans), joined, values)

    def _refined(self, limits: Limits, among: Among, tried: Simulated) -> Simulated:
        """With every fallback of the best clusters, their neighbours and the same elsewhere."""
        ranked = np.argsort(tried.values.goal_value, kind="stable")
        ranked = ranked[np.isfinite(tried.values.goal_value[ranked])]
        best = list(dict.fromkeys(tried.plans[row].cluster for row in ranked.tolist()))[:REFINED]
        if not best:
            return tried
        near = [each for cluster in best for each in self._neighbours(cluster)]
        self._rate(near)
        parts = [tried]
        for clusters, choose in ((near, choices_of), (best[:ALL_FALLBACKS], every_choice)):
            keys = self.rows_of(limits, clusters, among)
            parts += [self.simulate(limits, keys, choose)] if keys else []
        return Simulated.joined(parts)

    def _neighbours(self, cluster: Cluster) -> list[Cluster]:
        """A cluster of one type with one machine more or less, and the same in other places."""
        if len(cluster.entries) > 1:
            return []
        r, e = self.rough, self.space.sites[cluster.site].entries
        (entry,), (count,) = cluster.entries, cluster.counts
        alike = (e.kind == e.kind[entry]) & (e.spot == e.spot[entry])
        here = np.flatnonzero(r.site == cluster.site)
        near = (r.entry[here] == entry) & (np.abs(r.machines[here] - count) == 1)
        near |= alike[r.entry[here]] & (r.machines[here] == count)
        return [each for each in self.clusters(here[near]) if each != cluster]

    def rows_of(self, limits: Limits, clusters: Iterable[Cluster], among: Among = ANY) -> list[Key]:
        """Tables and rows of some clusters, those that meet the limits at every moment."""
        keys = [key for each in dict.fromkeys(clusters) for key in self.known.get(each, ())]
        fits = {
            number: structural(limits, self.tables[number].found)
            & among.clusters(self.tables[number])
            for number in {number for number, _ in keys}
        }
        return [(number, row) for number, row in keys if fits[number][row]]

    def _confirmed(
        self, limits: Limits, tried: Simulated, below: float = np.inf, at_once: int = CONFIRMED
    ) -> Selection:
        """The plans that meet the limits; the best of them on the printed paths.

        Those that cannot be better than one `below` are not confirmed.
        """
        goal, met = tried.values.goal_value, tried.values.meets_limits
        left, likely = np.flatnonzero(np.isfinite(goal)), met.copy()
        printed, best, done = list[Candidate](), below, 0
        while len(left) and done < MOST_CONFIRMED:
            # What meets the limits on these paths is the surest to cut others off.
            first = (~met[left], goal[left]) if best == np.inf else (goal[left],)
            queue = left[np.lexsort(first[::-1])]
            queue = queue[goal[queue] < best * (1.0 + PATHS_ERROR)]
            if not len(queue):
                break
            some = queue[:at_once]
            if not likely[some].all():
                some = queue[~likely[queue]][: LOOKED_AT * at_once]
                likely[some] = self._begins_well(limits, tried.take(some))
                left = left[~np.isin(left, some[~likely[some]])]
                continue
            printed += self._printed(limits, tried.take(some), best)
            best = min((each.goal_value for each in printed), default=below)
            left, done = left[~np.isin(left, some)], done + len(some)
        others = [self._figures(tried, int(row)) for row in left[met[left] & (goal[left] >= best)]]
        plans = tuple(sorted([*printed, *others], key=ranking_key))
        return Selection(plans, tried, len(tried))

    def _begins_well(self, limits: Limits, some: Simulated) -> Bools:
        """Which plans may meet the limits often enough, as the first of the printed paths show."""
        space, asked = self.under(limits).on_printed_paths(), limits.confidence
        early = np.array([plan.early_s for plan in some.plans])
        whole, first = space.cache.path_count, min(BEGUN, space.cache.path_count)
        inputs = some.inputs.earlier(early)
        paths = space.cache.other(space.seed, first).outcomes(inputs, limits.deadline_s)
        begun = chance_of(limits, paths, some.inputs)
        return np.asarray(begun >= chance_less_error(asked, first, whole))

    def _printed(self, limits: Limits, some: Simulated, best: float) -> list[Candidate]:
        """Those plans that meet the limits on the printed paths."""
        space = self.under(limits).on_printed_paths()
        about_s = np.array([plan.early_s for plan in some.plans])
        v = values_of(space, some.inputs)
        v, early_s = switched_in_time(space, some.inputs, v, about_s, best)
        inputs, asked = some.inputs.earlier(early_s), limits.confidence
        over = np.zeros(len(some), dtype=bool)
        if limits.max_overhead is not None:
            over = v.overhead > limits.max_overhead
        goal, paths = v.time_s if limits.goal == "time" else v.cost_usd, space.cache.path_count
        sure = v.meets_limits & ~near(limits, v.chance, paths)
        best = float(goal[sure].min(initial=best)) * (1.0 + PATHS_ERROR)
        # Those that cannot lead are judged by these paths and by the simple policy alone.
        open_ = np.flatnonzero(~over & (goal < best))
        policies, own = self._with_policy(space, inputs.take(open_), v.take(open_))
        v, certain = (
            v.with_rows(open_, own),
            own.chance >= asked - ERRORS * chance_error(asked, paths),
        )
        goal = v.time_s if limits.goal == "time" else v.cost_usd
        ranked = np.flatnonzero(certain)[np.argsort(goal[open_[certain]], kind="stable")]
        for some_of in np.split(ranked, range(FEW, len(ranked), FEW)):
            rows = open_[some_of]
            if len(rows) and goal[rows[0]] < best:
                v.chance[rows] = sure_chances(space, policies.take(some_of), v.chance[rows])
                met = rows[v.chance[rows] >= enough(limits, paths)]
                best = min(best, float(goal[met].min(initial=np.inf)) * (1.0 + PATHS_ERROR))
        met = np.flatnonzero(~over & (v.chance >= enough(limits, paths)))
        found = replace(some, values=replace(v, goal_value=goal))
        return [
            replace(self._figures(found, row), printed=True, early_s=float(early_s[row]))
            for row in met.tolist()
        ]

    def _with_policy(
        self, space: Space, plans: PathInputs, values: Values
    ) -> tuple[PathInputs, Values]:
        """Plans and their values, those that are a little short with their best thresholds."""
        short = space.limits.confidence - values.chance
        rows = np.flatnonzero((plans.fallback_speed > 0.0) & (short > 0.0) & (short < SHORT_OF))
        rows = rows[np.argsort(short[rows], kind="stable")][:WITH_POLICY]
        changed = with_thresholds(self.under(space.limits), plans, rows)
        other = (changed.wait_above != plans.wait_above) | (changed.back_above != plans.back_above)
        some = np.flatnonzero(other)
        if not len(some):
            return plans, values
        return changed, values.with_rows(some, values_of(space, changed.take(some)))

    @staticmethod
    def _figures(tried: Simulated, row: int) -> Candidate:
        v = tried.values
        return replace(
            tried.plans[row],
            goal_value=float(v.goal_value[row]),
            cost_usd=float(v.cost_usd[row]),
            time_s=float(v.time_s[row]),
            chance=float(v.chance[row]),
        )

    def clusters_of(self, limits: Limits, rows: Ints, most: int) -> list[Cluster]:
        """The clusters of the first rated plans, so many."""
        plans, found = self.plans(limits), dict[Cluster, None]()
        for row in rows.tolist():
            table = self.tables[plans.table[row]]
            found[table.candidate(int(plans.row[row]), -1).cluster] = None
            if len(found) >= most:
                break
        return list(found)

    def of_clusters(self, limits: Limits, clusters: Iterable[Cluster]) -> list[Candidate]:
        """The plans of some clusters that may meet the limits, by the paths of a search."""
        keys = self.rows_of(limits, clusters)
        if not keys:
            return []
        tried = self.simulate(limits, keys, choices_of)
        rows = np.flatnonzero(np.isfinite(tried.values.goal_value)).tolist()
        return [self._figures(tried, row) for row in rows]

    def frontier(self, limits: Limits) -> list[Candidate]:
        """Plans without fallbacks that no other promising one beats in cost and time.

        Time is the trimmed mean, the median, or the 95 % quantile: what waits seldom and long is on
        the frontier of medians only.
        """
        plans = self.plans(limits)
        keys = [(int(plans.table[row]), int(plans.row[row])) for row in self._near_frontier(plans)]
        if not keys:
            return []
        tried = self.simulate(limits, sorted(keys), None)
        met = np.flatnonzero(tried.values.meets_limits).tolist()
        times = self.space.cache.outcomes(tried.inputs, limits.deadline_s).time_s
        usd, kept = tried.values.cost_usd, set[int]()
        ordered = np.sort(times, axis=1)
        for time_s in (
            tried.values.time_s,
            ordered[:, times.shape[1] // 2],
            ordered[:, times.shape[1] * 19 // 20],
        ):
            pairs = list(zip(usd.tolist(), time_s.tolist(), strict=True))
            kept |= set(unbeaten(met, pairs.__getitem__))
        return [self._figures(tried, row) for row in sorted(kept)]

    def _near_frontier(self, plans: RatedPlans) -> list[int]:
        """Rated plans that few others beat in cost and time.

        Those on demand, those of one place and those with a failover list each have their own
        frontier: a list costs more and waits less, which a mean time hides.
        """
        alone = np.flatnonzero(plans.fallback < 0)
        kind = np.minimum(plans.places[alone], 2.0)
        found = list[int]()
        for group in range(3):
            rows = alone[kind == group]
            rows = rows[np.argsort(plans.time_s[rows], kind="stable")]
            least = np.minimum.accumulate(plans.usd[rows])
            found += rows[plans.usd[rows] <= NEAR_FRONTIER * least].tolist()
        return found

    def columns(self, limits: Limits, selection: Selection) -> Columns:
        """The simulated plans of a selection as columns of the linear program."""
        tried, space = selection.tried, self.under(limits)
        if tried is None:
            return Columns((), *np.zeros((6, 0)))
        early = np.array([plan.early_s for plan in tried.plans])
        plans, asked = tuple(map(shape_of, tried.plans)), np.full(len(tried), limits.confidence)
        return columns_of(space, plans, tried.inputs.earlier(early), asked)

    def proven(self, limits: Limits) -> Selection:
        """The best plan of one machine type, everything simulated that the bound does not exclude.

        Clusters in the order of their bounds, each with every checkpoint path and every fallback;
        a stop leaves the rest.
        """
        found = self.select(limits)
        bound = self.bounds(limits)
        queue = np.argsort(bound, kind="stable")
        queue = queue[self.rough.allowed(limits)[queue]]
        plans, self.watch.may_stop, done = found.plans, True, found.simulated
        for begin in range(0, len(queue), AT_ONCE):
            best = min((each.goal_value for each in plans if each.printed), default=np.inf)
            self.watch.show(done, best, float(bound[queue[begin]]))
            some = queue[begin : begin + AT_ONCE]
            some = some[bound[some] < best * (1.0 - EPSILON)]
            if not len(some) or self.watch.asked:
                break
            clusters = self.clusters(some)
            self._rate(clusters)
            keys = self.rows_of(limits, clusters)
            if keys:
                tried = self.simulate(limits, keys, every_choice)
                done += len(tried)
                plans = (*plans, *self._confirmed(limits, tried, best).plans)
        else:
            begin = len(queue)
        self.watch.close()
        left = float(bound[queue[begin]]) if begin < len(queue) else np.inf
        return Selection(tuple(sorted(set(plans), key=ranking_key)), found.tried, done, left)

    def bounds(self, limits: Limits) -> Floats:
        """The least goal of any plan of each cluster: its work, nothing lost and nobody waiting.

        With a fallback each part of the work costs no less, and takes no less time, than on the
        better of both machines. It is inf where the work alone is late more often than allowed.
        """
        rough, steps = self.rough, self.space.steps_left
        by_time = limits.goal == "time"
        if limits.deadline_s is None:
            return rough.min_s if by_time else rough.min_usd
        falls = [site.fallbacks for site in self.space.sites]
        usd = np.array(
            [(f.step_s * f.usd_per_hour).min(initial=np.inf) * steps / 3600.0 for f in falls]
        )
        fastest_s = np.array([f.step_s.min(initial=np.inf) * steps for f in falls])
        min_usd = np.where(rough.spot, np.minimum(rough.min_usd, usd[rough.site]), rough.min_usd)
        min_s = np.where(rough.spot, np.minimum(rough.min_s, fastest_s[rough.site]), rough.min_s)
        asked = enough(limits, self.space.on_printed_paths().cache.path_count)
        slow = np.exp(rough.speed_sigma * normal_quantile(np.array([max(asked, 0.5)])))
        late = min_s * slow > limits.deadline_s
        return np.where(late, np.inf, min_s if by_time else min_usd)


def columns_of(
    space: Space, plans: tuple[Candidate, ...], inputs: PathInputs, chance: Floats
) -> Columns:
    """Plans as columns of the linear program, with quantiles at a chance of each."""
    found = space.cache.outcomes(inputs, space.limits.deadline_s)
    paths = found.time_s.shape[1]
    rank = np.maximum(np.ceil(chance * paths - 1e-9).astype(np.int64) - 1, 0)[:, None]
    hourly = np.maximum(inputs.base_usd_per_hour + inputs.spot_usd_per_hour, 0.0)
    return Columns(
        plans,
        usd=found.expected_usd,
        usd_quantile=np.take_along_axis(np.sort(found.cost_usd, axis=1), rank, axis=1)[:, 0],
        time_s=trimmed_mean(found.time_s),
        time_quantile_s=np.take_along_axis(np.sort(found.time_s, axis=1), rank, axis=1)[:, 0],
        overhead=found.overhead,
        max_usd_per_hour=np.maximum(hourly, inputs.fallback_usd_per_hour),
    )


def column_of_answer(space: Space, plan: Candidate, inputs: PathInputs) -> Columns:
    """An answer's own plan as a column, by the printed paths and its own policy.

    It may be short of the chance that is asked by the error of a sample.
    """
    printed = space.on_printed_paths()
    found = printed.cache.outcomes(inputs, space.limits.deadline_s)
    chance = np.minimum(chance_of(space.limits, found, inputs), space.limits.confidence)
    return columns_of(printed, (shape_of(plan),), inputs, chance)
