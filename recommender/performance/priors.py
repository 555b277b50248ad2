"""Shipped speed constants of each family of networks, for jobs without measurements.

`priors.csv` holds one row per family and software stack, fitted on published measurements by
`tests/research/fits/fit_priors.py` (docs/models.md, "Throughput").
"""

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.job.job import LOW_PRECISIONS, Job
from recommender.performance.overheads import (
    gathered_launch_s,
    link_wait_s,
    min_launch_s,
    min_model_parallel_launch_s,
    quantized_bytes,
    routing_s,
    update_bytes,
)

# Where software that nobody stated lies between scripts (0) and vendors' recipes (1), in ln speed.
# Compiled and packed scripts, and attention that is fused by now, are between both in half of 25
# pre-trainings of language models, whose mean error is least there (21 %, 36 as scripts). The 914
# published runs of CNNs and encoders have no bias at 0.1 and 0 (study `training-one-unstated`),
# MLPerf's at 1: 0.2 is the most at which the former stay within their targets (2026-11). They have
# 16 and 32 bits; scripts of CNNs and encoders in 8 bits are not known, of language models few.
UNSTATED = 0.5
UNSTATED_OF = {"cnn": 0.2, "encoder": 0.2}
_BETWEEN = (
    "batch_penalty", "tensor_s", "overlap", "launch_s", "gathered_launch_s", "update_bytes",
    "model_parallel_launch_s", "link_wait_s",
)  # fmt: skip
REFERENCE_WIDTH = 1024.0  # of the transformer whose FLOP per byte a prior states


FP8 = "fp8"
KINDS = ("cnn", "sequence", "recsys")  # of networks that a GPU may run better or worse
_KIND = {"cnn": "cnn", "diffusion": "cnn", "recsys": "recsys"}


# FLOP of the largest networks that b0 was fitted on, a sample: ResNet-152 at 224 pixels, BERT-large
# at 512 tokens. A larger network starts no more kernels that do too little: it loses no more FLOP.
LARGEST_FLOP = {"cnn": 6.91e10, "encoder": 1.02e12, "vit": 1.02e12}


def kind_of(family: str) -> str:
    """The kind of a family: convolutions, layers over a sequence, or tables."""
    return _KIND.get(family, "sequence")


def number_format(precision: str) -> str:
    """The format under which a GPU's factors are listed: "bf16" represents 8 and 16 bits."""
    return "bf16" if precision in (FP8, "fp16") else precision


@dataclass(frozen=True, slots=True)
class Prior:
    """The speed constants of one family of networks in one software stack."""

    family: str
    stack: str  # "tuned": vendors' recipes; "typical": everybody else's
    efficiency: float  # ε, share of the achieved FLOP/s that the arithmetic of a step reaches
    efficiency_fp32: float  # the same on CUDA cores
    flop_per_byte: float  # I at 16 bits and width 1024; 32-bit training moves twice the bytes
    batch_penalty: float  # b0, samples' worth of time lost in each micro-batch
    tensor_s: float  # β, seconds per gradient tensor and micro-batch
    overlap: float  # ω, share of the hideable compute that hides communication
    gradient_bytes: float  # per parameter, of 16-bit training
    sigma_one: float  # sd of ln(true/predicted speed), one machine, nothing measured
    sigma_several: float  # the same, several machines
    gpus: tuple[str, ...]  # that the runs behind it were on, by their names in the catalog
    basis: str  # "fitted" or "transferred"
    rows: int  # measurements behind it
    source: str
    as_of: str
    service: float = 1.0  # factor of the time of parameter servers, from the job's own runs
    worker: float = 1.0  # the same of what an update costs its worker
    serves_one_worker: bool = False  # a worker alone has a server, as in runs that are so timed
    launch_s: float = 0.0  # of both passes of a micro-batch (`overheads.py`)
    gathered_launch_s: float = 0.0  # in addition, where weights are sharded
    adapters: bool = False  # whose launches arithmetic does not hide
    quantized_bytes: float = 0.0  # moved by each pass of a micro-batch to unpack 4-bit weights
    update_bytes: float = 0.0  # moved by the optimizer in a step, of all shards
    by_gpu: bool = False  # whether ε was fitted to the GPUs' factors times the formulas
    model_parallel_launch_s: float = 0.0  # of all layers
    link_wait_s: float = 0.0  # of each all-reduce of shared layers (`overheads.py`)

    def intensity(self, hidden: int) -> float:
        """FLOP per byte of a transformer of this width; unchanged for other networks.

        Element-wise work per layer grows with the width, arithmetic with its square.
        """
        return self.flop_per_byte * (hidden / REFERENCE_WIDTH if hidden > 0 else 1.0)


