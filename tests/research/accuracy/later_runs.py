"""Runs published after the fits: MLPerf Training v3.1 and v4.0, hivemind, sailor on GH200.

Which rows count and which of them judge was written down before any of them was predicted
(`later_splits.csv`, 2026-11-23):

* v3.1 may be fitted on. v4.0 judges, but for rows that v3.1 holds already, to the digit. hivemind
  and sailor judge.
* Networks of a family that the recommender knows: no recurrent and no graph networks. hivemind's
  networks for text and speech give no length of a sample, its clusters span the internet.
* A rate is stated: no speed-ups over a baseline, no bare times. hivemind's rates are counted again
  (2026-11-26, `data/later_rates.csv`): its log divides a minibatch by the seconds in which the host
  loads it and launches its kernels (`step_based_sps` of its `bee`, timers without synchronisation);
  the wait for the GPU, in `loss.item()`, is not in them. The same logs state the samples of the
  five or twenty minutes that each run lasted. Its script decodes images in two processes; later
  runs (161 on) keep more cores busy, their script is not published.
* MLPerf's rates "incl. eval" are samples to target over run time, evaluations included:
  they are taken out by the benchmark's rules (2026-11-26, `data/mlperf_evaluations.csv`).
* GPUs whose rates their vendor publishes and that some cloud lets by the hour.
* MLPerf is of the tuned stack, all else of the typical one, as `job.Stack` says. Since 2026-11-26
  its three runs in DeepSpeed are of the typical one: MLCommons' own script is accelerate, PEFT and
  ZeRO-3 (training/llama2_70b_lora), whose configuration `recommend init` reads as typical.
* 8-bit arithmetic (FP8) where the submitter's public recipe asks for it: NVIDIA's BERT, GPT-3 and
  Llama 2 LoRA on Hopper, Intel's GPT-3 on Gaudi2. All other runs are of 16 bits.

The prediction is the recommender's for a job that states its network, batch, precision and
stack: samples/s of the cluster. The machine's memory holds the micro-batch that ran and no more;
networks of 50 B parameters and more are laid out by the recommender.
"""

import csv
import gzip
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from recommender.catalogs.gpu_links import usual_links
from recommender.catalogs.schema import InstanceType
from recommender.errors import RecordError
from recommender.inputs.training_software import software
from recommender.job.activations import heads_of
from recommender.job.derive import intensity_ratio
from recommender.job.job import DataSet, Job, Sharding
from recommender.job.jobfile import find_job
from recommender.performance.clusters import Clusters, MachineColumns, clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.memory import bytes_of
from recommender.performance.priors import prior_of
from recommender.performance.step import steps
from tests.research.accuracy.parallel import one_layout, stated_step_s
from tests.research.accuracy.published_runs import MIB, SAMPLE_BYTES
from tests.research.accuracy.tables import table
from tests.shipped import snapshot

LATER = "measured/training2.csv.gz"
LARGE = 5e10  # parameters from which a run must have divided its network
LAYOUT = re.compile(r"PP(\d+) DP\d+ TP(\d+)")


@dataclass(frozen=True, slots=True)
class LaterRun:
    """One published run as the recommender would be told of it."""

    source: str
    use: str  # "fit" or "judged"
    model: str
    submitter: str
    gpu_canon: str
    machines: int
    gpus_per_machine: int
    micro_batch: float
    batch: int
    fp8: bool
    stack: str
    samples_per_s: float
    tensor: int = 0  # as stated; 0: the recommender chooses
    stages: int = 0
    loaders: int = 0  # processes that decode images; 0: not stated, none waits for them

    @property
    def gpus(self) -> int:
        """GPUs of the cluster."""
        return self.machines * self.gpus_per_machine

    @property
    def label(self) -> str:
        """What was run, in few words."""
        return f"{self.source}: {self.model}, {self.gpus} {self.gpu_canon}"


