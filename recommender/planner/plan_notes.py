"""The notes of a plan: what to know of it besides its figures."""

from recommender.job.job import Job
from recommender.market.offer_facts import HOURS_PER_MONTH, Facts, Pool
from recommender.plan.plan import OnDemandFacts, StepSplit
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.text import duration, percent, share, usd

SEEN_IN_CHANCE = 0.005  # of the limits' chance: what rests on on-demand capacity is worth a note
FULL = 0.85  # of a GPU's memory, from which on a plan says so
UNPAID = 0.5  # of a plan's cost, from which on free spot time is worth a note


def capacity_note(facts: OnDemandFacts | None, chance: float) -> tuple[str, ...]:
    """How much of the chance rests on machines that may not be there, where that is seen in it."""
    if facts is None or facts.chance_if_at_once - chance < SEEN_IN_CHANCE:
        return ()
    if share(facts.chance_if_at_once) == share(chance):  # as printed
        return ()
    late = f"in {percent(facts.late)}"
    if facts.needed >= 1.0:
        first = f"{late} of the runs the machines"
    else:
        needed = f"on-demand machines are needed in {percent(facts.needed)} of the runs"
        first = f"{needed}; {late} they"
    return (
        f"{first} are not available within an hour (assumed). If they were always available at "
        f"once, {share(facts.chance_if_at_once)} of the runs would meet the limits",
    )


def commitment_note(facts: Facts, pool: Pool) -> tuple[str, ...]:
    """From how many hours a month on a year's commitment costs less than the plan's price."""
    usd_per_hour = facts.commitment_usd(pool.type)
    listed = facts.listed_usd(pool.rows[0])
    if usd_per_hour is None or usd_per_hour >= listed:
        return ()
    hours = HOURS_PER_MONTH * usd_per_hour / listed
    return (
        f"a one-year commitment to {pool.type.instance_type} ({usd(usd_per_hour)} USD/h) pays from "
        f"{hours:,.0f} hours of it a month on",
    )


def batch_note(job: Job, gpus: int) -> tuple[str, ...]:
    """How large the batch of all GPUs is, where it grows with them."""
    if not job.batch_per_gpu:
        return ()
    return (f"global batch {job.batch_on(gpus):,.0f}: {job.global_batch:,} on each GPU",)


def memory_note(job: Job, step: StepSplit, gpus: int, safer: str) -> tuple[str, ...]:
    """How full the memory of a GPU is, with a setting that is sure to fit, and what must be set."""
    notes = []
    if step.memory_share > FULL:
        sure = f"{safer} is sure to fit" if safer else "more GPUs, or larger ones, are sure to fit"
        notes.append(
            f"fills {percent(step.memory_share)} of each GPU's memory and may run out; {sure}"
        )
    whole = 2.0 * job.trainable_parameters * (1.0 - 1.0 / gpus) / step.memory_gib / 2**30
    divided = step.sharding in ("fsdp", "hsdp") and step.accumulation > 1
    if divided and step.memory_share * (1.0 + whole) > FULL:
        notes.append(
            "fits if FSDP reduces gradients in every micro-batch (accelerate: sync_each_batch: "
            f"true, not its default): else each GPU holds {whole * step.memory_gib:.0f} GiB more"
        )
    return tuple(notes)


def servers_note(servers: int, usd_per_hour: float) -> tuple[str, ...]:
    """That parameter servers are machines that the user has to start."""
    if not servers:
        return ()
    plural = "a CPU machine" if servers == 1 else f"{servers} CPU machines"
    paid = f"{usd(usd_per_hour)} USD/h of the bill"
    paid = paid if usd_per_hour else "not in the bill: no price is known"
    return (f"{plural} on demand for parameter servers, {paid}",)


def elastic_note(inputs: PathInputs, paths: Paths) -> tuple[str, ...]:
    """What the on-demand machines of an elastic cluster do while the others are away."""
    speed = float(inputs.elastic_share[0])
    if speed <= 0.0:
        return ()
    done = speed * float(paths.alone_s.mean()) / max(float(paths.work_s.mean()), 1.0)
    return (
        f"elastic: while spot is away the on-demand machines train on at {speed:.0%} of the speed; "
        f"they do {done:.0%} of the work alone",
    )


def free_time_note(inputs: PathInputs, paths: Paths) -> tuple[str, ...]:
    """That much of a plan's spot time is free, where runs end within their free first hour.

    The rule is the provider's, but no recording shows it for a machine reclaimed dozens of times.
    """
    if inputs.free_s[0] <= 0.0:
        return ()
    up_s = float((paths.running_s - paths.fallback_s).mean())
    hours = max(up_s - float(paths.spot_s.mean()), 0.0) / 3600.0
    value, cost = hours * float(inputs.spot_usd_per_hour[0]), float(paths.expected_usd.mean())
    if value < UNPAID * cost:
        return ()
    return (
        f"{duration(3600.0 * hours)} on spot are not billed: the provider charges nothing for a "
        f"run that it ends within {duration(float(inputs.free_s[0]))}; charged, they would cost "
        f"{usd(value)} USD more. Do not count on it for many short runs",
    )
