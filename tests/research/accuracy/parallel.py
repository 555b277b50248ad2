"""Tensor and pipeline parallelism: the step of a layout next to published runs.

Which runs count was fixed before any error was looked at. All weights of a dense decoder are
trained; t or p above one and both stated, t within a machine; no context or expert parallelism,
no sharded weights (ZeRO 2 or 3). In 16 bits: the tables of four papers, carried in
`data/parallel_runs.csv`. In FP8, which the recommender does not plan with: the H100 tables of the
reference folder, with the catalog's FP8 matrix rate in place of the 16-bit one.

Nothing measured: the constants are those of tuned decoders (`priors.csv`), in whose fit no run
with tensor or pipeline parallelism took part. A stated micro-batch is used, else the model's.
"""

import csv
import gzip
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from recommender.arrays import Z_90
from recommender.job.job import Job, Stack
from recommender.performance.clusters import Clusters, clusters_of
from recommender.performance.layouts import Layouts
from recommender.performance.machines import machine_columns
from recommender.performance.memory import bytes_of, held_bytes, sample_bytes
from recommender.performance.model_parallel import layout_terms
from recommender.performance.priors import prior_of
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import RUNS, reference_folder, table
from tests.research.fits.held_out import conformal
from tests.shipped import snapshot

# Eight GPUs, NVSwitch
MACHINES = {"A100-80GB": "p4de.24xlarge", "H100": "p5.48xlarge", "B200": "p6-b200.48xlarge"}
FP8_NAMES = {
    "GPT3-20B": "GPT-3 20B",
    "GPT3-175B": "GPT-3 175B",
    "LLAMA2-13B": "Llama 2 13B",
    "LLAMA2-70B": "Llama 2 70B",
    "LLAMA3_70B": "Llama 3.1 70B",
    "Nemotron-8B": "Nemotron 8B",
    "Nemotron-22B": "Nemotron 22B",
    "Nemotron-340B": "Nemotron 340B",
}
FP8_SOURCES = (
    "NVIDIA NeMo 24.07 performance summary",
    "NVIDIA Megatron-Bridge performance summary",
)
FP8_GBIT = 3200.0  # of a machine: DGX H100, eight times 400 Gbit/s
PEAK = 312e12  # FLOP/s of an A100 in 16 bits, by which its MFU is stated


@dataclass(frozen=True, slots=True)
class Network:
    """A dense decoder."""

    parameters: float
    hidden: int
    layers: int
    vocabulary: int
    lookup: float  # parameters that are looked up, not multiplied

    def flop(self, tokens: int) -> float:
        """FLOP of a training sample, causal attention counted once, nothing recomputed."""
        multiplied = 6.0 * (self.parameters - self.lookup) * tokens
        return multiplied + 6.0 * self.hidden * self.layers * float(tokens) ** 2

    def paper_flop(self, tokens: int, recompute: bool) -> float:
        """FLOP as Megatron-LM's papers count them: equation 3 of arXiv 2104.04473."""
        h, layers, v = float(self.hidden), self.layers, self.vocabulary
        blocks = (96.0 if recompute else 72.0) * layers * h**2 * tokens
        return blocks * (1.0 + tokens / (6.0 * h)) + 6.0 * tokens * h * v


@dataclass(frozen=True, slots=True)
class Run:
    """One published run."""

    source: str
    network: str
    gpu: str
    network_gbit_per_s: float
    gpus: int
    tensor: int
    stages: int
    batch: int
    tokens: int
    micro_batch: int  # 0 where it is not stated
    recompute: bool | None  # None where it is not stated
    samples_per_s: float
    fp8: bool = False
    stack: Stack = "tuned"
    context: int = 1
    sharded: bool = False
    memory_gb_per_s: float = 0.0  # 0: the catalog's

    @property
    def label(self) -> str:
        """What was run, in few words."""
        layout = f"TP {self.tensor} × PP {self.stages}"
        layout += f" × CP {self.context}" if self.context > 1 else ""
        return f"{self.network}, {layout}, {self.gpus} {self.gpu}"


