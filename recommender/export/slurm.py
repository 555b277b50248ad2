"""A plan as a batch job of Slurm, on a cluster whose partitions rent or hold the machines.

Slurm requeues a job whose node fails or is preempted (`--requeue`, sbatch(1), Slurm 22.05): so
restarts are its own. It moves no job between regions, and knows no fallback.
"""

import math

from recommender.export.checkpoint_upload import shared_words
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.header import (
    as_run_words,
    cap_words,
    commented,
    fallback_words,
    header,
    saves_elsewhere_words,
    yours_words,
)
from recommender.export.launchers import RankVariables
from recommender.export.start import start_line
from recommender.export.templates import part
from recommender.export.train_command import exports, run_lines

SCRIPT = "train.sbatch"
_RANKS = RankVariables("$SLURM_NNODES", "$SLURM_NODEID", "$MASTER_ADDR", "$SLURM_GPUS_ON_NODE")


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """The batch job."""
    head = commented(header(run, start_line(run.plan, "slurm", folder), _remarks(run)))
    lines = part(
        SCRIPT,
        "script",
        HEAD=head,
        NAME=run.name,
        NODES=run.nodes,
        GPUS=run.machines.gpus,
        MINUTES=math.ceil(run.longest_s / 60.0),
        VARIABLES=exports(run, f"$HOME/checkpoints/{run.name}"),
        RUN=run_lines(run, _RANKS),
    )
    return (ExportFile(SCRIPT, "\n".join(lines) + "\n"),)


def why_not(run: RunDescription) -> str:
    """Why one batch job cannot run a plan; empty where it can."""
    if run.mixed:
        return "one batch job has nodes of one kind, and this plan mixes them; use --to torchrun"
    return ""


def _remarks(run: RunDescription) -> tuple[str, ...]:
    found = [
        f"For nodes like {run.machines.instance_type}: add --partition or --constraint as your "
        "cluster names them. Slurm requeues the job when a node is lost; its partition decides "
        "where it goes on, so the plan's failover list is not used.",
        *fallback_words(
            run,
            "Slurm does not: submit this job to an on-demand partition then.",
        ),
    ]
    found += saves_elsewhere_words(run)
    found += as_run_words(run, "slurm", "Left to Slurm")
    yours = yours_words(run, "sbatch passes your environment on", "load it before sbatch")
    how = "--time counts each start anew; Slurm queues it again only if a node is lost. "
    cap = cap_words(run, "LONGEST_RUN_S and --time", how)
    return (*found, *shared_words(run), *yours, cap)
