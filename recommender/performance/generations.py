"""GPUs of one architecture bound each other; between generations, a timing loses its certainty.

A datasheet's rates are ceilings, and the smaller part of an architecture often has a larger figure
somewhere: the H100 NVL has 16 % more memory bandwidth than the SXM part and a third less power to
use it with. So if a part was never timed, a faster part that was timed is its ceiling.

Of a job that was timed on another GPU, the sd of ln speed grows with the generations between both:

    sd² = 0.14² + 0.12² · generations apart

From ten networks of one laboratory on ten GPUs, V100 to B200, each predicted on every GPU from
every other one without having been seen: the two constants of least loss of a 90 % quantile, where
each network weighs the square root of its pairs (`tests/research/accuracy/other_gpu.py`). Every
generation adds the same variance, as every doubling of GPUs does (`calibration_spread.py`). A GPU
that is not listed is as far from others as the farthest of these pairs.
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from recommender.catalogs.schema import Gpu

# NVIDIA's architectures, by the catalog's names (vendor's product pages, 2026-08).
ARCHITECTURES = tuple(
    frozenset(names.split())
    for names in (
        "K80",
        "M60",
        "P4 P100",
        "V100 V100-32GB V100-PCIe",
        "T4 T4G",
        "A10 A10G A30 A40 A100 A100-80GB A100-80GB-PCIe RTX-3090 RTX-A6000",
        "L4 L40 L40S RTX-4090 RTX-6000-Ada",
        "H100 H100-NVL H100-PCIe H200 GH200",
        "B200 B300 GB200 GB300 RTX-5090 RTX-PRO-4500 RTX-PRO-6000",
    )
)
SAME = 0.14
EACH = 0.12
RELATED = 0.21  # of all pairs together, whatever lies between them
FARTHEST = 3  # generations: V100 and H100
ADA = "L4"  # its architecture has a place of its own in the list, but is of Hopper's year (2022)


def generation(gpu: str) -> int | None:
    """The number of a GPU's generation, Kepler's 0; None if it is not listed."""
    place = next((at for at, parts in enumerate(ARCHITECTURES) if gpu in parts), None)
    if place is None:
        return None
    ada = next(at for at, parts in enumerate(ARCHITECTURES) if ADA in parts)
    return place - (place > ada)


def generations_apart(gpu: str, timed: Collection[str]) -> float:
    """Generations between a GPU and those that were timed, in the mean, as of their levels."""
    apart = [_between(generation(gpu), generation(other)) for other in timed]
    return float(np.mean(apart or [FARTHEST]))


def _between(one: int | None, other: int | None) -> int:
    return FARTHEST if one is None or other is None else abs(one - other)


def related_sd(gpu: str, timed: Collection[str]) -> float:
    """Sd of ln(true / predicted) speed on a GPU, of a job that was timed on others."""
    return float(np.hypot(SAME, added_sd(gpu, timed)))


def added_sd(gpu: str, timed: Collection[str]) -> float:
    """What the generations between a GPU and those that were timed add to `SAME`."""
    return EACH * float(np.sqrt(generations_apart(gpu, timed)))


def siblings(name: str) -> frozenset[str]:
    """The GPUs of the same architecture, including this one; none if it is not listed."""
    return next((parts for parts in ARCHITECTURES if name in parts), frozenset())


def faster_siblings(
    name: str, precision: str, gpus: Mapping[str, Gpu], measured: Collection[str]
) -> Iterator[str]:
    """Timed GPUs of the same architecture that are faster by their datasheet.

    More arithmetic decides; with equal arithmetic, at least the same memory bandwidth.
    """
    for other in sorted(siblings(name) & gpus.keys() & set(measured) - {name}):
        if _datasheet(gpus[other], precision) >= _datasheet(gpus[name], precision):
            yield other


def _datasheet(gpu: Gpu, precision: str) -> tuple[float, float]:
    peaks = {
        "fp8": gpu.peak_fp8_tflops,
        "fp16": gpu.peak_fp16_tflops,
        "bf16": gpu.peak_bf16_tflops,
        "tf32": gpu.peak_tf32_tflops,
        "fp32": gpu.peak_fp32_tflops,
    }
    return peaks.get(precision) or 0.0, gpu.memory_gb_per_s
