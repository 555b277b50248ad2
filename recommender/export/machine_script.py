"""What a rented machine runs from its first boot: code in, training, checkpoints out, its own end.

One script for all clouds; a cloud says in shell functions how its bucket is read and written, how a
machine learns its place among the others, and how it ends itself. Checkpoints are written to the
disk and uploaded behind the training; only one that has been uploaded whole is resumed from.
"""

from recommender.catalogs.frozen import dataclass
from recommender.export.description import RunDescription
from recommender.export.header import commented
from recommender.export.launchers import RankVariables, launcher_of
from recommender.export.train_command import (
    CAPPED,
    INSTALL_LINES,
    PAID,
    SCRIPT,
    changed_by_fallback,
    newest_complete,
    script_lines,
    variables,
)
from recommender.export.watch_script import assignment, shell_function

MACHINE = "machine.sh"
ROOT = "/checkpoints"  # keys of the bucket are paths below it
# Mounted by AWS's Deep Learning AMIs, and by Azure's HPC images where their RAID service runs
# (github.com/Azure/azhpc-images, pull requests 212 and 222, 2023; read 2026-11).
_LOCAL_DISKS = "/opt/dlami/nvme /mnt/resource_nvme"
_RANKS = RankVariables("$NNODES", "$NODE_RANK", "$MASTER_ADDR", "$GPUS_PER_NODE")
# After a crash of the script each machine has other new checkpoints on its disk.
_RESTORE_AGAIN = (
    "# Once nobody uploads any more, the newest that all have uploaded is the newest for all.",
    'until [ "$(newest_saved)" = "$last" ]; do last=$(newest_saved); sleep 120; done',
    'find "$CHECKPOINT_DIR" -maxdepth 1 \\( -name "checkpoint-*" -o -name "step-*" \\) \\',
    '  ! -name "${last:-none}" -exec rm -rf {} +',
    '[ -z "$last" ] || get_folder "$NAME/$last"',
)


@dataclass(frozen=True, slots=True)
class MachineSteps:
    """What a cloud does on its machines, as lines of bash; `$1` is a key of the bucket."""

    itself: tuple[str, ...]  # what `end_machine` and the rank need to know of this machine
    setup: tuple[str, ...]  # tools that the image may lack
    get_folder: tuple[str, ...]  # a folder of the bucket, to the same path on the disk
    put_folder: tuple[str, ...]  # a folder of the disk, to the bucket; what is there is left
    put_file: tuple[str, ...]
    drop_folder: tuple[str, ...]  # from the bucket
    show: tuple[str, ...]  # print a file of the bucket, or nothing
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
        *_DISK_LINES,
        *_function_lines(steps),
        *_boot_lines(steps),
        *_saving_lines(run),
        *_training_lines(run),
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
        value = assignment(each.name, each.value)
        if each.name in changed:  # set before, where the fallback has taken over
            value = f"{each.name}=${{{each.name}:-{each.value}}}"
        lines += [f"# {each.meaning}", f"export {value}"]
    return [
        *lines,
        "# What your script leaves here is in the bucket at the end.",
        f"export OUTPUT_DIR={ROOT}/{run.name}",
    ]


_DISK_LINES = (
    "# On the local disks of the machine, where its image has mounted them: they are faster.",
    f"for disk in {_LOCAL_DISKS}; do",
    f'  if mountpoint -q "$disk" && [ ! -e {ROOT} ]; then',
    f'    mkdir -p "$disk{ROOT}" && ln -s "$disk{ROOT}" {ROOT}',
    "  fi",
    "done",
    'mkdir -p "$OUTPUT_DIR"',
    "",
)


def _function_lines(steps: MachineSteps) -> list[str]:
    """The shell functions in which the clouds differ."""
    names = ("get_folder", "put_folder", "put_file", "drop_folder", "show", "end_machine")
    return [line for name in names for line in shell_function(name, getattr(steps, name))]


