"""What to run: one description of a plan that every target writes in its own words."""

import math
import re
from dataclasses import replace
from itertools import groupby

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import CLOUDS, ProviderInfo
from recommender.job.job import Job
from recommender.performance.checkpoint import (
    USUAL_S,
    crash_save_interval_s,
    disk_held_bytes,
    transfer_of,
    usual_at_least,
)
from recommender.plan.as_run import lacking
from recommender.plan.limits import Limits
from recommender.plan.plan import AsRun, Checkpointing, Fallback, Machines, Plan, StepSplit

HOUR_S = 3600.0
_NAME = 40  # characters: labels of Google Cloud and clusters of SkyPilot take at least these
USUAL_DISK_GB = 256  # SkyPilot's default; fees count 100 GiB (recommender.market.offer_facts)
_SYSTEM_GB = 100.0  # image, packages and code
# A run without a limit is stopped after so many times the time that 1 run in 100 exceeds. With the
# widest spread of ln speed, 0.6 (priors.csv, 2026-11), 1 in 60,000 takes longer, or one that hangs.
CAP_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Location:
    """A region where machines are requested, by names that can be typed in any account."""

    region: str
    zones: tuple[str, ...] = ()  # names; none: any zone of the region
    zone_ids: tuple[str, ...] = ()  # of AWS, where the names of zones differ between accounts
    usd_per_hour: float = math.nan  # of one machine, at the first of these zones


@dataclass(frozen=True, slots=True)
class RunDescription:
    """A plan as it is run: machines, where they are requested, checkpoints, fallback, limits."""

    name: str  # of the job, safe in labels and file names
    plan: Plan
    which: str  # "plan 1", "the sensible plan"
    job: Job
    limits: Limits
    tool: str  # "recommend 0.1.0"
    catalog: str  # version
    slowest_save_s: float = 0.0  # of a checkpoint to the target's own disk, where that is slower
    fallback_work_s: float | None = None  # of the machines that take over

    @property
    def machines(self) -> Machines:
        """The machines that train, or the first kind of a mix."""
        return self.plan.machines[0]

    @property
    def mixed(self) -> bool:
        """Whether machines of several types or markets train together."""
        return self.plan.mixed

    @property
    def provider(self) -> ProviderInfo | None:
        """The cloud that rents them; None for machines of one's own."""
        return CLOUDS.get(self.machines.provider)

    @property
    def rents_from(self) -> str:
        """Who rents them out, as people write it: Google Cloud's label, or "own"."""
        return self.provider.label if self.provider else self.machines.provider

    @property
    def nodes(self) -> int:
        """How many machines train."""
        return sum(m.count for m in self.plan.machines)

    @property
    def trains_on_several(self) -> bool:
        """Whether several machines train together, those of the plan or of its fallback."""
        later = self.on_fallback
        return self.nodes > 1 or (later is not None and later.nodes > 1)

    @property
    def spot(self) -> bool:
        """Whether any of them is on spot."""
        return any(m.market == "spot" for m in self.plan.machines)

    @property
    def fallback(self) -> Fallback | None:
        """What takes over when time runs short."""
        return self.plan.fallback

    @property
    def on_fallback(self) -> "RunDescription | None":
        """The job on the machines that take over; None where nothing does."""
        fallback = self.plan.fallback
        if fallback is None:
            return None
        estimate = self.plan.estimate
        plan = replace(
            self.plan,
            machines=fallback.machines,
            sites=fallback.sites,
            fallback=None,
            usd_per_hour=fallback.usd_per_hour,
            gpus=sum(m.count * m.gpus for m in fallback.machines),
            estimate=replace(estimate, step=fallback.step or estimate.step),
            # On demand: for crashes only, as the estimate counts.
            checkpointing=replace(self.plan.checkpointing, path="none"),
            in_bucket=None,
        )
        return replace(self, plan=plan, fallback_work_s=self.work_s / fallback.speed)

    @property
    def step(self) -> StepSplit:
        """The step in the form that a script gets: the machines' batch in passes of one size.

        None is larger than the plan's own, and a pipeline is filled as the plan counts on.
        """
        step = self.plan.estimate.step
        gpus = sum(m.count * m.gpus for m in self.plan.machines)
        samples = math.ceil(float(self.job.batch_on(gpus)) * step.gpus_per_copy / gpus)
        fewest = min(step.accumulation, step.stages)
        passes = even_passes(samples, step.micro_batch, fewest)
        return replace(step, micro_batch=math.ceil(samples / passes), accumulation=passes)

    @property
    def disk_gb(self) -> int:
        """A machine's disk: the system, checkpoints, and data that are copied to it first."""
        data = self.job.data
        staged_gb = math.ceil(data.gib * 2**30 / 1e9) if data.read == "stage" else 0
        return max(USUAL_DISK_GB, math.ceil(_SYSTEM_GB) + self.checkpoints_gb + staged_gb)

    @property
    def checkpoints_gb(self) -> int:
        """What a machine's disk holds of checkpoints at most."""
        later = self.on_fallback
        nodes = self.nodes if later is None else min(self.nodes, later.nodes)
        writers = 1 if self.job.writer == "chief" else nodes
        return math.ceil(disk_held_bytes(self.job.checkpoint_bytes, writers) / 1e9)

    @property
    def locations(self) -> tuple[Location, ...]:
        """Where machines are requested, in order: the failover list by region."""
        return locations_of(self.plan)

    @property
    def saving(self) -> Checkpointing:
        """How it saves: to a bucket, whatever receivers of its own the plan counts on."""
        return self.plan.in_bucket or self.plan.checkpointing

    @property
    def usd_per_hour(self) -> float:
        """List price of all that a file rents: not the plan's own receivers of checkpoints."""
        receivers = self.plan.checkpointing.machines if self.plan.in_bucket else ()
        return self.plan.usd_per_hour - sum(m.count * m.usd_per_hour for m in receivers)

    @property
    def counts_on_checkpoints(self) -> bool:
        """Whether the estimate holds what saves cost: where spot machines train."""
        return self.saving.path != "none"

    @property
    def checkpoint_interval_s(self) -> float:
        """Between two checkpoints: the plan's, or the shortest that the target's disk can keep."""
        if not self.counts_on_checkpoints:
            tool = transfer_of(self.machines.provider)
            crash_s = crash_save_interval_s(self.job, self.nodes, self.plan.gpus, self.work_s, tool)
            return max(crash_s, usual_at_least(self.slowest_save_s, USUAL_S))
        planned_s, slow_s = self.saving.interval_s, self.slowest_save_s
        return usual_at_least(slow_s, USUAL_S) if slow_s > planned_s else planned_s

    @property
    def safe_after_s(self) -> float:
        """From a save to a checkpoint in the bucket; 0 where the plan counts on none."""
        return self.saving.lag_s

    def as_run_by(self, target: str, *extra: str) -> AsRun | None:
        """What the plan comes to there; None where the target does all of it."""
        lacks = lacking(target, self.plan, *extra)
        return next((each for each in self.plan.as_run if each.lacking == lacks), None)

    @property
    def work_s(self) -> float:
        """Training time of the whole job on these machines, nothing lost, as predicted."""
        if self.fallback_work_s is not None:
            return self.fallback_work_s
        return self.job.seconds_on(self.plan.gpus, self.plan.estimate.step.step_s)

    @property
    def longest_s(self) -> float:
        """How long the job may run: to the deadline, or until it can only hang."""
        if self.limits.deadline_s is not None:
            return math.floor(self.limits.deadline_s)
        paid_s = 0.0 if self.budget_usd is None else self._seconds_of(self.budget_usd)
        return _six_digits(max(CAP_FACTOR * self.usual_s, paid_s))

    @property
    def budget_usd(self) -> float | None:
        """What its machines may cost; None if nothing limits that."""
        return self.limits.budget_usd if self.usd_per_hour > 0 else None

    @property
    def usual_s(self) -> float:
        """The time that 1 run in 100 exceeds."""
        time = self.plan.estimate.time
        return _six_digits(time.p99 if math.isfinite(time.p99) else time.p95)

    def _seconds_of(self, usd: float) -> float:
        """How long so many USD pay for the plan's machines."""
        return usd / self.usd_per_hour * HOUR_S

    @property
    def price_date(self) -> str:
        """The oldest quote among the machines of the plan."""
        fallback = () if self.fallback is None else self.fallback.machines
        return min(m.as_of for m in (*self.plan.machines, *fallback))


