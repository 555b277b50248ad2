"""Random questions of the kinds that people ask, on the shipped catalog."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import exp, log
from random import Random

from recommender.catalogs.catalog import Catalog
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.market.offer_facts import Pool
from recommender.optimize.candidate import Candidate
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.baselines import proof_of
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from tests.research.leads import NEW, NOW, SEED, Lead, first_of
from tests.research.mixes.questions import anchors

PROVIDERS = ("aws", "gcp", "azure")
LIMITED = (
    ("deadline",) * 3 + ("budget",) * 2 + ("hourly",) * 2 + ("overhead", "deadline and hourly")
)
MARKETS = ("any",) * 5 + ("spot", "on_demand")
CHANCES = (0.95,) * 5 + (0.5, 0.8, 0.9, 0.99)
MACHINES = (16,) * 5 + (1, 2, 4, 8)
OVERHEADS = (0.02, 0.05, 0.1)
TRIES = 3  # most questions under narrow limits have no answer
# Times the fastest and the cheapest plan of the preset without quotas, and USD per hour.
DEADLINES, BUDGETS, HOURLY = (1.5, 60.0), (1.02, 5.0), (1.0, 300.0)


@dataclass(frozen=True)
class Asking:
    """A question on a catalog, and its answer."""

    job: Job
    limits: Limits
    choice: Choice
    catalog: Catalog
    progress: Progress = NEW

    @cached_property
    def search(self) -> PlanPool:
        """The search behind the answer."""
        problem = planning_problem(
            self.job, self.limits, self.choice, self.catalog, self.progress, NOW, SEED
        )
        return PlanPool(problem)

    @cached_property
    def lead(self) -> Lead | None:
        """The plan that leads; None where none meets the limits."""
        return first_of(self.search)

    @property
    def pools(self) -> list[Pool]:
        """What the plans rent that a search for the answer kept."""
        found = {p for c in self.search.best.plans for p in self._pools_of(c)}
        return sorted(found, key=lambda pool: pool.rows)

    def _pools_of(self, candidate: Candidate) -> tuple[Pool, ...]:
        return self.search.builder.pools_of(candidate)

    @property
    def proven(self) -> bool:
        """Whether every cluster of one type was simulated that may be better."""
        return proof_of(self.search).status == "optimal"

    @property
    def words(self) -> str:
        """The question, as far as it differs from the simplest."""
        job = self.job.name
        for name in ("elastic", "setup_s"):
            value = getattr(self.job, name)
            job += "" if value is None else f" {name}={value}"
        parts = (_words(self.limits, Limits()), _words(self.choice, Choice()))
        return "; ".join(part for part in (job, *parts, _words(self.progress, NEW)) if part)


def _words(one: object, default: object) -> str:
    said = []
    for each in fields(one):  # type: ignore[arg-type]
        value = getattr(one, each.name)
        if each.name == "quotas" and value:
            said.append(f"{len(value)} quotas of {value[0].amount:g}")
        elif value != getattr(default, each.name):
            said.append(
                f"{each.name}={value:.6g}" if type(value) is float else f"{each.name}={value}"
            )
    return ", ".join(said)


def random_question(random: Random, catalog: Catalog) -> Asking:
    """A question that clusters of one type answer, or the last of a few that had no such answer."""
    asked = _drawn(random, catalog)
    for _ in range(TRIES):
        if asked.search.best.plans:
            break
        asked = _drawn(random, catalog)
    return asked


def _drawn(random: Random, catalog: Catalog) -> Asking:
    """A preset under some limits, with what people restrict besides."""
    anchor = random.choice([each for each in anchors() if each.quotas == "none"])
    limited = random.choice(LIMITED)
    limits = Limits(confidence=random.choice(CHANCES), max_machines=random.choice(MACHINES))
    if limited == "budget":
        limits = replace(limits, budget_usd=anchor.cheapest_usd * between(random, *BUDGETS))
    else:
        limits = replace(limits, deadline_s=anchor.fastest_s * between(random, *DEADLINES))
    if "hourly" in limited:
        limits = replace(limits, hourly_usd=between(random, *HOURLY))
    if limited == "hourly":
        limits = replace(limits, deadline_s=None)
    if limited == "overhead":
        limits = replace(limits, max_overhead=random.choice(OVERHEADS))
    providers = random.choice([(), (), *((name,) for name in PROVIDERS)])
    choice = Choice(providers=providers, market=random.choice(MARKETS))  # type: ignore[arg-type]
    return Asking(find_job(anchor.preset), limits, choice, catalog)


def between(random: Random, least: float, most: float) -> float:
    """A number of which the logarithm is uniform."""
    return exp(random.uniform(log(least), log(most)))
