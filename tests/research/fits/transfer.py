"""How much faster or slower than the formulas each GPU trains, whatever the network.

One laboratory ran ten networks on ten GPUs with the same scripts. What the formulas miss on a
GPU in the mean over networks (clocks under load, software that is older than the GPU) is a
property of the GPU: it carries a timing of the user's from one GPU to another. The runs fill each
GPU's memory, so that a batch is up to sixteen times another's: what the formulas say of small
batches, b/(b + b0), comes first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recommender.arrays import Floats
from recommender.catalogs.schema import Achieved, Gpu
from recommender.job.derive import intensity_ratio
from recommender.job.job import Family, Job, Precision
from recommender.performance.gpu_speed import gpu_speed
from recommender.performance.priors import KINDS, Prior, kind_of, load_priors, number_format
from tests.research.fits.data import card_speeds, table
from tests.research.fits.estimate import estimate, trials_of
from tests.research.fits.held_out import GpuFactors, Group, Left, fp32_ratio, kept_rows
from tests.research.fits.lambda_runs import configured_batch

LABORATORY = "Lambda deeplearning-benchmark"
# GPUs of the catalog as the laboratory names them; another memory is the same chip
LABORATORY_NAMES = {
    "A100": "A100-80GB-SXM",
    "A100-80GB": "A100-80GB-SXM",
    "B200": "B200-SXM",
    "H100": "H100-SXM",
    "H200": "H200-SXM",
    "V100": "V100-16GB",
    "V100-32GB": "V100-16GB",
}
# Runs' worth of belief that the formulas are right of a GPU, that it runs every kind of network
# alike, and that there is no trend
PRIOR_RUNS, PRIOR_KIND, PRIOR_TREND = 2.0, 4.0, 0.1
TYPICAL = np.log([100.0, 2000.0])  # TFLOP/s and GB/s where the trend is one
ENOUGH = 20  # runs of a family and stack that determine its constants without one network
WANTED: dict[str, Precision] = {"mixed": "mixed"}  # other rows allow tf32
Factors = Mapping[tuple[str, str, str], float]  # (GPU, precision, kind) -> true over predicted


@dataclass(frozen=True, slots=True)
class Missed:
    """What the formulas miss on GPUs: a trend over their figures, and each GPU's own part.

    The part is that of its precision, and of the kind of network where runs show one; "" is the
    kind of which there were none.
    """

    trend: Floats  # exponents of achieved FLOP/s and of memory bandwidth; (2,)
    seen: Floats  # ln of least and most of either among the GPUs; (2, 2)
    own: Factors

    def factor(self, gpu: str, precision: str, kind: str, speed: tuple[float, float]) -> float:
        """True over predicted speed, relative to other GPUs; the trend ends where GPUs end.

        `speed` is the GPU's matrix rate and bandwidth, TFLOP/s and GB/s.
        """
        figures = np.clip(np.log(speed), *self.seen)
        either = self.own.get((gpu, precision, ""), 1.0)
        own = self.own.get((gpu, precision, kind), either)
        return float(np.exp(self.trend @ (figures - TYPICAL))) * own


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Runs of the laboratory on one GPU, and the GPUs as the recommender sees them."""

    rows: pd.DataFrame  # source, model, setting, gpu, batch of one GPU, rate
    gpus: Mapping[str, Gpu]
    achieved: Mapping[tuple[str, str], Achieved]


def readings(reference: Path) -> Readings:
    """Median rate and batch of every (source, model, setting, GPU) on one GPU."""
    runs = pd.read_csv(reference / "measured" / "training.csv.gz", low_memory=False)
    cards = table("gpus")
    mine = runs[runs.source.str.startswith(LABORATORY) & (runs.n_gpus == 1)]
    mine = mine[mine.gpu_canon.isin(cards.index) & mine.model.isin(table("transfer").index)]
    batch = [_batch(item) for item in mine.itertuples()]
    mine = mine.assign(gpu=mine.gpu_canon, setting=mine.precision, batch=batch)
    rows = mine.groupby(["source", "model", "setting", "gpu"])[["batch", "throughput"]].median()
    names = sorted(mine.gpu.unique())
    speeds = {name: card_speeds(name, reference) for name in names}
    return Readings(
        rows.rename(columns={"throughput": "rate"}).reset_index(),
        {name: _gpu(name, speeds[name]) for name in names},
        {
            (name, precision): Achieved(name, precision, a, a, a, "derived", 0, "")
            for name in names
            for precision, a in speeds[name].items()
            if precision != "memory"
        },
    )


