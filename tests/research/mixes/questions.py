"""The questions of the sweep: presets x limits x quotas x how the job runs."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import chain, zip_longest
from zlib import crc32

from recommender.catalogs.catalog import Catalog
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, QuotaLimit
from tests.speed.optimiser import quotas_of

HOUR_S = 3600.0
DAY_S = 24.0 * HOUR_S
TWICE = 2.0  # deadline, of the fastest plan under the quotas
MORE = 1.3  # budget, of the cheapest plan under the quotas
LIMITS = ("24h", "2x fastest", "1.3x cheapest")
# Asked without quotas, of jobs as they are: --max-overhead next to a deadline.
OVERHEADS = {"overhead 2%": 0.02, "overhead 5%": 0.05}
OVERHEAD_LIMITS = tuple(f"{due}, {most}" for due in LIMITS[:2] for most in OVERHEADS)
VCPUS = {"96 vCPU": 96.0, "192 vCPU": 192.0, "384 vCPU": 384.0}
QUOTAS = ("none", *VCPUS, "small account")
RUNS_AS = ("default", "gang")
MIXES_SEARCHED = "mixes searched"  # without quotas mixes are not searched unless asked for
# Quotas that AWS gives a small account on its first request (assumed): one machine of eight A100
# or half of one of eight H100, and four small machines with a GPU. Not listed: none.
SMALL_ACCOUNT = {
    ("Running On-Demand P instances", "on_demand"): 96.0,
    ("All P4, P3 and P2 Spot Instance Requests", "spot"): 96.0,
    ("All P5 Spot Instance Requests", "spot"): 192.0,
    ("All P6 Spot Instance Requests", "spot"): 0.0,
    ("Running On-Demand G and VT instances", "on_demand"): 64.0,
    ("All G and VT Spot Instance Requests", "spot"): 64.0,
    ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "on_demand"): 64.0,
    ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", "spot"): 64.0,
}


@dataclass(frozen=True, slots=True)
class Question:
    """One question, by its words."""

    preset: str
    limits: str  # of LIMITS or OVERHEAD_LIMITS
    quotas: str  # of QUOTAS
    runs_as: str  # of RUNS_AS, or MIXES_SEARCHED

    @property
    def key(self) -> str:
        """Its name in files and on the command line."""
        return f"{self.preset} | {self.limits} | {self.quotas} | {self.runs_as}"


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a preset needs under quotas alone, frozen so that all versions are asked alike."""

    preset: str
    quotas: str
    fastest_s: float
    cheapest_usd: float


@cache
def anchors() -> tuple[Anchor, ...]:
    """The anchors of presets and quotas, `anchors.csv`; the cheapest is that of 95 % of runs."""
    text = files("tests.research.mixes").joinpath("anchors.csv").read_text("utf-8")
    return tuple(
        Anchor(
            row["preset"],
            row["quotas"],
            float(row["fastest_h"]) * HOUR_S,
            float(row["cheapest_usd"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


def questions(only: tuple[str, ...] = ()) -> Iterator[Question]:
    """All questions whose key holds every one of some words; quotas in the outer loop."""
    for quotas in QUOTAS:
        for runs_as in (*RUNS_AS, MIXES_SEARCHED) if quotas == "none" else RUNS_AS:
            limited = OVERHEAD_LIMITS if (quotas, runs_as) == ("none", "default") else ()
            for anchor in (each for each in anchors() if each.quotas == quotas):
                for limits in (*LIMITS, *limited):
                    question = Question(anchor.preset, limits, quotas, runs_as)
                    if all(word in question.key for word in only):
                        yield question


def sample(asked: Iterable[Question], most: int) -> list[Question]:
    """As many of each class of limits, quotas and how the job runs, in turn; presets by chance."""
    classes: dict[tuple[str, str, str], list[Question]] = {}
    for each in asked:
        classes.setdefault((each.limits, each.quotas, each.runs_as), []).append(each)
    drawn = [sorted(found, key=_draw) for found in classes.values()]
    turns = chain.from_iterable(zip_longest(*drawn))
    return [each for each in turns if each is not None][:most]


def _draw(question: Question) -> int:
    """A number that is the same in every run."""
    return crc32(question.key.encode())


def job_of(question: Question) -> Job:
    """The job; a gang starts again only with all its machines."""
    job = find_job(question.preset)
    return replace(job, elastic=False) if question.runs_as == "gang" else job


def limits_of(question: Question) -> Limits:
    """The limits in figures."""
    anchor = next(
        each
        for each in anchors()
        if (each.preset, each.quotas) == (question.preset, question.quotas)
    )
    due, _, overhead = question.limits.partition(", ")
    limits = {
        "24h": Limits(deadline_s=DAY_S),
        "2x fastest": Limits(deadline_s=TWICE * anchor.fastest_s),
        "1.3x cheapest": Limits(budget_usd=MORE * anchor.cheapest_usd),
    }[due]
    return replace(limits, max_overhead=OVERHEADS.get(overhead))


def choice_of(question: Question, catalog: Catalog) -> Choice:
    """The quotas; a small account is one of AWS."""
    if question.quotas == "none":
        return Choice(mix="yes") if question.runs_as == MIXES_SEARCHED else Choice()
    if question.quotas in VCPUS:
        return Choice(quotas=quotas_of(catalog, VCPUS[question.quotas]), quotas_known=True)
    limits = tuple(
        QuotaLimit("aws", name, "spot" if market == "spot" else "on_demand", "", "vcpu", vcpus)
        for (name, market), vcpus in SMALL_ACCOUNT.items()
    )
    return Choice(providers=("aws",), quotas=limits, quotas_known=True)
