"""What is in the way where no machine that is allowed can train the job at all."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from recommender.limits import Choice
from recommender.question import Question
from recommender.units import format_gpu

MOST_MACHINES = 128  # looked at for a job that does not fit
# What a user may have narrowed: the flag, and the field of `Choice` behind it.
NARROWED = (
    ("--gpu", "gpus"), ("--instance", "instances"), ("--provider", "providers"),
    ("--region", "regions"), ("--zone", "zones"), ("--deny", "deny"), ("--market", "market"),
    ("--accelerator", "accelerator"), ("--arch", "arch"), ("--quoted-only", "quoted_only"),
)  # fmt: skip
HARDER = (("--checkpoint-to", "checkpoint_to"), ("--failover", "failover"))  # keep plans away only


def fits(question: Question) -> bool:
    """Whether some cluster of one type can train the job: computes so, and has the memory."""
    return bool(question.rows) and bool(np.isfinite(question.step_s).any())


def in_the_way(question: Question) -> tuple[str, ...]:
    """Which flag alone keeps the job from being trained; the first sentence says that it does."""
    of_the_job = (_sharding(question), _precision(question))
    found = tuple(each for each in of_the_job if each)
    if not found:
        found = tuple(each for each in (_machines(question), *_choices(question)) if each)
    most = question.limits.max_machines
    up_to = "no machine" if most == 1 else f"no cluster of up to {most} machines"
    first = (f"{up_to} among those allowed can train this job",) if question.allowed.rows else ()
    return (*first, *(found or ("more than one flag is in the way: leave several out",)))


def _sharding(question: Question) -> str:
    job = question.job
    if job.sharding == "auto" or not fits(replace(question, job=replace(job, sharding="auto"))):
        return ""
    why = "needs a transformer, whose layers it cuts" if not job.layers else "does not fit"
    return f"--sharding {job.sharding} {why}; --sharding auto leaves machines that can"


def _precision(question: Question) -> str:
    job = question.job
    if job.precision == "mixed" or not fits(replace(question, job=replace(job, precision="mixed"))):
        return ""
    return f"--precision {job.precision} is in the way; --precision mixed leaves machines that can"


def _machines(question: Question) -> str:
    limits, most = question.limits, question.limits.max_machines
    while most < MOST_MACHINES:
        most = min(2 * most, MOST_MACHINES)
        if fits(replace(question, limits=replace(limits, max_machines=most))):
            return f"--max-machines {limits.max_machines} is too few; {most} are enough"
    return ""


def _choices(question: Question) -> list[str]:
    return [
        f"{typed} leaves no machine that can"
        for typed, _, wider in wider_choices(question.choice, NARROWED)
        if fits(replace(question, choice=wider))
    ]


def wider_choices(
    choice: Choice, flags: tuple[tuple[str, str], ...] = (*NARROWED, *HARDER)
) -> Iterator[tuple[str, str, Choice]]:
    """Each flag that narrows a choice, as typed and by its name, with the choice without it."""
    usual = Choice()
    for flag, name in flags:
        if getattr(choice, name) != getattr(usual, name):
            wider = replace(choice, **{name: getattr(usual, name)})
            yield _typed(flag, name, choice), flag, wider


def _typed(flag: str, name: str, choice: Choice) -> str:
    value = getattr(choice, name)
    if name == "gpus":
        return f"{flag} {', '.join(format_gpu(wish) for wish in value)}"
    if isinstance(value, bool):
        return flag
    words = value if isinstance(value, str) else ", ".join(value)
    return f"{flag} {words.replace('on_demand', 'on-demand')}"
