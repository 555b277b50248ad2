"""Plans of random offers files against every plan that they allow."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from recommender.catalogs.catalog import Catalog, extended
from recommender.inputs.offers_file import read_offers
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.ranking import ranked_plans
from tests.recommender.optimize.brute_force import Followed, every_plan
from tests.recommender.planning import HOUR
from tests.shipped import snapshot

NOW = datetime(2026, 11, 23, tzinfo=UTC)
TOLERANCE = 2e-3  # near-ties go to the simplest plan
# GPU, GPUs per machine, and about what one GPU costs an hour.
MACHINES = (
    ("T4", (1, 4), 0.4),
    ("A10G", (1, 4, 8), 1.0),
    ("L4", (1, 8), 0.8),
    ("L40S", (1, 4, 8), 1.8),
    ("V100", (1, 4, 8), 2.5),
    ("A100", (1, 8), 3.0),
    ("H100", (1, 8), 6.0),
)
JOBS = ("resnet18-cifar10", "resnet50-imagenet", "gpt2-124m", "whisper-large", "llama3-8b-lora")
LIMITED = ("deadline", "deadline", "budget", "hourly", "overhead", "both")


def offers_file(random: Random, path: Path) -> None:
    """Two to five machines, some of them spot, some of them few."""
    lines = ["label,gpu,gpus,usd_per_hour,market,count,network_gbit_per_s"]
    for number in range(random.randint(2, 5)):
        gpu, sizes, usd = random.choice(MACHINES)
        gpus, market = random.choice(sizes), random.choice(("spot", "on-demand"))
        price = usd * gpus * random.uniform(0.5, 1.5) * (0.4 if market == "spot" else 1.0)
        count = random.choice(("", "1", "2", "3"))
        network = random.choice(("", "10", "100", "400"))
        lines.append(f"m{number},{gpu},{gpus},{price:.4f},{market},{count},{network}")
    path.write_text("\n".join(lines) + "\n", "utf-8")


def problem_of(seed: int, catalog: Catalog, path: Path) -> Problem:
    """A job on the machines of a random file alone, under limits that some plans meet."""
    random = Random(seed)
    offers_file(random, path)
    memory = {gpu.gpu: gpu.memory_mib for gpu in catalog.gpus.values()}
    own = read_offers(path, memory, catalog.instance_types.values(), NOW.date())
    choice = Choice(providers=("own",), quotas=own.limits, mix="no")
    limits = Limits(max_machines=random.randint(1, 4), confidence=random.choice((0.8, 0.95, 0.99)))
    job, grown = find_job(random.choice(JOBS)), extended(catalog, own.hardware, own.offers)
    free = planning_problem(job, limits, choice, grown, Progress(), NOW, 7)
    return replace(free, limits=_limited(random, limits, list(every_plan(free))))


def _limited(random: Random, limits: Limits, plans: list[Followed]) -> Limits:
    """Limits around the figures of one of the plans without any; some are kept by none."""
    kind = random.choice(LIMITED)
    one = random.choice(plans) if plans else Followed("", 1.0, 1.0, HOUR)
    around = random.uniform(0.9, 2.5)
    if kind in ("deadline", "overhead", "both"):
        limits = replace(limits, deadline_s=around * one.time_s)
    if kind in ("budget", "both"):
        limits = replace(limits, budget_usd=around * one.cost_usd)
    if kind == "hourly":
        hourly = around * one.cost_usd / one.time_s * HOUR
        limits = replace(limits, hourly_usd=hourly)
    if kind == "overhead":
        limits = replace(limits, max_overhead=random.choice((0.02, 0.1)))
    return limits


def wrong(seed: int, catalog: Catalog, path: Path) -> str:
    """What is wrong with the answer to a random file, if anything."""
    problem = problem_of(seed, catalog, path)
    best = min(every_plan(problem), key=lambda plan: plan.goal, default=None)
    first = next(iter(ranked_plans(PlanPool(problem), 1).plans), None)
    if first is None or best is None:
        if first is None and best is None:
            return ""
        return f"no plan, but {best.words}" if first is None else "a plan where there is none"
    goal = first.time_s if problem.limits.goal == "time" else first.cost_usd
    fallback = first.plan.fallback  # its thresholds are chosen after the search
    simple = fallback is None or fallback.wait_above is None
    if simple and goal < best.goal * (1.0 - 1e-9):
        return f"{goal:.6g} is better than every plan: {best.goal:.6g}, {best.words}"
    if goal > best.goal * (1.0 + TOLERANCE):
        return f"{goal:.6g} leads, but {best.goal:.6g}: {best.words}"
    return ""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return snapshot()


@pytest.mark.parametrize("seed", [*range(9), 269])
def test_no_plan_of_an_offers_file_is_better(seed: int, catalog: Catalog, tmp_path: Path) -> None:
    assert not wrong(seed, catalog, tmp_path / "offers.csv")


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(25))
def test_no_plan_of_many_offers_files_is_better(
    chunk: int, catalog: Catalog, tmp_path: Path
) -> None:
    seeds = range(100 + 10 * chunk, 110 + 10 * chunk)
    found = {seed: wrong(seed, catalog, tmp_path / "offers.csv") for seed in seeds}
    assert not {seed: words for seed, words in found.items() if words}
