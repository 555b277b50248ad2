"""Parts of one architecture bound each other, and no shipped GPU is faster than what was timed."""

from pathlib import Path

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.performance.gpu_speed import precision_on
from recommender.performance.machines import machine_columns
from recommender.performance.priors import prior_of
from recommender.performance.speed_spread import ARCHITECTURES, faster_siblings, has_runs, siblings
from tests.shipped import snapshot

ROOT = Path(__file__).parents[3]
PRESETS = sorted(path.stem for path in (ROOT / "recommender/job/presets").glob("*.yaml"))


@pytest.mark.parametrize("preset", PRESETS)
def test_an_untimed_gpu_is_no_faster_than_a_timed_one_with_the_better_datasheet(preset):
    catalog, job = snapshot(), find_job(preset)
    types = tuple(t for t in catalog.instance_types.values() if t.gpu in catalog.gpus)
    found = machine_columns(job, types, catalog.gpus, catalog.achieved)
    each = found.compute_per_s / np.maximum(found.gpus, 1.0)
    rate = {t.gpu: float(r) for t, r in zip(types, each, strict=True) if r > 0}
    prior = prior_of(job)
    for name in rate:
        gpu = catalog.gpus[name]
        precision = precision_on(job.precision, gpu)
        for other in siblings(name) & rate.keys() - {name}:
            timed = has_runs(other, precision, prior) and not has_runs(name, precision, prior)
            peaks = [
                (catalog.gpus[n].peak_bf16_tflops or catalog.gpus[n].peak_fp16_tflops or 0.0)
                for n in (name, other)
            ]
            if timed and peaks[1] > peaks[0]:
                assert rate[name] <= rate[other] * (1.0 + 1e-9), (name, other)


def test_more_memory_bandwidth_does_not_make_the_smaller_part_the_faster_one():
    """H100 NVL: 835 TFLOP/s and 3.9 TB/s by its datasheet; SXM: 989 and 3.35."""
    gpus = snapshot().gpus
    assert list(faster_siblings("H100-NVL", "bf16", gpus, {"H100", "H200"})) == ["H100", "H200"]
    assert list(faster_siblings("H100", "bf16", gpus, {"H100-NVL", "H200"})) == ["H200"]
    assert list(faster_siblings("H200", "bf16", gpus, {"H100", "H100-NVL"})) == []
    assert list(faster_siblings("H100-NVL", "bf16", gpus, {"B200"})) == []


def test_every_nvidia_gpu_of_the_catalog_has_an_architecture():
    known = frozenset().union(*ARCHITECTURES)
    assert {name for name, gpu in snapshot().gpus.items() if gpu.vendor == "nvidia"} <= known


@pytest.mark.parametrize("preset", PRESETS)
def test_more_bandwidth_alone_does_not_make_a_gpu_slower(preset):
    """H200 and H100 SXM differ in memory only (NVIDIA's datasheets, 2023-11)."""
    catalog, job = snapshot(), find_job(preset)
    names = ("p5.48xlarge", "p5en.48xlarge")
    types = tuple(catalog.instance_types["aws", name] for name in names)
    found = machine_columns(job, types, catalog.gpus, catalog.achieved)
    h100, h200 = found.compute_per_s
    assert h100 <= h200
