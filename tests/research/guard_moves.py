"""What the guards of `recommend catalog refresh` make of the price histories, night by night.

`python -P tests/run.py tests.research.guard_moves` replays the histories of
`RECOMMEND_REFERENCE_DATA`: AWS spot (2020), GCP (2022-2026) and Azure (2026). A price that is held
back stays the last good one, by which the next night is measured; between two dates of a history
nothing moved, so what was believed was read again the night before. All go through `validate`.

The lists of GCP and Azure were wrong on some dates, so a difference is not yet a move of the
market. `azure_errors` and `gcp_errors` say which rows are wrong, by what no guard looks at. The
true moves are replayed without them, and then the lists as they were: how many of their errors
would have been published. Both tables are in docs/research/refresh.md.
"""

import csv
import gzip
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.refresh.draft import usd_per_gpu
from recommender.catalogs.refresh.reference import (
    History,
    Key,
    Reference,
    Validated,
    failure_reason,
    held_key,
    offer_key,
)
from recommender.catalogs.refresh.validate import validate
from recommender.catalogs.registry import CLOUDS
from recommender.catalogs.schema import Market, Offer, Provider, Source
from tests.research.snapshot import facts_prices as prices
from tests.shipped import snapshot

Readings = dict[int, dict[Key, float]]  # what was read on each date, by its ordinal
COLUMNS: tuple[tuple[Market, str], ...] = (
    ("on_demand", "ondemand_usd_per_hour"),
    ("spot", "spot_usd_per_hour"),
)
LARGE = 1.25  # no price may be published that is off by as much


@dataclass(frozen=True)
class Moves:
    """Prices of a history: dates, prices read, moves from one date to the next, those held back."""

    history: str
    dates: int
    read: int
    moved: int
    held: int

    @property
    def let_through(self) -> float:
        """Share of the moves believed in the night that they were read."""
        return 1.0 - self.held / self.moved if self.moved else 1.0


@dataclass(frozen=True)
class Errors:
    """Wrong rows of a list: how many, and how many a refresh would have published."""

    history: str
    wrong: int
    large: int  # of them off by a quarter or more
    published: int
    published_large: int


@dataclass(frozen=True)
class Night:
    """What became of a reading; of the rest there is no offer (spot at the list price)."""

    published: set[Key]
    held: set[Key]


