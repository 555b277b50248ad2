"""Which of two layouts of one job on one cluster is faster: as the recommender says, or not.

A pair is two published runs of the same network with the same batch on as many GPUs that were laid
out differently; pairs within 3 % of each other count as repeats and are left out. Rule and sources
were chosen before any order was looked at, but for the five pairs of `model parallelism and ZeRO`,
two of which a test holds: Megatron-LM's tables (recomputed or not; model parallelism or ZeRO-3),
sailor's OPT of 350 M, and Parcae's GPT of 1.5 B, of sequences of 1,024 tokens in 16 bits on V100s.
Parcae states neither tokens nor precision: in 32 bits GPT's pairs come out alike, BERT's do not, so
BERT is left out. Bridge and NeMo state one layout for each job and release, MLPerf one for each
cluster.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.later import judged
from tests.research.accuracy.later_runs import LATER, layout_as_stated
from tests.research.accuracy.parallel import (
    MACHINES,
    Network,
    Run,
    job_of,
    networks,
    one_layout,
    predicted,
    published_runs,
    stated_step_s,
)
from tests.research.accuracy.study import Study
from tests.research.accuracy.tables import reference_folder, table
from tests.shipped import snapshot

REPEATS = 1.03  # runs of one layout differ by as much
GPT = Network(parameters=1.5e9, hidden=1600, layers=48, vocabulary=50257, lookup=50257 * 1600.0)
GPT_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class LayoutRun:
    """A run of a layout: samples/s, measured and predicted."""

    job: tuple[object, ...]  # what runs of one job on one cluster have in common
    measured: float
    predicted: float


def megatron() -> list[LayoutRun]:
    """Recomputed or not (arXiv 2205.05198); model parallelism or ZeRO-3 (2104.04473, table 2)."""
    rows = [run for run in published_runs() if run.gpu == "A100-80GB"]
    whole = [LayoutRun(_job(run), run.samples_per_s, predicted(run)) for run in rows]
    return whole + [_sharded(row) for row in table("zero_runs")]


def _job(run: Run) -> tuple[object, ...]:
    return run.source, run.network, run.gpus, run.batch


def _sharded(row: Mapping[str, str]) -> LayoutRun:
    """A run under ZeRO-3, every layer computed again."""
    network, gpus, batch = networks()[row["network"]], int(row["gpus"]), int(row["global_batch"])
    alike = next(run for run in published_runs() if run.network == row["network"])
    run = replace(alike, gpus=gpus, batch=batch)
    job = replace(job_of(run, network), sharding="fsdp")
    machine = snapshot().instance_types["aws", MACHINES[run.gpu]]
    machine = replace(machine, network_gbit_per_s=run.network_gbit_per_s)
    columns = machine_columns(job, (machine,), snapshot().gpus, snapshot().achieved)
    found = steps(job, columns, clusters_of(columns, np.array([[gpus // 8]])))
    flop = network.paper_flop(run.tokens, True)
    rate = float(row["tflops_per_gpu"]) * 1e12 * gpus / flop
    return LayoutRun(
        _job(replace(run, source="arXiv 2104.04473")), rate, batch / float(found.step_s[0])
    )


def parcae() -> list[LayoutRun]:
    """Replicas and stages of GPT on single V100s (NSDI 2024)."""
    machine = replace(snapshot().instance_types["aws", "p3.2xlarge"], network_gbit_per_s=10.0)
    found = []
    for row in table("parcae_plans"):
        if row["model"] != "gpt-1.5b":
            continue
        replicas, stages = int(row["data_parallel"]), int(row["pipeline_parallel"])
        batch, micro = int(row["global_batch"]), int(row["micro_batch"])
        run = replace(published_runs()[0], batch=batch, tokens=GPT_TOKENS, stack="typical")
        job = job_of(run, GPT)
        columns = machine_columns(job, (machine,), snapshot().gpus, snapshot().achieved)
        fleet = clusters_of(columns, np.array([[replicas * stages]]))
        step_s = stated_step_s(job, fleet, one_layout(1, stages), micro)
        key = "parcae", batch, replicas * stages
        found.append(LayoutRun(key, 1e3 * batch / float(row["iteration_ms"]), batch / step_s))
    return found


def sailor(reference: Path) -> list[LayoutRun]:
    """OPT of 350 M on four to 128 GH200."""
    runs = [run for run in judged(reference) if run.tensor]
    return [LayoutRun((r.machines, r.batch), r.samples_per_s, layout_as_stated(r)[0]) for r in runs]


def wrong_pairs(runs: Iterable[LayoutRun]) -> list[float]:
    """For every pair 100 where the model orders it wrongly, else 0 (%)."""
    alike: dict[tuple[object, ...], list[LayoutRun]] = defaultdict(list)
    for run in runs:
        alike[run.job].append(run)
    pairs = (pair for group in alike.values() for pair in combinations(group, 2))
    return [
        100.0 * ((one.measured > other.measured) != (one.predicted > other.predicted))
        for one, other in pairs
        if max(one.measured, other.measured) > REPEATS * min(one.measured, other.measured)
    ]


def _score(reference: Path | None) -> Score:
    folder = reference_folder(reference, LATER)
    wrong = wrong_pairs([*megatron(), *parcae(), *sailor(folder)])
    return Score(len(wrong), float(np.mean(wrong)), None, None, None)


STUDIES: tuple[Study, ...] = (
    Study(
        key="layout-order",
        subject="share of pairs of layouts of one job on one cluster in the wrong order",
        split="nothing fitted on these runs",
        target=Target(mean=10.0),
        published="none known",
        source="Megatron-LM (2104.04473, 2205.05198), sailor, Parcae",
        run=_score,
        needs_reference=True,
    ),
)
