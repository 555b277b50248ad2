"""How far the simulation of plans and the second simulator (`events.py`) are apart.

    python -P tests/run.py tests.recommender.simulation.agreement [PLANS] [PATHS] [FIRST SEED]

prints the distribution of differences over random plans of every kind.
"""

import sys
from collections import defaultdict
from dataclasses import dataclass, fields
from math import inf, sqrt
from random import Random

import numpy as np

from recommender.arrays import Floats
from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from tests.recommender.risk.cases import path_inputs, random_plan
from tests.recommender.simulation.events import JobPath, Outcome, plan_of

FIGURES = tuple(field.name for field in fields(Outcome))
OVERHEAD, CHANCE = "overhead", "chance"
RELATIVE, ERRORS = 0.01, 4.0  # of means
POINTS, CHANCE_ERRORS = 0.005, 3.0


@dataclass
class Difference:
    """One figure of one plan, by events and by the simulation of plans."""

    events: float
    told: float
    error: float  # one standard error of the difference

    @property
    def relative(self) -> float:
        gap = self.told - self.events
        return gap / abs(self.events) if self.events else (inf if gap else 0.0)

    def explained(self, name: str) -> bool:
        """Whether it is within what is allowed."""
        gap = abs(self.told - self.events)
        if name == CHANCE:
            return gap <= POINTS + CHANCE_ERRORS * self.error
        return gap <= max(RELATIVE * abs(self.events), ERRORS * self.error) + 1e-9


def by_events(
    inputs: PathInputs, deadline_s: float | None, paths: int, seed: str
) -> dict[str, Floats]:
    """Figures of the first plan on each path."""
    plan, rng = plan_of(inputs), Random(seed)
    outcomes = [JobPath(plan, deadline_s, rng).simulate() for _ in range(paths)]
    return {name: np.array([getattr(one, name) for one in outcomes]) for name in FIGURES}


def differences(
    inputs: PathInputs, deadline_s: float | None, paths: int, seed: str
) -> dict[str, Difference]:
    """All figures of a plan in both simulations; the second draws four times as many paths."""
    events = by_events(inputs, deadline_s, paths, seed)
    found = simulate_paths(inputs, deadline_s, 4 * paths, seed=11)
    told = {name: np.asarray(getattr(found, name)[0], dtype=float) for name in FIGURES}
    result = {name: mean_difference(events[name], told[name]) for name in FIGURES}
    lost, work = result["lost_work_s"], result["work_s"]
    result[OVERHEAD] = Difference(
        lost.events / work.events, lost.told / work.told, lost.error / work.told
    )
    # Without a deadline, a time beyond that of the many runs that meet no interruption.
    limit = deadline_s or 1.03 * float(np.median(told["time_s"]))
    result[CHANCE] = mean_difference(events["time_s"] <= limit, told["time_s"] <= limit)
    return result


def mean_difference(events: Floats, told: Floats) -> Difference:
    error = sqrt(events.var() / len(events) + told.var() / len(told))
    return Difference(float(events.mean()), float(told.mean()), error)


def random_case(seed: int) -> tuple[dict[str, float], float | None]:
    """A plan of any kind that makes progress in most of its runs, and its deadline.

    A job that needs many times more runs than its length suggests repeats those that were drawn
    for it (docs/method.md), so its figures are not those of the process.
    """
    rng = np.random.default_rng(seed)
    plan, deadline_s = random_plan(rng)
    run = plan["run_mean_s"] = max(plan["run_mean_s"], plan["work_s"] / 30.0)
    boot = plan["boot_s"] / plan["changeover_s"]
    plan["changeover_s"] = min(plan["changeover_s"], run / 5.0)
    plan["boot_s"] = boot * plan["changeover_s"]
    best = sqrt(2.0 * max(plan["stall_s"], 10.0) * run)
    plan["interval_s"] = min(best * 10.0 ** rng.uniform(-0.4, 0.4), run / 3.0)
    if not plan["elastic_share"] and rng.random() < 0.6:
        plan["wait_above"] = float(rng.choice([0.0, 0.1, 0.5]))
        plan["back_above"] = plan["wait_above"] + float(rng.choice([0.05, 0.3, 1.0]))
    return plan, deadline_s


def main(plans: int = 1_000, paths: int = 10_000, first: int = 0) -> None:
    kept: dict[str, list[Difference]] = defaultdict(list)
    for seed in range(first, first + plans):
        given, deadline_s = random_case(seed)
        found = differences(path_inputs(given), deadline_s, paths, f"agreement {seed}")
        for name, one in found.items():
            kept[name].append(one)
            if not one.explained(name):
                print(f"plan {seed}: {name} {one.events:.6g}, told {one.told:.6g}", flush=True)
    for name, those in kept.items():
        print(summary(name, those))


def summary(name: str, those: list[Difference]) -> str:
    """Mean and quantiles of the differences, and of those in standard errors."""
    gaps = [one.told - one.events if name == CHANCE else one.relative for one in those]
    scores = [(one.told - one.events) / one.error for one in those if one.error > 1e-9]
    low, middle, high = 100.0 * np.quantile(gaps, [0.05, 0.5, 0.95])
    outside = sum(not one.explained(name) for one in those)
    return (
        f"{name:14s} 5-50-95 %: {low:+8.3f} {middle:+7.3f} {high:+8.3f}"
        f"  largest {100.0 * max(map(abs, gaps)):7.3f}"
        f"  in errors: mean {np.mean(scores):+5.2f} sd {np.std(scores):4.2f}"
        f"  outside {outside} of {len(those)}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
