"""The pool: the plans of one question, rated once, simulated as they are asked for.

    rate        every cluster in closed form                                  (`rating.py`)
    choose      the first clusters of the linear program                      (`program.py`)
    simulate    these, each with its likely fallbacks, in one batch on common paths
    refine      of the best, every fallback and one machine more or less
    confirm     the best on the printed paths; a chance near the asked one on more paths

Every part of an answer is a selection: some limits, some entries. Clusters are rated once for all of
them, and a plan is simulated once; without a fallback it is the same plan under every deadline.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.candidate import Candidate, Cluster, ranking_key
from recommender.optimize.chance import enough, sure_chance
from recommender.optimize.evaluate import Values, values_of, with_fallbacks
from recommender.optimize.fallback_choices import choices_of, every_choice
from recommender.optimize.overhead_limit import switched_in_time
from recommender.optimize.program import Columns, order
from recommender.optimize.rating import Rated, RatedPlans, Rough, rated, rated_plans, rough_estimates
from recommender.optimize.space import Masks, Space
from recommender.optimize.watch import Watch
from recommender.plan.frontier import unbeaten
from recommender.plan.limits import Limits
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import trimmed_mean

CHOSEN, NEXT_TO = 60, 12  # clusters simulated for an answer, and for what is said next to it
MOST_CHOSEN = 240  # while none of them meets the limits
REFINED = 6  # clusters whose neighbours and fallbacks are all tried
CONFIRMED, FEW = 16, 4  # plans simulated on the printed paths at once
MOST_CONFIRMED = 64
PATHS_ERROR = 0.02  # share by which a goal on the paths of a search may be off, about
NEAR_FRONTIER = 1.25  # of the least cost of clusters that are as fast
EPSILON = 1e-4  # a plan must be better by this share to matter
AT_ONCE = 64  # clusters of a proof simulated at once

Choose = Callable[[Space, Rated, Ints], Ints]  # the fallbacks of some plans of a table


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulated plans, under some limits; (plans,)."""

    plans: tuple[Candidate, ...]
    inputs: PathInputs  # with the fallback taking over at the last moment
    values: Values

    def __len__(self) -> int:
        return len(self.plans)

    @staticmethod
    def joined(parts: "Sequence[Simulated]") -> "Simulated":
        """The plans of several batches, each once."""
        first: dict[Candidate, tuple[int, int]] = {}
        for number, part in enumerate(parts):
            for row, plan in enumerate(part.plans):
                first.setdefault(shape_of(plan), (number, row))
        rows = [[row for at, row in first.values() if at == n] for n in range(len(parts))]
        some = [part.take(mine) for part, mine in zip(parts, rows, strict=True) if mine]
        columns = ([getattr(s.values, name) for s in some] for name in Values.__slots__)
        return Simulated(
            tuple(plan for part in some for plan in part.plans),
            PathInputs.joined([part.inputs for part in some]),
            Values(*map(np.concatenate, columns)),
        )

    def take(self, rows: Sequence[int]) -> "Simulated":
        """Some of the plans."""
        at = np.array(rows, dtype=np.int64)
        return Simulated(
            tuple(self.plans[row] for row in rows), self.inputs.take(at), self.values.take(at)
        )


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
    mixes: Callable[[Limits], Sequence[Cluster]] = lambda limits: ()
    tables: list[Rated] = field(default_factory=list)  # rated so far
    known: dict[Cluster, None] = field(default_factory=dict)  # the clusters in them
    rated: dict[Limits, tuple[int, RatedPlans]] = field(default_factory=dict)  # of so many tables
    selections: dict[tuple[Limits, str, int], Selection] = field(default_factory=dict)

    @cached_property
    def rough(self) -> Rough:
        """Every cluster of one entry."""
        return rough_estimates(self.space, self.step_s)

    def under(self, limits: Limits) -> Space:
        """The plan space under other limits."""
        return replace(self.space, limits=limits)

    def select(self, limits: Limits, among: Among = ANY, first: int = CHOSEN) -> Selection:
        """The plans that meet some limits, of those that the program puts first."""
        key = limits, among.name, first
        if key not in self.selections:
            self.selections[key] = self._selected(limits, among, first)
        return self.selections[key]

    def plans(self, limits: Limits) -> RatedPlans:
        """All rated plans under some limits."""
        done, found = self.rated.get(limits, (0, None))
        if found is None:
            self._rate([*self._promising(limits), *self.mixes(limits)])
        if found is None or done < len(self.tables):
            new = rated_plans(self.under(limits), self.tables[done:])
            new = replace(new, table=new.table + done)
            found = new if found is None else RatedPlans.joined([found, new])
            self.rated[limits] = len(self.tables), found
        return found

    def _promising(self, limits: Limits) -> list[Cluster]:
        return self.clusters(np.flatnonzero(self.rough.promising(limits)))

    def clusters(self, rows: Ints) -> list[Cluster]:
        """Clusters of the rough table."""
        some = self.rough.take(rows)
        columns = zip(some.site.tolist(), some.entry.tolist(), some.machines.tolist(), strict=True)
        return [Cluster(site, (entry,), (n,)) for site, entry, n in columns]

    def _rate(self, clusters: Iterable[Cluster]) -> None:
        """Rate clusters that are not yet."""
        free = replace(self.space.limits, hourly_usd=None)
        new = [each for each in dict.fromkeys(clusters) if each not in self.known]
        self.tables.extend(rated(self.under(free), new))
        self.known.update(dict.fromkeys(new))

    def ordered(self, limits: Limits, among: Among = ANY) -> list[tuple[int, int]]:
        """Tables and rows of clusters with a checkpoint path, as the program puts them."""
        plans = self.plans(limits)
        allowed = [among.clusters(table) for table in self.tables]
        found: dict[tuple[int, int], None] = {}
        rows = order(limits, plans)
        for table, row in zip(plans.table[rows].tolist(), plans.row[rows].tolist(), strict=True):
            if allowed[table][row]:
                found[table, row] = None
        return list(found)

    def _selected(self, limits: Limits, among: Among, first: int) -> Selection:
        ordered, tried = self.ordered(limits, among), list[Simulated]()
        begin, most = 0, first
        while begin < min(len(ordered), MOST_CHOSEN if first >= CHOSEN else 2 * first):
            tried.append(self.simulate(limits, ordered[begin:most], choices))
            if np.isfinite(tried[-1].values.goal_value).any():
                break
            begin, most = most, 2 * most
        if not tried:
            return Selection(())
        every = Simulated.joined(tried)
        if first >= CHOSEN:
            every = self._refined(limits, among, every)
        return self._confirmed(limits, every, at_once=CONFIRMED if first >= CHOSEN else FEW)

    def simulate(
        self, limits: Limits, keys: Sequence[tuple[int, int]], choose: Choose | None
    ) -> Simulated:
        """Simulate clusters with a checkpoint path, alone and with the fallbacks chosen."""
        space, plans, inputs = self.under(limits), list[Candidate](), list[PathInputs]()
        for number in sorted({table for table, _ in keys}):
            rows = np.array([row for table, row in keys if table == number], dtype=np.int64)
            table = self.tables[number].take(rows)
            inputs.append(table.found.inputs)
            plans += [table.candidate(row, -1) for row in range(len(rows))]
            if limits.deadline_s is None or choose is None or not len(table.site.fallbacks):
                continue
            chosen = choose(space, table, rows)
            of, column = np.nonzero((chosen >= 0) & table.found.gang.has_spot[:, None])
            fallback = chosen[of, column]
            helped, allowed = with_fallbacks(space, table.site, table.found, of, fallback)
            inputs.append(helped.take(allowed))
            pairs = zip(of[allowed].tolist(), fallback[allowed].tolist(), strict=True)
            plans += [table.candidate(*pair) for pair in pairs]
        joined = PathInputs.joined(inputs)
        found = switched_in_time(space, joined, values_of(space, joined))
        early = found.early_s
        plans = [
            replace(plan, early_s=by) if by else plan
            for plan, by in zip(plans, early.tolist(), strict=True)
        ]
        return Simulated(tuple(plans), joined, found.values)

    def _refined(self, limits: Limits, among: Among, tried: Simulated) -> Simulated:
        """With every fallback of the best clusters, and of one machine more or less."""
        ranked = np.argsort(tried.values.goal_value, kind="stable")
        ranked = ranked[np.isfinite(tried.values.goal_value[ranked])]
        best = list(dict.fromkeys(tried.plans[row].cluster for row in ranked.tolist()))[:REFINED]
        near = [each for cluster in best for each in self._neighbours(cluster)]
        self._rate(near)
        keys = self.rows_of(limits, [*best, *near], among)
        return Simulated.joined([tried, self.simulate(limits, keys, every_fallback)])

    def _neighbours(self, cluster: Cluster) -> list[Cluster]:
        """A cluster of one type with one machine more and with one less."""
        if len(cluster.entries) > 1:
            return []
        mine = (self.rough.site == cluster.site) & (self.rough.entry == cluster.entries[0])
        mine &= np.abs(self.rough.machines - cluster.counts[0]) == 1
        return self.clusters(np.flatnonzero(mine))

    def rows_of(
        self, limits: Limits, clusters: Iterable[Cluster], among: Among = ANY
    ) -> list[tuple[int, int]]:
        """Tables and rows of some clusters, those that meet the limits at every moment."""
        wanted, plans = set(clusters), self.plans(limits)
        found = dict[tuple[int, int], None]()
        for number in np.flatnonzero(np.bincount(plans.table)).tolist():
            table = self.tables[number]
            rows = np.flatnonzero(among.clusters(table)).tolist()
            allowed = set(plans.row[(plans.table == number) & (plans.fallback < 0)].tolist())
            each = table.clusters
            found |= {
                (number, row): None for row in rows if row in allowed and each[row] in wanted
            }
        return list(found)

    def _confirmed(
        self, limits: Limits, tried: Simulated, below: float = np.inf, at_once: int = CONFIRMED
    ) -> Selection:
        """The plans that meet the limits; the best of them on the printed paths.

        Those that cannot be better than one `below` are not confirmed.
        """
        goal = tried.values.goal_value
        ranked = np.argsort(goal, kind="stable")
        ranked = ranked[np.isfinite(goal[ranked])]
        printed, best, done = list[Candidate](), below, 0
        while done < min(len(ranked), MOST_CONFIRMED):
            if goal[ranked[done]] >= best * (1.0 + PATHS_ERROR):
                break
            some = ranked[done : done + at_once]
            printed += self._printed(limits, tried.take(some.tolist()))
            best = min((each.goal_value for each in printed), default=below)
            done += len(some)
        others = [
            self._figures(tried, int(row))
            for row in ranked[done:].tolist()
            if tried.values.meets_limits[row] and goal[row] >= best
        ]
        plans = tuple(sorted([*printed, *others], key=ranking_key))
        return Selection(plans, tried, len(tried))

    def _printed(self, limits: Limits, some: Simulated) -> list[Candidate]:
        """Those plans that meet the limits on the printed paths."""
        space = self.under(limits).on_printed_paths()
        values = values_of(space, some.inputs)
        found = switched_in_time(space, some.inputs, values)
        v, kept = found.values, list[Candidate]()
        for row, plan in enumerate(some.plans):
            inputs = some.inputs.take(np.array([row])).earlier(found.early_s[row : row + 1])
            chance = sure_chance(space, inputs, float(v.chance[row]))
            over = limits.max_overhead is not None and v.overhead[row] > limits.max_overhead
            if chance < enough(limits, space.cache.path_count) or over:
                continue
            early = float(found.early_s[row])
            goal = v.time_s[row] if limits.goal == "time" else v.cost_usd[row]
            kept.append(
                replace(
                    plan, goal_value=float(goal), cost_usd=float(v.cost_usd[row]),
                    time_s=float(v.time_s[row]), chance=chance, printed=True, early_s=early,
                )  # fmt: skip
            )
        return kept

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
        """The plans of some clusters that may meet the limits, as the paths of a search show them."""
        keys = self.rows_of(limits, clusters)
        if not keys:
            return []
        tried = self.simulate(limits, keys, choices)
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
        kind = np.zeros(len(alone), dtype=np.int64)
        for number, table in enumerate(self.tables):
            mine = plans.table[alone] == number
            gang, at = table.found.gang, plans.row[alone[mine]]
            kind[mine] = np.where(gang.has_spot[at], 1 + (gang.zone_count[at] > 1.0), 0)
        found = list[int]()
        for group in range(3):
            rows = alone[kind == group]
            rows = rows[np.argsort(plans.time_s[rows], kind="stable")]
            least = np.minimum.accumulate(plans.usd[rows])
            found += rows[plans.usd[rows] <= NEAR_FRONTIER * least].tolist()
        return found

    def columns(self, limits: Limits, selection: Selection) -> Columns:
        """The simulated plans of a selection as columns of the linear program."""
        tried = selection.tried
        if tried is None:
            return Columns((), *np.zeros((6, 0)))
        early = np.array([plan.early_s for plan in tried.plans])
        inputs = tried.inputs.earlier(early)
        found = self.space.cache.outcomes(inputs, limits.deadline_s)
        paths = found.time_s.shape[1]
        rank = max(int(np.ceil(limits.confidence * paths)) - 1, 0)  # of the runs in order
        hourly = np.maximum(inputs.base_usd_per_hour + inputs.spot_usd_per_hour, 0.0)
        return Columns(
            tuple(map(shape_of, tried.plans)),
            usd=found.expected_usd,
            usd_quantile=np.sort(found.cost_usd, axis=1)[:, rank],
            time_s=trimmed_mean(found.time_s),
            time_quantile_s=np.sort(found.time_s, axis=1)[:, rank],
            overhead=found.overhead,
            max_usd_per_hour=np.maximum(hourly, inputs.fallback_usd_per_hour),
        )

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
                tried = self.simulate(limits, keys, every_fallback)
                done += len(tried)
                plans = (*plans, *self._confirmed(limits, tried, best).plans)
        else:
            begin = len(queue)
        self.watch.close()
        left = float(bound[queue[begin]]) if begin < len(queue) else np.inf
        return Selection(tuple(sorted(set(plans), key=ranking_key)), found.tried, done, left)

    def bounds(self, limits: Limits) -> Floats:
        """The least goal of any plan of each cluster: its work, nothing lost and nobody waiting.

        With a fallback each part of the work costs no less than on the cheaper of both machines.
        """
        rough, by_time = self.rough, limits.goal == "time"
        own = rough.min_s if by_time else rough.min_usd
        if limits.deadline_s is None:
            return own
        steps = self.space.steps_left
        least = np.array(
            [
                (fall.step_s * (1.0 if by_time else fall.usd_per_hour / 3600.0)).min(initial=np.inf)
                for fall in (site.fallbacks for site in self.space.sites)
            ]
        )
        return np.where(rough.spot, np.minimum(own, steps * least[rough.site]), own)


def choices(space: Space, table: Rated, rows: Ints) -> Ints:
    """The fallbacks worth trying."""
    return choices_of(space, table.site.fallbacks, table.found.step_s)


def every_fallback(space: Space, table: Rated, rows: Ints) -> Ints:
    """All fallbacks that are not far slower."""
    return every_choice(space, table.site.fallbacks, table.found.step_s)
