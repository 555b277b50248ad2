"""Of several layouts of one job on one cluster: is the faster one predicted, and what is lost?

A pair is two published runs of the same network with the same batch on as many GPUs that were laid
out differently; pairs within 3 % of each other count as repeats and are left out. Rule and sources
were chosen before any order was looked at, but for the five pairs of `model parallelism and ZeRO`,
two of which a test holds: Megatron-LM's tables (recomputed or not; model parallelism or ZeRO-3),
sailor's OPT of 350 M, and Parcae's GPT of 1.5 B, of sequences of 1,024 tokens in 16 bits on V100s.
Parcae states neither tokens nor precision: in 32 bits GPT's pairs come out alike, BERT's do not, so
BERT is left out.

Megatron-Bridge states one layout for each job and release. Two consecutive releases of a job are a
pair if their layouts differ, and their speeds by more than those of consecutive releases with one
layout do in 90 % of the cases: the software changes too. NeMo and llm-foundry's MPT have no two
layouts of a job, torchtitan none at one length of sequences, MLPerf states none (2026-11-27).

What is lost: of the layouts of a job that were timed, the one that is predicted to be the fastest
against the one that was.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy import recipes
from tests.research.accuracy.later import judged
from tests.research.accuracy.later_runs import LATER, layout_as_stated
from tests.research.accuracy.parallel import (
    MACHINES,
    Network,
    Run,
    degree_of,
    job_of,
    networks,
    one_layout,
    predicted,
    published_runs,
    stated_step_s,
)
from tests.research.accuracy.study import Study
from tests.research.accuracy.tables import RUNS, reference_folder, table
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


Layout = tuple[int, ...]  # degrees TP, PP, CP, EP, FSDP
_DEGREES = ("TP", "PP", "CP", "EP", "FSDP")


@dataclass(frozen=True, slots=True)
class Release:
    """One release's row of a job of Megatron-Bridge."""

    run: recipes.Recipe
    model: str  # as the table names it
    layout: Layout
    micro_batch: int

    @property
    def job(self) -> tuple[object, ...]:
        """What the releases of one job have in common."""
        run = self.run
        return self.model, run.method, run.precision, run.gpu, run.gpus, run.tokens, run.batch

    @property
    def predicted(self) -> float:
        """Tokens/s of the stated layout."""
        job, machine = recipes.job_of(self.run), recipes.machine_of(self.run)
        columns = machine_columns(job, (machine,), snapshot().gpus, snapshot().achieved)
        fleet = clusters_of(columns, np.array([[self.run.gpus // machine.gpus]]))
        tensor, stages, context, experts, sharded = self.layout
        layout = one_layout(tensor, stages, max(context, 1), sharded > 0, max(experts, 1))
        step_s = stated_step_s(job, fleet, layout, self.micro_batch)
        return self.run.batch * self.run.tokens / step_s


def bridge(reference: Path) -> list[LayoutRun]:
    """Consecutive releases of Megatron-Bridge that differ by more than software does."""
    found = sorted(map(_release, _bridge_rows(reference)), key=lambda each: each.run.release)
    jobs: dict[tuple[object, ...], list[Release]] = defaultdict(list)
    for each in found:
        jobs[each.job].append(each)
    pairs = [pair for alike in jobs.values() for pair in pairwise(alike)]
    usual = np.quantile([_apart(*pair) for pair in pairs if _one_layout(*pair)], 0.9)
    return [
        LayoutRun((*each.job, number), each.run.tokens_per_s, each.predicted)
        for number, pair in enumerate(pairs)
        if not _one_layout(*pair) and _apart(*pair) > usual
        for each in pair
    ]


def _bridge_rows(reference: Path) -> Iterable[Mapping[str, str]]:
    rows = recipes.rows_that_count(reference)
    return (row for row in rows if "Bridge" in row["source"] and "(" not in row["parallelism"])


def _release(row: Mapping[str, str]) -> Release:
    layout = tuple(degree_of(row, name) for name in _DEGREES)
    return Release(recipes.recipe_of(row), row["model"], layout, int(float(row["batch_per_gpu"])))


def _one_layout(one: Release, other: Release) -> bool:
    return [max(d, 1) for d in one.layout] == [max(d, 1) for d in other.layout]


def _apart(one: Release, other: Release) -> float:
    return float(abs(np.log(one.run.tokens_per_s / other.run.tokens_per_s)))


def jobs_of(runs: Iterable[LayoutRun]) -> list[Sequence[LayoutRun]]:
    """The runs of each job that was laid out in several ways."""
    alike: dict[tuple[object, ...], list[LayoutRun]] = defaultdict(list)
    for run in runs:
        alike[run.job].append(run)
    return [group for group in alike.values() if len(group) > 1]


def wrong_pairs(runs: Iterable[LayoutRun]) -> list[float]:
    """For every pair 100 where the model orders it wrongly, else 0 (%)."""
    pairs = (pair for group in jobs_of(runs) for pair in combinations(group, 2))
    return [
        100.0 * ((one.measured > other.measured) != (one.predicted > other.predicted))
        for one, other in pairs
        if max(one.measured, other.measured) > REPEATS * min(one.measured, other.measured)
    ]


def lost_speed(runs: Iterable[LayoutRun]) -> list[float]:
    """For every job the speed that the layout predicted to be the fastest loses (%)."""
    found = []
    for group in jobs_of(runs):
        best = max(run.measured for run in group)
        found.append(100.0 * (1.0 - max(group, key=lambda run: run.predicted).measured / best))
    return found


def layout_runs(reference: Path) -> list[LayoutRun]:
    """Every run that counts."""
    return [*megatron(), *parcae(), *sailor(reference), *bridge(reference)]


def _score(measure: Callable[[Iterable[LayoutRun]], list[float]], reference: Path | None) -> Score:
    found = measure(layout_runs(reference_folder(reference, LATER, *RUNS)))
    return Score(len(found), float(np.mean(found)), None, None, None)


SOURCE = "Megatron-LM (2104.04473, 2205.05198), sailor, Parcae, Megatron-Bridge"
STUDIES: tuple[Study, ...] = (
    Study(
        key="layout-order",
        subject="share of pairs of layouts of one job on one cluster in the wrong order",
        split="nothing fitted on these runs",
        target=Target(mean=10.0),
        published="none known",
        source=SOURCE,
        run=partial(_score, wrong_pairs),
        needs_reference=True,
    ),
    Study(
        key="layout-choice",
        subject="speed lost by the layout that is predicted to be the fastest",
        split="nothing fitted on these runs",
        target=Target(mean=5.0),
        published="none known",
        source=SOURCE,
        run=partial(_score, lost_speed),
        needs_reference=True,
    ),
)