@cache
def later_runs(reference: Path) -> tuple[LaterRun, ...]:
    """Every run that counts, in the order of the table; refused where its splits were not."""
    with gzip.open(reference / LATER, "rt", encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if _counts(row)]
    first = {_figure(row) for row in rows if row["source"].endswith("v3.1")}
    found = tuple(_run(row, first) for row in rows)
    _check(found)
    return found


def _counts(row: Mapping[str, str]) -> bool:
    known = row["model"] in networks() and row["gpu_canon"] in machines()
    spread = row["source"].startswith("cirquit") and float(row["nodes"] or 0) > 1
    rate = float(row["throughput"] or 0) > 0 and "speed-up" not in row["unit"]
    return known and rate and not spread


def _figure(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[k] for k in ("model", "gpu_canon", "nodes", "gpus_per_node", "throughput"))


def _run(row: Mapping[str, str], first: set[tuple[str, ...]]) -> LaterRun:
    n, g = round(float(row["nodes"])), round(float(row["gpus_per_node"]))
    network = networks()[row["model"]]
    recipe = row["source"].startswith("MLPerf") and "Deepspeed" not in row["framework"]
    tokens = float(network["tokens"]) if row["unit"].startswith("tokens") else 1.0
    rounds, batch = float(row["grad_accum"] or 1), float(row["global_batch"] or 0)
    micro = float(row["batch_per_gpu"] or 0) or batch / (n * g) / rounds
    layout = LAYOUT.search(row["parallelism"])
    submitter = re.search(r"submitter=([^;]+)", row["note"])
    return LaterRun(
        source=row["source"],
        use="fit" if row["source"].endswith("v3.1") or _figure(row) in first else "judged",
        model=row["model"],
        submitter=submitter[1] if submitter else row["source"],
        gpu_canon=row["gpu_canon"],
        machines=n,
        gpus_per_machine=g,
        micro_batch=micro,
        batch=round(batch or micro * n * g),
        fp8=recipe and _in_fp8(row),
        stack="tuned" if recipe else "typical",
        samples_per_s=_counted_rate(row) / tokens,
        tensor=int(layout[2]) if layout else 0,
        stages=int(layout[1]) if layout else 0,
        loaders=int(_counted(row).get("loaders") or 0),
    )


def _counted_rate(row: Mapping[str, str]) -> float:
    """The rate of training: as stated, or counted again where a source states something else."""
    counted, stated = _counted(row), float(row["throughput"])
    if counted:
        return float(counted["samples"]) / float(counted["seconds"])
    # Tokens to target over run time give the rates of GPT-3 whose unit says otherwise.
    timed = "incl. eval" in row["unit"] or row["model"] == "MLPerf gpt3"
    return stated * (1.0 + _evaluated_share(row)) if timed else stated


def _evaluated_share(row: Mapping[str, str]) -> float:
    """The work of a run's evaluations over that of its training, by MLPerf's rules."""
    rule = evaluations()[row["model"]]
    tokens = float(networks()[row["model"]]["tokens"]) if row["unit"].startswith("tokens") else 1.0
    trained = float(row["throughput"]) / tokens * float(row["time_to_train_h"]) * 3600.0
    skipped = float(rule["skipped_of_batch"]) * float(row["global_batch"]) + float(rule["skipped"])
    times = max(round(trained / float(rule["every"])) - int(skipped), 0)
    return times * float(rule["evaluated"]) * float(rule["forward_share"]) / trained


def _counted(row: Mapping[str, str]) -> Mapping[str, str]:
    number = re.search(r"baseline run (\d+):", row["note"])
    return counted_runs()[number[1]] if number else {}


def _in_fp8(row: Mapping[str, str]) -> bool:
    hopper = row["gpu_canon"].startswith("H")
    recipes = ("MLPerf bert", "MLPerf gpt3", "MLPerf llama2_70b_lora")
    gaudi = row["gpu_canon"].startswith("GAUDI") and row["model"] == "MLPerf gpt3"
    return (hopper and row["model"] in recipes) or gaudi


