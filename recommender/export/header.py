"""The lines above every exported file: what it runs, what that costs, what it needs."""

import math
import textwrap
from collections.abc import Callable

from recommender.export.description import USUAL_DISK_GB, RunDescription
from recommender.export.helper import HELPER
from recommender.export.launchers import launcher_of
from recommender.export.start import SECRETS
from recommender.plan.plan import Machines, Need, Spread
from recommender.text import (
    duration,
    exact,
    has_control,
    interruptions_words,
    number,
    percent,
    share,
    usd,
)

WIDTH = 96
MINUTE_S = 60.0
_AS_IS = "  "  # begins a line that can be copied whole
_UNITS = {"vcpu": "vCPU", "gpu": "GPU", "machine": "machine"}


def header(run: RunDescription, start: str, remarks: tuple[str, ...]) -> list[str]:
    """Sentences for the top of a file; `remarks` are the target's own, `start` its command."""
    return [
        f"{run.name}: {machines_words(run)}.",
        *estimate_words(run),
        f"Written by {run.tool} from {run.which}; catalog {run.catalog}, prices of "
        f"{run.price_date}. Nothing is rented until you start it:",
        f"{_AS_IS}{start}",
        *terms_words(run),
        *quota_words(run),
        *unzoned_words(run),
        *remarks,
    ]


def terms_words(run: RunDescription) -> list[str]:
    """The terms of the machines that a bill of seconds does not show."""
    terms = run.machines.terms
    if terms is None:
        return []
    code, _, rate = terms.currency.partition("=")
    usd_is, _, day = rate.partition("@")
    longest, host = terms.maximum_s, run.provider is not None and run.provider.marketplace
    found = {
        f"charged in steps of {duration(terms.step_s)}": terms.step_s > MINUTE_S,
        f"for {duration(terms.minimum_s)} at least": terms.minimum_s > terms.step_s > MINUTE_S,
        f"for {duration(longest or 0.0)} at most": longest is not None,
        "paid in advance": terms.upfront,
        f"charged in {code} (1 USD was {usd_is}, {day or 'as you say'})": bool(rate),
        "one host of somebody else, who can read what is on it": host,
        "a new account has to ask for them": terms.new_account == 0.0,
    }
    told = ", ".join(words for words, holds in found.items() if holds)
    return [f"These machines: {told}."] if told else []


def commented(sentences: list[str], mark: str = "#") -> list[str]:
    """Sentences as comment lines, commands as they are; no words of the user's end a comment."""
    lines = []
    for sentence in sentences:
        clean = "".join(" " if has_control(c) else c for c in sentence)
        if clean.startswith(_AS_IS):
            lines.append(f"{mark} {clean}")
            continue
        wrapped = textwrap.wrap(clean, WIDTH, break_long_words=False, break_on_hyphens=False)
        lines += [f"{mark} {line}".rstrip() for line in wrapped or [""]]
    return lines


def group_words(m: Machines) -> str:
    """ "2x a3-highgpu-1g spot"."""
    return f"{m.count}x {m.instance_type} {m.market.replace('_', '-')}"


def machines_words(run: RunDescription) -> str:
    """What is rented and where."""
    if run.provider is None:
        return " + ".join(f"{m.count}x {m.instance_type}" for m in run.plan.machines) + ", your own"
    groups = " + ".join(group_words(m) for m in run.plan.machines)
    return f"{groups} in {run.machines.provider} {_regions_words(run)}"


def _regions_words(run: RunDescription) -> str:
    """The regions in which machines are requested, in order."""
    return ", then ".join(dict.fromkeys(location.region for location in run.locations))


