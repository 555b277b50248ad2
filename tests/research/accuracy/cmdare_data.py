"""What CM-DARE measured, as means: networks, speeds of clusters, checkpoint times.

Li et al., "Characterizing and Modeling Distributed Training with Transient Cloud GPU Servers",
ICDCS 2020, arXiv 2004.03072; data in github.com/cake-lab/CM-DARE. Speeds are steady states of
TensorFlow 1.10 with asynchronous parameter servers, 128 images per update and worker.
"""

from dataclasses import dataclass
from functools import cache

from tests.research.accuracy.tables import table
from tests.research.fits.fit_parameter_server import Network, Speed


@dataclass(frozen=True, slots=True)
class Written:
    """How long the chief took to write one network's checkpoint to a bucket."""

    network: str
    tensors: int
    variable_bytes: float  # weights and momentum in fp32, without index and graph
    write_s: float  # mean of five, made on the chief and uploaded


@cache
def networks() -> dict[str, Network]:
    """The 20 CNNs by name."""
    return {
        row["network"]: Network(
            row["network"],
            row["structure"],
            float(row["flop_per_image"]),
            float(row["parameters"]),
            int(row["tensors"]),
        )
        for row in table("cmdare_networks")
    }


@cache
def speeds() -> tuple[Speed, ...]:
    """Every cluster of K80 or P100 workers."""
    return tuple(
        Speed(
            row["campaign"],
            row["gpu"],
            row["network"],
            int(row["workers"]),
            int(row["servers"]),
            float(row["updates_per_s"]),
        )
        for row in table("cmdare_speeds")
    )


@cache
def checkpoints() -> tuple[Written, ...]:
    """The checkpoints of the 20 CNNs."""
    return tuple(
        Written(
            row["network"],
            int(row["tensors"]),
            float(row["variable_bytes"]),
            float(row["write_s"]),
        )
        for row in table("cmdare_checkpoints")
    )
