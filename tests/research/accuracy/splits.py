"""The frozen splits: what each study leaves out, and how many runs that must be.

`splits.csv` was written before the models of 2026-11-21 were improved, by these rules. Runs are
those that `fits/data.py` can read: its networks, GPUs and sources; left out are BERT
phase 2 of frameworks that skip padding, BioBERT, and runs above 105 % of the matrix rate. Sources
are left out one at a time where at least two of a family and stack have 20 runs, else GPUs.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recommender.errors import RecordError


@dataclass(frozen=True, slots=True)
class Split:
    """One part that is predicted from all others."""

    study: str
    family: str  # "" where the study knows none
    stack: str
    left_out_by: str  # "source", "gpu", "model"
    left_out: str
    rows: int


@cache
def splits_of(study: str) -> tuple[Split, ...]:
    """The parts of one study, in the order of the file."""
    with open(Path(__file__).with_name("splits.csv"), encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["study"] == study]
    return tuple(Split(**{**row, "rows": int(row["rows"])}) for row in rows)  # type: ignore[arg-type]


def check(split: Split, rows: int) -> None:
    """Refuse measurements that are not those the splits were frozen on."""
    if rows != split.rows:
        raise RecordError(
            f"{split.study}, {split.family} {split.left_out}: {rows} runs, but the frozen split "
            f"has {split.rows}; the reference tables differ from those of "
            "2026-11-21; use those, or leave the study out"
        )
