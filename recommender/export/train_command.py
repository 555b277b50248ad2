"""What every machine runs: the user's tool, resumed from the newest checkpoint, with a cap.

The tool or script gets the plan's choices as environment variables (`launchers.py`). A killed one
leaves a checkpoint that is half written: only one with the file that is written last counts.
"""

import math
import re

from recommender.catalogs.frozen import dataclass
from recommender.export.description import RunDescription
from recommender.export.launchers import RankVariables, launch_lines, named_by_user
from recommender.export.quoting import assignment
from recommender.export.templates import part
from recommender.performance.checkpoint import KEPT
from recommender.plan.plan import StepSplit

# What is written last: by the Trainer (trainer.py, `_save_checkpoint`), by accelerate as scripts of
# diffusers use it (checkpointing.py, `save_accelerator_state`), by recommender.train.
_LAST_FILES = ("trainer_state.json", "random_states_0.pkl", "complete.json")


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable of the training script."""

    name: str
    value: str
    meaning: str


def variables(run: RunDescription, checkpoint_dir: str) -> tuple[Variable, ...]:
    """The plan's choices for the training script."""
    step, job = run.step, run.job
    copy = "copy of the network" if step.is_model_parallel else "GPU"
    gpus = sum(m.count * m.gpus for m in run.plan.machines)
    batch = float(job.batch_on(gpus))
    return (
        *(Variable(*each) for each in named_by_user(job)),
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
            "WARN_AFTER_S", f"{run.usual_s:.0f}", "1 run in 100 takes longer: the log says so"
        ),
        *_budget(run),
        Variable(
            "CHECKPOINT_DIR",
            checkpoint_dir,
            "where checkpoints are written and read, and the weights at the end",
        ),
        *_interval(run),
        Variable("CHECKPOINTS_KEPT", str(KEPT), "on the disk: save_total_limit of the Trainer"),
        Variable(
            "USD_PER_HOUR",
            f"{run.usd_per_hour:.4g}",
            "of all machines, at the first place; for progress.json of recommender.train",
        ),
        Variable(
            "PLANNED_WORK_S", f"{run.work_s:.4g}", "seconds of training, as estimated; for the same"
        ),
    )


def _budget(run: RunDescription) -> tuple[Variable, ...]:
    if run.budget_usd is None:
        return ()
    meaning = "the run is stopped for good once its hours have cost this"
    return (Variable("BUDGET_USD", f"{run.budget_usd:.10g}", meaning),)


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


def _interval(run: RunDescription) -> tuple[Variable, ...]:
    """Between two checkpoints; a plan that counts on none has them for crashes."""
    if run.counts_on_checkpoints:
        low, high = run.saving.as_good_s
        meaning = f"{low:.0f} to {high:.0f} cost next to nothing more" if low < high else "the best"
        if run.checkpoint_interval_s > run.saving.interval_s:
            meaning = "the shortest that is uploaded in time"
        if run.saving.needs_background:
            meaning += "; for saves in the background, far longer if training waits for them"
    else:
        meaning = "for crashes: the estimate counts on no checkpoints"
    interval_s = run.checkpoint_interval_s
    steps = max(1, math.floor(interval_s / run.plan.estimate.step.step_s))
    value = f"{math.ceil(interval_s)}"
    return (
        Variable("CHECKPOINT_INTERVAL_S", value, f"seconds between two; {meaning}"),
        Variable("CHECKPOINT_INTERVAL_STEPS", f"{steps}", "the same in steps, as estimated"),
    )


def _sharding(step: StepSplit) -> str:
    """A word that a script can compare: "fsdp", or degrees: "tp8-pp2", "fsdp16-cp8"."""
    return re.sub(" × |, ", "-", step.sharding).replace(" ", "").lower()


def exports(run: RunDescription, checkpoint_dir: str) -> list[str]:
    """The plan's choices as lines of bash; the folder of checkpoints is the user's where set."""
    lines = []
    for each in variables(run, checkpoint_dir):
        value = assignment(each.name, each.value)
        if each.name == "CHECKPOINT_DIR":
            value = f'{each.name}="${{{each.name}:-{each.value}}}"'
        lines += [f"# {each.meaning}", f"export {value}"]
    return lines


def newest_complete(*kinds: str, last_file: str = "") -> list[str]:
    """A pipeline that prints the newest checkpoint, of folders KIND-STEP, with its last file."""
    folders = " -o ".join(f'-path "$CHECKPOINT_DIR/{kind}-*"' for kind in kinds)
    names = " -o ".join(f"-name {name}" for name in (last_file, *_LAST_FILES) if name)
    return [
        'find "$CHECKPOINT_DIR" -mindepth 2 -maxdepth 2 -size +0 \\',
        f"  \\( {folders} \\) \\" if len(kinds) > 1 else f"  {folders} \\",
        f"  \\( {names} \\) \\",
        "  -printf '%h\\n' | sort -V | tail -n 1",
    ]


def run_lines(run: RunDescription, ranks: RankVariables) -> tuple[str, ...]:
    """The commands of one machine, as lines of bash; variables are set before them."""
    return part(
        "train.sh",
        "run",
        BUDGET=() if run.budget_usd is None else part("train.sh", "budget"),
        NEWEST=newest_complete("checkpoint"),
        RANK=ranks.rank,
        LAUNCH=launch_lines(run.job.software, ranks),
    )


def repeated_lines(
    run: RunDescription, ranks: RankVariables, again: tuple[str, ...] = (), asked: str = ""
) -> tuple[str, ...]:
    """The commands in a loop that ends when they end well or at the cap, with their status `code`.

    `again` is done before each new start; where the file `asked` is there they end as at the cap.
    """
    ended = part("train.sh", "ended_if_asked", FILE=asked) if asked else ()
    return part("train.sh", "repeated", RUN=run_lines(run, ranks), ENDED=ended, AGAIN=again)
