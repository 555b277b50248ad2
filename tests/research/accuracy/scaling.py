"""Scaling to unseen numbers of workers, calibrated on few: DeepVM, Gavel, p3 collectives.

The splits were fixed before any error was looked at: DeepVM n <= 8 against n > 8; Gavel one and
two workers against four and eight; all-reduce at four machines, the fewest there are, against
eight and sixteen. The fit is the one behind `recommend calibrate`.
"""

from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.job.job import Family, Job, TimedRun
from recommender.performance.calibration_model import StepModel, solve, spread_for
from recommender.performance.clusters import MachineColumns
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.extrapolation import Extrapolated, extrapolated, joined
from tests.research.accuracy.study import Study, score
from tests.research.accuracy.tables import table

GBIT = 1e9 / 8
ENDLESS = 1e15
DEEPVM_LARGEST_SEEN = 8
GAVEL_MOST_SEEN = 2
COLLECTIVE_SEEN = 4
DEEPVM_PARAMETERS = 11.69e6  # ResNet-18
DEEPVM_BATCH = 128  # per GPU
DEEPVM_IMAGES, DEEPVM_EPOCHS = 50_000, 3  # CIFAR-10; the script's default
# Sustained network of the types, Gbit/s (AWS, baseline); it only starts the fit.
DEEPVM_GBIT = {"g3s.xlarge": 1.25, "g4dn.xlarge": 5.0, "g5.xlarge": 2.5}
# Parameters: He et al. 2015; pytorch/examples word_language_model on WikiText-2 (200 wide, two
# LSTM layers, 33,278 words); Vaswani et al. 2017, base, on Multi30k's 9,500 words.
GAVEL_PARAMETERS = {"ResNet-18": 11.2e6, "ResNet-50": 25.6e6, "LM": 14.0e6, "Transformer": 54.0e6}
GAVEL_FAMILY: dict[str, Family] = {"Transformer": "encoder", "LM": "encoder"}
PCIE_BYTES_PER_S = 10e9
GAVEL_GPUS = ("k80", "p100", "v100")


def bare_job(family: Family, parameters: float, tensors: int = 0) -> Job:
    """A job in 32 bit of which only the gradients matter; the first run gives its speed."""
    return Job(
        name="study",
        title="study",
        family=family,
        parameters=parameters,
        active_parameters=parameters,
        trainable_parameters=parameters,
        sample_unit="sample",
        tokens_per_sample=1,
        flop_per_sample=1.0,
        samples=1.0,
        global_batch=1,
        gradient_tensors=tensors,
        hidden=0,
        layers=0,
        vocabulary=0,
        activation_bytes_per_sample=1.0,
        recomputed_activation_bytes_per_sample=1.0,
        checkpoint_bytes=1.0,
        precision="fp32",
        optimizer="sgd",
        sharding="ddp",
    )


def bare_machine(
    gpus: int, samples_per_s: float, network: float, latency_s: float, links: float
) -> MachineColumns:
    """One machine type, "own/study", with room for everything and fed without limit."""
    links_of = np.array([links])
    columns = bare_machines(("own/study",), np.array([gpus]), samples_per_s / gpus, links_of)
    return replace(
        columns,
        network_bytes_per_s=np.array([network]),
        network_latency_s=np.array([latency_s]),
    )


def bare_machines(
    names: tuple[str, ...], gpus: Floats, samples_per_s: float, links: Floats
) -> MachineColumns:
    """Machine types without a network, of GPUs that make so many samples/s; (types,)."""
    one = np.ones(len(names))
    return MachineColumns(
        names=names,
        gpus=gpus * one,
        compute_per_s=samples_per_s * gpus * one,
        memory_bytes=ENDLESS * one,
        device_bytes_per_s=np.inf * one,
        network_bytes_per_s=0.0 * one,
        network_half_bytes=0.0 * one,
        network_latency_s=0.0 * one,
        intra_bytes_per_s=links * one,
        prepare_per_s=np.inf * one,
        fetch_per_s=np.inf * one,
        host_bytes_per_s=one,
        disk_bytes_per_s=one,
        speed_sigma=one,
        speed_sigma_several=one,
        reasons=("",) * len(names),
    )


def held_out(
    job: Job,
    columns: MachineColumns,
    seen: tuple[TimedRun, ...],
    unseen: tuple[TimedRun, ...],
    source: str,
    network: str,
) -> Extrapolated:
    """Calibrate on the runs seen and predict the others, seconds per step."""
    model = StepModel(job, seen, columns, spread=spread_for(seen))
    to = StepModel(job, unseen, columns, model.gpus)
    return extrapolated(model, solve(model), to, unseen, source, network)


def deepvm(instance: str) -> Extrapolated:
    """ResNet-18 on up to 8 machines of a type, predicted for 12 to 32.

    An epoch is ceil(ceil(50000/n)/128) steps of 128 images per GPU.
    """
    rows = [row for row in table("deepvm_scaling") if row["instance"] == instance]
    runs = []
    for row in rows:
        n = int(row["machines"])
        steps = DEEPVM_EPOCHS * np.ceil(np.ceil(DEEPVM_IMAGES / n) / DEEPVM_BATCH)
        runs.append(
            _run(f"{instance} x {n}", n, n, DEEPVM_BATCH * n, float(row["seconds"]) / steps)
        )
    columns = bare_machine(
        1, DEEPVM_BATCH / runs[0].step_s, DEEPVM_GBIT[instance] * GBIT, 5e-4, np.inf
    )
    seen = tuple(run for run in runs if run.machines <= DEEPVM_LARGEST_SEEN)
    unseen = tuple(run for run in runs if run.machines > DEEPVM_LARGEST_SEEN)
    job = bare_job("cnn", DEEPVM_PARAMETERS)
    return held_out(job, columns, seen, unseen, "DeepVM", "ResNet-18")


