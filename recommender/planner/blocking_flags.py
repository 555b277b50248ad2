"""Finds the flag that prevents any plan, and what could be rented without it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from recommender.inputs.units import format_gpu
from recommender.performance.layouts import MIN_TOKENS, most_context
from recommender.plan.limits import Choice, Limits
from recommender.planner.problem import Problem

MAX_MACHINES = 128  # looked at for a job that does not fit
# What a user may have narrowed: the flag, and the field of `Choice` behind it.
NARROWED = (
    ("--gpu", "gpus"), ("--instance", "instances"), ("--provider", "providers"),
    ("--region", "regions"), ("--country", "countries"), ("--zone", "zones"), ("--deny", "deny"),
    ("--market", "market"),
    ("--accelerator", "accelerator"), ("--arch", "arch"), ("--quoted-only", "quoted_only"),
    ("--confidential", "confidential"),
)  # fmt: skip
HARDER = (("--checkpoint-to", "checkpoint_to"), ("--failover", "failover"))  # keep plans away only


def fits(problem: Problem) -> bool:
    """Whether some cluster of one type can train the job: it computes the precision and has the
    memory.
    """
    return bool(problem.rows) and bool(np.isfinite(problem.step_s).any())


def blocking_flags(problem: Problem) -> tuple[str, ...]:
    """The flag that alone prevents training; the first sentence says so."""
    found = tuple(_of_the_job(problem)) or tuple(_of_the_offers(problem))
    most, size = problem.limits.max_machines, "exactly" if problem.job.machines else "up to"
    none = "no machine" if most == 1 else f"no cluster of {size} {most} machines"
    allowed = problem.offers.allowed.rows
    first = (f"{none} among those allowed can train this job",) if allowed else ()
    return (*first, *(found or ("more than one flag rules machines out: leave several out",)))


def _of_the_job(problem: Problem) -> Iterator[str]:
    """What of the job's own flags keeps every machine away."""
    job, limits = problem.job, problem.limits

    def fits_with(**changes: Any) -> bool:
        return fits(problem.with_job(replace(job, **changes)))

    if job.machines:
        most = replace(limits, max_machines=max(limits.max_machines, Limits().max_machines))
        others = problem.under(most).with_job(replace(job, machines=0))
        able = 1 + np.flatnonzero(np.isfinite(others.step_s).any(axis=0)) if fits(others) else ()
        if len(able):
            nearest = min(able, key=lambda number: abs(number - job.machines))
            why = "few" if nearest > job.machines else "many"
            yield f"--machines {job.machines} is too {why}; {nearest} can train it"
    shares = most_context(job) > 1
    if job.sharding != "auto" and fits_with(sharding="auto"):
        why = "does not fit" if job.layers else "needs a transformer, whose layers it splits"
        if job.layers and job.sharding == "context" and not shares:
            why = f"shares sequences of {2 * MIN_TOKENS:,} tokens and more"
        yield f"--sharding {job.sharding} {why}; with --sharding auto some machines can"
    if job.sharding == "auto" and shares and fits_with(sharding="context"):
        yield (
            f"its sequences of {job.tokens_per_sample:,} tokens do not fit one GPU each; with "
            "--sharding context GPUs share them (code such as Megatron-LM, NeMo or torchtitan)"
        )
    if job.precision != "mixed" and fits_with(precision="mixed"):
        yield f"--precision {job.precision} excludes all machines; with --precision mixed some can"


def _of_the_offers(problem: Problem) -> Iterator[str]:
    """What of the flags about machines keeps every one away."""
    limits, most = problem.limits, problem.limits.max_machines
    while most < MAX_MACHINES:
        most = min(2 * most, MAX_MACHINES)
        if fits(problem.under(replace(limits, max_machines=most))):
            yield f"--max-machines {limits.max_machines} is too few; {most} are enough"
            break
    for typed, _, wider in wider_choices(problem.choice, NARROWED):
        if fits(problem.among(wider)):
            yield f"{typed} leaves no machine that can"


def wider_choices(
    choice: Choice, flags: tuple[tuple[str, str], ...] = (*NARROWED, *HARDER)
) -> Iterator[tuple[str, str, Choice]]:
    """Each flag that restricts the choice, as typed and by name, with the choice without it."""
    usual = Choice()
    for flag, name in flags:
        if getattr(choice, name) != getattr(usual, name):
            wider = replace(choice, **{name: getattr(usual, name)})
            yield _typed(flag, name, choice), flag, wider


def _typed(flag: str, name: str, choice: Choice) -> str:
    value = getattr(choice, name)
    if name == "gpus":
        return f"{flag} {', '.join(format_gpu(gpu_filter) for gpu_filter in value)}"
    if isinstance(value, bool):
        return flag
    words = value if isinstance(value, str) else ", ".join(value)
    return f"{flag} {words.replace('on_demand', 'on-demand')}"


def no_offers(problem: Problem) -> str:
    """Why no offer remains to plan with, first the reasons that are not the user's flags."""
    counts = sorted(
        problem.offers.allowed.left_out,
        key=lambda reason: (reason[0].startswith(("not ", "no ")), -reason[1], reason[0]),
    )
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts[:3])
    return f"no offer is left that can train this job ({reasons} left out)"
