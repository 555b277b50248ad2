"""Scaling where the links of the machine are known from other networks: Gavel's, left out by turns.

Next to the `gavel-*` studies, and another split than theirs: a user who has timed one other
network on all numbers of GPUs, or measured the links (`recommend bench`), knows how fast 2, 4 and 8
GPUs of the machine exchange. The network that is judged is timed on one and two workers, as there;
no run of it on four or eight is seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from recommender.job.job import TimedRun
from recommender.performance.calibration_model import LINKS, USUAL, StepModel, solve
from recommender.performance.clusters import MachineColumns
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.extrapolation import Extrapolated, joined
from tests.research.accuracy.scaling import (
    GAVEL_GPUS,
    PCIE_BYTES_PER_S,
    bare_machines,
    gavel_held_out,
    gavel_job,
    gavel_series,
)
from tests.research.accuracy.study import Study, score

SIZES = (1, 2, 4, 8)  # workers: each a machine type of its own, as clouds sell them
Links = Mapping[int, float]  # bytes/s of an all-reduce, by number of GPUs
Series = tuple[TimedRun, ...]  # of one network and batch


@dataclass(frozen=True, slots=True)
class Shown:
    """The links of n GPUs, as one network's runs show them."""

    network: str
    gpus: int
    ln_factor: float  # of `PCIE_BYTES_PER_S`
    variance: float


@cache
def known_links(gpu: str) -> Extrapolated:
    """Every network on 4 and 8 workers from its own 1 and 2 and the links that the others show."""
    parts, shown = [], shown_links(gpu)
    for model, runs in _series(gpu):
        links = links_of_others(shown, model)
        parts.append(gavel_held_out(model, sizes_of(runs[0], links), runs))
    return joined(parts)


def shown_links(gpu: str) -> list[Shown]:
    """What the runs of each series on one and n workers, calibrated by themselves, say of links."""
    found, flat = [], dict.fromkeys(SIZES, PCIE_BYTES_PER_S)
    for model, runs in _series(gpu):
        for n in SIZES[1:]:
            pair = tuple(run for run in runs if run.gpus in (1, n))
            if len(pair) == 2:
                fit = solve(StepModel(gavel_job(model), pair, sizes_of(runs[0], flat)))
                variance = float(fit.covariance(USUAL)[LINKS, LINKS])
                found.append(Shown(model, n, float(fit.value[LINKS]), variance))
    return found


def links_of_others(shown: Sequence[Shown], left_out: str) -> Links:
    """The rate of each number of GPUs, from all networks but one.

    The mean of ln counts, weighed by the posterior's precision: who hardly communicates says
    little.
    """
    rates = {1: np.inf}
    for n in SIZES[1:]:
        others = [each for each in shown if each.gpus == n and each.network != left_out]
        value = [each.ln_factor for each in others]
        weight = [1.0 / each.variance for each in others]
        rates[n] = float(PCIE_BYTES_PER_S * np.exp(np.average(value, weights=weight)))
    return rates


def sizes_of(alone: TimedRun, links: Links) -> MachineColumns:
    """A machine type of every size, with the speed of a run on one GPU and its own links."""
    return bare_machines(
        tuple(_name(n) for n in SIZES),
        np.array(SIZES, dtype=np.float64),
        alone.batch / alone.step_s,
        np.array([links[n] for n in SIZES]),
    )


def _series(gpu: str) -> list[tuple[str, Series]]:
    return [
        (model, tuple(replace(run, machine=_name(run.gpus)) for run in runs))
        for model, runs in gavel_series(gpu)
    ]


def _name(gpus: int) -> str:
    return f"own/{gpus}"


def _score(gpu: str, reference: Path | None) -> Score:
    return score(known_links(gpu).held())


STUDIES: tuple[Study, ...] = tuple(
    Study(
        key=f"gavel-{gpu}-links",
        subject=f"four models on 4 and 8 {gpu.upper()}, links known from the other models",
        split="1 and 2 workers of each network; 2 to 8 of the others for the links",
        target=Target(),
        published="none known",
        source="Gavel (OSDI 2020)",
        run=partial(_score, gpu),
    )
    for gpu in GAVEL_GPUS
)
