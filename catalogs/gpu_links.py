"""The usual links between the GPUs of one machine, by GPU: `gpu_links.csv`.

Own machines and the accuracy studies take from here what they do not state, and the machines of the
snapshot were built with it. Rates are those of an all-reduce over all GPUs of the machine.

Azure's pairs of H100 NVL and A100 PCIe are bridged, so their bridge comes first. Pairs of A30 and
H100 PCIe are assumed to have none unless a machine states `nvlink`: PCIe comes first.
"""

import csv
from functools import cache
from pathlib import Path

from recommender.catalogs.frozen import dataclass


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """The links between the GPUs of machines with up to so many of a GPU."""

    gpu: str
    gpus_max: int
    intra_kind: str  # as in `InstanceType`, or "roce" (Gaudi), "ici" (TPU)
    gb_per_s: float | None  # per GPU and direction, achieved by an all-reduce; None: not published
    basis: str  # what was measured or assumed, and by whom
    as_of: str


@cache
def gpu_links() -> tuple[GpuLinks, ...]:
    """The links of all GPUs; of each GPU, the first row with enough GPUs is the usual one."""
    text = Path(__file__).with_name("gpu_links.csv").read_text(encoding="utf-8")
    return tuple(
        GpuLinks(
            row["gpu"],
            int(row["gpus_max"]),
            row["intra_kind"],
            float(row["gb_per_s"]) if row["gb_per_s"] else None,
            row["basis"],
            row["as_of"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def usual_links(gpu: str, gpus: int, kind: str = "") -> GpuLinks | None:
    """The links of a machine with so many of a GPU, of a kind if one is named; None if unknown."""
    return next(
        (
            row
            for row in gpu_links()
            if row.gpu == gpu and gpus <= row.gpus_max and kind in ("", row.intra_kind)
        ),
        None,
    )


def has_links(gpu: str, kind: str) -> bool:
    """Whether some machine links this GPU so, with however many of it."""
    return any(row.gpu == gpu and row.intra_kind == kind for row in gpu_links())