def _boot_lines(steps: MachineSteps) -> list[str]:
    """From the first boot to the start of training: its end, its rank, its code."""
    return [
        *steps.itself,
        "# Whatever happens below, this machine ends when the time of the run is over.",
        '(sleep "$LEFT_S"; end_machine) &',
        *steps.setup,
        *steps.rank,
        *shell_function("finish", _FINISH),
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
        "",
    ]


def _head(run: RunDescription) -> list[str]:
    return [
        f"{run.name}: what each machine runs from its first boot. launch.sh sends it, with the "
        "lines above it that set RUN_ID, LEFT_S, NNODES and CHECKPOINT_BUCKET.",
    ]


def _saving_lines(run: RunDescription) -> list[str]:
    """Restore the newest checkpoint that every machine has uploaded; upload new ones."""
    return [
        "# Every machine notes the newest checkpoint that it has uploaded whole; the oldest of",
        "# these notes is one that all of them have.",
        "newest_saved() {",
        "  local rank",
        '  for ((rank = 0; rank < NNODES; rank++)); do show "$NAME/saved-$rank" || true; done |',
        "    sort -V | head -n 1",
        "}",
        'echo "$RUN_ID" > "$CHECKPOINT_DIR/began"  # the cap counts from the first start',
        "last=$(newest_saved)",
        '[ -z "$last" ] || get_folder "$NAME/$last"',
        f"for file in progress.json {PAID}; do",
        '  show "$NAME/$file" > "$CHECKPOINT_DIR/$file" || true',
        "done",
        "",
        *shell_function("newest_complete", tuple(_newest(run))),
        *shell_function("save_new", _SAVE_NEW),
        *(shell_function("restore_again", _RESTORE_AGAIN) if run.nodes > 1 else []),
        "(while sleep 20; do save_new || true; done) &",
        "saving=$!",
        "",
    ]


_SAVE_NEW = (
    "local newest noted before",
    "local file",
    f"for file in progress progress.json {PAID}; do  # the second is of recommender.train",
    '  if [ "$NODE_RANK" = 0 ] && [ -s "$CHECKPOINT_DIR/$file" ]; then put_file "$NAME/$file"; fi',
    "done",
    "# checkpoint-* of the Trainer of Hugging Face, step-* of recommender.train. The first machine",
    "# has the file that they end with; the others what their own processes write.",
    'if [ "$NODE_RANK" = 0 ]; then newest=$(newest_complete); else',
    '  newest=$(find "$CHECKPOINT_DIR" -maxdepth 1 -name "checkpoint-*" -o -name "step-*" |',
    "    sort -V | tail -n 1)",
    "fi",
    'noted="$CHECKPOINT_DIR/saved-$NODE_RANK" before=$last',
    'if [ -z "$newest" ] || [ "${newest##*/}" = "$last" ]; then return; fi',
    "# Still being written?",
    'if [ -n "$(find "$newest" -newermt \'30 seconds ago\' | head -n 1)" ]; then return; fi',
    'put_folder "$NAME/${newest##*/}" || return',
    'echo "${newest##*/}" > "$noted"',
    'put_file "$NAME/saved-$NODE_RANK" || return',
    "last=${newest##*/}",
    "# Keep two: another machine may have got no further than the one before.",
    'if [ -n "${older:-}" ]; then drop_folder "$NAME/$older"; fi',
    "older=$before",
)


def _newest(run: RunDescription) -> list[str]:
    last_file = launcher_of(run.job.software).last_file
    return newest_complete("checkpoint", "step", last_file=last_file)


def _training_lines(run: RunDescription) -> list[str]:
    return [
        *script_lines(run, _RANKS),
        f"  if bash {SCRIPT}; then ended='done'; break; else code=$?; fi",
        f'  if [ "$code" -eq {CAPPED} ]; then ended=stopped; break; fi',
        "  sleep 60",
        *(["  restore_again"] if run.nodes > 1 else []),
        "done",
        'kill "$saving" || true',
    ]


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
