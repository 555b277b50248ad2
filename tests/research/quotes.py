"""What was promised of a cheap spot quote against what the same place cost n days later.

`python -P tests/run.py tests.research.quotes` prints the tables of docs/research/quotes.md from the
price histories of `RECOMMEND_REFERENCE_DATA`. A pick is what the planner would rent: the cheapest
place of a type, or what a job would pick of all types by price per speed. Promised is the price
planned with on the day of the pick; paid is the price of the same place n days later.
"""

import csv
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.market.quotes import expected_quote, persistence
from tests.research.snapshot import facts_prices as prices
from tests.shipped import snapshot

AGES = {"gcp": (7, 28, 91, 180, 365), "azure": (7, 14, 28, 40), "aws": (7, 28, 60)}
JOBS = 60
EVERY_DAYS = {"gcp": 7.0, "azure": 2.0, "aws": 1.0}


@dataclass(frozen=True)
class Quotes:
    """The places of one type on one day, and what they cost later; ln USD per hour."""

    type: str
    day: float
    then: Floats
    later: Floats

    @property
    def level(self) -> float:
        """Median of the day."""
        return float(np.median(self.then))

    @property
    def cheapest(self) -> int:
        """The place that is picked."""
        return int(self.then.argmin())

    def promised(self, left: float) -> Floats:
        """ln of the prices planned with."""
        level = np.exp(self.level)
        return np.log([expected_quote(usd, level, left) for usd in np.exp(self.then).tolist()])


Series = dict[tuple[str, str], prices.Steps]


def histories(reference: Path, provider: str) -> tuple[Series, Floats]:
    """Prices of a provider by type and place, and the days on which somebody may have picked."""
    folder = reference / "prices"
    found: Series
    if provider == "gcp":
        points = prices._read(folder / "gcp_history.csv.gz", "spot_usd_per_hour")
        found = {key: prices._steps(each) for key, each in points.items()}
        first = float(prices.GCP_FROM["spot"].toordinal())
    elif provider == "azure":
        keys = prices._read(folder / "azure_history.csv.gz", "spot_usd_per_hour")
        found = dict(zip(keys, prices.read_azure_spot(reference), strict=True))
        first = min(each.days[0] for each in found.values())
    else:
        found = prices.named_market(folder / "aws_spot_history_2020.csv.gz")
        first = min(each.days[0] for each in found.values())
    last = max(each.days[-1] for each in found.values())
    return found, np.arange(first, last, EVERY_DAYS[provider])


def observed(series: Series, days: Floats, age: float) -> Iterator[Quotes]:
    """Every day and type with two places at least that were quoted then and `age` days later."""
    last = max(each.days[-1] for each in series.values())
    by_type: dict[str, list[prices.Steps]] = defaultdict(list)
    for (name, _), steps in series.items():
        by_type[name].append(steps)
    for name, places in sorted(by_type.items()):
        for day in days[days + age <= last].tolist():
            known = [place for place in places if place.days[0] <= day]
            if len(known) >= 2:
                then, later = (np.log([_at(p, d) for p in known]) for d in (day, day + age))
                yield Quotes(name, day, then, later)


def _at(steps: prices.Steps, day: float) -> float:
    return float(steps.usd[np.searchsorted(steps.days, day, side="right") - 1])


def left_of_cheapest(quotes: Iterable[Quotes]) -> float:
    """Share of ln(cheapest / level) that is there later, by least squares through the origin."""
    was, found = [], []
    for each in quotes:
        was.append(each.then[each.cheapest] - each.level)
        found.append(each.later[each.cheapest] - float(np.median(each.later)))
    return float(np.dot(was, found) / np.dot(was, was))


Left = Callable[[Quotes], float]


def bias_of_types(quotes: Iterable[Quotes], left: Left) -> float:
    """Mean of paid over promised, less one, of the cheapest place of each type."""
    apart = [each.later[each.cheapest] - each.promised(left(each)).min() for each in quotes]
    return float(np.expm1(apart).mean())


