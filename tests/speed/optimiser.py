"""How long the planner takes once it is loaded. By hand:

    python tests/speed/optimiser.py             # thirty questions, quotas, no plan, many offers
    python tests/speed/optimiser.py --quotas    # mixes of types under quotas only, and their gaps
    python tests/speed/optimiser.py --quick     # ten questions only

Questions are presets under limits spread over what is possible. Many offers are the catalog's own
with prices changed a little, so that they compete. JSON on the last line.
"""

import argparse
import json
from array import array
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from random import Random
from statistics import median
from time import perf_counter, process_time

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog, Offers
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits, Progress, QuotaLimit
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from tests.shipped import snapshot

HOUR = 3600.0
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SEED = 1
SIZES = (10_000, 100_000)
JOBS = (
    "resnet50-imagenet", "bert-large-pretrain", "llama3-8b-lora", "llama3-8b-pretrain",
    "vit-l-imagenet", "gpt2-124m",
)  # fmt: skip
LIMITS = {
    "24h": Limits(deadline_s=24 * HOUR),
    "7d": Limits(deadline_s=168 * HOUR),
    "500 USD": Limits(budget_usd=500),
    "50 USD/h": Limits(hourly_usd=50),
    "48h 1000 USD": Limits(deadline_s=48 * HOUR, budget_usd=1000),
}
# vCPUs of every family of AWS, GCP and Azure (a twelfth as many GPUs where those are counted).
QUOTAS = {"96 vCPUs": 96.0, "192 vCPUs": 192.0, "384 vCPUs": 384.0}
IMPOSSIBLE = {
    "1 min": Limits(deadline_s=60),
    "1 USD": Limits(budget_usd=1),
    "0.02 USD/h": Limits(hourly_usd=0.02),
    "2h 60 USD/h, no spot": Limits(deadline_s=2 * HOUR, hourly_usd=60),
}


def asked(job: Job, limits: Limits, catalog: Catalog, choice: Choice) -> tuple[float, Answer]:
    """Seconds of one problem, and its answer."""
    start = perf_counter()
    answer = recommend(job, limits, choice, catalog=catalog)
    return perf_counter() - start, answer


def quotas_of(catalog: Catalog, vcpus: float) -> tuple[QuotaLimit, ...]:
    """The same quota for every family and market of every provider."""
    return tuple(
        QuotaLimit(
            provider=quota.provider,
            quota_family=quota.quota_family,
            market="spot" if quota.market == "spot" else "on_demand",
            region="",
            unit="gpu" if quota.unit == "gpu" else "vcpu",
            amount=vcpus // 12 if quota.unit == "gpu" else vcpus,
        )
        for quota in catalog.quotas
    )


def mixed(
    jobs: tuple[str, ...], catalog: Catalog, most: int | None = None
) -> Iterator[dict[str, object]]:
    """The choice of plans alone, mixes of types among them, under each limit and quota.

    Seconds are of the process, not of the clock.
    """
    asked = [(job, words, q) for q in QUOTAS for job in jobs for words in LIMITS]
    for name, words, quota in asked[:: max(len(asked) // most, 1) if most else 1]:
        choice = Choice(quotas=quotas_of(catalog, QUOTAS[quota]), quotas_known=True)
        problem = planning_problem(
            find_job(name), LIMITS[words], choice, catalog, Progress(), NOW, SEED
        )
        start = process_time()
        found = PlanPool(problem).best
        seconds = process_time() - start
        many = len(found.best.entries) if found.plans else 0
        print(
            f"{'quotas':10}{name:22}{words:14}{quota:10}{seconds:7.2f} s of the process, "
            f"best of {many} types",
            flush=True,
        )
        row = {"set": "quotas", "job": name, "limits": f"{words}, {quota}"}
        yield row | {"s": round(seconds, 3), "search_s": round(seconds, 3)}


def chosen(job: Job, limits: Limits, catalog: Catalog, choice: Choice) -> float:
    """Seconds of the choice of plans alone."""
    problem = planning_problem(job, limits, choice, catalog, Progress(), NOW, SEED)
    start = perf_counter()
    assert PlanPool(problem).best.simulated >= 0
    return perf_counter() - start


def grown(catalog: Catalog, size: int) -> Catalog:
    """The catalog with copies of its offers in made-up regions, prices up to a tenth different."""
    own, rng = catalog.offers, Random(SEED)
    more = max(0, size - len(own))
    rows = [rng.randrange(len(own)) for _ in range(more)]
    columns = {each.name: [getattr(own, each.name)[r] for r in rows] for each in fields(Offers)}
    columns["usd_per_hour"] = [usd * rng.uniform(0.9, 1.1) for usd in columns["usd_per_hour"]]
    copies = [f"-copy{1 + i // len(own)}" for i in range(more)]
    columns["region"] = [f"{r}{copy}" for r, copy in zip(columns["region"], copies, strict=True)]
    columns["zone"] = [z and f"{z}{copy}" for z, copy in zip(columns["zone"], copies, strict=True)]
    joined = {
        name: array("d", [*getattr(own, name), *column])
        if isinstance(getattr(own, name), array)
        else (*getattr(own, name), *column)
        for name, column in columns.items()
    }
    return replace(catalog, offers=Offers(**joined))  # type: ignore[arg-type]


def measured(
    jobs: tuple[str, ...], limits: dict[str, Limits], catalog: Catalog, label: str
) -> Iterator[dict[str, object]]:
    """One row per problem, printed as it is answered."""
    for name in jobs:
        for words, each in limits.items():
            choice = Choice(market="on_demand") if "no spot" in words else Choice()
            seconds, answer = asked(find_job(name), each, catalog, choice)
            alone = chosen(find_job(name), each, catalog, choice)
            first = answer.plans[0].machines[0] if answer.plans else None
            plan = f"{first.count}x {first.instance_type}" if first else answer.status
            print(
                f"{label:10}{name:22}{words:22}{seconds:7.2f} s {alone:6.2f} s  {plan}", flush=True
            )
            row = {"set": label, "job": name, "limits": words, "s": round(seconds, 3)}
            yield row | {"search_s": round(alone, 3)}


def summary(rows: list[dict[str, object]]) -> dict[str, float]:
    """Median and largest seconds."""
    seconds = [float(str(row["s"])) for row in rows]
    alone = [float(str(row["search_s"])) for row in rows]
    return {
        "questions": len(rows),
        "median_s": median(seconds),
        "max_s": max(seconds),
        "search_median_s": median(alone),
        "search_max_s": max(alone),
    }


def main() -> None:
    """Ask everything, end with JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--quotas", action="store_true")
    asks = parser.parse_args()
    quick, catalog = asks.quick, snapshot()
    asked(find_job(JOBS[0]), LIMITS["24h"], catalog, Choice())  # loads and caches, untimed
    jobs = JOBS[:2] if quick else JOBS
    sets = {}
    if not asks.quotas:
        sets["possible"] = list(measured(jobs, LIMITS, catalog, "possible"))
    sets["quotas"] = list(mixed(jobs, catalog, 10 if quick else None))
    if not quick and not asks.quotas:
        sets["no plan"] = list(measured(JOBS[:2], IMPOSSIBLE, catalog, "no plan"))
        for size in SIZES:
            label = f"{size // 1000}k"
            some = {"24h": LIMITS["24h"], "500 USD": LIMITS["500 USD"]}
            sets[label] = list(measured(JOBS[:1], some, grown(catalog, size), label))
    said = {name: summary(rows) for name, rows in sets.items()}
    print(json.dumps({"summary": said, "rows": [row for rows in sets.values() for row in rows]}))


if __name__ == "__main__":
    main()
