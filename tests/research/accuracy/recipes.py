"""NVIDIA's recipes on Hopper and Blackwell: the speed that an answer states next to the published.

Rules, fixed before the rows were scored (2026-11-26): of NeMo 24.07 and Megatron-Bridge's tables
(reference folder), every row with a throughput of a network in `MODELS`, of each task, network,
GPU, precision and number of GPUs the latest release, because a user installs today's software.
Without rows that drop tokens (another task). Of dense networks those on Blackwell, and LoRA
anywhere; not those in MXFP8 and NVFP4, whose rates come from these tables (`gpu_speed.py`).
The others on H100 are in `parallel-fp8`. Of mixtures all networks but Qwen3 30B, whose
micro-batches of different size set the time of routing (`overheads.py`).

The recommender is told what a job file states: network, sequence, batch, method, precision and the
tuned stack. It chooses the layout itself.
"""

import csv
import gzip
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from recommender.catalogs.schema import InstanceType
from recommender.job.job import Job
from recommender.job.jobfile import job_from_text
from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.parallel import FP8_SOURCES
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import RUNS, reference_folder
from tests.shipped import snapshot

DENSE = {
    "LLAMA2-7B": "meta-llama/Llama-2-7b-hf",
    "LLAMA2-13B": "meta-llama/Llama-2-13b-hf",
    "LLAMA2-70B": "meta-llama/Llama-2-70b-hf",
    "LLAMA3_8B": "meta-llama/Meta-Llama-3-8B",
    "LLAMA3_70B": "meta-llama/Llama-3.1-70B",
    "LLAMA3.1_405B": "meta-llama/Llama-3.1-405B",
}
MIXTURES = {
    "DeepSeekV3": "deepseek-ai/DeepSeek-V3",
    "GPT OSS 120B": "openai/gpt-oss-120b",
    "Qwen3_235B_a22B": "Qwen/Qwen3-235B-A22B",
}
MODELS = DENSE | MIXTURES
DROPS = "(tokendrop)"
PRECISIONS = {
    "FP8": "fp8",
    "FP8-CS": "fp8",
    "BF16": "bf16",
    "MXFP8": "mxfp8",
    "FP8-MX": "mxfp8",
    "NVFP4": "nvfp4",
}
GB200 = ("azure", "Standard_ND128isr_NDR_GB200_v6")
MACHINES = {
    "H100-SXM": ("aws", "p5.48xlarge"),
    "H100-80GB-SXM": ("aws", "p5.48xlarge"),
    "B200": ("aws", "p6-b200.48xlarge"),
    "B200-SXM": ("aws", "p6-b200.48xlarge"),
    "B300-SXM": ("aws", "p6-b300.48xlarge"),
    "GB200": GB200,
    "GB300": GB200,  # the same tray with other GPUs and lines
}
GB300_GBIT = 3200.0  # ConnectX-8, 800 Gbit/s for each of four GPUs (NVIDIA, GB300 NVL72, 2025)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One published run."""

    release: tuple[int, ...]
    network: str
    method: str
    gpu: str
    gpus: int
    precision: str
    tokens: int
    batch: int
    tokens_per_s: float

    @property
    def label(self) -> str:
        """What was run, in few words."""
        return f"{self.network}, {self.method}, {self.precision}, {self.gpus} {self.gpu}"


def recipes(folder: Path) -> tuple[Recipe, ...]:
    """The latest release of every recipe that counts."""
    return tuple({run.label: run for run in every_release(folder)}.values())


def every_release(folder: Path) -> tuple[Recipe, ...]:
    """Every recipe that counts, the oldest release first."""
    found = (recipe_of(row) for row in rows_that_count(folder))
    return tuple(sorted(found, key=lambda run: run.release))


def rows_that_count(folder: Path) -> tuple[Mapping[str, str], ...]:
    """The rows of the recipes that count, as they are in the table."""
    with gzip.open(folder / RUNS[0], "rt", encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["source"] in FP8_SOURCES]
    return tuple(filter(_counts, rows))


def _counts(row: Mapping[str, str]) -> bool:
    known = row["model"].split(" (")[0] in MODELS and row["gpu_canon"] in MACHINES
    stated = row["precision"].split(" ")[0] in PRECISIONS and float(row["throughput"] or 0.0) > 0.0
    return known and stated and DROPS not in row["model"]


