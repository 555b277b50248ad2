"""How many true moves of prices the guards of `recommend catalog refresh` let through at once.

`python -P tests/run.py tests.research.guard_moves` replays the price histories of
`RECOMMEND_REFERENCE_DATA` night by night: AWS spot (2020), GCP (2022-2026) and Azure (2026),
spot and on-demand. A price that is held back stays the last good one, by which the next night is
measured. The table stands in docs/refresh.md.
"""

import csv
import gzip
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from recommender.catalogs.load import load_snapshot
from recommender.catalogs.refresh.family_proportions import MOVED, FamilyProportions
from recommender.catalogs.refresh.validate_listed_prices import HELD_CHANGE
from recommender.catalogs.refresh.validate_spot_prices import allowed_factor
from tests.research.snapshot import facts_prices as prices

Place = tuple[str, str]  # instance type, region or zone
Prices = dict[Place, float]
# Which of the new prices are held back; by the last good ones and the days since they were read.
Guard = Callable[[Mapping[Place, float], Mapping[Place, float], Mapping[Place, int]], set[Place]]


@dataclass(frozen=True)
class Moves:
    """Prices of a history: those read, true moves from one reading to the next, those held back."""

    history: str
    nights: int
    read: int
    moved: int
    held: int

    @property
    def let_through(self) -> float:
        """Share of the moves believed in the night that they were read."""
        return 1.0 - self.held / self.moved if self.moved else 1.0


def replay(history: str, nights: Mapping[int, Prices], guard: Guard) -> Moves:
    """Refresh every night of a history, from its first."""
    good: Prices = {}
    before: Prices = {}  # as read, believed or not: what is still held back is no new move
    seen: dict[Place, int] = {}
    read = moved = held = 0
    for day, now in sorted(nights.items()):
        ages = {place: day - seen[place] for place in now if place in seen}
        odd = guard(now, good, ages)
        new = {p for p in now if p in before and abs(now[p] / before[p] - 1) > 1e-9}
        read, moved, held = read + len(now), moved + len(new), held + len(new & odd)
        before |= now
        for place in now.keys() - odd:
            good[place], seen[place] = now[place], day
    return Moves(history, len(nights), read, moved, held)


def auction(
    now: Mapping[Place, float], good: Mapping[Place, float], ages: Mapping[Place, int]
) -> set[Place]:
    """The guard of AWS spot: how far a price moved for the nights since it was read."""
    most = {place: allowed_factor(days) for place, days in ages.items() if days <= 31}
    far = {p for p in most if max(now[p] / good[p], good[p] / now[p]) > most[p]}
    return {place for place in far if most[place] < allowed_factor(99)}  # beyond, all is believed


def listed(
    now: Mapping[Place, float], good: Mapping[Place, float], ages: Mapping[Place, int]
) -> set[Place]:
    """The guard of on-demand prices: a quarter up or down."""
    return {place for place in ages if abs(now[place] / good[place] - 1) > HELD_CHANGE}


def families(
    now: Mapping[Place, float], good: Mapping[Place, float], ages: Mapping[Place, int]
) -> set[Place]:
    """The guard of GCP and Azure spot: what moved keeps the proportion of the sizes."""
    machines = {name: t for (_, name), t in load_snapshot().instance_types.items()}
    known = {place: usd for place, usd in now.items() if place[0] in machines}
    last = {place: good[place] for place in ages if place in known and ages[place] <= 31}
    proportions = FamilyProportions(machines, known, last)
    apart = {place: known[place] / usd for place, usd in last.items()}
    return {
        place
        for place, x in apart.items()
        if max(x, 1 / x) >= 1 + MOVED and proportions.out_of_proportion(place, known[place])
    }


def dated(path: Path, column: str) -> dict[int, Prices]:
    """Every date of a history on which prices were read."""
    found: dict[int, Prices] = {}
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            if row[column]:
                night = found.setdefault(date.fromisoformat(row["date"]).toordinal(), {})
                night[row["instance_type"], row["region"]] = float(row[column])
    return found


def nightly(path: Path) -> dict[int, Prices]:
    """Change points of AWS as what a refresh would read each night."""
    found: dict[int, Prices] = {}
    for place, steps in prices.named_market(path).items():
        for day in np.arange(np.ceil(steps.days[0]), np.floor(steps.days[-1]) + 1):
            at = int(np.searchsorted(steps.days, day, side="right")) - 1
            found.setdefault(int(day), {})[place] = float(steps.usd[at])
    return found


def measured(reference: Path) -> Iterator[Moves]:
    """Every history, by its guard."""
    folder = reference / "prices"
    yield replay("AWS spot 2020", nightly(folder / "aws_spot_history_2020.csv.gz"), auction)
    for name, file in (("GCP", "gcp_history.csv.gz"), ("Azure", "azure_history.csv.gz")):
        yield replay(f"{name} spot", dated(folder / file, "spot_usd_per_hour"), families)
        yield replay(f"{name} on-demand", dated(folder / file, "ondemand_usd_per_hour"), listed)


def main() -> None:
    """Print the table of docs/refresh.md."""
    print("| history | dates | prices read | moves | held back | moves let through | prices |")
    print("|:--|--:|--:|--:|--:|--:|--:|")
    for m in measured(Path(os.environ["RECOMMEND_REFERENCE_DATA"])):
        figures = f"{m.nights:,} | {m.read:,} | {m.moved:,} | {m.held:,}"
        of_all = 100 * (1 - m.held / m.read)
        print(f"| {m.history} | {figures} | {100 * m.let_through:.2f} % | {of_all:.2f} % |")


if __name__ == "__main__":
    main()
