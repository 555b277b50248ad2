"""What every machine runs: torchrun on all nodes, resumed from the newest checkpoint, with a cap.

The files call the user's own training script. It gets the plan's choices as environment variables
and, where there is a checkpoint, `--resume_from_checkpoint` as the Trainer of Hugging Face names it
(transformers 5.23, read 2026-11); other scripts take their own flag there. A killed script leaves a
checkpoint that is half written: only one with the file that is written last counts.
"""

import math
import re

from recommender.catalogs.frozen import dataclass
from recommender.export.description import RunDescription
from recommender.export.start import TRAIN_SCRIPT
from recommender.performance.checkpoint_transfer import KEPT
from recommender.plan.plan import StepSplit

SCRIPT = "/tmp/train.sh"  # where a machine has the commands to start again
MASTER_PORT = 29500  # of torchrun (PyTorch 2 documentation)
# What is written last: by the Trainer (trainer.py, `_save_checkpoint`), by accelerate as scripts of
# diffusers use it (checkpointing.py, `save_accelerator_state`), by recommender.train.
_LAST_FILES = ("trainer_state.json", "random_states_0.pkl", "complete.json")


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable of the training script."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class RankVariables:
    """How a machine learns its place in the cluster on a target: shell expressions."""

    nodes: str
    rank: str
    master: str
    gpus: str


def variables(run: RunDescription, checkpoint_dir: str) -> tuple[Variable, ...]:
    """The plan's choices for the training script."""
    step, job = run.step, run.job
    copy = "copy of the network" if step.is_model_parallel else "GPU"
    gpus = sum(m.count * m.gpus for m in run.plan.machines)
    batch = float(job.batch_on(gpus))
    return (
        Variable(
            "TRAIN_SCRIPT", TRAIN_SCRIPT, "your training script; its flags: see the last line"
        ),
        Variable(
            "GLOBAL_BATCH", f"{batch:.0f}", f"samples per optimiser step{_even(step, gpus, batch)}"
        ),
        Variable("MICRO_BATCH", str(step.micro_batch), f"samples per {copy} and pass, at most"),
        Variable("ACCUMULATION", str(step.accumulation), "passes per optimiser step"),
        Variable("SHARDING", _sharding(step), "of weights and states over the GPUs"),
        Variable(
            "ACTIVATION_CHECKPOINTING",
            "1" if step.recompute_s > 0 else "0",
            "1: activations are recomputed in the backward pass",
        ),
        Variable("PRECISION", job.precision, "of the arithmetic"),
        Variable("LONGEST_RUN_S", f"{run.longest_s:.0f}", "the run is stopped for good after this"),
        Variable(
            "CHECKPOINT_DIR",
            checkpoint_dir,
            "where checkpoints are written and read, and the weights at the end",
        ),
        _interval(run),
        Variable("CHECKPOINTS_KEPT", str(KEPT), "on the disk: save_total_limit of the Trainer"),
        Variable(
            "USD_PER_HOUR",
            f"{run.plan.usd_per_hour:.4g}",
            "of all machines, at the first place; for progress.json of recommender.train",
        ),
    )


def _even(step: StepSplit, gpus: int, batch: float) -> str:
    """On all GPUs; and how many there are if each has as many, where that is not the batch."""
    shares = step.micro_batch * step.accumulation * gpus // step.gpus_per_copy
    same = f"; {shares} where each has as many, as the estimate counts" if shares != batch else ""
    return f", on all GPUs{same}"


def changed_by_fallback(run: RunDescription) -> tuple[Variable, ...]:
    """Variables of the training script that differ on the fallback's machines."""
    if run.on_fallback is None:
        return ()
    pairs = zip(variables(run, ""), variables(run.on_fallback, ""), strict=True)
    return tuple(late for first, late in pairs if late.value != first.value)


def _interval(run: RunDescription) -> Variable:
    """Between two checkpoints; a plan that counts on none has them for crashes."""
    if run.counts_on_checkpoints:
        low, high = run.plan.checkpointing.as_good_s
        meaning = f"{low:.0f} to {high:.0f} cost next to nothing more" if low < high else "the best"
        if run.checkpoint_interval_s > run.plan.checkpointing.interval_s:
            meaning = "the shortest that is uploaded in time"
        if run.plan.checkpointing.needs_background:
            meaning += "; for saves in the background, far longer if training waits for them"
    else:
        meaning = "for crashes: the estimate counts on no checkpoints"
    value = f"{math.ceil(run.checkpoint_interval_s)}"
    return Variable("CHECKPOINT_INTERVAL_S", value, f"seconds between two; {meaning}")


def _sharding(step: StepSplit) -> str:
    """A word that a script can compare: "fsdp", or degrees: "tp8-pp2", "fsdp16-cp8"."""
    return re.sub(" × |, ", "-", step.sharding).replace(" ", "").lower()


def newest_complete(*kinds: str) -> list[str]:
    """A pipeline that prints the newest checkpoint, of folders KIND-STEP, with its last file."""
    folders = " -o ".join(f'-path "$CHECKPOINT_DIR/{kind}-*"' for kind in kinds)
    names = " -o ".join(f"-name {name}" for name in _LAST_FILES)
    return [
        'find "$CHECKPOINT_DIR" -mindepth 2 -maxdepth 2 -size +0 \\',
        f"  \\( {folders} \\) \\" if len(kinds) > 1 else f"  {folders} \\",
        f"  \\( {names} \\) \\",
        "  -printf '%h\\n' | sort -V | tail -n 1",
    ]


_CAP_LINES = (
    "# The cap counts from the first start, through all restarts.",
    'mkdir -p "$CHECKPOINT_DIR"',
    'began="$CHECKPOINT_DIR/began"',
    '[ -s "$began" ] || date +%s > "$began"',
    'left=$(( $(cat "$began") + LONGEST_RUN_S - $(date +%s) ))',
    'if [ "$left" -le 0 ]; then',
    '  echo "stopped for good after LONGEST_RUN_S; to start over remove $began" >&2',
    "  exit 124",
    "fi",
)
_RESUME_LINES = (
    "# Resume from the newest checkpoint that is complete; at the first start there is none.",
    "newest=$(",
    *(f"  {line}" for line in newest_complete("checkpoint")),
    ")",
)


def run_lines(ranks: RankVariables) -> list[str]:
    """The commands of one machine, as lines of bash; variables are set before them."""
    return [
        "set -euo pipefail",
        *_CAP_LINES,
        *_RESUME_LINES,
        'timeout --kill-after=60 "$left" torchrun \\',
        f'  --nnodes "{ranks.nodes}" --nproc-per-node "{ranks.gpus}" \\',
        f'  --node-rank "{ranks.rank}" --master-addr "{ranks.master}" \\',
        f"  --master-port {MASTER_PORT} \\",
        '  "$TRAIN_SCRIPT" ${newest:+--resume_from_checkpoint "$newest"}',
    ]


def script_lines(ranks: RankVariables) -> list[str]:
    """The commands of one machine in a file, and the head of a loop that starts it four times."""
    return [
        f"cat > {SCRIPT} <<'EOF'",
        *run_lines(ranks),
        "EOF",
        "# A crash of the script is tried again, as often as three times.",
        "for _ in 1 2 3 4; do",
    ]
