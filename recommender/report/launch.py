"""The SkyPilot command that launches a plan, and how to write the files that run it."""

import shlex

from recommender.catalogs.registry import CLOUDS
from recommender.export.description import RunDescription, description_of
from recommender.export.start import start_words, usual_target
from recommender.plan.plan import Machines, Plan
from recommender.plan.version import __version__
from recommender.report.answer_frame import PlanRequest
from recommender.report.cells import first_region
from recommender.report.formatting import clean

FOLDER = "run"  # for the files, in what is printed
# The image of confidential VMs with a GPU (Azure, "Create a confidential VM with a GPU", 2026-08).
_CONFIDENTIAL_IMAGE = "Canonical:0001-com-ubuntu-confidential-vm-jammy:22_04-lts-cvm:latest"


def launch_words(plan: Plan) -> tuple[str, ...]:
    """The words of the launch command, quoted; empty if one command cannot launch the plan."""
    kinds = {(m.provider, m.instance_type, m.market) for m in plan.machines}
    if len(kinds) != 1:
        return ()
    first = plan.machines[0]
    info = CLOUDS.get(first.provider)
    if info is None or not info.sky_name:
        return ()
    nodes = sum(m.count for m in plan.machines)
    infra = f"{info.sky_name}/{first_region(plan)}"
    if first.confidential:
        words = _azure_confidential(first, first_region(plan), nodes)
    else:
        words = _sky(first, infra, nodes)
    return tuple(shlex.quote(clean(word)) for word in words)


def launch_line(plan: Plan) -> str:
    """The launch line on one line, or nothing."""
    return " ".join(launch_words(plan))


def run_of(plan: Plan, request: PlanRequest, which: str = "plan 1") -> RunDescription:
    """A plan of an answer as it is run."""
    return description_of(
        plan,
        which,
        request.job,
        request.limits,
        tool=f"recommend {__version__}",
        catalog=request.catalog,
    )


def write_sentence(plan: Plan, request: PlanRequest) -> str:
    """How to write and start the files that run a plan."""
    run = run_of(plan, request)
    target = request.target or usual_target(run)
    start = " ".join(start_words(run, target, request.folder or FOLDER))
    if request.folder:
        return start
    other = "" if target == "skypilot" else f" --to {target}"
    return f"add --write {FOLDER}{other} to this call, then {start}"


def _sky(machines: Machines, infra: str, nodes: int) -> list[str]:
    spot = machines.market == "spot"
    return [
        "sky",
        "jobs",
        "launch",
        *(["--use-spot"] if spot else []),
        *("--infra", infra),
        *("--instance-type", machines.instance_type),
        *(["--num-nodes", str(nodes)] if nodes > 1 else []),
        "train.yaml",
    ]


def _azure_confidential(machines: Machines, region: str, nodes: int) -> list[str]:
    """Azure's own command: SkyPilot sets no security type, and these VMs start with theirs only."""
    spot = machines.market == "spot"
    return [
        *("az", "vm", "create", "--resource-group", "train", "--name", "train"),
        *("--location", region),
        *("--size", machines.instance_type),
        *(["--count", str(nodes)] if nodes > 1 else []),
        *(["--priority", "Spot"] if spot else []),
        *("--security-type", "ConfidentialVM"),
        *("--os-disk-security-encryption-type", "VMGuestStateOnly"),
        *("--enable-vtpm", "true", "--enable-secure-boot", "true"),
        *("--image", _CONFIDENTIAL_IMAGE),
    ]


def folded(words: tuple[str, ...], width: int, indent: str) -> list[str]:
    """The words on lines that end in a backslash, so that they can still be copied."""
    lines, current = [], ""
    for word in _pairs(words):
        if current and len(current) + 1 + len(word) > width - 2:
            lines.append(current + " \\")
            current = indent + word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current] if current else lines


_TAKING = frozenset({
    "--infra", "--instance-type", "--num-nodes", "--resource-group", "--name", "--location",
    "--size", "--count", "--priority", "--security-type", "--os-disk-security-encryption-type",
    "--enable-vtpm", "--enable-secure-boot", "--image",
})  # fmt: skip


def _pairs(words: tuple[str, ...]) -> list[str]:
    """Options with their values: a flag is never parted from what belongs to it."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1].split()[0] in _TAKING and " " not in joined[-1]:
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined
