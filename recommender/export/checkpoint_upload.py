"""Checkpoints from a machine's disk to the bucket and back, by the tool that plans count with.

A training writes to CHECKPOINT_DIR on the disk. Behind it, every machine uploads its part of each
checkpoint (`recommender/performance/checkpoint_transfer.py`, which has the rates and the waits) and
notes the newest that it has uploaded whole; the first one notes which of them all have. That is
resumed from after an interruption: an upload that was cut off leaves one that is not noted.
"""

import math

from recommender.catalogs.frozen import dataclass
from recommender.export.description import RunDescription
from recommender.export.launchers import RankVariables, launcher_of
from recommender.export.start import bucket_of
from recommender.export.train_command import CAPPED, PAID, newest_complete, repeated_lines
from recommender.export.watch_script import assignment, shell_function
from recommender.performance.checkpoint_transfer import POLL_S, QUIET_S, transfer_of
from recommender.plan.plan import Machines
from recommender.text import duration

ROOT = "/checkpoints"  # keys of the bucket are paths below it
# Mounted by AWS's Deep Learning AMIs, and by Azure's HPC images where their RAID service runs
# (github.com/Azure/azhpc-images, pull requests 212 and 222, 2023; read 2026-11).
_MOUNTED = "/opt/dlami/nvme /mnt/resource_nvme"
_MB = 1e6
_S3 = "s3://$CHECKPOINT_BUCKET/$1"
_GS = "gs://$CHECKPOINT_BUCKET/$1"
_SYNC = "gcloud storage rsync --recursive --no-user-output-enabled"
_BLOB = '"https://$AZURE_STORAGE_ACCOUNT.blob.core.windows.net/$CHECKPOINT_BUCKET/$1"'


@dataclass(frozen=True, slots=True)
class BucketCommands:
    """How the tool of a cloud reads and writes its bucket, in bash; `$1` is a key of the bucket."""

    setup: tuple[str, ...]  # the tool where an image lacks it, and its settings
    get_folder: tuple[str, ...]  # a folder of the bucket, to the same path on the disk
    put_folder: tuple[str, ...]  # a folder of the disk, to the bucket; what is there is left
    put_file: tuple[str, ...]
    drop_folder: tuple[str, ...]  # from the bucket
    show: tuple[str, ...]  # print a file of the bucket, or nothing


# The CRT client moves a file in parallel parts, as many as the target needs; it is the default on
# some types only (AWS CLI 2, "AWS CLI S3 Configuration", read 2026-11).
_AWS = BucketCommands(
    setup=(
        "if ! aws --version 2> /dev/null | grep -q aws-cli/2; then",
        "  curl -sfo /tmp/aws.zip https://awscli.amazonaws.com/awscli-exe-linux-x86_64.zip",
        "  (cd /tmp && python3 -m zipfile -e aws.zip . && chmod -R +x aws)",
        "  as_root /tmp/aws/install --update > /dev/null",
        "fi",
        "aws configure set default.s3.preferred_transfer_client crt",
        "aws configure set default.s3.target_bandwidth 100Gb/s",
    ),
    get_folder=(f'aws s3 sync --quiet "{_S3}" "{ROOT}/$1"',),
    put_folder=(f'aws s3 sync --quiet "{ROOT}/$1" "{_S3}"',),
    put_file=(f'aws s3 cp --quiet "{ROOT}/$1" "{_S3}"',),
    drop_folder=(f'aws s3 rm --quiet --recursive "{_S3}"',),
    show=(f'aws s3 cp --quiet "{_S3}" - 2> /dev/null',),
)
_GCP = BucketCommands(
    setup=("export CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD_ENABLED=True",),
    get_folder=(f'mkdir -p "{ROOT}/$1"', f'{_SYNC} "{_GS}" "{ROOT}/$1"'),
    put_folder=(f'{_SYNC} "{ROOT}/$1" "{_GS}"',),
    put_file=(f'gcloud storage cp --no-user-output-enabled "{ROOT}/$1" "{_GS}"',),
    drop_folder=(f'gcloud storage rm --recursive --no-user-output-enabled "{_GS}"',),
    show=(f'gcloud storage cat "{_GS}" 2> /dev/null',),
)
_AZURE = BucketCommands(
    setup=(
        "export AZCOPY_AUTO_LOGIN_TYPE=AZCLI AZURE_STORAGE_AUTH_MODE=login",
        "if ! command -v azcopy > /dev/null; then",
        "  curl -sfL https://aka.ms/downloadazcopy-v10-linux |",
        "    as_root tar -xz -C /usr/local/bin --strip-components=1 --wildcards '*/azcopy'",
        "fi",
    ),
    get_folder=(
        f'mkdir -p "{ROOT}/$1"',
        f'azcopy sync {_BLOB} "{ROOT}/$1" --recursive --output-level=quiet',
    ),
    put_folder=(f'azcopy sync "{ROOT}/$1" {_BLOB} --recursive --output-level=quiet',),
    put_file=(f'azcopy copy "{ROOT}/$1" {_BLOB} --output-level=quiet',),
    drop_folder=(f"azcopy remove {_BLOB} --recursive --output-level=quiet",),
    show=(
        'az storage blob download --container-name "$CHECKPOINT_BUCKET" --name "$1" \\',
        "  --no-progress --only-show-errors 2> /dev/null",
    ),
)
COMMANDS = {"aws": _AWS, "gcp": _GCP, "azure": _AZURE}


