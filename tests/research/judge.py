"""What is told of a plan, against the second simulator: by hand, some minutes.

    python -P tests/run.py tests.research.judge [RUNS]

writes judge.csv beside this file, whose figures docs/research/simulation.md tells.

The best three plans of presets within 24 h and 48 h, without and with a limit on checkpoint
overhead, each by 20,000 runs of `tests/recommender/simulation/events.py`. Of each question also its
first spot plan with up to two slower fallbacks, which the search does not choose: the cheapest at
least a quarter, and at least 0.6 times as fast as the cluster. They are built and told as those of
an answer are, with the moment of the switch that the limit asks for. Besides what is told (2,048
runs), the same simulation of 65,536 others: the sampling error of what is told is in the first.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.ranking import ranked_plans
from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.simulation.agreement import by_events
from tests.research.leads import NEW, NOW, SEED, words
from tests.shipped import snapshot

JOBS = ("whisper-large", "llama3-8b-lora", "llama3-8b-sft", "gpt2-xl", "t5-3b", "resnet50-imagenet")
OVERHEADS = (None, 0.01, 0.05)
HOURS = (24.0, 48.0)
SLOWER = (0.25, 0.6, 0.95)  # speeds of fallbacks between which one is added
FRESH, OTHER_SEED = 65_536, 11
FILE = Path(__file__).with_suffix(".csv")
COLUMNS = (
    "question", "plan", "fallback_speed",
    *(f"{of}_{name}" for of in ("told", "fresh", "events") for name in ("usd", "chance", "lost")),
)  # fmt: skip


Figures = tuple[float, float, float]  # cost in USD, chance and overhead


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of a plan, told and by events."""

    question: str
    plan: str
    speed: float  # of its fallback, relative to the cluster; 0: none
    told: Figures
    fresh: Figures  # by many runs of what is told
    events: Figures

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the file."""
        figures = (*self.told, *self.fresh, *self.events)
        return (self.question, self.plan, f"{self.speed:.3f}", *(f"{x:.6g}" for x in figures))


def judged(search: PlanPool, question: str, one: Evaluated, runs: int) -> Row:
    """A plan by both simulations."""
    limits, inputs = search.problem.limits, one.inputs
    told, deadline_s = one.plan.estimate, limits.deadline_s
    assert deadline_s is not None
    paths = by_events(inputs, deadline_s, runs, f"judge {question}")
    same = simulate_paths(inputs, deadline_s, FRESH, seed=OTHER_SEED)

    def figures(usd: Floats, time_s: Floats, lost_s: Floats, work_s: Floats) -> Figures:
        in_time = float(np.mean(time_s <= deadline_s))
        return float(usd.mean()), in_time, float(lost_s.mean() / work_s.mean())

    names = ("expected_usd", "time_s", "lost_work_s", "work_s")
    return Row(
        question,
        words(one.plan),
        float(inputs.fallback_speed[0]),
        (told.cost.mean, told.chance, told.overhead),
        figures(*(getattr(same, name) for name in names)),
        figures(*(paths[name] for name in names)),
    )


def with_slower_fallbacks(search: PlanPool, plans: list[Evaluated]) -> Iterator[Evaluated]:
    """The first spot plan of some with the cheapest fallback of each range of lower speeds."""
    spot = [one for one in plans if all(m.market == "spot" for m in one.plan.machines)]
    for one in spot[:1]:
        now, work_s = one.candidate, float(one.inputs.work_s[0])
        fall = search.sites.sites[now.site].fallbacks
        speed = work_s / (fall.step_s * search.problem.steps_left)
        for low, high in pairwise(SLOWER):
            rows = np.flatnonzero((speed >= low) & (speed < high))
            if len(rows):
                cheapest = int(rows[(fall.usd_per_hour / speed)[rows].argmin()])
                made = replace(now, fallback=cheapest, early_s=0.0)
                if made.fallback != now.fallback:
                    yield search.builder.build(made)


def rows(runs: int) -> Iterator[Row]:
    for name in JOBS:
        for hours in HOURS:
            for limit in OVERHEADS:
                limits = Limits(deadline_s=3600.0 * hours, max_overhead=limit)
                question = f"{name} {hours:g} h" + (f", {limit:.0%}" if limit else "")
                problem = planning_problem(
                    find_job(name), limits, Choice(), snapshot(), NEW, NOW, SEED
                )
                search = PlanPool(problem)
                plans = list(ranked_plans(search, 3).plans)
                for one in (*plans, *with_slower_fallbacks(search, plans)):
                    yield judged(search, question, one, runs)


def main(runs: int = 20_000) -> None:
    """Write all rows, and print what they differ by."""
    found = []
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows(runs):
            found.append(row)
            writer.writerow(row.cells)
            file.flush()
    slow = sum(0.0 < row.speed < 1.0 for row in found)
    print(f"{len(found)} plans, {slow} with slower fallbacks")
    for name, of in (("told", lambda row: row.told), ("fresh runs", lambda row: row.fresh)):
        some = np.array([of(row) for row in found]), np.array([row.events for row in found])
        usd, points = some[1][:, 0] / some[0][:, 0], 100.0 * (some[0] - some[1])
        print(
            f"{name}: cost x {spread(usd, 1.0, 0.02)}; chance {spread(points[:, 1], 0.0, 0.5)}; "
            f"overhead {spread(points[:, 2], 0.0, 0.5)}"
        )


def spread(values: Floats, centre: float, near: float) -> str:
    """Least, most and mean, and how many are within the target."""
    within = int((np.abs(values - centre) <= near).sum())
    return (
        f"{values.min():.3f} to {values.max():.3f}, mean {values.mean():.3f}, "
        f"{within} of {len(values)} within {near:g}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