class Nights:
    """A provider's store, renewed on every date of a history."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.last: dict[Key, Offer] = {}
        self.held: set[Key] = set()
        self.nights: dict[int, dict[Key, float]] = {}

    def refresh(self, day: int, read: Mapping[Key, float]) -> Night:
        """Believe what the guards believe of a reading."""
        self._read_again(day - 1)
        found, refused = self._validated(day, read)
        offers = {offer_key(o): o for o in found.offers}
        # What is held back keeps its last good price; what is refused has none.
        kept = {
            key: offer
            for key, offer in self.last.items()
            if held_key(offer) in found.held or key in refused or key not in read
        }
        self.held = {key for key in kept if key in read}
        self.last = {**kept, **offers}
        self.nights[day] = {held_key(o): o.usd_per_hour for o in self.last.values()}
        names = {row.what for row in found.quarantined}
        doubted = {k for k in read if f"{k[0]} {k[2] or k[1]} {k[3]}" in names}
        return Night(set(offers), (doubted | refused) - set(offers))

    def _read_again(self, day: int) -> None:
        night = date.fromordinal(day).isoformat()
        self.last = {
            key: offer if key in self.held else replace(offer, as_of=night)
            for key, offer in self.last.items()
        }

    def _validated(self, day: int, read: Mapping[Key, float]) -> tuple[Validated, set[Key]]:
        """The rows that are believed, and those that were refused with their region or batch."""
        today, last = date.fromordinal(day), tuple(self.last.values())
        machines = {n: t for (p, n), t in snapshot().instance_types.items() if p == self.provider}
        history = History(week=self._ago(day, 7), month=self._ago(day, 30))
        typical = usd_per_gpu(snapshot())
        reference = Reference(
            self.provider, machines, snapshot().gpus, last, typical, today, history=history
        )
        found = validate(self._fetched(today, read), reference)
        if found.problems and last:
            found = replace(found, offers=())
        kept = {offer_key(o) for o in found.offers}
        whole = {k for k in read if failure_reason(found.failed, k[1], k[3])} if kept else set(read)
        return found, whole - kept

    def _ago(self, day: int, nights: int) -> dict[Key, float]:
        """The prices of so many nights ago, or the oldest."""
        days = sorted(self.nights)
        older = [each for each in days if each <= day - nights] or days[:1]
        return self.nights[older[-1]] if older else {}

    def _fetched(self, today: date, read: Mapping[Key, float]) -> Fetched:
        now = datetime(today.year, today.month, today.day, 3, tzinfo=UTC)
        offers = tuple(
            Offer(self.provider, name, region, zone, market, usd, "open", "quote", "", 0.0, None,
                  1, today.isoformat())
            for (name, region, zone, market), usd in read.items()
        )  # fmt: skip
        sources = (Source(1, "history", "facts", "row", "replayed"),)
        markets = frozenset(o.market for o in offers)
        return Fetched(self.provider, now, now + timedelta(minutes=1), markets, offers, sources)


def nights_of(provider: Provider, readings: Readings) -> dict[int, Night]:
    """What becomes of every reading of a history."""
    store = Nights(provider)
    return {day: store.refresh(day, read) for day, read in sorted(readings.items())}


def moves(history: str, provider: Provider, readings: Readings) -> Iterator[Moves]:
    """How many moves of each market are let through."""
    nights = nights_of(provider, readings)
    for market, _ in COLUMNS:
        before: dict[Key, float] = {}
        read = moved = held = 0
        for day, now in sorted(readings.items()):
            offered = nights[day].published | nights[day].held
            here = {k: usd for k, usd in now.items() if k[3] == market and k in offered}
            new = {k for k, usd in here.items() if k in before and _differ(usd, before[k])}
            read, moved, held = (
                read + len(here),
                moved + len(new),
                held + len(new & nights[day].held),
            )
            before |= here
        name = "on-demand" if market == "on_demand" else market
        yield Moves(f"{history} {name}", len(readings), read, moved, held)


def errors(history: str, provider: Provider, readings: Readings, true: Readings) -> Errors:
    """How many wrong rows of a list as it was are published."""
    wrong: list[float] = []
    out: list[float] = []
    seen: dict[Key, float] = {}
    for day, night in nights_of(provider, readings).items():
        for key, usd in readings[day].items():
            right = true[day].get(key)
            new, seen[key] = _differ(usd, seen.get(key, 0.0)), usd
            if right is None or not _differ(usd, right):
                continue
            factor = max(usd / right, right / usd)
            wrong += [factor] if new else []
            out += [factor] if new and key in night.published else []
    large = [sum(x >= LARGE for x in each) for each in (wrong, out)]
    return Errors(history, len(wrong), large[0], len(out), large[1])


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > 1e-3 * other


def changes(path: Path, provider: Provider) -> Readings:
    """The rows of a history of machines that the guards know."""
    found: Readings = defaultdict(dict)
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            day = date.fromisoformat(row["date"]).toordinal()
            for market, column in COLUMNS:
                if row[column] and sold(provider, row["instance_type"], row["region"]):
                    found[day][row["instance_type"], row["region"], "", market] = float(row[column])
    return dict(found)


def sold(provider: Provider, name: str, region: str) -> bool:
    """Whether a catalog would list it: no machine without a description, no government's region."""
    known = (provider, name) in snapshot().instance_types
    return known and re.fullmatch(CLOUDS[provider].region_pattern, region) is not None


def filled(rows: Readings, wrong: Collection[tuple[int, Key]] = ()) -> Readings:
    """What would be read on every date, of rows that list what has changed."""
    known: dict[Key, float] = {}
    found: Readings = {}
    for day, now in sorted(rows.items()):
        known = known | {key: usd for key, usd in now.items() if (day, key) not in wrong}
        found[day] = known
    return found


def without_doubt(
    provider: Provider, rows: Readings, wrong: Collection[tuple[int, Key]]
) -> Readings:
    """The same, less families of a region of which a row is wrong: that one may have moved too."""
    families = {n: t.family for (p, n), t in snapshot().instance_types.items() if p == provider}
    odd: set[Key] = set()
    found: Readings = {}
    for day, known in filled(rows, wrong).items():
        odd = {k for k in odd if k not in rows[day]} | {k for k in rows[day] if (day, k) in wrong}
        hidden = {(families[name], region) for name, region, _, _ in odd}
        found[day] = {
            key: usd for key, usd in known.items() if (families[key[0]], key[1]) not in hidden
        }
    return found


