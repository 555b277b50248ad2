"""The speed formulas on published runs, and their errors."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from recommender.arrays import Bools, Floats
from recommender.performance.machines import RDMA_HALF_GBIT, RDMA_HALF_MIB, RDMA_LATENCY_S
from recommender.performance.priors import REFERENCE_WIDTH
from recommender.performance.strategy import BACKWARD, BUCKET_BYTES, STRAGGLERS

MIB = 2.0**20
TENSOR_S = {"tuned": 1e-5, "typical": 2e-5}  # two or four kernel launches of 5 us
OVERLAPS = tuple(np.arange(9) / 10)
OVERLAP_ASSUMED = 0.5  # inside one machine, while the other constants are fitted
USUAL_BATCH = {"cnn": 128.0, "encoder": 32.0, "decoder": 4.0, "encdec": 32.0}
ENOUGH = 20  # runs of a source that determine its constants
KEY = ["source", "model", "framework", "precision", "gpu", "recompute"]


@dataclass(frozen=True, slots=True)
class Constants:
    """What is fitted for a family and a stack."""

    tensor: float  # ε
    cuda: float  # ε of fp32
    intensity: float  # I
    penalty: float  # b0


@dataclass(frozen=True, slots=True)
class Columns:
    """The numbers of published runs that a prediction needs; shape (runs,), SI units."""

    flop: Floats  # what attention of long sequences takes longer included
    matmul: Floats
    memory: Floats
    links: Floats
    network: Floats
    nodes: Floats
    per_node: Floats
    rounds: Floats
    layers: Floats
    micro: Floats
    gradient: Floats  # bytes
    wide: Floats  # byte term: 2 in 32 bit, else 1, times 1024 over a transformer's width
    fp32: Bools  # on CUDA cores
    again: Floats  # 4/3 when recomputed, else 1
    tensors_s: Floats  # of one micro-batch
    sharded: Bools

    def take(self, which: Bools) -> "Columns":
        """Some of the runs."""
        return Columns(*(getattr(self, name)[which] for name in self.__slots__))


def columns_of(rows: pd.DataFrame) -> Columns:
    """Published runs as arrays."""
    wide = rows.precision.isin(["tf32", "fp32"]).to_numpy()
    # Autocast leaves gradients in fp32; tuned recipes and LLM stacks send 16 bits.
    long = wide | ((rows.tuning == "typical") & (rows.family != "decoder")).to_numpy()
    hidden = _floats(rows.hidden)
    narrow = np.where(hidden > 0, REFERENCE_WIDTH / np.maximum(hidden, 1.0), 1.0)
    usual = _floats(rows.family.map(USUAL_BATCH))
    batch = _floats(rows.batch)
    return Columns(
        flop=_floats(rows.flop) + _floats(rows.long_flop),
        matmul=_floats(rows.matmul),
        memory=_floats(rows.memory),
        links=_floats(rows.links),
        network=_floats(rows.network),
        nodes=_floats(rows.nodes),
        per_node=_floats(rows.per_node),
        rounds=_floats(rows.rounds),
        layers=_floats(rows.layers),
        micro=np.where(np.isfinite(batch), batch, usual),
        gradient=np.where(long, 4.0, 2.0) * _floats(rows.parameters),
        wide=np.where(wide, 2.0, 1.0) * narrow,
        fp32=(rows.precision == "fp32").to_numpy(),
        again=1.0 + _floats(rows.recompute) / 3.0,
        tensors_s=_floats(rows.tensors) * _floats(rows.tuning.map(TENSOR_S)),
        sharded=rows.sharded.to_numpy(dtype=bool),
    )


def per_gpu_rate(
    runs: Columns, efficiency: Floats, intensity: float, penalty: float, overlap: float
) -> Floats:
    """Samples/s of one GPU by the formulas of `data_parallel.py`; `efficiency` broadcasts."""
    sample = runs.flop * (1 / (efficiency * runs.matmul) + runs.wide / (intensity * runs.memory))
    busy = runs.rounds * ((runs.micro + penalty) * sample * runs.again + runs.tensors_s)
    return runs.micro * runs.rounds / (busy + _exposed(runs, busy, overlap))


def _exposed(runs: Columns, busy: Floats, overlap: float) -> Floats:
    """Seconds of communication that compute does not hide."""
    sent = np.where(runs.sharded, 3 * runs.rounds, 2.0) * runs.gradient
    inside = sent * (runs.per_node - 1) / runs.per_node / runs.links
    half = np.interp(runs.network * 8e-9, RDMA_HALF_GBIT, RDMA_HALF_MIB) * MIB
    bucket = np.minimum(runs.gradient, BUCKET_BYTES)
    message = np.where(runs.sharded, runs.gradient / runs.layers, bucket)
    rate = np.maximum(runs.network, 1.0) * message / (message + half)
    calls = np.where(runs.sharded, 3 * runs.rounds, 1.0)
    far = sent * (runs.nodes - 1) / runs.nodes / rate
    between = np.where(runs.nodes > 1, far + calls * RDMA_LATENCY_S * np.log2(runs.nodes), 0.0)
    hidden = overlap * busy * np.where(runs.sharded, 1.0, BACKWARD / runs.rounds)
    late = STRAGGLERS * np.log2(runs.nodes * runs.per_node) * busy
    return np.maximum(inside + between - hidden, 0.0) + late


def errors(rows: pd.DataFrame, found: Constants, overlap: float = OVERLAP_ASSUMED) -> Floats:
    """ln(predicted / measured) of every run."""
    runs = columns_of(rows)
    efficiency = np.where(runs.fp32, found.cuda, found.tensor)
    rate = per_gpu_rate(runs, efficiency, found.intensity, found.penalty, overlap)
    missed: Floats = np.log(rate / _floats(rows.rate))
    return missed


def left_out_by(rows: pd.DataFrame) -> str:
    """Sources are left out where at least two have enough runs to fit, else GPUs."""
    return "source" if (rows.source.value_counts() >= ENOUGH).sum() > 1 else "gpu"


def scaling_errors(rows: pd.DataFrame, found: Constants, overlap: float) -> Floats:
    """ln errors over several machines once the smallest run of each series is measured."""
    series = rows[KEY].astype(str).agg("|".join, axis=1) + rows.flop.round(-9).astype(str)
    parts = [np.zeros(0)]
    for _, alike in rows.groupby(series):
        first = alike.sort_values(["nodes", "per_node"]).iloc[[0]]
        more = alike[alike.nodes > first.nodes.iloc[0]]
        if len(more):
            parts.append(errors(more, found, overlap) - errors(first, found, overlap))
    return np.concatenate(parts)


def best_overlap(one: pd.DataFrame, many: pd.DataFrame, found: Constants) -> float:
    """The overlap under which several machines are predicted best, measured start or not."""
    both = pd.concat([one, many])
    lost = [
        np.abs(errors(many, found, w)).mean() + np.abs(scaling_errors(both, found, w)).mean()
        for w in OVERLAPS
    ]
    return float(OVERLAPS[int(np.argmin(lost))])


def spread(miss: Floats) -> float:
    """Root mean square of ln error, the largest twentieth clipped."""
    cut = float(np.quantile(np.abs(miss), 0.95))
    return float(np.sqrt(np.mean(np.clip(miss, -cut, cut) ** 2)))


def summary(miss: Floats) -> str:
    """Mean and median absolute percentage error, bias and robust sd of ln error."""
    share = np.abs(np.expm1(miss)) * 100
    return (
        f"n {len(miss):4d}  MAPE {share.mean():5.1f} %  median {np.median(share):5.1f} %  "
        f"bias {np.expm1(np.median(miss)) * 100:+5.0f} %  sigma {spread(miss):.2f}"
    )


def _floats(column: "pd.Series[float]") -> Floats:
    return np.asarray(column, dtype=np.float64)