def _six_digits(seconds: float) -> float:
    """Rounded as in the JSON, up to a second: so a saved answer gives the same files."""
    return math.ceil(float(f"{seconds:.6g}"))


def description_of(
    plan: Plan,
    which: str,
    job: Job,
    limits: Limits,
    *,
    tool: str,
    catalog: str,
) -> RunDescription:
    """Describe a plan as it is run."""
    return RunDescription(safe_name(job.name), plan, which, job, limits, tool, catalog)


def safe_name(name: str) -> str:
    """A name of letters, digits and hyphens that begins with a letter and ends with none."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_NAME].strip("-")
    return plain if plain[:1].isalpha() else f"train-{plain}".strip("-")


def locations_of(plan: Plan) -> tuple[Location, ...]:
    """The failover list by region; where there is none, the one region."""
    if not plan.sites:
        return tuple(
            _location(first.provider, first.region, (first.zone,), first.usd_per_hour)
            for first in plan.machines[:1]
        )
    provider, found = plan.machines[0].provider, []
    # Price lists name regions in which no zone has the type: they are left out where others do.
    zoned = tuple(site for site in plan.sites if site.zone)
    for region, sites in groupby(zoned or plan.sites, key=lambda site: site.region):
        listed = tuple(sites)
        zones = tuple(site.zone for site in listed)
        found.append(_location(provider, region, zones, listed[0].usd_per_hour))
    return tuple(found)


def _location(provider: str, region: str, zones: tuple[str, ...], usd: float) -> Location:
    listed = tuple(zone for zone in zones if zone)
    ids = provider in CLOUDS and CLOUDS[provider].zones == "id"
    return Location(region, () if ids else listed, listed if ids else (), usd)


def even_passes(samples: int, most: int, least: int = 1) -> int:
    """The fewest passes of equal size that make so many samples; at least `least` passes.

    None is of more than `most` samples. Trainers know one size: of 64 samples 5 passes of 13 would
    make a batch of 65, 8 of 8 make 64. Where that takes more than twice as many passes, the last
    one is smaller than the others.
    """
    fewest = max(math.ceil(samples / most), least)
    return next((n for n in range(fewest, 2 * fewest + 1) if samples % n == 0), fewest)
