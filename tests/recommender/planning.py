"""A catalog of a few machines to plan on, and short ways to ask."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recommender.api import calls
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.load import load
from recommender.catalogs.serialize import write_catalog
from recommender.job.job import Job
from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Machines, Plan
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from tests.catalogs.small import achieved, gpu, machine, offer, spot, tables
from tests.recommender.planned import planned_once

recommend = planned_once(calls.recommend, {})  # `recommender.recommend`, each question once

NOW = datetime(2026, 9, 1, tzinfo=UTC)
HOUR = 3600.0
DAY = Limits(deadline_s=24 * HOUR, max_machines=6)

# name: GPUs, vCPUs, memory GiB, network Gbit/s, USD per hour on demand, quota family
AWS = {
    "g4dn.xlarge": (1, 4, 16.0, 5.0, 0.526, "g"),
    "g4dn.2xlarge": (1, 8, 32.0, 10.0, 0.752, "g"),
    "g4dn.12xlarge": (4, 48, 192.0, 50.0, 3.912, "g"),
}
GCP = {
    "n1-standard-8+1xT4": (1, 8, 30.0, 16.0, 0.73, "t4"),
    "n1-standard-16+2xT4": (2, 16, 60.0, 32.0, 1.46, "t4"),
}


def _machines() -> list[Any]:
    rows = []
    for provider, shapes in (("aws", AWS), ("gcp", GCP)):
        for name, (gpus, vcpus, memory, network, _, family) in shapes.items():
            rows.append(
                machine(
                    provider=provider,
                    instance_type=name,
                    family=name.split(".")[0].split("+")[0],
                    gpus=gpus,
                    vcpus=vcpus,
                    memory_gib=memory,
                    network_gbit_per_s=network,
                    intra_kind="pcie" if gpus > 1 else "",
                    intra_gb_per_s=6.0 if gpus > 1 else None,
                    quota_family=family,
                )
            )
    return rows


def _offers() -> list[Any]:
    rows = []
    for name, (*_, usd, _) in AWS.items():
        for region, dearer in (("us-east-1", 1.0), ("us-west-2", 1.0), ("eu-west-1", 1.12)):
            rows.append(offer(instance_type=name, region=region, usd_per_hour=usd * dearer))
            for zone, share in ((f"{region}-a", 0.38), (f"{region}-b", 0.45)):
                price = usd * dearer * share
                rows.append(spot(instance_type=name, region=region, zone=zone, usd_per_hour=price))
    for name, (*_, usd, _) in GCP.items():
        here: dict[str, Any] = {"provider": "gcp", "instance_type": name, "region": "us-central1"}
        rows.append(offer(**here, usd_per_hour=usd))
        rows.append(spot(**here, zone="", usd_per_hour=usd * 0.4, interruption_range=None))
    return rows


def written(folder: Path) -> Catalog:
    """The small catalog, written and read as a user's own."""
    content = tables() | {"offers": _offers(), "instance_types": _machines()}
    content["gpus"], content["achieved"] = [gpu()], [achieved()]
    write_catalog(folder, content)
    return load(folder)


def with_prices(catalog: Catalog, instance_type: str, factor: float) -> Catalog:
    """The catalog with one machine at other prices."""
    o = catalog.offers
    usd = [
        price * factor if name == instance_type else price
        for name, price in zip(o.instance_type, o.usd_per_hour, strict=True)
    ]
    return replace(catalog, offers=replace(o, usd_per_hour=array("d", usd)))


@cache
def small() -> Catalog:
    """The small catalog, once per process."""
    with TemporaryDirectory() as folder:
        return written(Path(folder))


def job(epochs: str = "60", name: str = "resnet50-imagenet") -> Job:
    """A job of some hours on these machines."""
    return find_job(name, flags=JobFlags(epochs=epochs))


def search_of_day(choice: Choice = Choice()) -> PlanPool:  # noqa: B008 (frozen)
    """The searches of that job on the small catalog, when it has a day."""
    return PlanPool(planning_problem(job(), DAY, choice, small(), Progress(), NOW, 7))


def ask(
    catalog: Catalog, what: Job | None = None, choice: Choice | None = None, **limits: Any
) -> Answer:
    """An answer at a fixed moment."""
    kept = {"max_machines": 6} | limits
    return recommend(what or job(), Limits(**kept), choice or Choice(), catalog=catalog, now=NOW)


def curve_of(answer: Answer) -> list[Plan]:
    """The curve of an answer without limits, but for plans that lead or stand in for one."""
    trio = answer.trio
    picked = set() if trio is None else {trio.elsewhere, *(pick.rank for pick in trio.picks)}
    return [plan for rank, plan in enumerate(answer.plans, 1) if rank not in picked]


def everything(answer: Answer) -> list[Plan]:
    """Every plan that an answer shows anywhere."""
    plans = [*answer.plans, *answer.baselines]
    plans += [step.plan for step in answer.sensitivity if step.plan]
    if answer.infeasible:
        plans += [step.plan for step in answer.infeasible.relaxed if step.plan]
        plans += [p for p in (answer.infeasible.fastest, answer.infeasible.cheapest) if p]
    return plans


def machines_of(plan: Plan) -> list[Machines]:
    """Every machine of a plan: its cluster, its fallback, its memory tier."""
    fallback = plan.fallback.machines if plan.fallback else ()
    return [*plan.machines, *fallback, *plan.checkpointing.machines]