def bias_of_jobs(quotes: list[Quotes], left: Left, speed: dict[str, float]) -> float:
    """The same of what jobs would pick: the cheapest place of all types by price per speed.

    Half of the types can train a job, and its speed on each differs from the matrix rate by 35 %.
    """
    promised = [each.promised(left(each)) for each in quotes]
    rng, apart = np.random.default_rng(JOBS), []
    for _ in range(JOBS):
        able = {name: rng.normal(0.0, 0.35) for name in speed if rng.random() < 0.5}
        best: dict[float, tuple[float, float]] = {}
        for each, usd in zip(quotes, promised, strict=True):
            if each.type not in able:
                continue
            at = int(usd.argmin())
            cost = float(usd[at]) + able[each.type] - np.log(speed[each.type])
            if each.day not in best or cost < best[each.day][0]:
                best[each.day] = cost, float(each.later[at] - usd[at])
        apart += [error for _, error in best.values()]
    return float(np.expm1(apart).mean())


def matrix_speeds(provider: str) -> dict[str, float]:
    """TFLOP/s of matrices of each type, of 16 bits where it has them of the shipped catalog."""
    catalog, found = snapshot(), {}
    for (owner, name), machine in catalog.instance_types.items():
        rates = (catalog.achieved.get((machine.gpu, kind)) for kind in ("bf16", "fp16", "fp32"))
        row = next((each for each in rates if each), None)
        if owner == provider and row is not None:
            found[name] = row.tflops * machine.gpus
    return found


def halves(quotes: list[Quotes]) -> Left:
    """What is left, for each half of the types as found on the other half."""
    names = sorted({each.type for each in quotes})
    first = set(names[::2])
    of_first = left_of_cheapest(q for q in quotes if q.type in first)
    of_second = left_of_cheapest(q for q in quotes if q.type not in first)
    return lambda each: of_second if each.type in first else of_first


def zone_quotes(reference: Path) -> tuple[float, float, float]:
    """AWS zones of late 2025 in mid 2026: what is left, and paid over quoted before and after."""

    def read(name: str) -> dict[tuple[str, str], float]:
        with (reference / "prices" / name).open(newline="") as file:
            return {
                (row["instance_type"], row["az_id"]): float(row["spot_usd_per_hour"])
                for row in csv.DictReader(file)
                if row["spot_quote"] == "market"
            }

    old, new = read("aws_spot_by_zone.csv"), read("extra_aws_spot_by_zone.csv")
    both = sorted(old.keys() & new.keys())
    rows = []
    for name in sorted({key[0] for key in both}):
        keys = [key for key in both if key[0] == name]
        if len(keys) >= 3:
            then, later = (np.log([table[key] for key in keys]) for table in (old, new))
            rows.append(Quotes(name, 0.0, then, later))
    apart = [(q.then - q.level, q.later - float(np.median(q.later))) for q in rows]
    was, found = (np.concatenate(parts) for parts in zip(*apart, strict=True))
    left = float(np.dot(was, found) / np.dot(was, was))
    known = persistence("aws", prices.ZONE_QUOTES_AGE)
    return left, bias_of_types(rows, lambda _: 1.0), bias_of_types(rows, lambda _: known)


def main() -> None:
    """Print the tables."""
    reference = Path(os.environ["RECOMMEND_REFERENCE_DATA"])
    print("provider  age d  picks   left | paid over promised - 1: before, after, halves | jobs")
    for provider, ages in AGES.items():
        series, days = histories(reference, provider)
        speed = matrix_speeds(provider)
        for age in ages:
            found = list(observed(series, days, age))
            known = persistence(provider, age)
            biases = [
                bias_of_types(found, left)
                for left in (lambda _: 1.0, lambda _, k=known: k, halves(found))  # type: ignore[misc]
            ]
            jobs = [
                bias_of_jobs(found, left, speed)
                for left in (lambda _: 1.0, lambda _, k=known: k)  # type: ignore[misc]
            ]
            figures = " ".join(f"{100 * each:+6.1f}" for each in (*biases, *jobs))
            print(f"{provider:8} {age:5} {len(found):6} {left_of_cheapest(found):6.3f} | {figures}")
    left, before, after = zone_quotes(reference)
    change = f"{100 * before:+.0f} % before, {100 * after:+.0f} % after"
    print(f"aws zones, 212 days: left {left:.2f}; {change}")


if __name__ == "__main__":
    main()
