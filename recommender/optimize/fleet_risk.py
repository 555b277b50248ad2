"""What a fleet comes to together: its jobs on common paths, and the quotas that fallbacks share."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.risk.random_numbers import SEED

TOLERANCE = 1e-9  # of sums of uses


@dataclass(frozen=True, slots=True)
class Run:
    """A job of a fleet on every path, in seconds since it starts."""

    name: str
    start_s: float  # of the fleet
    due_s: float  # from its start on
    held: Mapping[str, float]  # what it uses of each quota until it is done
    fallback: Mapping[str, float]  # what its fallback uses while that runs
    time_s: Floats  # (paths,)
    fallback_s: Floats  # at the end of a run
    cost_usd: Floats

    def on_paths(self, order: Ints) -> "Run":
        """The run on the paths in another order."""
        time_s, fallback_s, cost_usd = self.time_s, self.fallback_s, self.cost_usd
        return replace(
            self, time_s=time_s[order], fallback_s=fallback_s[order], cost_usd=cost_usd[order]
        )


@dataclass(frozen=True, slots=True)
class Together:
    """Chances of a fleet as a whole."""

    in_time: float  # every job meets its deadline
    within_quotas: float  # at no moment do all runs use more of a quota than there is
    usd_p95: float  # of all jobs, not exceeded in 19 of 20 cases
    short: Mapping[str, float] = field(default_factory=dict)  # chance that a quota is too small


def together(runs: Sequence[Run], quotas: Mapping[str, float]) -> Together:
    """The fleet where what befalls one job befalls all: each is on the same path."""
    if not runs:
        return Together(1.0, 1.0, 0.0)
    in_time = np.all([run.time_s <= run.due_s for run in runs], axis=0)
    over = {name: _over(runs, name, most) for name, most in quotas.items()}
    usd = np.sort(sum((run.cost_usd for run in runs), np.zeros(len(in_time))))
    return Together(
        float(in_time.mean()),
        1.0 - float(np.any([*over.values(), np.zeros(len(usd), dtype=bool)], axis=0).mean()),
        float(usd[int(np.ceil(0.95 * len(usd))) - 1]),
        {name: float(each.mean()) for name, each in over.items() if each.any()},
    )


def apart(runs: Sequence[Run], quotas: Mapping[str, float]) -> Together:
    """The fleet where the jobs' fates are independent: each is on paths in an order of its own."""
    draws = np.random.default_rng(SEED)
    shuffled = [(run, draws.permutation(len(run.time_s))) for run in runs]
    return together([run.on_paths(order) for run, order in shuffled], quotas)


def _over(runs: Sequence[Run], quota: str, most: float) -> Bools:
    """On which paths the runs use more of a quota than there is, at some moment."""
    spans = [span for run in runs for span in _spans(run, quota)]
    if not spans:
        return np.zeros(len(runs[0].time_s), dtype=bool)
    begin, end = (np.stack([span[side] for span in spans], axis=1) for side in (0, 1))
    use = np.array([use for *_, use in spans])
    # What ends at a moment makes room for what begins then.
    order = np.argsort(np.concatenate([end, begin], axis=1), axis=1, kind="stable")
    used = np.cumsum(np.concatenate([-use, use])[order], axis=1)
    return np.asarray(used.max(axis=1) > most + TOLERANCE)


def _spans(run: Run, quota: str) -> list[tuple[Floats, Floats, float]]:
    """From when to when a run uses how much of a quota, on every path.

    A fallback takes the place of the cluster.
    """
    start, end = np.full(len(run.time_s), run.start_s), run.start_s + run.time_s
    begin, found = end - run.fallback_s, list[tuple[Floats, Floats, float]]()
    if quota in run.held:
        found.append((start, begin if quota in run.fallback else end, run.held[quota]))
    if quota in run.fallback:
        found.append((begin, end, run.fallback[quota]))
    return found
