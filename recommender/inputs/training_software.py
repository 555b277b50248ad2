"""Training software that people name: its speed, and the attention that it runs by default.

`training_software.csv` has one row for each, with its source and date; the first that matches a
project is the most specific one. Trainers that stop for their saves are transformers' (its issue
23419) and what is built on it, on accelerate, on DeepSpeed, or on Lightning without a plug-in.
Megatron Core's, NeMo's, torchtitan's, MaxText's and Flax's checkpoints are written in the
background where the recipe says so, as those of vendors do (read 2026-11). The words `tuned` and
`typical` mean any recipe of a vendor, or any script.
"""

import csv
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from recommender.catalogs.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Software:
    """One training software, by its word in a job file."""

    name: str
    stack: Literal["tuned", "typical"]  # whose speeds it reaches
    # fused: scores stay on the chip; plain: they go through memory; network: fused where the class
    # of the network in transformers supports it
    attention: Literal["fused", "plain", "network"]
    saves: Literal["stops", "background"]  # what training does while a checkpoint is written
    modules: tuple[str, ...]  # of Python, that its scripts import; "a+b": both
    packages: tuple[str, ...]  # by their normal names on PyPI

    @property
    def in_words(self) -> str:
        """What the name says to the planner."""
        return "a vendor's recipe" if self.stack == "tuned" else "speed of typical scripts"

    def is_fused(self, sdpa: bool | None) -> bool:
        """Whether attention is fused; `sdpa`: whether the network supports it in transformers."""
        return sdpa is not False if self.attention == "network" else self.attention == "fused"


@cache
def software() -> dict[str, Software]:
    """All software by name, the most specific first."""
    with files(__package__).joinpath("training_software.csv").open("r", encoding="utf-8") as file:
        return {row["name"]: _read(row) for row in csv.DictReader(file)}


def _read(row: dict[str, Any]) -> Software:
    return Software(
        name=row["name"],
        stack=row["stack"],
        attention=row["attention"],
        saves=row["saves"],
        modules=tuple(filter(None, row["modules"].split("|"))),
        packages=tuple(filter(None, row["packages"].split("|"))),
    )