def commands_of(machines: Machines) -> BucketCommands:
    """The tool of a cloud's bucket; a GPU cloud's machines use any bucket that speaks S3."""
    return COMMANDS.get(bucket_of(machines), _AWS)


_AS_ROOT = ('if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi',)
# Google's own recipe for several local SSDs as one disk (Compute Engine, "Format and mount a Local
# SSD device", read 2026-11); its images leave them raw.
_LOCAL_DISKS = (
    "# On the local disks of the machine where the checkpoints fit: they are faster.",
    "raw=(/dev/disk/by-id/google-local-nvme-ssd-*)",
    'if [ -e "${raw[0]}" ] && ! mountpoint -q /mnt/local-disks; then',
    "  as_root mdadm --create /dev/md0 --level=0 --force --run \\",
    '    --raid-devices="${#raw[@]}" "${raw[@]}" &&',
    "    as_root mkfs.ext4 -qF /dev/md0 && as_root mkdir -p /mnt/local-disks &&",
    "    as_root mount /dev/md0 /mnt/local-disks || true",
    "fi",
    f"for disk in {_MOUNTED} /mnt/local-disks; do",
    f'  if mountpoint -q "$disk" && [ ! -e {ROOT} ] &&',
    '    [ "$(df --output=avail -B1000000000 "$disk" | tail -n 1)" -ge "$CHECKPOINTS_GB" ]; then',
    f'    as_root mkdir -p "$disk{ROOT}" && as_root ln -s "$disk{ROOT}" {ROOT}',
    "  fi",
    "done",
    f'as_root mkdir -p {ROOT} && as_root chown "$(id -u)" {ROOT}/',
    'mkdir -p "$CHECKPOINT_DIR"',
    "",
)
_SAVE_NEW = (
    "local newest file saved rank",
    f"for file in progress progress.json {PAID}; do  # the second is of recommender.train",
    '  if [ "$NODE_RANK" = 0 ] && [ -s "$CHECKPOINT_DIR/$file" ]; then put_file "$NAME/$file"; fi',
    "done",
    "# checkpoint-* of the Trainer of Hugging Face, step-* of recommender.train. The first machine",
    "# has the file that they end with; the others what their own processes write.",
    'if [ "$NODE_RANK" = 0 ]; then newest=$(newest_complete); else',
    '  newest=$(find "$CHECKPOINT_DIR" -maxdepth 1 -name "checkpoint-*" -o -name "step-*" |',
    "    sort -V | tail -n 1)",
    "fi",
    "newest=${newest##*/}",
    'if [ -n "$newest" ] && [ "$newest" != "$last" ] && is_quiet "$newest"; then',
    '  put_folder "$NAME/$newest" || return',
    "  last=$newest",
    "  note_last || return",
    "  # The disk has room for this one and the next; those before are of no use here.",
    '  find "$CHECKPOINT_DIR" -maxdepth 1 \\( -name "checkpoint-*" -o -name "step-*" \\) |',
    '    sort -V | sed "/\\/$last\\$/Q" | xargs -r rm -rf',
    "fi",
    'if [ "$NODE_RANK" != 0 ]; then return; fi',
    "# What every machine has uploaded is resumed from; the one before is dropped.",
    'saved=$(for ((rank = 0; rank < NNODES; rank++)); do show "$NAME/saved-$rank" || true; done)',
    'if [ "$(grep -c . <<< "$saved")" -lt "$NNODES" ]; then return; fi',
    'saved=$(sort -V <<< "$saved" | head -n 1)',
    'if [ "$saved" = "$safe" ]; then return; fi',
    'echo "$saved" > "$CHECKPOINT_DIR/saved"',
    'put_file "$NAME/saved" || return',
    'if [ "$safe" != 0 ]; then drop_folder "$NAME/$safe"; fi',
    "safe=$saved",
)
_NEWEST_SAVED = ('show "$NAME/saved" || true',)
_NOTE_LAST = (
    'echo "$last" > "$CHECKPOINT_DIR/saved-$NODE_RANK"',
    'put_file "$NAME/saved-$NODE_RANK"',
)
_IS_QUIET = (
    f'[ -z "$(find "$CHECKPOINT_DIR/$1" -newermt \'{QUIET_S} seconds ago\' | head -n 1)" ]',
)
_RESTORE = (
    "last=$(newest_saved)",
    "last=${last:-0} safe=${last:-0}",
    "# After a crash of the script each machine has other new checkpoints on its disk.",
    'find "$CHECKPOINT_DIR" -maxdepth 1 \\( -name "checkpoint-*" -o -name "step-*" \\) \\',
    '  ! -name "$last" -exec rm -rf {} +',
    'if [ "$last" != 0 ]; then get_folder "$NAME/$last"; fi',
    "note_last",
)
_START_SAVING = (f"(while sleep {POLL_S}; do save_new || true; done) &", "saving=$!")
RESTORE_AGAIN = (
    "# Once nobody uploads any more, the newest that all have uploaded is the newest for all.",
    "local before=''",
    'until [ "$(newest_saved)" = "$before" ]; do before=$(newest_saved); sleep 120; done',
    'kill "$saving" || true',
    "restore",
    "start_saving",
)