@cache
def predicted(run: Run) -> float:
    """Samples/s that the recommender's model gives a run."""
    network = networks()[run.network]
    job, catalog, per_machine = job_of(run, network), snapshot(), 8
    machine = catalog.instance_types["aws", MACHINES[run.gpu]]
    machine = replace(machine, network_gbit_per_s=run.network_gbit_per_s)
    gpus = dict(catalog.gpus)
    if run.memory_gb_per_s:
        gpus[run.gpu] = replace(gpus[run.gpu], memory_gb_per_s=run.memory_gb_per_s)
    columns = machine_columns(job, (machine,), gpus, catalog.achieved)
    fleet = clusters_of(columns, np.array([[run.gpus // per_machine]]))
    layout = one_layout(run.tensor, run.stages, run.context, run.sharded)
    return run.batch / stated_step_s(job, fleet, layout, run.micro_batch, run.recompute)


def one_layout(
    tensor: float, stages: float, context: float = 1, sharded: bool = False, experts: float = 1
) -> Layouts:
    """One layout on one cluster."""
    zero = np.zeros(1, dtype=np.int64)
    degrees = (tensor, stages, context, sharded, experts)
    return Layouts(zero, zero, *(np.array([float(degree)]) for degree in degrees))


def stated_step_s(
    job: Job,
    fleet: Clusters,
    layout: Layouts,
    micro_batch: int,
    recompute: bool | None = None,
) -> float:
    """The step of a stated layout with its micro-batch (0: the model's), recomputed as stated."""
    prior, times = prior_of(job), []
    needs = bytes_of(job, prior)
    degrees = layout.tensor, layout.stages, layout.sharded, layout.experts
    for again in (False, True):
        held = held_bytes(needs, fleet.gpus, *degrees) + needs.context
        sample = sample_bytes(needs, float(again), layout.parts, layout.stages)
        # Room for the stated micro-batch; else as much as the network takes, were it too much.
        least = held + sample * (max(micro_batch, 1) + 1e-6)
        room = least if micro_batch else np.maximum(fleet.memory_bytes, least + sample)
        one = layout_terms(job, prior, replace(fleet, memory_bytes=room), needs, layout)
        if recompute in (None, again):
            times.append(float(one.step_s[int(again), 0]))
    return min(times)


def job_of(run: Run, network: Network) -> Job:
    """The job of a run, as the recommender would know it."""
    each = float(run.tokens) * network.hidden
    return Job(
        name="run",
        title=run.label,
        family="decoder",
        parameters=network.parameters,
        active_parameters=network.parameters,
        trainable_parameters=network.parameters,
        sample_unit="sequence",
        tokens_per_sample=run.tokens,
        flop_per_sample=network.flop(run.tokens),
        samples=1e6,
        global_batch=run.batch,
        gradient_tensors=9 * network.layers + 3,
        hidden=network.hidden,
        layers=network.layers,
        vocabulary=network.vocabulary,
        activation_bytes_per_sample=34.0 * each * network.layers,
        recomputed_activation_bytes_per_sample=(2.0 * network.layers + 34.0) * each,
        checkpoint_bytes=14.0 * network.parameters,
        stack=run.stack,
        precision="fp8" if run.fp8 else "mixed",
    )


@cache
def networks() -> Mapping[str, Network]:
    """The networks of the runs by name."""
    return {
        row["network"]: Network(
            parameters=float(row["parameters"]),
            hidden=int(row["hidden"]),
            layers=int(row["layers"]),
            vocabulary=int(row["vocabulary"]),
            lookup=float(row["lookup_parameters"]),
        )
        for row in table("parallel_networks")
    }


@cache
def published_runs() -> tuple[Run, ...]:
    """The runs of the papers, in 16 bits."""
    return tuple(_published(row) for row in table("parallel_runs"))


def _published(row: Mapping[str, str]) -> Run:
    network, gpus, batch = networks()[row["network"]], int(row["gpus"]), int(row["global_batch"])
    figure, tokens = float(row["figure"]), int(row["tokens"])
    rate = {
        "s/step": batch / figure,
        "TFLOP/s": figure * 1e12 * gpus / network.flop(tokens),
        "TFLOP/s with recomputation": figure * 1e12 * gpus / network.paper_flop(tokens, True),
        "% MFU": figure / 100.0 * PEAK * gpus / network.paper_flop(tokens, False),
    }[row["unit"]]
    return run_of(row, rate)


def run_of(row: Mapping[str, str], samples_per_s: float) -> Run:
    """A run by the columns that tables of model parallelism share."""
    return Run(
        source=row["source"].split(",")[0],
        network=row["network"],
        gpu=row["gpu"],
        network_gbit_per_s=float(row["network_gbit_per_s"]),
        gpus=int(row["gpus"]),
        tensor=int(row["tensor"]),
        stages=int(row["stages"]),
        batch=int(row["global_batch"]),
        tokens=int(row["tokens"]),
        micro_batch=int(row["micro_batch"]),
        recompute=row["recompute"] == "1" if row["recompute"] else None,
        samples_per_s=samples_per_s,
    )


def reference_runs(folder: Path) -> tuple[Run, ...]:
    """The FP8 runs on H100 of the reference folder that count."""
    path = folder / "measured" / "training.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["source"] in FP8_SOURCES]
    return tuple(_reference(row) for row in rows if _counts(row))


def _counts(row: Mapping[str, str]) -> bool:
    divided = max(degree_of(row, "TP"), degree_of(row, "PP")) > 1
    whole = max(degree_of(row, "CP"), degree_of(row, "EP")) <= 1 and degree_of(row, "FSDP") == 0
    trained = "lora" not in row["task"].lower() and row["precision"].startswith("FP8")
    known = row["model"].split(" ")[0] in FP8_NAMES and row["gpu_canon"] == "H100-SXM"
    return divided and whole and trained and known


def degree_of(row: Mapping[str, str], name: str) -> int:
    """A degree of the layout that a row of the reference folder states; 0 if it states none."""
    found = re.search(rf"\b{name}=(\d+)", row["parallelism"])
    return int(found[1]) if found else 0


def _reference(row: Mapping[str, str]) -> Run:
    tokens = int(float(row["seq_len"]))
    return Run(
        source=row["source"],
        network=FP8_NAMES[row["model"].split(" ")[0]],
        gpu="H100",
        network_gbit_per_s=FP8_GBIT,
        gpus=int(float(row["n_gpus"])),
        tensor=degree_of(row, "TP"),
        stages=degree_of(row, "PP"),
        batch=int(float(row["global_batch"])),
        tokens=tokens,
        micro_batch=int(float(row["batch_per_gpu"])),
        recompute=None,
        samples_per_s=float(row["throughput"]) / tokens,
        fp8=True,
    )


def held(runs: Iterable[Run]) -> Held:
    """Predictions with nothing measured, tokens/s; the spread is that of the other sources."""
    each = tuple(runs)
    tokens = np.array([run.tokens for run in each], dtype=np.float64)
    return Held(
        labels=tuple(run.label for run in each),
        predicted=tokens * np.array([predicted(run) for run in each]),
        measured=tokens * np.array([run.samples_per_s for run in each]),
        sigma=np.array([spread_without(run.source) for run in each]),
    )


@cache
def spread_without(source: str = "") -> float:
    """Sd of ln(true / predicted) under model parallelism, from the papers' runs but for one source.

    That of all is `sigma_several` of tuned decoders in `priors.csv`; a source weighs the square
    root of its runs.
    """
    missed: dict[str, list[float]] = {}
    for run in published_runs():
        if run.source != source:
            missed.setdefault(run.source, []).append(np.log(predicted(run) / run.samples_per_s))
    parts = [np.abs(errors) / Z_90 for errors in missed.values()]
    return conformal(parts, [np.full(len(part), len(part) ** -0.5) for part in parts])


def scaled(runs: Iterable[Run]) -> Held:
    """Predictions for larger clusters, the smallest run of each series measured.

    A series is one source, network, layout, micro-batch and choice of recomputation.
    """
    series: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        key = (run.source, run.network, run.tensor, run.stages, run.micro_batch, run.recompute)
        series.setdefault((*key, run.tokens), []).append(run)
    later, start = [], []
    for alike in series.values():
        first = min(alike, key=lambda run: run.gpus)
        more = [run for run in alike if run.gpus > first.gpus]
        later += more
        start += [first.samples_per_s / predicted(first)] * len(more)
    found = held(later)
    return replace(found, predicted=found.predicted * np.array(start), sigma=None)


def _reference_score(folder: Path | None) -> Score:
    return score(held(reference_runs(reference_folder(folder, *RUNS))))


SEVERAL = Target(mean=18.0, median=14.0)
ROOFLINE = "25, 21 %: two-resource roofline on other tables of several machines"
STUDIES: tuple[Study, ...] = (
    Study(
        key="parallel",
        subject="training speed under tensor and pipeline parallelism, nothing measured",
        split="constants of data-parallel runs; every run with model parallelism held out",
        target=SEVERAL,
        published=ROOFLINE,
        source="Megatron-LM (3 papers), MT-NLG 530B, Llama 3 405B: tables of the papers",
        run=lambda _: score(held(published_runs())),
    ),
    Study(
        key="parallel-scaling",
        subject="speed under model parallelism on more machines, scaled from the smallest run",
        split="the smallest cluster of each series measured, all larger ones held out",
        target=Target(mean=12.0),
        published="20 %: two-resource roofline; linear scaling 60 %, on other tables",
        source="Megatron-LM (2 papers), MT-NLG 530B, Llama 3 405B: tables of the papers",
        run=lambda _: score(scaled(published_runs())),
    ),
    Study(
        key="parallel-fp8",
        subject="speed under model parallelism in FP8, nothing measured",
        split="constants of data-parallel runs in 16 bits, FP8 matrix rate of the catalog",
        target=SEVERAL,
        published=ROOFLINE,
        source="NVIDIA NeMo 24.07 and Megatron-Bridge performance summaries, H100",
        run=_reference_score,
        needs_reference=True,
    ),
)
