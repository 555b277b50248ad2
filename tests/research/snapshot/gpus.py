"""GPU facts: vendor peaks with the corrections, under the names people write."""

from dataclasses import dataclass
from pathlib import Path

from recommender.catalogs.schema import Gpu, Kind
from tests.research.snapshot.reading import Cells, iso_date, number, read_hand, read_table
from tests.research.snapshot.sources import SourceBook, cite

_PEAKS = ("fp32_tflops", "tf32_tflops", "fp16_tensor_tflops", "bf16_tensor_tflops", "fp8_tflops")


@dataclass(frozen=True, slots=True)
class Fitted:
    """The GPUs of an instance type, as joined by hand from the providers' own words."""

    gpu: str
    count: int
    memory_mib: int
    link: str  # how the GPUs of the machine are connected, in words


def short_names() -> dict[str, str]:
    """Map the long GPU names of the reference tables to the short ones."""
    return {row["gpu_id"]: row["gpu"] for row in read_hand("gpu_names")}


def fitted_gpus(reference: Path) -> dict[tuple[str, str], Fitted]:
    """Read which whole training GPUs each instance type holds; others are left out."""
    names = short_names()
    return {
        (row["cloud"], row["instance_type"]): Fitted(
            gpu=names[row["gpu_id"]],
            count=round(float(row["gpu_count"])),
            memory_mib=round(float(row["gpu_memory_mib_each"])),
            link=row["intra_node"],
        )
        for row in read_table(reference / "hardware" / "extra_instance_gpus.csv")
        if row["training"] == "yes"
    }


def gpu_rows(reference: Path, book: SourceBook) -> list[Gpu]:
    """Build one row for each GPU that some instance type holds, and for those of other clouds."""
    facts = _corrected(reference)
    memory = {fitted.gpu: fitted.memory_mib for fitted in fitted_gpus(reference).values()}
    source = cite(book, "GPU data sheets")
    rows = [
        _gpu_row(row, *facts[row["gpu_id"]], memory[row["gpu"]], source)
        for row in read_hand("gpu_names")
        if row["gpu"] in memory
    ]
    return rows + [_unsold_row(row, source) for row in read_hand("unsold_gpus")]


def _unsold_row(row: Cells, source: int) -> Gpu:
    """A GPU that no type of the three providers holds: machines of the user's and others do."""
    fp32, tf32, fp16, bf16, fp8 = (
        number(row[f"{name}_tflops"]) for name in ("fp32", "tf32", "fp16", "bf16", "fp8")
    )
    return Gpu(
        gpu=row["gpu"],
        vendor=row["vendor"],
        memory_mib=int(row["memory_mib"]),
        memory_gb_per_s=float(row["memory_gb_per_s"]),
        peak_fp32_tflops=fp32,
        peak_tf32_tflops=tf32,
        peak_fp16_tflops=fp16,
        peak_bf16_tflops=bf16,
        peak_fp8_tflops=fp8,
        watts=int(row["watts"]) if row["watts"] else None,
        released=int(row["released"]),
        kind="quote",
        source=source,
        as_of="2026-08-01",
    )


def _corrected(reference: Path) -> dict[str, tuple[Cells, Kind]]:
    """Apply the corrections: a value of `extra_gpus.csv` wins over `gpus.csv`."""
    folder = reference / "hardware"
    facts = {row["gpu_id"]: dict(row) for row in read_table(folder / "gpus.csv")}
    derived = set()
    for fix in read_table(folder / "extra_gpus.csv"):
        row = facts.setdefault(fix["gpu_id"], {"source_date": fix["source_date"]})
        row[fix["field"]] = fix["value"]
        if fix["kind"] == "derived" and fix["field"] in _PEAKS:
            derived.add(fix["gpu_id"])
    return {gpu: (row, "derived" if gpu in derived else "quote") for gpu, row in facts.items()}


def _gpu_row(name: Cells, facts: Cells, kind: Kind, memory_mib: int, source: int) -> Gpu:
    bandwidth = number(facts.get("mem_bw_gbs", "")) or number(name["memory_gb_per_s"])
    if bandwidth is None:
        raise ValueError(f"{name['gpu']}: no memory bandwidth")
    fp32, tf32, fp16, bf16, fp8 = (number(facts.get(field, "")) for field in _PEAKS)
    return Gpu(
        gpu=name["gpu"],
        vendor=name["vendor"],
        memory_mib=memory_mib,
        memory_gb_per_s=bandwidth,
        peak_fp32_tflops=fp32,
        peak_tf32_tflops=tf32,
        peak_fp16_tflops=fp16,
        peak_bf16_tflops=bf16,
        peak_fp8_tflops=fp8,
        watts=int(name["watts"]) if name["watts"] else None,
        released=int(name["released"]),
        kind=kind,
        source=source,
        as_of=iso_date(facts["source_date"]),
    )
