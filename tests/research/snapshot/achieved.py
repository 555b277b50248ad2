"""Achieved matrix-multiplication speed: medians of what was measured, shares of peak elsewhere."""

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from recommender.catalogs.schema import Achieved, Gpu
from tests.research.snapshot.reading import Cells, iso_date, read_table
from tests.research.snapshot.sources import SourceBook, cite

# The labels under which benchmarks publish the GPUs that clouds rent.
_LABELS = {
    "A100 PCIe": ("A100-80GB-PCIe",),
    "A100-40GB-PCIe": ("A100-80GB-PCIe",),
    "A100 SXM": ("A100", "A100-80GB"),
    "A100-80GB": ("A100", "A100-80GB"),
    "A100-80GB-SXM": ("A100", "A100-80GB"),
    "B200 SXM": ("B200",),
    "B300 SXM": ("B300",),
    "GB200": ("GB200",),
    "GB200 SXM": ("GB200",),
    "GH200": ("GH200",),
    "GH200 SXM": ("GH200",),
    "Gaudi 2": ("Gaudi2",),
    "Gaudi 3": ("Gaudi3",),
    "H100 SXM": ("H100",),
    "H100-SXM": ("H100",),
    "H200 SXM": ("H200",),
    "MI300X": ("MI300X",),
    "MI325X": ("MI325X",),
    "MI355X": ("MI355X",),
    "Tesla P100": ("P100",),
    "Tesla T4": ("T4",),
    "Tesla V100": ("V100", "V100-32GB"),
    "V100-32GB": ("V100", "V100-32GB"),
    "V100-SXM2-16GB": ("V100", "V100-32GB"),
    "V100-SXM2-32GB": ("V100", "V100-32GB"),
}
_PRECISIONS = {"fp8_e4m3": "fp8", "pseudo-fp16": "fp16"}
_LICENCES = {
    "huggingface/gpu-fryer": "Apache-2.0",
    "baidu-research/DeepBench": "Apache-2.0",
    "mli/transformers-benchmarks": "none stated (single figures)",
    "stas00/ml-engineering MAMF table": "CC BY-SA 4.0",
}
# The same chip with another memory, or the ARM twin of a card: its speed is taken over.
_TWINS = {"H200": "H100", "GB300": "GB200", "T4G": "T4", "V100-32GB": "V100"}
_TENSOR = ("tf32", "fp16", "bf16", "fp8")


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a vendor peak that matrix multiplication reaches, with its range."""

    value: float
    low: float
    high: float


# Shares of peak over the measured GPUs of each kind (micro-benchmarks read 2026-08).
_BIG_CARD = Share(0.8, 0.62, 0.9)  # tensor cores of cards of 250 W and more
_SMALL_CARD = Share(0.6, 0.5, 0.75)  # tensor cores of cards of up to 150 W: T4 0.60 to 0.72
_CUDA_CORES = Share(0.9, 0.85, 0.98)  # fp32: V100 0.90 to 0.94, P100 0.98
_SMALL_CUDA = Share(0.55, 0.48, 0.6)  # fp32 of cards of up to 75 W: T4 0.58
# fp32 of Kepler and Maxwell, below what their clocks promise. Large SGEMM reaches 3.08 of 5.04
# TFLOP/s on a K40 at boost clocks, at best 3.31 (clMathLibraries/clBLAS, Apache-2.0,
# doc/performance/cuBLAS_7.5, commit 0482e1c, 2015), 4.47 of 6.84 on an M40, at best 4.93
# (baidu-research/DeepBench, 2017). The low end is the K40's share at the K80's base clock.
_BEFORE_PASCAL = Share(0.62, 0.42, 0.72)
_PASCAL_YEAR = 2016
# Where one figure stands alone: two sources on one GPU differ by 4 to 8 % about their middle
# (H100 730 and 794, GB200 1,550 and 1,822; read 2026-08).
_ALONE = 0.08
_AMD = Share(0.5, 0.45, 0.63)  # MI300X 0.51, MI325X 0.60, MI355X 0.63


def achieved_rows(reference: Path, gpus: list[Gpu], book: SourceBook) -> list[Achieved]:
    """Build the best-known speed of every GPU at every precision it has."""
    rows = measured_rows(read_table(reference / "measured" / "micro.csv"), book)
    known = {(row.gpu, row.precision): row for row in rows}
    for gpu in gpus:
        for precision, peak in _peaks(gpu):
            key = (gpu.gpu, precision)
            if peak is not None and key not in known:
                known[key] = _transferred(known, gpu, precision, book) or fallback_row(
                    gpu, precision, peak, cite(book, "rule of achieved speed")
                )
    sold = {gpu.gpu for gpu in gpus}
    return [row for row in known.values() if row.gpu in sold]


def measured_rows(table: list[Cells], book: SourceBook) -> list[Achieved]:
    """Take the median over sources; of one source with typical and best shapes, the typical."""
    groups: dict[tuple[str, str], list[Cells]] = {}
    for row in table:
        if row["category"] == "gemm" and row["unit"] == "TFLOPS":
            for gpu in _LABELS.get(row["gpu"], ()):
                groups.setdefault((gpu, _precision(gpu, row["dtype"])), []).append(row)
    return [_median_row(gpu, kind, rows, book) for (gpu, kind), rows in sorted(groups.items())]


def _precision(gpu: str, dtype: str) -> str:
    if dtype == "fp32/tf32":
        return "fp32" if gpu.startswith("V100") else "tf32"
    return _PRECISIONS.get(dtype, dtype)


def _median_row(gpu: str, precision: str, rows: list[Cells], book: SourceBook) -> Achieved:
    values = [float(row["value"]) for row in rows]
    typical = [float(row["value"]) for row in rows if not row["metric"].startswith("max over")]
    names = sorted({row["source"] for row in rows})
    source = book.key(
        f"matrix multiplication: median of {', '.join(names)}",
        " and ".join(sorted({_LICENCES[name] for name in names})),
        "fit" if len(values) > 1 else "figure",
        "computed here from single figures published by " + ", ".join(names),
    )
    dates = min(iso_date(row["date"]) for row in rows)
    middle = round(median(typical), 1)
    low, high = _range(middle, values)
    return Achieved(gpu, precision, middle, low, high, "measured", source, dates)


def _range(middle: float, values: list[float]) -> tuple[float, float]:
    if len(values) > 1:
        return min(*values, middle), max(*values, middle)
    return round(middle * (1 - _ALONE), 1), round(middle * (1 + _ALONE), 1)


def _peaks(gpu: Gpu) -> list[tuple[str, float | None]]:
    return [
        ("fp32", gpu.peak_fp32_tflops),
        ("tf32", gpu.peak_tf32_tflops),
        ("fp16", gpu.peak_fp16_tflops),
        ("bf16", gpu.peak_bf16_tflops),
        ("fp8", gpu.peak_fp8_tflops),
    ]


def _transferred(
    known: dict[tuple[str, str], Achieved], gpu: Gpu, precision: str, book: SourceBook
) -> Achieved | None:
    """Take a measured figure over from a twin, or from the other 16-bit format."""
    other = {"fp16": "bf16", "bf16": "fp16"}.get(precision, precision)
    twin = _TWINS.get(gpu.gpu, gpu.gpu)
    for key in ((twin, precision), (gpu.gpu, other), (twin, other)):
        found = known.get(key)
        if found and found.kind == "measured":
            source = cite(book, "same chip")
            return replace(found, gpu=gpu.gpu, precision=precision, kind="derived", source=source)
    return None


def fallback_row(gpu: Gpu, precision: str, peak: float, source: int) -> Achieved:
    """Estimate a speed as the share of the peak that comparable cards reach."""
    share = _share(gpu, precision)
    low, value, high = (round(peak * s, 1) for s in (share.low, share.value, share.high))
    return Achieved(gpu.gpu, precision, value, low, high, "fallback", source, gpu.as_of)


def _share(gpu: Gpu, precision: str) -> Share:
    if gpu.vendor == "amd":
        return _AMD
    if precision in _TENSOR:
        return _BIG_CARD if (gpu.watts or 0) >= 250 or gpu.vendor == "google" else _SMALL_CARD
    if gpu.vendor == "nvidia" and (gpu.released or _PASCAL_YEAR) < _PASCAL_YEAR:
        return _BEFORE_PASCAL
    return _SMALL_CUDA if 0 < (gpu.watts or 0) <= 75 else _CUDA_CORES
