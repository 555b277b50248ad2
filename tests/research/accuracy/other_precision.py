"""A timing in one precision, carried to another: published runs that differ in precision alone.

Which pairs count was written down before any was scored (2026-11-27): two runs of one laboratory
(of Megatron-Bridge: one release) of the same network, software, machine and number of GPUs, with
the same global batch or, on one machine, batches per GPU within a factor of two, whose precisions
are stated and both multiply on tensor cores. Left out are pairs that set a constant of
`gpu_speed.py`: Llama 3.1 405B on 256 GB200, and torchao on H100. The recommender lays each run
out itself, as in an answer. MLPerf states no precision, NeMo 24.07 only one.

Of 32 and 16 bits: runs on one machine, predicted by constants without their source
(`training-one`). Of 16, 8 and 4 bits: Megatron-Bridge (reference folder), torchtitan, torchao and
Habana (`data/precision_pairs.csv`).

The sd of a halving of the bits holds 90 % of what its pairs miss. A network on a GPU weighs the
square root of its pairs. A pair is judged by the sd of the other laboratories or, where no other
has such pairs, by that of the other networks and GPUs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recommender.arrays import Z_90
from recommender.catalogs.gpu_links import usual_links
from recommender.catalogs.schema import InstanceType
from recommender.job.jobfile import job_from_text
from recommender.performance.calibration_model import NOISE
from recommender.performance.carried_precision import BITS, carries
from recommender.performance.clusters import clusters_of
from recommender.performance.machines import machine_columns
from recommender.performance.step import steps
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy import recipes
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import RUNS, reference_folder, table
from tests.research.accuracy.training import groups_in
from tests.research.fits.held_out import Group, Left, conformal, kept_rows, one_machine
from tests.shipped import snapshot

ALIKE = ["source", "laboratory", "model", "framework", "machine", "gpu", "per_node", "stack"]
BATCHES = 2.0  # times another batch per GPU
FITTED_ON = ("LLAMA3.1_405B", "GB200", 256)  # `gpu_speed.OVER_FP8`
GAUDI2_GBIT = 2400.0  # of a machine: three lines of 100 Gbit/s of each (`later_machines.csv`)
MACHINES = {"H100": ("aws", "p5.48xlarge"), "MI300X": ("azure", "Standard_ND96isr_MI300X_v5")}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs that differ in precision: ln of predicted over true speed of both."""

    laboratory: str
    network: str
    gpu: str
    timed: str  # precision
    planned: str
    missed_timed: float
    missed: float  # of the planned precision, with nothing measured

    @property
    def carried(self) -> float:
        """ln of predicted over true speed if the run in the other precision was timed."""
        return self.missed - self.missed_timed

    @property
    def halved(self) -> int:
        """The bits that are halved between the two; 0 for two formats of as many bits."""
        ends = BITS[self.timed], BITS[self.planned]
        return max(ends) if ends[0] != ends[1] else 0

    def turned(self) -> "Pair":
        """The pair the other way round."""
        return replace(
            self,
            timed=self.planned,
            planned=self.timed,
            missed_timed=self.missed,
            missed=self.missed_timed,
        )


@cache
def wide_pairs(reference: Path) -> tuple[Pair, ...]:
    """Pairs of 32 and 16 bits on one machine; each once."""
    groups = groups_in(reference)
    folds = ((group, left) for group in groups for left in group.folds())
    return tuple(
        _wide(*pair)
        for fold in folds
        for _, alike in _left_out(groups, *fold).groupby(ALIKE)
        for pair in combinations(alike.itertuples(), 2)
        if _alike(*pair)
    )


def _left_out(groups: tuple[Group, ...], group: Group, left: Left) -> pd.DataFrame:
    """The runs of a fold with what the others' constants miss; none if there are no others."""
    rows = group.trials.rows
    test = rows[~left.keeps(rows)].fillna({"machine": "", "framework": ""})
    if not kept_rows(rows, frozenset((left,))).any():
        return test.iloc[:0].assign(stack="")
    return test.assign(missed=one_machine(groups, group, left), stack=group.stack)


def _alike(one: Any, other: Any) -> bool:
    apart = one.batch / other.batch
    near = not math.isfinite(apart) or 1.0 / BATCHES <= apart <= BATCHES
    same = abs(one.flop / other.flop - 1.0) < 0.02  # the same images or sequences
    differ = one.precision != other.precision and carries(one.precision, other.precision)
    return bool(near and same and differ)


def _wide(one: Any, other: Any) -> Pair:
    return Pair(
        laboratory=str(one.laboratory),
        network=str(one.model),
        gpu=str(one.gpu),
        timed=str(one.precision),
        planned=str(other.precision),
        missed_timed=float(one.missed),
        missed=float(other.missed),
    )


@cache
def narrow_pairs(reference: Path) -> tuple[Pair, ...]:
    """Pairs of 16, 8 and 4 bits; each once."""
    runs = recipes.every_release(reference)
    both = ((a, b) for a, b in combinations(runs, 2) if _of_one_release(a, b))
    return (*(_recipe_pair(*pair) for pair in both), *map(_published, table("precision_pairs")))


def _of_one_release(one: recipes.Recipe, other: recipes.Recipe) -> bool:
    fitted = (one.network, one.gpu, one.gpus) == FITTED_ON
    as_one = replace(other, precision=one.precision, tokens_per_s=one.tokens_per_s)
    return not fitted and as_one == one and one.precision != other.precision


