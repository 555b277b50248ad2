"""What is told of a plan, against the second simulator: by hand, some minutes.

    python -P tests/run.py tests.research.judge [RUNS]

The best three plans of presets within 24 h and 48 h, without and with a limit on checkpoint
overhead (with which slower fallbacks are tried), each by 20,000 runs of
`tests/recommender/simulation/events.py`.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits
from recommender.planner.plan_builder import Evaluated
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from recommender.planner.selection import ranked_plans
from tests.recommender.simulation.agreement import by_events
from tests.research.leads import NEW, NOW, SEED, words
from tests.shipped import snapshot

JOBS = ("whisper-large", "llama3-8b-lora", "llama3-8b-sft", "gpt2-xl", "t5-3b", "resnet50-imagenet")
OVERHEADS = (None, 0.01, 0.05)
HOURS = (24.0, 48.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A plan: cost in USD, chance and overhead, told and by events."""

    question: str
    plan: str
    speed: float  # of its fallback, relative to the cluster; 0: none
    told: tuple[float, float, float]
    events: tuple[float, float, float]

    def __str__(self) -> str:
        (usd, chance, lost), (usd_2, chance_2, lost_2) = self.told, self.events
        return (
            f"| {self.question} | {self.plan} | {self.speed:.2f} | {usd:,.2f} | {usd_2 / usd:.3f} "
            f"| {chance:.2%} | {100 * (chance - chance_2):+.2f} | {lost:.2%} | {lost_2:.2%} |"
        )


def judged(search: PlanPool, question: str, one: Evaluated, runs: int) -> Row:
    """A plan by both simulations."""
    limits, inputs = search.problem.limits, search.builder.details(one.candidate).one_plan
    told = one.plan.estimate
    paths = by_events(inputs, limits.deadline_s, runs, f"judge {question}")
    lost = float(paths["lost_work_s"].mean() / paths["work_s"].mean())
    in_time = float(np.mean(paths["time_s"] <= (limits.deadline_s or np.inf)))
    return Row(
        question,
        words(one.plan),
        float(inputs.fallback_speed[0]),
        (told.cost.mean, told.chance, told.overhead),
        (float(paths["expected_usd"].mean()), in_time, lost),
    )


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
                for one in ranked_plans(search, 3).plans:
                    yield judged(search, question, one, runs)


def main(runs: int = 20_000) -> None:
    """Print all rows, then what they differ by."""
    found = []
    for row in rows(runs):
        found.append(row)
        print(row, flush=True)
    usd = np.array([row.events[0] / row.told[0] for row in found])
    points = np.array([100.0 * (row.told[1] - row.events[1]) for row in found])
    lost = np.array([100.0 * (row.told[2] - row.events[2]) for row in found])
    print(
        f"{len(found)} plans, {sum(0.0 < row.speed < 1.0 for row in found)} with slower fallbacks: "
        f"cost x {usd.min():.3f} to {usd.max():.3f}, mean {usd.mean():.3f}; chance "
        f"{points.min():+.2f} to {points.max():+.2f} points, mean {points.mean():+.2f}; "
        f"overhead {lost.min():+.2f} to {lost.max():+.2f} points"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
