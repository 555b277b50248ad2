"""The constants of one family and stack, from every set of constants that explains its runs.

The best set on a grid jumps from one end of a long valley to the other when a few runs are left
out: a low ε with a high b0 predicts much as a high ε with a low b0. The mean over the valley
does not jump, and predicts sources that were left out better (docs/models.md, "Throughput").
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from recommender.arrays import Bools, Floats, Ints
from tests.research.fits.model import OVERLAP_ASSUMED, Columns, Constants, columns_of, per_gpu_rate

EFFICIENCY = np.geomspace(0.08, 1.0, 41)
FINE_EFFICIENCY = np.geomspace(0.08, 1.0, 161)
FLOP_PER_BYTE = np.geomspace(15.0, 300.0, 25)
BATCH_PENALTY = {
    "cnn": (0.0, 1.0, 2.0, 4.0, 8.0, 16.0),
    "encoder": (0.0, 0.5, 1.0, 2.0, 4.0, 8.0),
    "decoder": (0.0, 0.05, 0.1),
    "encdec": (0.0, 1.0, 2.0, 4.0),
}
# ε of tensor cores that a group's own runs do not determine. Those of typical scripts of CNNs, all
# but four of ResNet-50, are explained by any from 0.34 to 1 with bytes to match (mean ln error
# 0.194 and 0.181). The libraries' convolutions are the same in both stacks, what scripts fuse is
# not: ε is that of the tuned stack, I is fitted.
STATED_EFFICIENCY = {("cnn", "typical"): 0.549}
ENOUGH = 5  # runs that determine the efficiency of a kind of arithmetic


@dataclass(frozen=True, slots=True)
class Trials:
    """Published runs of one family, predicted with every set of constants of a grid.

    A cell is one source on one GPU, on CUDA or on tensor cores; cells stay or go as a whole.
    """

    rows: pd.DataFrame
    runs: Columns
    log_rate: Floats  # measured; (runs,)
    pair: "pd.Series[str]"  # source and GPU; (runs,)
    weight: Floats  # (runs,); each pair weighs the square root of its runs
    cell: Ints  # (runs,)
    on_cuda: Bools  # (cells,)
    lost: Floats  # weighted |ln error|; (intensities, penalties, efficiencies, cells)

    @property
    def penalties(self) -> Floats:
        """The batch penalties tried for this family."""
        return np.array(BATCH_PENALTY[str(self.rows.family.iloc[0])])

    @property
    def stated(self) -> float:
        """ε of tensor cores where these runs do not determine it, else 0."""
        return _stated(self.rows)


def trials_of(rows: pd.DataFrame) -> Trials:
    """Predict every run with every set of constants; rows of one family on one machine."""
    runs = columns_of(rows)
    pair = rows.source + ", " + rows.gpu
    sizes = pair.groupby(pair).transform("size")
    weight = 1.0 / np.sqrt(np.asarray(sizes, dtype=np.float64))
    log_rate = np.log(np.asarray(rows.rate, dtype=np.float64))
    cell, names = pd.factorize(pair + runs.fp32.astype(str))
    in_cell = (cell[:, None] == np.arange(len(names))).astype(np.float64)
    penalties = BATCH_PENALTY[str(rows.family.iloc[0])]
    free = runs.fp32 if _stated(rows) else np.ones(len(rows), dtype=bool)
    tried = np.where(free, EFFICIENCY[:, None], _stated(rows))
    lost = np.empty((len(FLOP_PER_BYTE), len(penalties), len(EFFICIENCY), len(names)))
    for i, intensity in enumerate(FLOP_PER_BYTE):
        for j, penalty in enumerate(penalties):
            rate = per_gpu_rate(runs, tried, float(intensity), penalty, OVERLAP_ASSUMED)
            lost[i, j] = (weight * np.abs(np.log(rate) - log_rate)) @ in_cell
    on_cuda = np.array([name.endswith("True") for name in names])
    return Trials(rows, runs, log_rate, pair, weight, cell, on_cuda, lost)


def _stated(rows: pd.DataFrame) -> float:
    return STATED_EFFICIENCY.get((str(rows.family.iloc[0]), str(rows.tuning.iloc[0])), 0.0)


def estimate(trials: Trials, kept: Bools, fp32_ratio: float) -> Constants:
    """Constants from the runs that are kept, (runs,), whole cells of them.

    I and b0 are means (of ln I, of ln(1 + b0)) over the grid, each point weighing
    exp(-lost / scale), its likelihood where ln errors are Laplace-distributed and every pair of
    source and GPU counts as one observation: its runs share their software and their machine.
    ε is then the best one for each kind of arithmetic.
    Where a kind has fewer than five runs, its ε follows from the other by `fp32_ratio`.
    """
    cells = np.bincount(trials.cell[kept], minlength=len(trials.on_cuda)) > 0
    least = sum(
        trials.lost[..., cells & kind].sum(axis=-1).min(axis=-1)
        for kind in (trials.on_cuda, ~trials.on_cuda)
    )
    # Two runs can be explained exactly; no certainty follows from that.
    scale = max(float(least.min()), 1e-9) / trials.pair[kept].nunique()
    likely = np.exp(-(least - least.min()) / scale)
    likely /= likely.sum()
    intensity = float(np.exp((likely * np.log(FLOP_PER_BYTE)[:, None]).sum()))
    penalty = float(np.expm1((likely * np.log1p(trials.penalties)).sum()))
    on_cuda, on_tensor = kept & trials.runs.fp32, kept & ~trials.runs.fp32
    tensor, cuda = (
        _best_efficiency(trials, part, intensity, penalty) for part in (on_tensor, on_cuda)
    )
    tensor = trials.stated or tensor
    if on_cuda.sum() < ENOUGH:
        cuda = min(tensor * fp32_ratio, 1.0)
    elif on_tensor.sum() < ENOUGH and not trials.stated:
        tensor = cuda / fp32_ratio
    return Constants(tensor, cuda, intensity, penalty)


def _best_efficiency(trials: Trials, part: Bools, intensity: float, penalty: float) -> float:
    """The ε of least weighted absolute ln error of some runs; 1 where there are none."""
    if not part.any():
        return 1.0
    rate = per_gpu_rate(
        trials.runs.take(part), FINE_EFFICIENCY[:, None], intensity, penalty, OVERLAP_ASSUMED
    )
    lost = (trials.weight[part] * np.abs(np.log(rate) - trials.log_rate[part])).sum(axis=-1)
    return float(FINE_EFFICIENCY[lost.argmin()])