def _batch(item: Any) -> float:
    """Samples of one step of one GPU: of the table, in its second version of the configuration."""
    precision = "bf16" if str(item.precision) in WANTED else "tf32"
    stated = float(item.batch_per_gpu)
    return stated if np.isfinite(stated) else configured_batch(item, precision)


def _gpu(name: str, speeds: Mapping[str, float]) -> Gpu:
    return Gpu(
        gpu=name, vendor="nvidia", memory_mib=0, memory_gb_per_s=speeds["memory"],
        peak_fp32_tflops=speeds.get("fp32"), peak_tf32_tflops=speeds.get("tf32"),
        peak_bf16_tflops=speeds.get("bf16"), peak_fp16_tflops=None, peak_fp8_tflops=None,
        watts=None, released=None, kind="derived", source=0, as_of="",
    )  # fmt: skip


def predicted(
    found: Readings, models: Mapping[str, Prior], missed: Missed | None = None
) -> pd.DataFrame:
    """The readings with their relative speed by the recommender's own `gpu_speed`.

    A batch of b samples runs at b/(b + b0) of the rate of an endless one (`data_parallel.py`).
    """
    networks = table("transfer")
    factors = {} if missed is None else factors_of(found, missed)
    values = []
    rows: Any = found.rows.itertuples()
    for row in rows:
        network: Any = networks.loc[str(row.model)]
        job = _job(network, WANTED.get(str(row.setting), "tf32"))
        prior, gpu = models[str(row.model)], str(row.gpu)
        speed = gpu_speed(job, prior, gpu, found.gpus, found.achieved, factors)
        precision = _precision(found, row)
        tflops = found.achieved[gpu, precision].tflops
        full = 1.0 / (1.0 + prior.batch_penalty / float(row.batch))
        memory = found.gpus[gpu].memory_gb_per_s
        values.append((speed.rate * full, speed.score * full, precision, tflops, memory))
    names = ["formula", "score", "precision", "tflops", "gb_per_s"]
    return found.rows.assign(**dict(zip(names, zip(*values, strict=True), strict=True)))


def factors_of(found: Readings, missed: Missed) -> dict[tuple[str, str, str], float]:
    """The factor of every GPU of the readings at every precision, for every kind of network."""
    return {
        (gpu, precision, kind): missed.factor(
            gpu, precision, kind, (a.tflops, found.gpus[gpu].memory_gb_per_s)
        )
        for (gpu, precision), a in found.achieved.items()
        for kind in KINDS
    }


def fitted(rows: pd.DataFrame) -> Missed:
    """What the formulas miss on each GPU at each precision, in the mean over networks.

    ln(rate / formula) = series + trend · (ln A, ln BW) + g of the GPU + k of the GPU with that
    kind of network, by least squares with `PRIOR_RUNS` g², `PRIOR_KIND` k² and `PRIOR_TREND`
    trend² next to it. A series is one network of one version of the scripts at one setting.
    """
    series, _ = pd.factorize(rows.source + rows.model + rows.setting)
    cell, names = pd.factorize(rows.gpu + "|" + rows.precision)
    kinds = rows.model.map(table("transfer").family).map(kind_of)
    part, parts = pd.factorize(rows.gpu + "|" + rows.precision + "|" + kinds)
    figures = np.log(rows[["tflops", "gb_per_s"]].to_numpy(dtype=np.float64))
    count = int(series.max()) + 1
    own, ofkind = np.eye(len(names))[cell], np.eye(len(parts))[part]
    said = np.hstack([np.eye(count)[series], figures - TYPICAL, own, ofkind])
    sizes = [count, 2, len(names), len(parts)]
    belief = np.sqrt(np.repeat([0.0, PRIOR_TREND, PRIOR_RUNS, PRIOR_KIND], sizes))
    target = np.append(np.log(rows.rate / rows.formula), np.zeros(len(belief)))
    solution = np.linalg.lstsq(np.vstack([said, np.diag(belief)]), target, rcond=None)[0]
    trend, each, more = np.split(solution[count:], [2, 2 + len(names)])
    seen = np.array([figures.min(axis=0), figures.max(axis=0)])
    of_gpu = {str(name): float(g) for name, g in zip(names, each, strict=True)}
    factors = {(*_pair(name), ""): float(np.exp(g)) for name, g in of_gpu.items()}
    for name, k in zip(parts, more, strict=True):
        gpu, precision, kind = str(name).split("|")
        factors[gpu, precision, kind] = float(np.exp(of_gpu[f"{gpu}|{precision}"] + k))
    return Missed(trend, seen, factors)


