"""Checkpoints from a machine's disk to the bucket and back, by the tool that plans count with.

A training writes to CHECKPOINT_DIR on the disk. Behind it, every machine uploads its part of each
checkpoint (`recommender/performance/checkpoint.py`, which has the rates and the waits) and
notes the newest that it has uploaded whole; the first one notes which of them all have. That is
resumed from after an interruption: an upload that was cut off leaves one that is not noted.
"""

import math

from recommender.export.description import RunDescription
from recommender.export.launchers import RankVariables, launcher_of
from recommender.export.quoting import assignment
from recommender.export.start import bucket_of
from recommender.export.templates import part, shell_function
from recommender.export.train_command import newest_complete, repeated_lines
from recommender.performance.checkpoint import transfer_of
from recommender.plan.plan import Machines
from recommender.text import duration

_MB = 1e6


def bucket_template(machines: Machines) -> str:
    """What has the tool of a bucket; a GPU cloud's machines use any bucket that speaks S3."""
    return f"{bucket_of(machines)}.sh" if bucket_of(machines) in ("gcp", "azure") else "aws.sh"


def disk_lines(run: RunDescription) -> tuple[str, ...]:
    """The folder of the checkpoints, on the fastest disks of the machine that have room."""
    return part(
        "checkpoints.sh", "disk", GB=run.checkpoints_gb, UPLOAD_S=math.ceil(run.safe_after_s)
    )


def function_lines(machines: Machines) -> list[str]:
    """The shell functions of the bucket."""
    names, file = (
        ("get_folder", "put_folder", "put_file", "drop_folder", "show"),
        bucket_template(machines),
    )
    return [line for name in names for line in shell_function(name, part(file, f"bucket_{name}"))]


def training_lines(run: RunDescription, ranks: RankVariables, asked: str = "") -> tuple[str, ...]:
    """Train between a restore and the last upload; it ends with the status `code`.

    A file `asked` means that it was ended from outside: as at a cap it is not tried again.
    """
    last_file = launcher_of(run.job.software).last_file
    several = run.trains_on_several  # there, or on the fallback
    again = part("checkpoints.sh", "restore_again") if several else ()
    return part(
        "checkpoints.sh",
        "training",
        NEWEST=newest_complete("checkpoint", "step", last_file=last_file),
        AGAIN=shell_function("restore_again", again) if several else (),
        TRAIN=repeated_lines(run, ranks, ("restore_again",) if several else (), asked),
    )


def task_lines(run: RunDescription, ranks: RankVariables) -> tuple[str, ...]:
    """All commands of one machine, for others' schedulers."""
    return part(
        "checkpoints.sh",
        "task",
        NAME=assignment("NAME", run.name),
        NODES=ranks.nodes,
        RANK=ranks.rank,
        DISK=disk_lines(run),
        SETUP=part(bucket_template(run.machines), "bucket_setup"),
        FUNCTIONS=function_lines(run.machines),
        TRAIN=training_lines(run, ranks),
    )


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