@cache
def gavel(gpu: str) -> Extrapolated:
    """Every model and batch of a GPU on one and two workers, predicted for four and eight.

    Workers are taken for GPUs of one machine.
    """
    parts = []
    for model, runs in gavel_series(gpu):
        rate = 8 * runs[0].batch / runs[0].step_s
        columns = bare_machine(8, rate, 0.0, 0.0, PCIE_BYTES_PER_S)
        parts.append(gavel_held_out(model, columns, runs))
    return joined(parts)


def gavel_held_out(model: str, columns: MachineColumns, runs: tuple[TimedRun, ...]) -> Extrapolated:
    """One network and batch on four and eight workers, predicted from its own one and two."""
    seen = tuple(run for run in runs if run.gpus <= GAVEL_MOST_SEEN)
    unseen = tuple(run for run in runs if run.gpus > GAVEL_MOST_SEEN)
    return held_out(gavel_job(model), columns, seen, unseen, "Gavel", model)


def gavel_job(model: str) -> Job:
    """One of Gavel's networks, in 32 bit."""
    return bare_job(GAVEL_FAMILY.get(model, "cnn"), GAVEL_PARAMETERS[model])


def gavel_series(gpu: str) -> list[tuple[str, tuple[TimedRun, ...]]]:
    """The runs of each network and batch on one worker first, where more than two were timed.

    `steps_per_s` adds up the workers' own steps.
    """

    def key(row: dict[str, str]) -> tuple[str, int]:
        return row["model"], int(row["batch"])

    rows = sorted((row for row in table("gavel_scaling") if row["gpu"] == gpu), key=key)
    found = [
        (model, tuple(_gavel_run(row, batch) for row in some))
        for (model, batch), some in groupby(rows, key)
    ]
    return [each for each in found if max(run.gpus for run in each[1]) > GAVEL_MOST_SEEN]


def collectives() -> Extrapolated:
    """All-reduce at four machines, predicted for eight and sixteen; each setting by itself.

    Default settings start from 10 Gbit/s and 0.5 ms, limited ones from their limits.
    """
    parts = []

    def key(row: dict[str, str]) -> tuple[str, str, int]:
        return row["backend"], row["gbit_per_s"], int(row["message_mb"])

    for (backend, gbit, message), some in groupby(sorted(table("p3_collectives"), key=key), key):
        rows = list(some)
        runs = [
            _run(
                f"{backend} {message} MB, {gbit or 'default'} Gbit/s, {row['machines']} machines",
                int(row["machines"]),
                int(row["machines"]),
                int(row["machines"]),
                float(row["milliseconds"]) / 1e3,
            )
            for row in rows
        ]
        latency_s = float(rows[0]["delay_ms"] or 0.5) / 1e3
        columns = bare_machine(1, ENDLESS, float(gbit or 10) * GBIT, latency_s, np.inf)
        seen = tuple(run for run in runs if run.machines == COLLECTIVE_SEEN)
        unseen = tuple(run for run in runs if run.machines > COLLECTIVE_SEEN)
        job = bare_job("cnn", message * 1e6 / 4)
        parts.append(held_out(job, columns, seen, unseen, "tc_cluster_setting", backend))
    return joined(parts)


def _gavel_run(row: dict[str, str], batch: int) -> TimedRun:
    workers = int(row["workers"])
    place = f"{row['gpu']} {row['model']} batch {batch}, {workers} workers"
    return _run(place, 1, workers, batch * workers, workers / float(row["steps_per_s"]))


def _run(place: str, machines: int, gpus: int, batch: int, step_s: float) -> TimedRun:
    return TimedRun(place, "own/study", "GPU", gpus, machines, batch, float(step_s))


def _deepvm_score(instance: str, reference: Path | None) -> Score:
    return score(deepvm(instance).held())


def _gavel_score(gpu: str, reference: Path | None) -> Score:
    return score(gavel(gpu).held())


def _collectives_score(reference: Path | None) -> Score:
    return score(collectives().held())


STUDIES: tuple[Study, ...] = (
    *(
        Study(
            key=f"deepvm-{instance.partition('.')[0]}",
            subject=f"ResNet-18 on 12 to 32 {instance}",
            split="calibrated on 1 to 8 machines",
            target=Target(mean=target),
            published=f"two terms, non-negative: {best} %; DeepVM's own fit, in sample: {own} %",
            source="DeepVM (CCGrid 2024), figure 5",
            run=partial(_deepvm_score, instance),
        )
        for instance, target, best, own in (
            ("g3s.xlarge", 2.5, 1.9, 24),
            ("g4dn.xlarge", 4.1, 4.1, 7),
            ("g5.xlarge", 3.0, 2.7, 18),
        )
    ),
    *(
        Study(
            key=f"gavel-{gpu}",
            subject=f"four models on 4 and 8 {gpu.upper()}",
            split="each calibrated on 1 and 2 workers",
            target=Target(mean=10.0),
            published="none known",
            source="Gavel (OSDI 2020)",
            run=partial(_gavel_score, gpu),
        )
        for gpu in GAVEL_GPUS
    ),
    Study(
        key="collectives-p3",
        subject="all-reduce between 8 and 16 p3.2xlarge, NCCL and Gloo",
        split="each calibrated on 4 machines",
        target=Target(mean=10.0),
        published="fitted on all but one number of machines: NCCL 3.7 %, Gloo 9.3 %",
        source="tc_cluster_setting",
        run=_collectives_score,
    ),
)