def estimate_words(run: RunDescription) -> list[str]:
    """Cost, time and chance, as the plan counts them."""
    found = run.plan.estimate
    lines = [
        f"Estimate: {usd(found.cost.mean)} USD on average ({_span(found.cost, usd)}), "
        f"{duration(found.time.p50)} ({_span(found.time, duration)})."
    ]
    limits = _limits(run)
    if limits:
        lines.append(f"Met with {share(found.chance)} chance: {limits}.")
    if run.spot:
        often = interruptions_words(found.interrupted, found.interruptions, found.interruptions_p95)
        lines.append(
            f"Spot is interrupted {often}. List price {number(run.usd_per_hour)} USD/h while "
            "everything runs."
        )
    return lines


def _limits(run: RunDescription) -> str:
    limits = run.limits
    found = []
    if limits.deadline_s is not None:
        found.append(f"done within {duration(limits.deadline_s)} of the first start")
    if limits.budget_usd is not None:
        found.append(f"at most {exact(limits.budget_usd)} USD")
    if limits.hourly_usd is not None:
        found.append(f"at most {exact(limits.hourly_usd)} USD/h")
    return ", ".join(found)


def _span(spread: Spread, worded: Callable[[float], str]) -> str:
    return f"9 runs in 10: {worded(spread.p05)} to {worded(spread.p95)}"


def share_words(share: float) -> str:
    """A share of the runs, in the format of the other figures."""
    return ">99 %" if share > 0.99 else f"{100.0 * share:.2g} %"


def quota_words(run: RunDescription) -> list[str]:
    """The quotas that it needs, by the provider's own names."""
    needs = [each for each in run.plan.needs if not _granted(each)]
    return ["Quotas needed first:", *(f"{_AS_IS}{_need(each)}" for each in needs)] if needs else []


def _granted(need: Need) -> bool:
    return need.yours is not None and need.yours >= need.amount


def _need(need: Need) -> str:
    purpose = ", for the fallback" if need.fallback else ""
    new = need.new_accounts
    known = "" if new is None else f" (new accounts have {exact(new)})"
    if need.yours is not None and math.isfinite(need.yours):
        known = f" (yours is {exact(need.yours)})"
    unit = _UNITS.get(need.unit, "")
    many = "s" if need.amount != 1 and unit not in ("", "vCPU") else ""
    amount = f"{exact(need.amount)} {unit}{many}".rstrip()
    return f'"{need.name}" of {amount} in {need.region}{purpose}{known}'


def unzoned_words(run: RunDescription) -> list[str]:
    """Regions of a price list in which no zone is known to have the machines.

    Only Google's catalog has the zones of all its offers.
    """
    if run.provider is None or run.provider.zones != "region":
        return []
    unknown = [each.region for each in run.locations if not (each.zones or each.zone_ids)]
    if not unknown:
        return []
    return [
        f"No zone of {', '.join(unknown)} is known to have {run.machines.instance_type}: look "
        "whether one has it before you start this."
    ]


def fallback_words(run: RunDescription, who: str) -> list[str]:
    """When on-demand machines take over, and by what."""
    fallback, on_fallback = run.fallback, run.on_fallback
    if fallback is None or on_fallback is None:
        return (
            ["No fallback to on-demand: the plan waits for spot, and so does this file."]
            if run.spot
            else []
        )
    groups = " + ".join(group_words(m) for m in fallback.machines)
    return [
        f"Fallback: {groups} in {_regions_words(on_fallback)}, {policy_words(run)}; needed in "
        f"{share_words(fallback.probability)} of the runs. {who}"
    ]


def policy_words(run: RunDescription) -> str:
    """When a plan goes on demand, and when back to spot (`risk/policy.py`)."""
    fallback = run.fallback
    assert fallback is not None
    reserve, wait, back = duration(fallback.reserve_s), fallback.wait_above, fallback.back_above
    if wait is None or back is None:
        return f"when the time left is down to the work left on them + {reserve}"
    return (
        f"when no slack is left (time left less {reserve} and the work left on them), or no spot "
        f"is there and the slack is at most {percent(wait)} of that work; back to spot when more "
        f"than {percent(back)} would be left after the changeover"
    )


