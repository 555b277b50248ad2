"""What tools that run plans cannot do, and what a plan comes to where it is run without that.

Read in the tools: SkyPilot 0.14.1 (`sky.jobs.recovery_strategy`) tries the places of its list at
each recovery and knows no deadline; on-demand machines at the end of the list are rented after the
first round without spot, and kept. dstack 0.22 keeps a run with a volume in one zone. Slurm,
Terraform and torchrun start what the user says.
"""

from recommender.plan.plan import Plan

NO_SWITCH = "no switch"  # nothing goes on demand, unless the user does it
LIST_ENDS_ON_DEMAND = "on-demand ends its list"
MOVES_AT_ONCE = "moves at once"  # where the plan waits in the region of its checkpoints
ONE_ZONE = "one zone"
IN_BUCKET = "saves to a bucket"  # where the plan has receivers of its own
ON_VOLUME = "saves to a volume"
_ALL = (NO_SWITCH, LIST_ENDS_ON_DEMAND, MOVES_AT_ONCE, ONE_ZONE, IN_BUCKET, ON_VOLUME)
Lacking = tuple[str, ...]

_OF_TARGETS: dict[str, Lacking] = {
    "skypilot": (MOVES_AT_ONCE, IN_BUCKET),
    "dstack": (NO_SWITCH, ONE_ZONE, ON_VOLUME),
    "slurm": (NO_SWITCH, IN_BUCKET),
    "torchrun": (NO_SWITCH, IN_BUCKET),
    "terraform": (NO_SWITCH, IN_BUCKET),
    **dict.fromkeys(("aws-cli", "gcloud", "azure-cli"), (IN_BUCKET,)),
}
ELSEWHERE = ("anchor", "memory_tier")  # paths of checkpoints that no exported file has
WITH_VOLUMES = ("aws", "gcp")  # on which dstack makes volumes, of one machine


def lacking(target: str, plan: Plan, *extra: str) -> Lacking:
    """What a target lacks of all that a plan does; `extra` if its own script is not used."""
    lacks = {*_OF_TARGETS[target], *extra}
    return tuple(each for each in _ALL if each in lacks and _is_used(each, plan))


def _is_used(what: str, plan: Plan) -> bool:
    """Whether a plan counts on it."""
    saving, fallback = plan.checkpointing, plan.fallback
    machines = sum(m.count for m in plan.machines)
    if what == NO_SWITCH:
        return fallback is not None
    if what == LIST_ENDS_ON_DEMAND:  # a list of clusters of one size
        return fallback is not None and fallback.machines[0].count == machines and not plan.mixed
    if what == MOVES_AT_ONCE:
        return plan.move_after_s > 0.0
    if what == ONE_ZONE:
        return len(plan.sites) > 1 and saving.path != "none"
    if what == IN_BUCKET:
        return saving.path in ELSEWHERE
    return saving.path != "none"  # on a volume


def variants(plan: Plan) -> tuple[Lacking, ...]:
    """All that a plan may be run without, by one target or another."""
    first, alone = plan.machines[0], (NO_SWITCH, LIST_ENDS_ON_DEMAND)
    has_volume = plan.gpus == first.gpus and first.provider in WITH_VOLUMES
    targets = [each for each in _OF_TARGETS if each != "dstack" or has_volume]
    found = [lacking(target, plan) for target in targets]
    found += [lacking("skypilot", plan, each) for each in alone]
    return tuple(dict.fromkeys(each for each in found if each))
