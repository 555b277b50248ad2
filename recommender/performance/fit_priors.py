"""Fit the speed priors on published runs and print how well they predict unseen sources.

    python -m recommender.performance.fit_priors --reference DIR [--write]
"""

import argparse
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from recommender.performance.fit_data import runs
from recommender.performance.machines import RDMA_HALF_GBIT, RDMA_HALF_MIB, RDMA_LATENCY_S
from recommender.performance.terms import BACKWARD, BUCKET_BYTES

EFFICIENCY = np.geomspace(0.08, 1.0, 41)
FLOP_PER_BYTE = np.geomspace(12.0, 1200.0, 31)
BATCH_PENALTY = {
    "cnn": (0.0, 1.0, 2.0, 4.0, 8.0, 16.0),
    "encoder": (0.0, 0.5, 1.0, 2.0, 4.0, 8.0),
    "decoder": (0.0, 0.1, 0.2),
    "encdec": (0.0, 1.0, 2.0, 4.0),
}
TENSOR_S = {"tuned": 1e-5, "typical": 2e-5}
OVERLAP = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
USUAL_BATCH = {"cnn": 128.0, "encoder": 32.0, "decoder": 4.0, "encdec": 32.0}
MIB = 2.0**20
OVERLAP_ASSUMED = 0.5
Floats = NDArray[np.float64]
Constants = tuple[float | Floats, float, float]  # ε, I, b0


@dataclass(frozen=True, slots=True)
class Columns:
    """The numbers of published runs that a prediction needs; shape (runs,), SI units."""

    flop: Floats
    matmul: Floats
    memory: Floats
    links: Floats
    network: Floats
    nodes: Floats
    per_node: Floats
    micro: Floats
    rounds: Floats
    layers: Floats
    gradient: Floats  # bytes
    wide: Floats  # 2 in 32 bit, else 1
    again: Floats  # 4/3 when recomputed, else 1
    tensors_s: Floats  # of one micro-batch
    sharded: NDArray[np.bool_]


def columns_of(rows: pd.DataFrame) -> Columns:
    """Published runs as arrays."""
    wide = rows.precision.isin(["tf32", "fp32"]).to_numpy()
    # Autocast leaves gradients in fp32; tuned recipes and LLM stacks send 16 bits.
    long = wide | ((rows.tuning == "typical") & (rows.family != "decoder")).to_numpy()
    micro = rows.batch.where(np.isfinite(rows.batch), rows.family.map(USUAL_BATCH))
    same = {
        name: rows[name].to_numpy(dtype=np.float64)
        for name in ("flop", "matmul", "memory", "links", "network", "nodes", "per_node")
    }
    return Columns(
        **same,
        micro=micro.to_numpy(),
        rounds=rows.rounds.to_numpy(),
        layers=rows.layers.to_numpy(dtype=np.float64),
        gradient=np.where(long, 4.0, 2.0) * rows.parameters.to_numpy(),
        wide=np.where(wide, 2.0, 1.0),
        again=1.0 + rows.recompute.to_numpy() / 3.0,
        tensors_s=(rows.tensors * rows.tuning.map(TENSOR_S)).to_numpy(),
        sharded=rows.sharded.to_numpy(dtype=bool),
    )


def per_gpu_rate(runs: Columns, constants: Constants, overlap: float = OVERLAP_ASSUMED) -> Floats:
    """Samples/s of one GPU by the formulas of `terms.py`; constants may broadcast."""
    efficiency, intensity, penalty = constants
    sample = runs.flop * (1 / (efficiency * runs.matmul) + runs.wide / (intensity * runs.memory))
    busy = runs.rounds * ((runs.micro + penalty) * sample * runs.again + runs.tensors_s)
    return runs.micro * runs.rounds / (busy + exposed(runs, busy, overlap))


def exposed(runs: Columns, busy: Floats, overlap: float) -> Floats:
    """Seconds of communication that compute does not hide."""
    sent = np.where(runs.sharded, 3 * runs.rounds, 2.0) * runs.gradient
    inside = sent * (runs.per_node - 1) / runs.per_node / runs.links
    half = np.interp(runs.network * 8e-9, RDMA_HALF_GBIT, RDMA_HALF_MIB) * MIB
    message = np.where(
        runs.sharded, runs.gradient / runs.layers, np.minimum(runs.gradient, BUCKET_BYTES)
    )
    rate = np.maximum(runs.network, 1.0) * message / (message + half)
    calls = np.where(runs.sharded, 3 * runs.rounds, 1.0)
    far = sent * (runs.nodes - 1) / runs.nodes / rate
    between = np.where(runs.nodes > 1, far + calls * RDMA_LATENCY_S * np.log2(runs.nodes), 0.0)
    hidden = overlap * busy * np.where(runs.sharded, 1.0, BACKWARD / runs.rounds)
    return np.maximum(inside + between - hidden, 0.0)


def fit(rows: pd.DataFrame) -> Constants:
    """The constants with the least mean absolute log error, every source weighing sqrt(rows)."""
    weight = (1 / np.sqrt(rows.groupby("source").rate.transform("size"))).to_numpy()
    columns, target = columns_of(rows), np.log(rows.rate.to_numpy())
    tried = EFFICIENCY[:, None]
    best, least = (0.5, 100.0, 1.0), np.inf
    for intensity, penalty in product(FLOP_PER_BYTE, BATCH_PENALTY[rows.family.iloc[0]]):
        miss = np.log(per_gpu_rate(columns, (tried, intensity, penalty))) - target
        loss = (weight * np.abs(miss)).sum(axis=1)
        if loss.min() < least:
            at = int(loss.argmin())
            best, least = (float(EFFICIENCY[at]), float(intensity), penalty), float(loss[at])
    return best


def errors(
    rows: pd.DataFrame, constants: Constants, overlap: float = OVERLAP_ASSUMED
) -> pd.Series:
    """ln(predicted / measured) of every run."""
    return np.log(per_gpu_rate(columns_of(rows), constants, overlap) / rows.rate)


def summary(miss: pd.Series) -> str:
    """Mean and median absolute percentage error, bias and robust sd of ln error."""
    share = np.expm1(miss).abs() * 100
    return (
        f"n {len(miss):4d}  MAPE {share.mean():5.1f} %  median {share.median():5.1f} %  "
        f"bias {np.expm1(miss.median()) * 100:+5.0f} %  sigma {spread(miss):.2f}"
    )


def spread(miss: pd.Series) -> float:
    """Root mean square of ln error, the largest twentieth clipped."""
    cut = miss.abs().quantile(0.95)
    return float(np.sqrt((miss.clip(-cut, cut) ** 2).mean()))


def left_out(rows: pd.DataFrame, by: str) -> pd.Series:
    """ln errors of every group of `by`, predicted from the other groups only."""
    parts = []
    for name in rows[by].unique():
        rest = rows[rows[by] != name]
        if len(rest):
            parts.append(errors(rows[rows[by] == name], fit(rest)))
    return pd.concat(parts) if parts else pd.Series(dtype=float)