def _check(found: Iterable[LaterRun]) -> None:
    """Refuse tables whose rows are not those that were split."""
    text = Path(__file__).with_name("later_splits.csv").read_text(encoding="utf-8")
    frozen = {
        (row["use"], row["source"], row["model"]): int(row["rows"])
        for row in csv.DictReader(text.splitlines())
    }
    counted: dict[tuple[str, str, str], int] = {}
    for run in found:
        key = run.use, run.source, run.model
        counted[key] = counted.get(key, 0) + 1
    if counted != frozen:
        apart = sorted(set(counted.items()) ^ set(frozen.items()))
        raise RecordError(
            f"{LATER}: rows are not those of later_splits.csv: {apart[:3]}; "
            "use the tables of 2026-11-23, or leave the study out"
        )


@cache
def counted_runs() -> Mapping[str, Mapping[str, str]]:
    """What hivemind's runs processed, by the number of the run."""
    return {row["run"]: row for row in table("later_rates")}


@cache
def evaluations() -> Mapping[str, Mapping[str, str]]:
    """How often and on how much MLPerf's runs are evaluated, by network."""
    return {row["model"]: row for row in table("mlperf_evaluations")}


@cache
def networks() -> Mapping[str, Mapping[str, str]]:
    """The networks of the runs by name."""
    return {row["model"]: row for row in table("later_networks")}


@cache
def machines() -> Mapping[str, Mapping[str, str]]:
    """What links the GPUs of the runs, by the name that the table gives them."""
    return {row["gpu_canon"]: row for row in table("later_machines")}


def is_known(run: LaterRun) -> bool:
    """Whether the catalog has its GPU, and the network of several machines is known."""
    card = machines()[run.gpu_canon]
    linked = run.machines == 1 or float(card["gbit_per_s_of_gpu"]) > 0
    return card["gpu"] in snapshot().gpus and linked


def is_large(run: LaterRun) -> bool:
    """Whether its network must have been divided among GPUs."""
    return float(networks()[run.model]["parameters"]) >= LARGE


def job_of(run: LaterRun) -> Job:
    """The job of a run."""
    network = networks()[run.model]
    parameters, tokens = float(network["parameters"]), int(network["tokens"])
    hidden, layers = int(network["hidden"]), int(network["layers"])
    large, lora = is_large(run), run.model.endswith("lora")
    each = float(tokens) * hidden
    divided = run.tensor > 0
    # Its runs keep 3.25 GB more for each sample of OPT-350M on four GPUs; scores of unfused
    # attention are 2.0 of them, all else 1.05.
    of_sailor = run.source.startswith("eth-easl/sailor")
    plain = of_sailor and not software()["megatron-deepspeed"].is_fused(sdpa=None)
    scores = 5.0 * heads_of(hidden) * float(tokens) ** 2 if plain else 0.0
    return Job(
        name="run",
        title=run.label,
        family=network["family"],  # type: ignore[arg-type]
        parameters=parameters,
        active_parameters=parameters,
        # Rank 16 next to the four matrices of attention of Llama 2 70B
        trainable_parameters=4.5e7 if lora else parameters,
        sample_unit="sample",
        tokens_per_sample=tokens,
        flop_per_sample=float(network["flop_per_sample"]),
        samples=1e6,
        global_batch=run.batch,
        gradient_tensors=int(network["tensors"]),
        hidden=hidden,
        layers=layers,
        vocabulary=int(network["vocabulary"]) if large or divided else 0,
        attention="plain" if plain else "fused",
        heads=heads_of(hidden),
        activation_bytes_per_sample=(34.0 * each + scores) * layers
        if large or divided
        else SAMPLE_BYTES,
        recomputed_activation_bytes_per_sample=(2.0 * layers + 34.0) * each + scores
        if large or divided
        else SAMPLE_BYTES,
        checkpoint_bytes=1.0,
        data=find_job("resnet50-imagenet").data if run.loaders else DataSet(),
        precision="fp8" if run.fp8 else "mixed",
        intensity_ratio=intensity_ratio(
            network["family"], float(network["flop_per_sample"]), _kept_bytes(network)
        ),
        method="lora" if lora else "full",
        forward_passes=2.0 if lora else 3.0,
        sharding=_stated_layout(run) if large or divided else "ddp",
        stack=run.stack,  # type: ignore[arg-type]
    )