def disk_lines(run: RunDescription) -> list[str]:
    """The folder of the checkpoints, on the fastest disks of the machine that have room."""
    return [
        *shell_function("as_root", _AS_ROOT),
        f"CHECKPOINTS_GB={run.checkpoints_gb}  # on the disk of a machine at most",
        f"export UPLOAD_S={math.ceil(run.safe_after_s)}  # until a checkpoint is safe",
        *_LOCAL_DISKS,
    ]


def function_lines(machines: Machines) -> list[str]:
    """The shell functions of the bucket."""
    names = ("get_folder", "put_folder", "put_file", "drop_folder", "show")
    commands = commands_of(machines)
    return [line for name in names for line in shell_function(name, getattr(commands, name))]


def saving_lines(run: RunDescription) -> list[str]:
    """Restore the newest checkpoint that every machine has uploaded; upload new ones."""
    last_file = launcher_of(run.job.software).last_file
    functions = {
        "newest_saved": _NEWEST_SAVED,
        "note_last": _NOTE_LAST,
        "is_quiet": _IS_QUIET,
        "newest_complete": tuple(newest_complete("checkpoint", "step", last_file=last_file)),
        "save_new": _SAVE_NEW,
        "restore": _RESTORE,
        "start_saving": _START_SAVING,
    }
    return [
        "# Every machine notes the newest checkpoint that it has uploaded whole, 0 for none; the",
        "# first one notes the oldest of these for all.",
        *(line for name, body in functions.items() for line in shell_function(name, body)),
        "restore",
        f"for file in progress.json {PAID}; do",
        '  show "$NAME/$file" > "$CHECKPOINT_DIR/$file" || true',
        "done",
        "start_saving",
        "",
    ]


def training_lines(run: RunDescription, ranks: RankVariables, asked: str = "") -> list[str]:
    """Train between a restore and the last upload; it ends with the status `code`.

    A file `asked` means that it was ended from outside: as at a cap it is not tried again.
    """
    several = run.trains_on_several  # there, or on the fallback
    return [
        *saving_lines(run),
        *(shell_function("restore_again", RESTORE_AGAIN) if several else []),
        *repeated_lines(run, ranks, ("restore_again",) if several else (), asked),
        f'if [ "$code" -eq {CAPPED} ]; then sleep "$UPLOAD_S"; fi  # what was saved last',
        'kill "$saving" || true',
    ]


def task_lines(run: RunDescription, ranks: RankVariables) -> list[str]:
    """All commands of one machine, for others' schedulers."""
    return [
        "set -euo pipefail",
        assignment("NAME", run.name),
        f'NNODES="{ranks.nodes}" NODE_RANK="{ranks.rank}"',
        *disk_lines(run),
        *commands_of(run.machines).setup,
        *function_lines(run.machines),
        "# When the first machine began: the cap counts from it.",
        'began="$CHECKPOINT_DIR/began"',
        'show "$NAME/began" > "$began" || true',
        'if [ ! -s "$began" ]; then',
        '  date +%s > "$began"',
        '  [ "$NODE_RANK" != 0 ] || put_file "$NAME/began"',
        "fi",
        *training_lines(run, ranks),
        'put_folder "$NAME" || code=1  # the weights, and what training leaves besides',
        'exit "$code"',
    ]


def shared_words(run: RunDescription) -> list[str]:
    """What the plan counts on where CHECKPOINT_DIR is the user's own."""
    tool, saving = transfer_of(run.machines.provider), run.saving
    if saving.path != "object_store":
        return []
    rate = f"{tool.upload_bytes_per_s / _MB:.0f} MB/s"
    return [
        f"The plan counts on {rate} from each machine to CHECKPOINT_DIR, "
        f"{duration(saving.upload_s)} a checkpoint: raise CHECKPOINT_INTERVAL_S for a slower one."
    ]


def upload_words(run: RunDescription) -> list[str]:
    """Which tool moves the checkpoints, how fast, how many are kept; and what a cut one leaves."""
    tool = transfer_of(bucket_of(run.machines))
    upload, back = tool.upload_bytes_per_s / _MB, tool.restore_bytes_per_s / _MB
    return [
        "Checkpoints (checkpoint-* and step-* in CHECKPOINT_DIR) are written to the disk and "
        f"uploaded behind the training by {tool.tool}, counted at {upload:.0f} MB/s a machine, "
        f"back at {back:.0f} ({tool.source}). What an interruption cuts off is not resumed from: "
        "the one before is."
    ]
