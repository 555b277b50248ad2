"""Whole training runs that everybody knows: GPU-hours from the first to the last token.

Which runs, and what is stated of each, was written down before any was predicted
(`data/whole_runs.csv`, 2026-11-23). The recommender is told the network, the tokens, the batch, the
stack and the cluster; nothing of the run's speed. Published hours hold restarts, evaluations and
what was thrown away; the prediction adds faults at the rate that answers assume.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from recommender.catalogs.load import load_snapshot
from recommender.job.job import Job
from recommender.performance.clusters import clusters_of, spread_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import table

MACHINES = {"A100": "p4d.24xlarge", "A100-80GB": "p4de.24xlarge", "H100": "p5.48xlarge"}
PER_MACHINE = 8
# Hours that a fault of one machine costs all of them: half an interval of half an hour, and half an
# hour until the run goes on. Assumed; Llama 3 (arXiv 2407.21783) lost less than a tenth to 419.
FAULT_H = 0.75


def job_of(row: Mapping[str, str]) -> Job:
    """The job of a run."""
    parameters, hidden, layers = float(row["parameters"]), int(row["hidden"]), int(row["layers"])
    tokens, each = int(row["tokens_per_sample"]), float(row["tokens_per_sample"]) * hidden
    multiplied = parameters - float(row["vocabulary"]) * hidden  # the embedding is looked up
    flop = 6.0 * multiplied * tokens + 6.0 * hidden * layers * float(tokens) ** 2
    return Job(
        name="run",
        title=row["run"],
        family="decoder",
        parameters=parameters,
        active_parameters=parameters,
        trainable_parameters=parameters,
        sample_unit="sequence",
        tokens_per_sample=tokens,
        flop_per_sample=flop,
        samples=float(row["tokens"]) / tokens,
        global_batch=round(float(row["batch_tokens"]) / tokens),
        gradient_tensors=9 * layers + 3,
        hidden=hidden,
        layers=layers,
        vocabulary=int(row["vocabulary"]),
        activation_bytes_per_sample=34.0 * each * layers,
        recomputed_activation_bytes_per_sample=(2.0 * layers + 34.0) * each,
        checkpoint_bytes=14.0 * parameters,
        stack="tuned" if row["stack"] == "tuned" else "typical",
    )


def predicted(row: Mapping[str, str]) -> tuple[float, float]:
    """GPU-hours of a run, and the sd of their ln; infinite where no layout fits."""
    job, catalog, gpus = job_of(row), load_snapshot(), int(row["gpus"])
    machine = catalog.instance_types["aws", MACHINES[row["gpu"]]]
    machine = replace(machine, network_gbit_per_s=float(row["network_gbit_per_s"]))
    columns = machine_columns(job, (machine,), catalog.gpus, catalog.achieved)
    counts = np.array([[gpus // PER_MACHINE]])
    step_s = float(steps(job, columns, clusters_of(columns, counts)).step_s[0])
    faults_per_h = job.fault_rate_per_hour * gpus / PER_MACHINE
    hours = step_s * job.steps / 3600.0 / (1.0 - min(faults_per_h * FAULT_H, 0.9))
    return hours * gpus, float(spread_of(columns, np.zeros(1, dtype=np.int64), counts)[0])


def held(_: Path | None = None) -> Held:
    """Every run beside its published hours."""
    rows = table("whole_runs")
    hours, sigma = np.array([predicted(row) for row in rows]).T
    published = np.array([float(row["gpu_hours"]) for row in rows])
    return Held(tuple(row["run"] for row in rows), hours, published, sigma)


def _score(reference: Path | None) -> Score:
    return score(held(reference))


STUDIES: tuple[Study, ...] = (
    Study(
        key="runs-whole",
        subject="GPU-hours of whole runs that everybody knows, nothing measured",
        split="nothing of these runs was fitted on; runs and inputs frozen before",
        target=Target(mean=25.0),
        published="none known",
        source="llm.c, TinyLlama, Llama 1 to 3.1, OPT, BLOOM: as their authors state them",
        run=_score,
    ),
)