def recipe_of(row: Mapping[str, str]) -> Recipe:
    """The recipe of a row that counts."""
    _, _, release = row["source_ref"].partition("#")
    gpu = MACHINES[row["gpu_canon"]]
    return Recipe(
        release=tuple(map(int, release.split(" ")[0].split("."))) if release else (24, 7),
        network=row["model"].split(" (")[0],
        method="lora" if "lora" in row["task"].lower() else "full",
        gpu="GB300" if row["gpu_canon"] == "GB300" else snapshot().instance_types[gpu].gpu,
        gpus=int(float(row["n_gpus"])),
        precision=PRECISIONS[row["precision"].split(" ")[0]],
        tokens=int(float(row["seq_len"])),
        batch=int(float(row["global_batch"])),
        tokens_per_s=float(row["throughput"]),
    )


def job_of(run: Recipe) -> Job:
    """The job file that a user would write."""
    return job_from_text(
        "\n".join(
            (
                "schema: recommend.job/v1",
                f"model: {MODELS[run.network]}",
                "stack: tuned",
                f"method: {run.method}",
                f"precision: {run.precision}",
                f"tokens_per_sample: {run.tokens}",
                f"global_batch: {run.batch}",
                "tokens: 1e9",
            )
        )
    )


def machine_of(run: Recipe) -> InstanceType:
    """The machine of a run."""
    known = {snapshot().instance_types[key].gpu: key for key in MACHINES.values()}
    machine = snapshot().instance_types[known.get(run.gpu, GB200)]
    if run.gpu != "GB300":
        return machine
    memory = snapshot().gpus["GB300"].memory_mib
    return replace(machine, gpu="GB300", gpu_memory_mib=memory, network_gbit_per_s=GB300_GBIT)


@cache
def predicted(run: Recipe) -> tuple[float, float]:
    """Tokens/s that an answer states, and the sd of ln(true / predicted)."""
    job, machine, catalog = job_of(run), machine_of(run), snapshot()
    columns = machine_columns(job, (machine,), catalog.gpus, catalog.achieved)
    fleet = clusters_of(columns, np.array([[run.gpus // machine.gpus]]))
    alone = run.gpus == machine.gpus
    spread = columns.speed_sigma if alone else columns.speed_sigma_several
    return run.batch * run.tokens / float(steps(job, columns, fleet).step_s[0]), float(spread[0])


def held(runs: Iterable[Recipe]) -> Held:
    """Predictions next to what was published, tokens/s."""
    each = tuple(runs)
    rate, sigma = np.array([predicted(run) for run in each]).T
    measured = np.array([run.tokens_per_s for run in each])
    return Held(tuple(run.label for run in each), rate, measured, sigma)


def is_dense(run: Recipe) -> bool:
    """Whether a run counts among the dense networks."""
    known = run.network in DENSE and run.precision in ("fp8", "bf16")
    return known and (run.gpu != "H100" or run.method == "lora")


def is_mixture(run: Recipe) -> bool:
    """Whether a run counts among the mixtures of experts."""
    return run.network in MIXTURES


def _score(mixtures: bool, folder: Path | None) -> Score:
    counts = is_mixture if mixtures else is_dense
    return score(held(filter(counts, recipes(reference_folder(folder, *RUNS)))))


SOURCE = "NVIDIA NeMo 24.07 and Megatron-Bridge performance summaries (to 2026-08)"
STUDIES: tuple[Study, ...] = (
    Study(
        key="recipes-dense",
        subject="speed of Llama on Blackwell, and of its adapters, in today's recipes",
        split="nothing fitted on these runs",
        target=Target(mean=25.0),
        published="none known",
        source=SOURCE,
        run=partial(_score, False),
        needs_reference=True,
    ),
    Study(
        key="recipes-mixtures",
        subject="speed of mixtures of experts on Hopper and Blackwell in today's recipes",
        split="bytes counted, time of routing from another network of the same tables",
        target=Target(mean=25.0),
        published="none known",
        source=SOURCE,
        run=partial(_score, True),
        needs_reference=True,
    ),
)
