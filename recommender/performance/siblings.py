"""GPUs of one architecture: a measurement on one of them bounds the others.

A datasheet's rates are ceilings, and the smaller part of an architecture often has a larger figure
somewhere: the H100 NVL has 16 % more memory bandwidth than the SXM part and a third less power to
use it with. So if a part was never timed, a faster part that was timed is its ceiling.
"""

from collections.abc import Collection, Iterator, Mapping

from recommender.catalogs.schema import Gpu

# NVIDIA's architectures, by the catalog's names (vendor's product pages, 2026-08).
ARCHITECTURES = (
    frozenset({"K80"}),
    frozenset({"M60"}),
    frozenset({"P4", "P100"}),
    frozenset({"V100", "V100-32GB", "V100-PCIe"}),
    frozenset({"T4", "T4G"}),
    frozenset(
        {
            "A10",
            "A10G",
            "A30",
            "A40",
            "A100",
            "A100-80GB",
            "A100-80GB-PCIe",
            "RTX-3090",
            "RTX-A6000",
        }
    ),
    frozenset({"L4", "L40", "L40S", "RTX-4090", "RTX-6000-Ada"}),
    frozenset({"H100", "H100-NVL", "H100-PCIe", "H200", "GH200"}),
    frozenset({"B200", "B300", "GB200", "GB300", "RTX-5090", "RTX-PRO-4500", "RTX-PRO-6000"}),
)


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
