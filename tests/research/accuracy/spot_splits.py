"""Zones that are left out of recorded spot campaigns: frozen before any error was looked at.

`data/spot_splits.csv` names, for each question, every campaign, size of gang and zone. Rules,
from identities and counts alone. Runs: campaigns of at least two zones where another zone saw
an interruption (a line of its own from three zones and twenty interruptions on). Days: probes
of three zones and ten days at least. Gangs: four machines, two zones, ten days at least.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.research.fits.spot_fit import GANGS, Trace, read_traces

SOURCE = "spot-traces (NSDI'24), SkyNomad (NSDI'27), training_on_a_dime (2020), Bamboo (NSDI'23)"
SPLITS = Path(__file__).parent / "data" / "spot_splits.csv"


@dataclass(frozen=True, slots=True)
class Split:
    """One gang size in one campaign, and the zones left out of it one at a time."""

    campaign: str
    gpu: str
    gpus: int  # per machine
    machines: int
    named: bool  # three zones and twenty interruptions: has a line of its own
    zones: tuple[str, ...]
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A gang in a zone that was left out; the other zones of its campaign are known."""

    split: Split
    zone: str
    trace: Trace
    others: tuple[Trace, ...]


def splits(question: str) -> list[Split]:
    """Read the frozen splits of a question: "runs", "uptime" or "gangs"."""
    found: dict[tuple[str, str, str, str], list[Mapping[str, str]]] = {}
    with open(SPLITS, newline="") as file:
        for row in csv.DictReader(file):
            if row["question"] == question:
                key = (row["campaign"], row["gpu"], row["gpus_per_machine"], row["machines"])
                found.setdefault(key, []).append(row)
    return [
        Split(
            campaign,
            gpu,
            int(gpus),
            int(machines),
            rows[0]["named"] == "yes",
            tuple(row["zone_left_out"] for row in rows),
            tuple(row["trace"] for row in rows),
        )
        for (campaign, gpu, gpus, machines), rows in found.items()
    ]


def left_out(reference: Path, question: str) -> list[LeftOut]:
    """Leave out every zone of the splits of a question, one at a time."""
    found = []
    for split in splits(question):
        known = series(reference, split.campaign, split.gpu, split.gpus)
        for zone, name in zip(split.zones, split.traces, strict=True):
            others = tuple(t for t in known if t.name != name)
            (mine,) = (t for t in known if t.name == name)
            found.append(LeftOut(split, zone, mine, others))
    return found


@lru_cache(maxsize=64)
def series(reference: Path, campaign: str, gpu: str, gpus: int) -> tuple[Trace, ...]:
    """The availability series of a campaign's machines of one kind."""
    with open(reference / "spot" / "traces.csv", newline="") as file:
        same = {
            row["trace_id"]
            for row in csv.DictReader(file)
            if (row["campaign"], row["gpu"], row["gpus_per_node"]) == (campaign, gpu, str(gpus))
        }
    return tuple(t for t in read_traces(reference, campaign) if t.name in same)


def sizes_of(traces: Sequence[Trace]) -> list[int]:
    """Sizes of gangs that all series can show."""
    return [n for n in GANGS if n <= min(t.capacity for t in traces)]
