"""What a rented machine runs from its first boot: code in, training, checkpoints out, its own end.

One script for all clouds; a cloud says how a machine learns its place among the others, and how it
ends itself. Checkpoints go through `checkpoint_upload.py`.
"""

from recommender.catalogs.frozen import dataclass
from recommender.export.checkpoint_upload import (
    ROOT,
    commands_of,
    disk_lines,
    function_lines,
    training_lines,
)
from recommender.export.description import RunDescription
from recommender.export.header import commented
from recommender.export.launchers import RankVariables
from recommender.export.train_command import (
    CAPPED,
    INSTALL_LINES,
    changed_by_fallback,
    variables,
)
from recommender.export.watch_script import assignment, shell_function

MACHINE = "machine.sh"
ASKED = "/tmp/asked-to-end"  # by launch.sh, because others take over
_RANKS = RankVariables("$NNODES", "$NODE_RANK", "$MASTER_ADDR", "$GPUS_PER_NODE")


@dataclass(frozen=True, slots=True)
class MachineSteps:
    """What a cloud does on its machines, as lines of bash."""

    itself: tuple[str, ...]  # what `end_machine` and the rank need to know of this machine
    setup: tuple[str, ...]  # tools that the image may lack
    rank: tuple[str, ...]  # sets NODE_RANK
    master: tuple[str, ...]  # sets MASTER_ADDR
    end_machine: tuple[str, ...]  # no longer paid for after it


def machine_script(run: RunDescription, steps: MachineSteps) -> str:
    """The whole script; what is only known at the start is set in lines before it."""
    lines = [
        "#!/usr/bin/env bash",
        *commented(_head(run)),
        "",
        "set -euo pipefail",
        *_environment_lines(run),
        *disk_lines(run),
        *function_lines(run.machines),
        *shell_function("end_machine", steps.end_machine),
        *_boot_lines(run, steps),
        'echo "$RUN_ID" > "$CHECKPOINT_DIR/began"  # the cap counts from the first start',
        *training_lines(run, _RANKS, "" if run.fallback is None else ASKED),
        f"case \"$code\" in 0) ended='done' ;; {CAPPED}) ended=stopped ;; esac",
    ]
    return "\n".join(lines) + "\n"


def _environment_lines(run: RunDescription) -> list[str]:
    """What the training script finds in its environment."""
    lines = [
        ': "${RUN_ID:?}" "${LEFT_S:?}" "${NNODES:?}" "${CHECKPOINT_BUCKET:?}"',
        "export HOME=${HOME:-/root}  # startup scripts have none",
        "# Where the images of the clouds keep PyTorch.",
        'export PATH="/opt/pytorch/bin:/opt/conda/bin:$PATH"',
        assignment("NAME", run.name),
    ]
    changed = {each.name for each in changed_by_fallback(run)}
    for each in variables(run, f"{ROOT}/{run.name}"):
        lines.append(f"# {each.meaning}")
        value = assignment(each.name, each.value)
        if each.name in changed:  # set before, where the fallback has taken over
            lines.append(f'[ -n "${{{each.name}:-}}" ] || export {value}')
        else:
            lines.append(f"export {value}")
    return [
        *lines,
        "# What your script leaves here is in the bucket at the end.",
        f"export OUTPUT_DIR={ROOT}/{run.name}",
    ]


def _boot_lines(run: RunDescription, steps: MachineSteps) -> list[str]:
    """From the first boot to the start of training: its end, its rank, its code."""
    return [
        *steps.itself,
        "# Whatever happens below, this machine ends when the time of the run is over.",
        '(sleep "$LEFT_S"; end_machine) &',
        *steps.setup,
        *commands_of(run.machines).setup,
        *steps.rank,
        *shell_function("finish", (*(() if run.fallback is None else _GIVEN_UP), *_FINISH)),
        "ended=failed  # unless training ends well",
        "trap finish EXIT",
        "# An interrupted machine ends while it sleeps, and nothing has failed.",
        "trap 'sleep 600' TERM",
        *steps.master,
        "export NODE_RANK MASTER_ADDR",
        "GPUS_PER_NODE=$(nvidia-smi -L | wc -l)",
        "export GPUS_PER_NODE",
        'get_folder "$NAME/code"',
        'cd "$OUTPUT_DIR/code"',
        *INSTALL_LINES,
        'eval "$(show "$NAME/secrets" || true)"  # of your environment, by launch.sh',
        *(() if run.fallback is None else _END_IF_ASKED),
        "",
    ]


def _head(run: RunDescription) -> list[str]:
    return [
        f"{run.name}: what each machine runs from its first boot. launch.sh sends it, with the "
        "lines above it that set RUN_ID, LEFT_S, NNODES and CHECKPOINT_BUCKET.",
    ]


_END_IF_ASKED = (
    'if [ -n "${RUN_TAG:-}" ]; then',
    '  (until [ -n "$(show "$NAME/end-$RUN_TAG" || true)" ]; do sleep 30; done',
    f"  touch {ASKED}; pkill -TERM -s 0 -x timeout || true) &",
    "fi",
)
_GIVEN_UP = (f"if [ -e {ASKED} ]; then end_machine; return; fi  # the job goes on elsewhere",)
# The first machine waits an hour for what the others have to upload; then launch.sh stops all.
_FINISH = (
    'put_folder "$NAME" || true',
    'echo "$ended" > "$OUTPUT_DIR/ended-$RUN_ID-$NODE_RANK"',
    'put_file "$NAME/ended-$RUN_ID-$NODE_RANK" || true',
    'if [ "$NODE_RANK" = 0 ]; then',
    "  local rank tries=0",
    "  for ((rank = 1; rank < NNODES; rank++)); do",
    '    until [ -n "$(show "$NAME/ended-$RUN_ID-$rank")" ] || [ "$((tries++))" -ge 360 ]; do',
    "      sleep 10",
    "    done",
    "  done",
    '  echo "$ended" > "$OUTPUT_DIR/ended-$RUN_ID"',
    '  put_file "$NAME/ended-$RUN_ID" || true',
    "fi",
    "end_machine",
)
