"""What a rented machine runs from its first boot: code in, training, checkpoints out, its own end.

One script for all clouds; a cloud says how a machine learns its place among the others, and how it
ends itself. Checkpoints go through `checkpoint_upload.py`.
"""

from recommender.catalogs.frozen import dataclass
from recommender.export.checkpoint_upload import (
    bucket_template,
    disk_lines,
    function_lines,
    training_lines,
)
from recommender.export.description import RunDescription
from recommender.export.header import commented
from recommender.export.launchers import RankVariables
from recommender.export.quoting import assignment
from recommender.export.templates import ASKED, ROOT, part, shell_function
from recommender.export.train_command import changed_by_fallback, variables

_RANKS = RankVariables("$NNODES", "$NODE_RANK", "$MASTER_ADDR", "$GPUS_PER_NODE")


@dataclass(frozen=True, slots=True)
class MachineSteps:
    """What a cloud does on its machines: its template, unless lines of bash are given."""

    template: str
    rank: tuple[str, ...] = ()  # sets NODE_RANK
    master: tuple[str, ...] = ()  # sets MASTER_ADDR


def machine_script(run: RunDescription, steps: MachineSteps) -> str:
    """The whole script; what is only known at the start is set in lines before it."""
    file, has_fallback = steps.template, run.fallback is not None
    given_up = part("machine.sh", "given_up") if has_fallback else ()
    lines = part(
        "machine.sh",
        "script",
        HEAD=commented(_head(run)),
        ENVIRONMENT=_environment_lines(run),
        DISK=disk_lines(run),
        FUNCTIONS=function_lines(run.machines),
        END_MACHINE=shell_function("end_machine", part(file, "machine_end_machine")),
        ITSELF=part(file, "machine_itself"),
        SETUP=(*part(file, "machine_setup"), *part(bucket_template(run.machines), "bucket_setup")),
        RANK=steps.rank or part(file, "machine_rank"),
        FINISH=shell_function("finish", (*given_up, *part("machine.sh", "finish"))),
        MASTER=steps.master or part(file, "machine_master"),
        INSTALL=part("train.sh", "install"),
        END_IF_ASKED=part("machine.sh", "end_if_asked") if has_fallback else (),
        TRAIN=training_lines(run, _RANKS, ASKED if has_fallback else ""),
    )
    return "\n".join(lines) + "\n"


def _environment_lines(run: RunDescription) -> tuple[str, ...]:
    """What the training script finds in its environment."""
    lines, changed = [], {each.name for each in changed_by_fallback(run)}
    for each in variables(run, f"{ROOT}/{run.name}"):
        lines.append(f"# {each.meaning}")
        value = assignment(each.name, each.value)
        if each.name in changed:  # set before, where the fallback has taken over
            lines.append(f'[ -n "${{{each.name}:-}}" ] || export {value}')
        else:
            lines.append(f"export {value}")
    return part(
        "machine.sh",
        "environment",
        NAME=assignment("NAME", run.name),
        VARIABLES=lines,
        FOLDER=f"{ROOT}/{run.name}",
    )


def _head(run: RunDescription) -> list[str]:
    return [
        f"{run.name}: what each machine runs from its first boot. launch.sh sends it, with the "
        "lines above it that set RUN_ID, LEFT_S, NNODES and CHECKPOINT_BUCKET.",
    ]