def _pair(name: str) -> tuple[str, str]:
    gpu, _, precision = name.partition("|")
    return gpu, precision


def gpu_factors(reference: Path) -> GpuFactors:
    """What the formulas miss on the GPU of each run, by the laboratory's runs not left out.

    1 for all if none is left, or if the laboratory itself is what is left out.
    """
    found = readings(reference)
    networks = table("transfer").family
    models = {str(n): load_priors()[str(f), "typical"] for n, f in networks.items()}
    formula = predicted(found, models).assign(laboratory=LABORATORY)

    @cache
    def missed(out: frozenset[Left]) -> Missed | None:
        kept = formula[kept_rows(formula, out)]
        return fitted(kept) if len(kept) else None

    def factors(rows: pd.DataFrame, out: frozenset[Left]) -> Floats:
        known = missed(frozenset(left for left in out if not left.keeps(formula).all()))
        if known is None:
            return np.ones(len(rows))
        each: Any = rows.itertuples()
        return np.array([_factor_of_run(known, found, row) for row in each], dtype=np.float64)

    return factors


def _factor_of_run(missed: Missed, found: Readings, row: Any) -> float:
    name = row.gpu if row.gpu in found.gpus else LABORATORY_NAMES.get(row.card, row.card)
    speed = row.matmul / 1e12, row.memory / 1e9
    return missed.factor(name, number_format(row.precision), kind_of(row.family), speed)


def left_out_model(found: Readings, groups: tuple[Group, ...], left: Left) -> pd.DataFrame:
    """One network predicted with constants and factors that have not seen it."""
    networks = table("transfer")
    models = {str(n): load_priors()[str(f), "typical"] for n, f in networks.family.items()}
    family, same = str(networks.family[left.name]), str(networks.same_network[left.name])
    if same:
        without = _without(groups, family, same.split("|"), models[left.name])
        models |= {name: without for name in models if networks.family[name] == family}
    formula = predicted(found, models)
    missed = fitted(formula[left.keeps(formula)])
    alone = replace(found, rows=found.rows[~left.keeps(found.rows)])
    return predicted(alone, models, missed)


def _without(groups: tuple[Group, ...], family: str, networks: list[str], prior: Prior) -> Prior:
    """Typical constants without some networks; of both stacks where too few runs are left."""
    rows = [g.trials.rows for g in groups if g.family == family]
    both = pd.concat(rows)
    typical = both[(both.tuning == "typical") & ~both.model.isin(networks)]
    kept = typical if len(typical) >= ENOUGH else both[~both.model.isin(networks)]
    trials = trials_of(kept)
    ratio = fp32_ratio(groups, frozenset[Left]())
    new = estimate(trials, np.ones(len(kept), dtype=bool), ratio)
    return replace(
        prior,
        efficiency=new.tensor,
        efficiency_fp32=new.cuda,
        flop_per_byte=new.intensity,
        batch_penalty=new.penalty,
    )


def _precision(found: Readings, row: Any) -> str:
    """The class of arithmetic of a reading: fp32 where a GPU lacks tf32."""
    if str(row.setting) in WANTED:
        return "bf16"
    return "tf32" if found.gpus[str(row.gpu)].peak_tf32_tflops else "fp32"


def _job(network: Any, precision: Precision) -> Job:
    """A job of which only family, width, precision and FLOP per byte matter."""
    family: Family = network.family
    hidden = int(network.hidden)
    kept = float(network.activation_mb or 0.0) * 1e6
    return Job(
        name=family, title=family, family=family, parameters=1e8, active_parameters=1e8,
        trainable_parameters=1e8, sample_unit="sample", tokens_per_sample=1, flop_per_sample=1e9,
        samples=1e6, global_batch=256, gradient_tensors=100, hidden=hidden, layers=1,
        vocabulary=0, activation_bytes_per_sample=1e6, recomputed_activation_bytes_per_sample=1e6,
        checkpoint_bytes=1e8, precision=precision,
        intensity_ratio=intensity_ratio(family, float(network.flop or 0.0), kept or None),
    )  # fmt: skip
