"""How the user's own training tool is started, by the software that the job states (`stack:`).

Read 2026-11 from the tools' own code: axolotl 0.19.0 (axolotl.cli), LLaMA-Factory 0.9.5 (its
launcher and parser), torchtune 0.6.1 (torchtune._cli), accelerate 1.15.0 (accelerate.commands),
torchtitan 0.3.0 (torchtitan.config, its checkpointer). All but JAX's and Keras's start one process
for each GPU by torchrun. Tools with a configuration of their own get the plan's batch and
checkpoints as overrides of it; scripts read them in the environment.
"""

from recommender.catalogs.frozen import dataclass
from recommender.export.start import TRAIN_SCRIPT
from recommender.job.job import Job

MASTER_PORT = 29500  # of torchrun (PyTorch 2 documentation)
_RESUME = '${{newest:+--resume_from_checkpoint "$newest"}}'
_SCRIPT = ("TRAIN_SCRIPT", TRAIN_SCRIPT, "your training script; its flags: see the last line")
_CONFIG = ("TRAIN_CONFIG", "config.yaml", "your tool's configuration")


@dataclass(frozen=True, slots=True)
class RankVariables:
    """How a machine learns its place in the cluster on a target: shell expressions."""

    nodes: str
    rank: str
    master: str
    gpus: str


@dataclass(frozen=True, slots=True)
class Launcher:
    """The command of a tool, as words of the shell; {nodes} and so on are those of a target."""

    words: tuple[str, ...]
    yours: tuple[tuple[str, str, str], ...] = (_SCRIPT,)  # variables that the user sets
    remark: str = ""
    last_file: str = ""  # of a checkpoint, if no other tool writes that last


_RANKS = (
    '--nnodes "{nodes}" --nproc-per-node "{gpus}"',
    '--node-rank "{rank}" --master-addr "{master}"',
    f"--master-port {MASTER_PORT}",
)
_TORCHRUN = Launcher(("torchrun", *_RANKS, '"$TRAIN_SCRIPT"'))
_TRAINER = Launcher((*_TORCHRUN.words[:-1], f"{_TORCHRUN.words[-1]} {_RESUME}"))
_PYTHON = Launcher(('python "$TRAIN_SCRIPT"',))
_LAUNCHERS = {
    "axolotl": Launcher(
        (
            'axolotl train "$TRAIN_CONFIG" --launcher torchrun',
            '--output-dir "$CHECKPOINT_DIR" --micro-batch-size "$MICRO_BATCH"',
            '--gradient-accumulation-steps "$ACCUMULATION"',
            '--save-total-limit "$CHECKPOINTS_KEPT"',
            '--save-steps "$CHECKPOINT_INTERVAL_STEPS"',
            '${{newest:+--resume-from-checkpoint "$newest"}} --',
            *_RANKS,
        ),
        (_CONFIG,),
    ),
    "llama-factory": Launcher(
        (
            'env FORCE_TORCHRUN=1 NNODES="{nodes}" NODE_RANK="{rank}" NPROC_PER_NODE="{gpus}"',
            f'MASTER_ADDR="{{master}}" MASTER_PORT={MASTER_PORT}',
            'llamafactory-cli train "$TRAIN_CONFIG" output_dir="$CHECKPOINT_DIR"',
            'per_device_train_batch_size="$MICRO_BATCH"',
            'gradient_accumulation_steps="$ACCUMULATION" save_strategy=steps',
            'save_steps="$CHECKPOINT_INTERVAL_STEPS" save_total_limit="$CHECKPOINTS_KEPT"',
            '${{newest:+resume_from_checkpoint="$newest"}}',
        ),
        (_CONFIG,),
    ),
    "torchtune": Launcher(
        (
            'tune run --nnodes "{nodes}" --nproc-per-node "{gpus}" --rdzv-backend c10d',
            f'--rdzv-endpoint "{{master}}:{MASTER_PORT}"',
            '"$TRAIN_RECIPE" --config "$TRAIN_CONFIG" output_dir="$CHECKPOINT_DIR"',
            'batch_size="$MICRO_BATCH" gradient_accumulation_steps="$ACCUMULATION"',
            '"resume_from_checkpoint='
            '$(if [ -e "$CHECKPOINT_DIR/recipe_state" ]; then echo True; else echo False; fi)"',
        ),
        (
            ("TRAIN_RECIPE", "{method}_finetune_distributed", "recipe of torchtune, see tune ls"),
            _CONFIG,
        ),
        "torchtune saves after each epoch, not at the plan's interval: an interruption costs more "
        "than estimated. Its epoch_* folders survive machines only where CHECKPOINT_DIR is a "
        "mount or a shared disk.",
    ),
    "torchtitan": Launcher(
        (
            "torchrun",
            *_RANKS,
            '-m torchtitan.train --module "$TRAIN_MODULE" --config "$TRAIN_CONFIG"',
            '--dump_folder "$CHECKPOINT_DIR" --checkpoint.enable --checkpoint.folder .',
            '--checkpoint.interval "$CHECKPOINT_INTERVAL_STEPS"',
            '--checkpoint.keep_latest_k "$CHECKPOINTS_KEPT"',
            '--training.local_batch_size "$MICRO_BATCH"',
            '--training.global_batch_size "$GLOBAL_BATCH"',
        ),
        (
            ("TRAIN_MODULE", "llama3", "model of torchtitan, or a module with configurations"),
            ("TRAIN_CONFIG", "llama3_8b", "configuration of that model"),
        ),
        last_file=".metadata",
    ),
    "accelerate": Launcher(
        (
            "accelerate launch",
            '--num_machines "{nodes}" --num_processes "$(( {nodes} * {gpus} ))"',
            '--machine_rank "{rank}" --main_process_ip "{master}"',
            f"--main_process_port {MASTER_PORT}",
            f'"$TRAIN_SCRIPT" {_RESUME}',
        )
    ),
    # Their scripts read the flag of the Trainer of Hugging Face (transformers 5.23) or of the
    # examples of accelerate; what is not stated is taken for one.
    **dict.fromkeys(("", "tuned", "typical", "transformers", "trl", "diffusers"), _TRAINER),
    **dict.fromkeys(("flax", "maxtext", "keras"), _PYTHON),
}


def named_by_user(job: Job) -> tuple[tuple[str, str, str], ...]:
    """The variables by which the user names what is started, with a first value and a meaning."""
    method = "full" if job.method == "full" else "lora"
    named = launcher_of(job.software).yours
    return tuple((name, value.format(method=method), meaning) for name, value, meaning in named)


def launcher_of(software: str) -> Launcher:
    """How a software is started; scripts of others by torchrun, resumed by themselves."""
    return _LAUNCHERS.get(software, _TORCHRUN)


def launch_lines(software: str, ranks: RankVariables) -> list[str]:
    """The command with a limit on its time, as lines of bash."""
    words = [
        each.format(nodes=ranks.nodes, rank=ranks.rank, master=ranks.master, gpus=ranks.gpus)
        for each in launcher_of(software).words
    ]
    first, *rest = [f'timeout --kill-after=60 "$left" {words[0]}', *words[1:]]
    lines = [first, *(f"  {each}" for each in rest)]
    return ["export RESUME_FROM=$newest", *(f"{each} \\" for each in lines[:-1]), lines[-1]]
