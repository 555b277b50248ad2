"""Starts fallbacks before the last possible moment, if that is needed to meet an overhead limit.

A plan that waits for spot as long as its deadline allows may lose more work than `--max-overhead`
allows. The earlier its fallback takes over, the less work is done and lost on machines that are
reclaimed, but since spot is cheaper, the more it costs. So the last moment that meets the limit is
found, as an increase of the reserve of the fallback rule.

With earlier switches the overhead first falls, until so many paths are handed over that their
restarts dominate; of 2,500 plans of three questions one met a limit, broke it earlier and met it
again (November 2026). So the moment is bracketed between one at which the limit is broken and an
earlier one at which it is met, and the bracket refined.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.optimize.evaluate import OVERHEAD_ERRORS, Values, values_of
from recommender.optimize.space import Space
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import Outcomes, keys_of, outcome_of

# Moments that are tried until one meets the limit, in times of a usual run: from its end on few
# paths are handed over. Then the bracket is refined so often.
TRIED = (1.5, 1.1, 0.8, 0.5, 0.25)
REFINED, ROUGHLY = 4, 2  # on the printed paths, and on those of a search
NO_CHOICE = 1.1  # of the least cost of plans that meet the limits: what costs more leads nothing
SHORT_OF = 0.02  # of the chance at the last moment
TOLERANCE = 0.002  # below the limit, as a share of it: near enough


def switched_in_time(
    space: Space,
    inputs: PathInputs,
    values: Values,
    about_s: Floats | float = 0.0,
    best: float = np.inf,
) -> tuple[Values, Floats]:
    """Switch plans with a fallback earlier that meet the limits but for their overhead.

    The values of all, and by how many seconds before the last moment each switches.

    `values` are those of the last moment that the deadline allows; about so much earlier they
    switch on other paths, and the `best` plan has that goal. On the paths of a search the limit may
    be broken within sampling error; on the printed paths it is met.
    """
    early_s, most_usd = np.zeros(len(inputs)), np.inf
    rows = np.flatnonzero(_misses_overhead_only(space, inputs, values))
    if space.limits.goal == "cost":  # the earlier they switch, the more they cost
        most_usd = NO_CHOICE * values.cost_usd[values.meets_limits].min(initial=best)
        rows = rows[values.cost_usd[rows] <= most_usd]
    if len(rows):
        about_s = np.broadcast_to(about_s, early_s.shape)
        found_s = _remembered(space, inputs.take(rows), about_s[rows], most_usd)
        rows, found_s = rows[np.isfinite(found_s)], found_s[np.isfinite(found_s)]
    if len(rows):
        early_s[rows] = found_s
        values = values.with_rows(rows, values_of(space, inputs.take(rows).earlier(found_s)))
    return values, early_s


def _misses_overhead_only(space: Space, inputs: PathInputs, values: Values) -> Bools:
    """Plans with a fallback that meet the limits often enough, but not that of their overhead."""
    limits = space.limits
    if limits.max_overhead is None or limits.deadline_s is None:
        return np.zeros(len(inputs), dtype=bool)
    over = (inputs.fallback_speed > 0.0) & (values.overhead > limits.max_overhead)
    # An earlier switch raises the chance.
    return np.asarray(over & (values.chance >= space.min_chance - SHORT_OF))


def _remembered(space: Space, plans: PathInputs, about_s: Floats, most_usd: float) -> Floats:
    """The last moments of plans; what was found before is not looked for again."""
    known, most = space.cache.switches, space.limits.max_overhead or 0.0
    keys = [(key, most) for key in keys_of(plans, space.limits.deadline_s)]
    new = np.flatnonzero([key not in known for key in keys])
    found = np.array([known.get(key, np.nan) for key in keys])
    if len(new):
        found[new] = last_moments(space, plans.take(new), about_s[new], most_usd)
        known.update((keys[row], found[row]) for row in new.tolist() if not np.isnan(found[row]))
    return found


@dataclass(slots=True)
class _Brackets:
    """Moments between which plans begin to meet the limit; (plans,).

    As shares of the time until which a fallback could take over if nothing were done before.
    """

    space: Space
    plans: PathInputs
    slack_s: Floats  # until a fallback could take over if nothing were done before
    late: Floats  # a moment at which the limit is broken,
    late_excess: Floats  # by how much,
    early: Floats  # and an earlier one at which it is met; inf if none was found
    early_excess: Floats
    usd: Floats  # at the moment tried last

    def evaluate(self, rows: Ints, shares: Floats) -> None:
        """Try a moment between the two of each plan."""
        if not len(rows):
            return
        space, early = self.space, self.slack_s[rows] * shares
        paths = simulate_paths(
            self.plans.take(rows).earlier(early),
            space.limits.deadline_s,
            space.of_overhead.path_count,
            space.of_overhead.seed,
        )
        found = Outcomes(*outcome_of(paths))
        excess, self.usd[rows] = _excess(self.space, found), found.expected_usd
        met = excess <= 0.0
        self.early[rows[met]], self.early_excess[rows[met]] = shares[met], excess[met]
        self.late[rows[~met]], self.late_excess[rows[~met]] = shares[~met], excess[~met]


def _excess(space: Space, found: Outcomes) -> Floats:
    """By how much overheads exceed the limit; on the paths of a search beyond their error."""
    errors = 0.0 if space.printed is None else OVERHEAD_ERRORS
    most = space.limits.max_overhead or 0.0
    return np.asarray(found.overhead - errors * found.overhead_error - most)


def last_moments(
    space: Space, plans: PathInputs, about_s: Floats, most_usd: float = np.inf
) -> Floats:
    """By how many seconds fallbacks have to take over earlier, at least; inf if none will do.

    It is nan if the plan costs more than `most_usd` at any such moment.
    """
    cache, deadline_s = space.of_overhead, space.limits.deadline_s or 0.0
    last = cache.outcomes(plans, deadline_s)
    b = _Brackets(
        space=space,
        plans=plans,
        slack_s=np.maximum(deadline_s - plans.handover_s, 0.0),
        late=np.zeros(len(plans)),
        late_excess=_excess(space, last),
        early=np.full(len(plans), np.inf),
        early_excess=np.zeros(len(plans)),
        usd=last.expected_usd.copy(),
    )
    b.early[b.late_excess <= 0.0] = 0.0
    usual = np.sort(last.time_s, axis=1)[:, last.time_s.shape[1] // 2] / np.maximum(b.slack_s, 1.0)
    shares = [np.clip(1.0 - times * usual, 0.0, 1.0) for times in TRIED]
    for share in (about_s / np.maximum(b.slack_s, 1.0), *shares):
        rows = np.flatnonzero(np.isinf(b.early) & (share > b.late) & (b.usd <= most_usd))
        b.evaluate(rows, share[rows])
    for _ in range(REFINED if space.printed is None else ROUGHLY):
        rows = np.flatnonzero(
            np.isfinite(b.early)
            & (b.early > 0.0)
            & (b.early_excess < -TOLERANCE * (space.limits.max_overhead or 0.0))
        )
        if not len(rows):
            break
        b.evaluate(rows, _between(b, rows))
    b.early[np.isinf(b.early) & (b.usd > most_usd)] = np.nan
    return b.slack_s * b.early


def _between(b: _Brackets, rows: Ints) -> Floats:
    """By false position, well inside the bracket."""
    late, early = b.late[rows], b.early[rows]
    aim = b.late_excess[rows] + 0.5 * TOLERANCE * (b.space.limits.max_overhead or 0.0)
    share = late + (early - late) * aim / (b.late_excess[rows] - b.early_excess[rows])
    return np.clip(share, 0.9 * late + 0.1 * early, 0.1 * late + 0.9 * early)
