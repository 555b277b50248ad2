"""The commands that launch a plan: they write the files that run it, and start them."""

import shlex

from recommender.export.description import RunDescription, description_of
from recommender.export.launchers import launcher_of
from recommender.export.start import start_line, start_place, usual_target
from recommender.plan.plan import Machines, Plan
from recommender.plan.version import __version__
from recommender.report.answer_frame import PlanRequest
from recommender.report.cells import first_region
from recommender.report.formatting import clean

FOLDER = "run"  # for the files, in what is printed
ANSWER = "ANSWER.json"  # the answer, as its user saved it with --json
# The image of confidential VMs with a GPU (Azure, "Create a confidential VM with a GPU", 2026-08).
_CONFIDENTIAL_IMAGE = "Canonical:0001-com-ubuntu-confidential-vm-jammy:22_04-lts-cvm:latest"


def launch_line(plan: Plan, number: int | None) -> str | None:
    """The commands that write the files of a plan of a saved answer and start them, on one line.

    Files for torchrun are only written: they are started on the machines, not where this is typed.
    None for a plan that is none of the answer's table: no file can be written for it.
    """
    if number is None:
        return None
    first = plan.machines[0]
    if first.confidential and not plan.mixed:
        nodes = sum(m.count for m in plan.machines)
        words = _azure_confidential(first, first_region(plan), nodes)
        return " ".join(shlex.quote(clean(word)) for word in words)
    export = f"recommend export {ANSWER} --plan {number} -o {FOLDER}"
    target = usual_target(plan)
    return export if target == "torchrun" else f"{export} && {start_line(plan, target, FOLDER)}"


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
    target = request.target or usual_target(run.plan)
    start = start_line(run.plan, target, request.folder or FOLDER)
    where = start_place(run.nodes, target)
    start = f"{where}, {start}" if where else start
    own = " and ".join(value for _, value, _ in launcher_of(run.job.software).yours)
    start += f" (it runs your {own})"
    if request.folder:
        return start
    other = "" if target == "skypilot" else f" --to {target}"
    return f"add --write {FOLDER}{other} to this call, then{',' if where else ''} {start}"


def _azure_confidential(machines: Machines, region: str, nodes: int) -> list[str]:
    """Azure's own command: SkyPilot sets no security type, and these VMs start with theirs only."""
    spot = machines.market == "spot"
    return [
        *("az", "vm", "create", "--resource-group", "YOUR-GROUP", "--name", "train"),
        *("--location", region),
        *("--size", machines.instance_type),
        *(["--count", str(nodes)] if nodes > 1 else []),
        *(["--priority", "Spot"] if spot else []),
        *("--security-type", "ConfidentialVM"),
        *("--os-disk-security-encryption-type", "VMGuestStateOnly"),
        *("--enable-vtpm", "true", "--enable-secure-boot", "true"),
        *("--image", _CONFIDENTIAL_IMAGE),
    ]