def _stated_layout(run: LaterRun) -> Sharding:
    """The word of a job file for the layout that the source states."""
    return "pipeline" if run.stages > 1 else "tensor" if run.tensor > 1 else "auto"


def _kept_bytes(network: Mapping[str, str]) -> float | None:
    return float(network["activation_mb"]) * 1e6 if network["activation_mb"] else None


def _links_gb_per_s(card: Mapping[str, str], gpus: int) -> float | None:
    """The usual links of the GPU, unless the machines of the runs have others."""
    usual = usual_links(card["gpu"], gpus)
    stated = card["links_gb_per_s"]
    return float(stated) if stated else usual.gb_per_s if usual else None


def machine_of(run: LaterRun, job: Job) -> InstanceType:
    """The machine of a run."""
    card, prior = machines()[run.gpu_canon], prior_of(job)
    gpu, needs = snapshot().gpus[card["gpu"]], bytes_of(job, prior)
    room = needs.context + needs.states + (run.micro_batch + 0.5) * SAMPLE_BYTES
    stated = job.sharding == "ddp"
    return InstanceType(
        provider="own",
        instance_type="run",
        family="run",
        gpu=card["gpu"],
        gpus=run.gpus_per_machine,
        gpu_memory_mib=round(room / 0.92 / MIB) if stated else gpu.memory_mib,
        vcpus=run.loaders or 128,
        memory_gib=1000.0,
        arch="x86_64",
        network_gbit_per_s=float(card["gbit_per_s_of_gpu"]) * run.gpus_per_machine or None,
        network_peak_gbit_per_s=None,
        network_kind="rdma",
        network_basis="listed",
        intra_kind="nvswitch",
        intra_gb_per_s=_links_gb_per_s(card, run.gpus_per_machine),
        host_gb_per_s=25.0,
        local_disk_gib=0.0,
        local_disk_mb_per_s=0.0,
        quota_family="",
        status="open",
        kind="measured",
        source=0,
        as_of="2024-06-12",
    )


def columns_of(run: LaterRun, stated: bool = True) -> tuple[Job, MachineColumns, Clusters]:
    """The job of a run, its machine and its cluster; its software stated or not."""
    job, catalog = job_of(run), snapshot()
    job = job if stated else replace(job, stack="typical", assumed=("stack",))
    machine = machine_of(run, job)
    columns = machine_columns(job, (machine,), catalog.gpus, catalog.achieved)
    return job, columns, clusters_of(columns, np.array([[run.machines]]))


@cache
def predicted(run: LaterRun) -> tuple[float, float]:
    """Samples/s that the recommender gives a run, and the sd of ln(true / predicted)."""
    return _predicted(*columns_of(run), run)


@cache
def predicted_unstated(run: LaterRun) -> tuple[float, float]:
    """The same if the job does not state its software."""
    return _predicted(*columns_of(run, stated=False), run)


def _predicted(
    job: Job, columns: MachineColumns, fleet: Clusters, run: LaterRun
) -> tuple[float, float]:
    spread = columns.speed_sigma if run.machines == 1 else columns.speed_sigma_several
    return run.batch / float(steps(job, columns, fleet).step_s[0]), float(spread[0])


@cache
def layout_as_stated(run: LaterRun) -> tuple[float, float]:
    """The same of a run whose tensor and pipeline degrees are stated, with its micro-batch."""
    job, columns, fleet = columns_of(run)
    step_s = stated_step_s(job, fleet, one_layout(run.tensor, run.stages), run.micro_batch)
    return run.batch / step_s, float(columns.speed_sigma_several[0])