def azure_errors(rows: Readings, last: Mapping[Key, float]) -> set[tuple[int, Key]]:
    """Rows that are neither the price of the first list nor that of the last, seven weeks later.

    Azure sets its prices once a month: 180 of the 184 on-demand differences are 0.046 USD per
    vCPU and hour, the licence of Windows, and back within days.
    """
    first: dict[Key, float] = {}
    for _, now in sorted(rows.items()):
        first = now | first
    return {
        (day, key)
        for day, now in rows.items()
        for key, usd in now.items()
        if key in last and _differ(usd, first[key]) and _differ(usd, last[key])
    }


ULTRA_MENDED, ULTRA_ODD = date(2022, 10, 2), date(2023, 5, 9)


def gcp_errors(rows: Readings) -> set[tuple[int, Key]]:
    """Prices of A2 Ultra that were not Google's.

    Until 2022-10-02 a2-ultragpu-1g cost exactly a2-highgpu-1g and 85 GiB more (us-central1
    0.360145 = 85 * 0.004237 USD): the 80 GB GPU had the 40 GB one's price. On 2023-05-09 a size
    fell to 0.2 in all five regions, and was back to the cent a day later.
    """
    mended, odd = ULTRA_MENDED.toordinal(), ULTRA_ODD.toordinal()
    return {
        (day, key)
        for day, now in rows.items()
        for key in now
        if (key[0].startswith("a2-ultragpu") and key[3] == "on_demand" and day < mended)
        or (key[0] == "a2-ultragpu-2g" and day == odd)
    }


def last_azure_list(path: Path) -> dict[Key, float]:
    """The prices of the list of 2026-05-20."""
    return {
        (name, region, "", market): points[-1][1]
        for market, column in COLUMNS
        for (name, region), points in prices._read(path, column).items()
    }


def auction(path: Path) -> Readings:
    """AWS spot: change points as what a refresh would read each night, with on-demand prices."""
    listed = {
        (o.instance_type, o.region, "", "on_demand"): o.usd_per_hour
        for o in snapshot().offers
        if (o.provider, o.market) == ("aws", "on_demand")
    }
    found: Readings = defaultdict(dict)
    for (name, zone), steps in prices.named_market(path).items():
        region = zone[:-1]
        key = (name, region, f"{region.replace('-', '')}-az{ord(zone[-1]) - 96}", "spot")
        for day in np.arange(np.ceil(steps.days[0]), np.floor(steps.days[-1]) + 1):
            at = int(np.searchsorted(steps.days, day, side="right")) - 1
            found[EPOCH + int(day)][key] = float(steps.usd[at])
    return {day: {**listed, **quotes} for day, quotes in found.items()}


EPOCH = date(1970, 1, 1).toordinal()


def measured(reference: Path) -> Iterator[Moves | Errors]:
    """Every history: its true moves, and its errors."""
    folder = reference / "prices"
    yield list(moves("AWS", "aws", auction(folder / "aws_spot_history_2020.csv.gz")))[1]
    gcp = changes(folder / "gcp_history.csv.gz", "gcp")
    azure = changes(folder / "azure_history.csv.gz", "azure")
    last = last_azure_list(folder / "azure.csv.gz")
    histories: tuple[tuple[str, Provider, Readings, set[tuple[int, Key]]], ...] = (
        ("GCP", "gcp", gcp, gcp_errors(gcp)),
        ("Azure", "azure", azure, azure_errors(azure, last)),
    )
    for name, provider, rows, wrong in histories:
        yield from moves(name, provider, without_doubt(provider, rows, wrong))
        yield errors(name, provider, filled(rows), filled(rows, wrong))


def main() -> None:
    """Print the tables of docs/research/refresh.md."""
    for each in measured(Path(os.environ["RECOMMEND_REFERENCE_DATA"])):
        if isinstance(each, Moves):
            figures = f"{each.dates:,} | {each.read:,} | {each.moved:,} | {each.held:,}"
            print(f"| {each.history} | {figures} | {100 * each.let_through:.1f} % |")
        else:
            figures = f"{each.wrong:,} | {each.large:,} | {each.published:,}"
            print(f"| {each.history}: wrong rows | {figures} | {each.published_large:,} |")


if __name__ == "__main__":
    main()
