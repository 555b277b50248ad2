"""Whole training runs that everybody knows: GPU-hours from the first to the last token.

Which runs, and what is stated of each, was written down before any was predicted
(`data/whole_runs.csv`, 2026-11-23). The recommender is told the network, the tokens, the batch, the
stack and the cluster; nothing of the run's speed. Published hours hold restarts, evaluations and
what was thrown away; the prediction adds faults at the rate that answers assume (one in 6,250
hours of a machine: the 419 of Llama 3.1, arXiv 2407.21783), each with the restart, the restore and
the lost work of an answer.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from recommender.job.job import Job
from recommender.market.offer_facts import Facts
from recommender.optimize.evaluate import RENDEZVOUS_S
from recommender.performance.checkpoint import best_interval, object_store, progress
from recommender.performance.clusters import Clusters, clusters_of, spread_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.accuracy import Score, Target
from recommender.plan.limits import Choice
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import table
from tests.shipped import snapshot

MACHINES = {"A100": "p4d.24xlarge", "A100-80GB": "p4de.24xlarge", "H100": "p5.48xlarge"}
PER_MACHINE = 8
NOW = datetime(2026, 11, 21, tzinfo=UTC)  # of the catalog's prices, which play no part
RUN_SIGMA = 1.0  # of the law of runs that only faults end, as in `evaluate.gang_of`


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
    job, catalog, gpus = job_of(row), snapshot(), int(row["gpus"])
    machine = catalog.instance_types["aws", MACHINES[row["gpu"]]]
    machine = replace(machine, network_gbit_per_s=float(row["network_gbit_per_s"]))
    columns = machine_columns(job, (machine,), catalog.gpus, catalog.achieved)
    counts = np.array([[gpus // PER_MACHINE]])
    fleet = clusters_of(columns, counts)
    hours = float(steps(job, columns, fleet).step_s[0]) * job.steps / 3600.0
    hours /= goodput(job, fleet, Facts(catalog, Choice(), job, NOW).boot_s(machine))
    return hours * gpus, float(spread_of(columns, np.zeros(1, dtype=np.int64), counts)[0])


def goodput(job: Job, fleet: Clusters, boot_s: float) -> float:
    """Share of the time that faults of its machines leave a cluster for work that is kept."""
    saves = object_store(job, fleet, 0.0)
    mean_s = 3600.0 / (job.fault_rate_per_hour * fleet.machines)
    law = mean_s, np.full_like(mean_s, RUN_SIGMA), boot_s + RENDEZVOUS_S + saves.restore_s
    between = best_interval(*law, saves.stall_s, saves.transfer_s, saves.notice_saves)
    kept = progress(between, *law, saves.stall_s, saves.notice_saves) / mean_s
    return float(kept[0] if np.isfinite(kept[0]) else 1.0)


def held(_: Path | None = None) -> Held:
    """Every run next to its published hours."""
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
