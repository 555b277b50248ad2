"""What every machine runs: torchrun on all nodes, resumed from the newest checkpoint, with a cap.

The files call the user's own training script. It gets the plan's choices as environment variables
and, where there is a checkpoint, `--resume_from_checkpoint` as the Trainer of Hugging Face names it
(transformers 4 documentation, read 2026-11); other scripts take their own flag there.
"""

import math

from recommender.catalogs.frozen import dataclass
from recommender.export.description import RunDescription

MASTER_PORT = 29500  # of torchrun (PyTorch 2 documentation)


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable of the training script."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class RankVariables:
    """How a target tells a machine its place in the cluster: shell expressions."""

    nodes: str
    rank: str
    master: str
    gpus: str


def variables(run: RunDescription, checkpoint_dir: str) -> tuple[Variable, ...]:
    """The plan's choices for the training script."""
    step, job = run.plan.estimate.step, run.job
    recomputed = ", activations recomputed" if step.recompute_s > 0 else ""
    fixed = [
        Variable("TRAIN_SCRIPT", "train.py", "your training script and what it needs"),
        Variable("GLOBAL_BATCH", str(job.global_batch), "samples per optimiser step, on all GPUs"),
        Variable(
            "MICRO_BATCH",
            str(step.micro_batch),
            "samples per GPU and pass; accumulate GLOBAL_BATCH / (MICRO_BATCH x GPUs) times",
        ),
        Variable("SHARDING", step.sharding, f"of weights and states over the GPUs{recomputed}"),
        Variable("PRECISION", job.precision, "of the arithmetic"),
        Variable("LONGEST_RUN_S", f"{run.longest_s:.0f}", "the run is stopped for good after this"),
    ]
    if not run.saves:
        return tuple(fixed)
    good = run.plan.checkpointing.as_good_s
    return (
        *fixed,
        Variable("CHECKPOINT_DIR", checkpoint_dir, "where checkpoints are written and read"),
        Variable(
            "CHECKPOINT_INTERVAL_S",
            f"{math.ceil(run.plan.checkpointing.interval_s)}",
            f"seconds between two; {good[0]:.0f} to {good[1]:.0f} cost next to nothing more",
        ),
    )


def run_lines(run: RunDescription, ranks: RankVariables) -> list[str]:
    """The commands of one machine, as lines of bash; variables are set before them."""
    return [
        "set -euo pipefail",
        *_cap_lines(run),
        *_resume_lines(run),
        'timeout --kill-after=60 "$left" torchrun \\',
        f'  --nnodes "{ranks.nodes}" --nproc-per-node "{ranks.gpus}" \\',
        f'  --node-rank "{ranks.rank}" --master-addr "{ranks.master}" \\',
        f"  --master-port {MASTER_PORT} \\",
        f'  "$TRAIN_SCRIPT"{_resume_flag(run)}',
    ]


def _cap_lines(run: RunDescription) -> list[str]:
    if not run.saves:
        return ["left=$LONGEST_RUN_S"]
    return [
        "# The cap counts from the first start, through all restarts.",
        'mkdir -p "$CHECKPOINT_DIR"',
        'began="$CHECKPOINT_DIR/began"',
        '[ -s "$began" ] || date +%s > "$began"',
        'left=$(( $(cat "$began") + LONGEST_RUN_S - $(date +%s) ))',
        'if [ "$left" -le 0 ]; then',
        '  echo "stopped for good after LONGEST_RUN_S; to begin anew remove $began" >&2',
        "  exit 124",
        "fi",
    ]


def _resume_lines(run: RunDescription) -> list[str]:
    if not run.saves:
        return []
    return [
        "# Resume from the newest checkpoint; at the first start there is none.",
        "newest=$(find \"$CHECKPOINT_DIR\" -maxdepth 1 -name 'checkpoint-*' | sort -V | tail -n 1)",
    ]


def _resume_flag(run: RunDescription) -> str:
    return ' ${newest:+--resume_from_checkpoint "$newest"}' if run.saves else ""
