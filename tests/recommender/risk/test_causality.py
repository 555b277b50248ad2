"""A plan decides by what it has seen: paths that agree until a moment are treated alike until then.

Every path is simulated twice: as drawn, and with another future from a random moment on. The run or
outage of that moment ends at another time, and all that follows is drawn anew.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from recommender.arrays import Floats, Ints
from recommender.risk.lanes import Lanes
from recommender.risk.path_inputs import PathInputs
from recommender.risk.random_numbers import STRETCH, RandomNumbers, random_numbers
from recommender.risk.spot_capacity import drawn_cycles
from recommender.risk.walk import Walk
from tests.recommender.optimize.samples import one_in
from tests.recommender.risk.cases import path_inputs, random_plan

PATHS, CHUNKS, PER_CHUNK = 32, 20, 60  # 16,000 pairs in all, a part of them by default
STRETCHES = 8
ROUNDED_S = 1.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """Runs and waits given as arrays of shape (cycles, 1, paths); what outlasts them repeats."""

    lengths: Floats
    waits: Floats

    def market(self, p: PathInputs, sample: RandomNumbers) -> "Drawn":
        """The given runs and waits."""
        return self

    def cycles(self, first: int, cluster: Ints, path: Ints) -> tuple[Floats, Floats]:
        """Runs of the next cycles, and the wait before each."""
        turn = (first + np.arange(STRETCH)) % len(self.lengths)
        at = turn[:, None], cluster, path
        return self.lengths[at].astype(np.float64), self.waits[at].astype(np.float64)


def other_future(drawn: Drawn, moment: Floats, rng: np.random.Generator) -> Drawn:
    """Runs and waits that differ only after a moment of each path."""
    lengths, waits = drawn.lengths.astype(float), drawn.waits.astype(float)
    ends = np.cumsum(waits + lengths, axis=0)
    starts, left = ends - lengths, ends - lengths - waits
    typical, shape = lengths.mean(), lengths.shape
    short = rng.choice([1e-3, 0.1, 1.0], shape)
    new_waits = np.where(rng.random(shape) < 0.5, 0.0, rng.exponential(typical, shape))
    new_waits = np.where(
        left <= moment, moment - left + short * rng.exponential(typical), new_waits
    )
    new_runs = rng.exponential(typical, shape)
    new_runs = np.where(starts <= moment, moment - starts + short * new_runs, new_runs)
    waits = np.where(starts > moment, new_waits, waits)
    lengths = np.where(ends > moment, new_runs, lengths)
    return Drawn(lengths, waits)


def switches(
    p: PathInputs, deadline_s: float, sample: RandomNumbers, drawn: Drawn
) -> list[list[float]]:
    """When each path went on demand and back again, in order."""
    walk = Walk(p, deadline_s, sample, drawn)
    found: list[list[float]] = [[] for _ in range(PATHS)]

    def paid(lanes: Lanes, delay_s: Floats, until: Floats) -> None:
        for path, rented, stop in zip(lanes.path, lanes.rented_s, until, strict=True):
            found[path] += [rented, stop]

    walk.paid = paid
    ended = walk.run()
    # The end of a job is no decision.
    pairs = zip(found, ended.time_s, strict=True)
    return [[t for t in each if abs(t - end) > ROUNDED_S] for each, end in pairs]


def case(seed: int) -> tuple[PathInputs, float] | None:
    """A random plan with a fallback of any speed; half of the gangs have thresholds.

    Half of the slow fallbacks are due in the first interval of a run, when a run that lasts gains
    slack and one that ends soon does not.
    """
    rng = np.random.default_rng(seed)
    row, deadline_s = random_plan(rng)
    if deadline_s is None or "fallback_speed" not in row:
        return None
    if not row["elastic_share"] and rng.random() < 0.5:
        row |= {"wait_above": float(rng.choice([0.0, 0.1, 0.4]))}
        row |= {"back_above": float(rng.choice([0.02, 0.1, 0.5]))}
    if row["fallback_speed"] < 1.0 and rng.random() < 0.5:
        spare = rng.uniform(0.0, 1.0) * (row["changeover_s"] + row["interval_s"])
        reserve = row["reserve_s"] + row["fallback_start_s"]
        deadline_s = row["work_s"] / row["fallback_speed"] + reserve + spare
    return path_inputs(row), deadline_s


def moments(p: PathInputs, deadline_s: float, rng: np.random.Generator) -> Floats:
    """When the future of each path changes: at any time, or soon after the first step."""
    soon = 3.0 * float(p.changeover_s[0] + p.interval_s[0])
    late = rng.random(PATHS) < 0.5
    return rng.uniform(0.0, 1.0, PATHS) * np.where(late, 1.2 * deadline_s, soon)


@pytest.mark.parametrize("chunk", one_in(10, CHUNKS))
def test_what_happens_later_decides_nothing_earlier(chunk: int) -> None:
    compared = decided = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        made = case(seed)
        if made is None:
            continue
        p, deadline_s = made
        rng = np.random.default_rng(seed + 1)
        sample = random_numbers(PATHS)
        drawn = Drawn(*drawn_cycles(p, sample, STRETCHES))
        moment = moments(p, deadline_s, rng)
        reach = (drawn.lengths + drawn.waits).sum(axis=0)[0]
        one = switches(p, deadline_s, sample, drawn)
        other = switches(p, deadline_s, sample, other_future(drawn, moment, rng))
        for path in np.flatnonzero(moment < 0.9 * reach):
            if any(abs(t - moment[path]) <= 2.0 * ROUNDED_S for t in (*one[path], *other[path])):
                continue
            mine, theirs = ([t for t in each[path] if t < moment[path]] for each in (one, other))
            assert mine == pytest.approx(theirs, abs=ROUNDED_S), f"seed {seed}, path {path}"
            compared += 1
            decided += bool(mine)
    assert compared > 500
    assert decided > 100