def move_after_words(run: RunDescription, who: str) -> list[str]:
    """How long spot is requested in the checkpoints' region before they move, and by what."""
    move_after_s = run.plan.move_after_s
    if not move_after_s:
        return []
    return [
        f"After spot capacity is lost, it is requested in the same region for "
        f"{duration(move_after_s)} before the checkpoint moves to the next, which is counted in "
        f"the estimate. {who}"
    ]


def as_run_words(run: RunDescription, target: str, start: str, *extra: str) -> list[str]:
    """What the plan comes to as a target runs it; nothing where that does all of it.

    `start` begins the sentence; `extra` is what it lacks besides, without its own script.
    """
    found = run.as_run_by(target, *extra)
    if found is None:
        return []
    met = f", limits met with {share(found.chance)} chance" if _limits(run) else ""
    return [
        f"{start}: {usd(found.cost_usd)} USD on average, {duration(found.time_s)}{met} "
        f"({_without(found.lacking)})."
    ]


def _without(lacks: tuple[str, ...]) -> str:
    return ", ".join(lacks)


def saves_elsewhere_words(run: RunDescription) -> list[str]:
    """That the plan counts on a faster place for checkpoints than a bucket."""
    path, stored = run.plan.checkpointing.path, run.plan.in_bucket
    if stored is None:
        return []
    place = "the disk of an on-demand machine" if path == "anchor" else "CPU machines of its own"
    return [
        f"The plan saves every {duration(run.plan.checkpointing.interval_s)} to {place} (see "
        f"recommend --explain); this file saves every {duration(stored.interval_s)} to "
        "CHECKPOINT_DIR instead."
    ]


def large_disk(run: RunDescription) -> bool:
    """Whether checkpoints are so large that the disk has to be fast as well."""
    return run.disk_gb > USUAL_DISK_GB


def disk_words(run: RunDescription) -> list[str]:
    """What larger disks than usual are for; nothing where they are usual."""
    if not large_disk(run):
        return []
    size_gb = run.job.checkpoint_bytes / 1e9
    return [
        f"Disks of {run.disk_gb:,} GB hold the last checkpoints of {size_gb:,.0f} GB: older ones "
        "are deleted when a newer one is in the bucket. The estimate counts 100 GiB."
    ]


def yours_words(run: RunDescription, secrets: str, environment: str = "") -> list[str]:
    """What of the user's is started and in which environment; `secrets` says how they get there."""
    tool, names = launcher_of(run.job.software), " and ".join(SECRETS)
    own = ", ".join(name for name, _, _ in tool.yours)
    packages = environment or "environment.yml (conda) and requirements.txt are installed at start"
    stated = run.job.software or "no software stated: stack in the job file"
    return [
        f"Your training: {own} ({stated}). Its environment: {packages}. {names} by name: "
        f"{secrets}; their values are in no file. {HELPER} holds the checkpoint helper.",
        *([tool.remark] if tool.remark else []),
    ]


def cap_words(run: RunDescription, cap: str = "LONGEST_RUN_S", how: str = "") -> str:
    """When the run is stopped for good, and what another one begins from.

    `cap` names all that stops it, and in which files; `how` says what the target adds or lacks.
    """
    if run.limits.deadline_s is not None:
        why = f": the deadline is over (raise {cap} to let a late run end)"
    elif run.budget_usd is not None:
        why = f" ({cap})"
    else:
        why = f", three times what 1 run in 100 exceeds, as no limit was given ({cap})"
    after = f"{duration(run.longest_s)} after its first start{why}"
    usd = "" if run.budget_usd is None else (
        f"once its machines have cost {exact(run.budget_usd)} USD at USD_PER_HOUR (BUDGET_USD), or "
    )  # fmt: skip
    warned = f"The log warns after {duration(run.usual_s)}, which 1 run in 100 exceeds. "
    if run.usual_s >= run.longest_s:
        warned = ""
    return (
        f"Stopped for good {usd}{after}; it ends with status 124 and is not started again. {how}"
        f"{warned}It resumes from what is in CHECKPOINT_DIR: empty that for another training."
    )