def recipe_share(job: Job) -> float:
    """How far a job's software is from scripts to recipes; 0 where it is stated or calibrated."""
    if "stack" not in job.assumed or job.calibration is not None:
        return 0.0
    low = job.precision in LOW_PRECISIONS
    return UNSTATED if low else UNSTATED_OF.get(job.family, UNSTATED)


@cache
def load_priors() -> dict[tuple[str, str], Prior]:
    """Every shipped prior by (family, stack)."""
    text = Path(__file__).with_name("priors.csv").read_text(encoding="utf-8")
    rows = (_read(row) for row in csv.DictReader(text.splitlines()))
    return {(row.family, row.stack): row for row in rows}


@cache
def load_gpu_factors() -> dict[tuple[str, str, str], float]:
    """True over predicted speed by GPU, precision and kind of network, relative to other GPUs.

    `gpu_factors.csv`, written by `tests/research/fits/fit_priors.py`; "bf16" is any 16-bit format.
    """
    return {_key(row): float(row["factor"]) for row in _factor_rows()}


@cache
def gpus_with_runs() -> frozenset[tuple[str, str, str]]:
    """GPU, precision and kind of network whose factors come from trainings, not the trend."""
    return frozenset(_key(row) for row in _factor_rows() if int(row["runs"]))


def _key(row: dict[str, str]) -> tuple[str, str, str]:
    return row["gpu"], row["precision"], row["kind"]


def _factor_rows() -> list[dict[str, str]]:
    text = Path(__file__).with_name("gpu_factors.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def shipped_prior(job: Job) -> Prior:
    """The speed constants of a job's family and stack, with b0 in samples of its network.

    The time of routing is spread over the gradient tensors, as both are lost in each micro-batch.
    """
    prior, largest = load_priors()[job.family, job.stack], LARGEST_FLOP.get(job.family)
    each_s = routing_s(job) / max(job.gradient_tensors, 1)
    prior = replace(prior, tensor_s=prior.tensor_s + each_s) if each_s else prior
    if largest is None or job.flop_per_sample <= largest:
        return prior
    return replace(prior, batch_penalty=prior.batch_penalty * largest / job.flop_per_sample)


def prior_of(job: Job) -> Prior:
    """The speed constants of a job: its own if it was calibrated, otherwise its family's.

    Compute, network and links of a calibration are in the columns (`calibration.py`). Of software
    that is not stated, what a micro-batch and its traffic cost lies between scripts and recipes.
    """
    share = recipe_share(job)
    if not share:
        return _prior_of(job)
    script, recipe = _prior_of(job.as_script), _prior_of(job.as_recipe)
    between = {
        name: (1.0 - share) * getattr(script, name) + share * getattr(recipe, name)
        for name in _BETWEEN
    }
    return replace(script, **between)


def _prior_of(job: Job) -> Prior:
    """The speed constants of a job whose software is known, or taken to be."""
    prior, own = shipped_prior(job), job.calibration
    prior = replace(
        prior,
        launch_s=min_launch_s(job),
        gathered_launch_s=gathered_launch_s(job),
        adapters=job.method != "full",
        quantized_bytes=quantized_bytes(job),
        update_bytes=update_bytes(job),
        model_parallel_launch_s=min_model_parallel_launch_s(job),
        link_wait_s=link_wait_s(job),
    )
    if own is None:
        # The step of a worker alone was timed with its update: it is not added again.
        return replace(prior, worker=0.0) if job.update_timed else prior
    return replace(
        prior,
        tensor_s=prior.tensor_s * own.tensor.factor,
        batch_penalty=prior.batch_penalty * (own.penalty.factor if own.penalty else 1.0),
        overlap=own.overlap,
        service=own.service.factor if own.service else 1.0,
        worker=own.worker.factor if own.worker else 1.0,
    )


def _read(row: dict[str, str]) -> Prior:
    words = ("family", "stack", "basis", "source", "as_of")
    found: dict[str, Any] = {
        k: v if k in words else float(v) for k, v in row.items() if k != "gpus"
    }
    gpus, rows, by_gpu = tuple(row["gpus"].split("|")), int(row["rows"]), row["by_gpu"] == "1"
    return Prior(**found | {"gpus": gpus, "rows": rows, "by_gpu": by_gpu})