def _recipe_pair(one: recipes.Recipe, other: recipes.Recipe) -> Pair:
    missed = [math.log(recipes.predicted(run)[0] / run.tokens_per_s) for run in (one, other)]
    return Pair("Megatron-Bridge", one.network, one.gpu, one.precision, other.precision, *missed)


def _published(row: Mapping[str, str]) -> Pair:
    missed = [
        math.log(_tokens_per_s(row, precision) / float(row[f"{precision}_tokens_per_s"]))
        for precision in ("bf16", "fp8")
    ]
    return Pair(row["source"], row["network"], row["gpu"], "bf16", "fp8", *missed)


def _tokens_per_s(row: Mapping[str, str], precision: str) -> float:
    """What an answer says of a run of the table."""
    job = job_from_text(
        f"schema: recommend.job/v1\nmodel: {row['network']}\nstack: {row['stack']}\n"
        f"sharding: {row['sharding']}\nprecision: {precision}\ntokens: 1e9\n"
        f"tokens_per_sample: {row['tokens']}\nglobal_batch: {row['global_batch']}\n"
    )
    catalog = snapshot()
    machine, gpus = _machine(row["gpu"]), dict(catalog.gpus)
    if row["memory_gb_per_s"]:
        memory = float(row["memory_gb_per_s"])
        gpus[row["gpu"]] = replace(gpus[row["gpu"]], memory_gb_per_s=memory)
    columns = machine_columns(job, (machine,), gpus, catalog.achieved)
    fleet = clusters_of(columns, np.array([[int(row["gpus"]) // machine.gpus]]))
    found = float(steps(job, columns, fleet).step_s[0])
    return int(row["global_batch"]) * int(row["tokens"]) / found


def _machine(gpu: str) -> InstanceType:
    types = snapshot().instance_types
    if gpu in MACHINES:
        return types[MACHINES[gpu]]
    links, memory = usual_links(gpu, 8), snapshot().gpus[gpu].memory_mib
    assert links is not None
    return replace(
        types[MACHINES["H100"]],
        gpu=gpu,
        gpu_memory_mib=memory,
        network_gbit_per_s=GAUDI2_GBIT,
        intra_kind=links.intra_kind,
        intra_gb_per_s=links.gb_per_s,
    )


def fitted_sd(pairs: Sequence[Pair]) -> float:
    """The sd that holds 90 % of what some pairs miss."""
    units: dict[tuple[str, str, str], list[float]] = {}
    for pair in pairs:
        key = pair.laboratory, pair.network, pair.gpu
        units.setdefault(key, []).append(abs(pair.carried) / Z_90)
    parts = [np.array(missed) for missed in units.values()]
    return conformal(parts, [np.full(len(part), len(part) ** -0.5) for part in parts])


def of_halving(pairs: Sequence[Pair], bits: int) -> list[Pair]:
    """The pairs between which some bits are halved."""
    return [pair for pair in pairs if pair.halved == bits]


def held(pairs: Sequence[Pair]) -> Held:
    """What one of each pair says of the other, both ways round."""
    both, sigma = [], []
    for pair in pairs:
        sd = math.hypot(fitted_sd(_others(pair, of_halving(pairs, pair.halved))), NOISE)
        both += [pair, pair.turned()]
        sigma += [sd, sd]
    labels = tuple(f"{p.network}, {p.gpu}, {p.timed} to {p.planned}" for p in both)
    carried = np.exp([pair.carried for pair in both])
    return Held(labels, carried, np.ones(len(both)), np.array(sigma))


def _others(pair: Pair, alike: Sequence[Pair]) -> list[Pair]:
    elsewhere = [each for each in alike if each.laboratory != pair.laboratory]
    own = pair.network, pair.gpu
    return elsewhere or [each for each in alike if (each.network, each.gpu) != own]


def uncalibrated(pairs: Sequence[Pair]) -> float:
    """The mean error of the same runs with nothing measured, in %."""
    missed = np.array([[pair.missed, pair.missed_timed] for pair in pairs])
    return 100.0 * float(np.abs(np.expm1(missed)).mean())


def _scored(pairs: Callable[[Path], tuple[Pair, ...]], reference: Path | None) -> Score:
    return score(held(pairs(reference_folder(reference, *RUNS))))


STUDIES: tuple[Study, ...] = tuple(
    Study(
        key=key,
        subject=subject,
        split="spreads of the other laboratories, else of the other networks and GPUs",
        target=Target(mean=without),
        published=f"this recommender with nothing measured, on the same runs: {without} %",
        source=source,
        run=partial(_scored, pairs),
        needs_reference=True,
    )
    for key, subject, without, source, pairs in (
        (
            "other-precision-wide",
            "speed from one measured run in another precision, of 32 and 16 bits",
            18.5,
            "NVIDIA DeepLearningExamples, Lambda: training.csv.gz",
            wide_pairs,
        ),
        (
            "other-precision-narrow",
            "speed from one measured run in another precision, of 16, 8 and 4 bits",
            16.1,
            "Megatron-Bridge (training.csv.gz), torchtitan, torchao, Habana",
            narrow_pairs,
        ),
    )
)
