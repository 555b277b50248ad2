"""How far prices drift with age: the spread of ln(price now / price then).

Only the spread is used, never the median: a past rise is no forecast. What was computed
on what is in docs/research/risk-facts.md.
"""

import csv
import gzip
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from statistics import fmean

import numpy as np

from recommender.arrays import Floats
from recommender.catalogs.gpu_clouds import GPU_CLOUDS
from recommender.catalogs.schema import BOOKED, Kind, Market, PriceDrift, Provider
from tests.research.snapshot.reading import Cells, read_hand
from tests.research.snapshot.sources import SourceBook, cite

AGES = (1.0, 7.0, 28.0, 91.0, 113.0, 180.0, 365.0)
# Weekly observations of GCP prices begin here; before, gaps are months long. On-demand prices
# move by rare steps (four in 100 within half a year), which so short a time holds too few of: they
# are followed from the first list on, where a step is dated within months.
GCP_FROM: Mapping[Market, date] = {"spot": date(2024, 5, 17), "on_demand": date(2022, 2, 9)}
# Azure is observed for 48 days; beyond a month its spread grows with the root of the age.
AZURE_LONGEST = 28.0
# Azure's prices are set once a month; what returns within days was an error of the list.
SPIKE, SPIKE_DAYS = 0.2, 3.0
# The older zone quotes carry no date ("about late 2025"), the newer lie between 2026-06-20
# and 2026-08-22: December to July, give or take two months.
ZONE_QUOTES_AGE = 212.0


@dataclass(frozen=True, slots=True)
class Steps:
    """A price as a step function of the day."""

    days: Floats
    usd: Floats

    def changes(self, starts: Floats, age: float, end: float) -> Floats:
        """Give ln(price at start + age / price at start) for the starts that allow it."""
        starts = starts[(starts >= self.days[0]) & (starts + age <= end)]
        then = np.searchsorted(self.days, starts, side="right") - 1
        now = np.searchsorted(self.days, starts + age, side="right") - 1
        return np.asarray(np.log(self.usd[now] / self.usd[then]), dtype=np.float64)


def without_spikes(steps: Steps) -> Steps:
    """Drop jumps of a fifth or more that are all but undone within three days."""
    keep = [0]
    for at in range(1, len(steps.days)):
        soon = (steps.days > steps.days[at]) & (steps.days <= steps.days[at] + SPIKE_DAYS)
        before = steps.usd[keep[-1]]
        undone = bool(np.any(np.abs(np.log(steps.usd[soon] / before)) < SPIKE / 2))
        if not undone or abs(math.log(steps.usd[at] / before)) < SPIKE:
            keep.append(at)
    return Steps(steps.days[keep], steps.usd[keep])


def spread(changes: Floats) -> float:
    """Give the sd of the changes about their median: robust, or plain where that is larger.

    Prices that move in rare steps have no spread between their 5 % and 95 % quantiles at
    short ages; the plain sd counts the steps.
    """
    low, high = np.quantile(changes, [0.05, 0.95])
    return max(float(high - low) / 3.29, float(changes.std()))


def drift(
    prices: Iterable[Steps], starts: Floats, end: float, ages: Sequence[float]
) -> list[float]:
    """Give the spread of price changes at each age, never falling with age."""
    known = list(prices)
    sigmas = [spread(np.concatenate([p.changes(starts, a, end) for p in known])) for a in ages]
    return [float(s) for s in np.maximum.accumulate(sigmas)]


def tables(reference: Path, sources: SourceBook) -> dict[str, list[PriceDrift]]:
    """Build the table of price drifts from the price histories."""
    rows = [
        *gcp_rows(reference, sources),
        *azure_rows(reference, sources),
        *aws_rows(reference, sources),
        *cloud_rows(reference, sources),
        *booked_rows(reference, sources),
    ]
    return {"price_drift": rows}


# Sd of ln of the rates of Capacity Blocks by age, eight types on five dates from 2026-01-31 to
# 2026-10-07 (koyakimu/ec2-capacity-blocks-for-ml-pricing-json): they rose three times.
_BLOCKS = {7.0: 0.041, 28.0: 0.086, 91.0: 0.177, 180.0: 0.297}


def booked_rows(reference: Path, sources: SourceBook) -> list[PriceDrift]:
    """Drift of booked capacity: AWS blocks from their rates of a year, Google's as on demand."""
    source = cite(sources, "AWS EC2 Capacity Blocks price page")
    listed = _gcp(reference)["on_demand"]
    rows = [
        PriceDrift("aws", "reserved_block", age, sigma, "measured", source, "2026-10-07")
        for age, sigma in _BLOCKS.items()
    ]
    for market in BOOKED:
        rows += _rows("gcp", market, listed, _kinds(0.0), _gcp_source(sources), "2026-07-30")
    return rows


def gcp_rows(reference: Path, sources: SourceBook) -> list[PriceDrift]:
    """Drift of GCP prices: of spot from weekly observations, on demand from all since 2022."""
    source = _gcp_source(sources)
    rows = []
    for market, sigmas in _gcp(reference).items():
        rows += _rows("gcp", market, sigmas, _kinds(math.inf), source, "2026-07-30")
    return rows


def azure_rows(reference: Path, sources: SourceBook) -> list[PriceDrift]:
    """Drift of Azure spot prices over 48 days; of on-demand prices as at GCP."""
    source = sources.key(
        "Azure price lists 2026-04-02 to 2026-05-20",
        "none stated (public price facts)",
        "fit",
        "anycloud-sh/catalog azure/vms.csv and its history",
    )
    prices = read_azure_spot(reference)
    first, end = min(p.days[0] for p in prices), max(p.days[-1] for p in prices)
    known = [a for a in AGES if a <= AZURE_LONGEST]
    sigmas = drift(prices, np.arange(first, end), end, known)
    longer = [a for a in AGES if a > AZURE_LONGEST]
    sigmas += [sigmas[-1] * math.sqrt(a / AZURE_LONGEST) for a in longer]
    rows = _rows("azure", "spot", sigmas, _kinds(AZURE_LONGEST), source, "2026-05-20")
    return rows + _on_demand_like_gcp("azure", reference, sources)


def aws_rows(reference: Path, sources: SourceBook) -> list[PriceDrift]:
    """Drift of AWS spot prices: histories up to a month, quotes of two dates beyond."""
    source = sources.key(
        "AWS spot price histories 2020 and 2023, zone quotes of late 2025 and mid 2026",
        "MIT (2020), Apache-2.0 (2023), none stated (zone quotes: public price facts)",
        "fit",
        "stanford-futuredata/training_on_a_dime; andylizf/skynomad-artifact; skypilot-catalog; "
        "anycloud-sh/catalog aws/vms.csv",
    )
    rows = _rows("aws", "spot", _aws_spot(reference), _kinds(28.0), source, "2026-06-20")
    return rows + _on_demand_like_gcp("aws", reference, sources)


def cloud_rows(reference: Path, sources: SourceBook) -> list[PriceDrift]:
    """Drift of GPU clouds: one rate for all, from pairs of dated list prices of five of them.

    Their spot prices are set by the clouds, as Azure's, and have no history here.
    """
    source = cite(sources, "price changes of GPU clouds")
    spot = [row for row in azure_rows(reference, sources) if row.market == "spot"]
    sigma = math.sqrt(variance_per_day(read_hand("cloud_price_changes")))
    listed = [sigma * math.sqrt(age) for age in AGES]
    rows = []
    for info in GPU_CLOUDS:
        rows += _rows(info.name, "on_demand", listed, _kinds(0.0), source, "2026-11-09")
        if info.bounds.spot:
            rows += [replace(row, provider=info.name, kind="derived") for row in spot]
    return rows


def variance_per_day(changes: list[Cells]) -> float:
    """The variance of ln price that a day adds: the clouds' mean square changes over their days."""
    squares, days = defaultdict(list), defaultdict(list)
    for row in changes:
        cloud = row["provider"]
        change = math.log(float(row["later_usd_per_gpu"]) / float(row["usd_per_gpu"]))
        first, last = date.fromisoformat(row["from_date"]), date.fromisoformat(row["to_date"])
        squares[cloud].append(change**2)
        days[cloud].append(float((last - first).days))
    return sum(map(fmean, squares.values())) / sum(map(fmean, days.values()))


def _on_demand_like_gcp(
    provider: Provider, reference: Path, sources: SourceBook
) -> list[PriceDrift]:
    """On-demand prices that were never seen to move, as if they moved like GCP's.

    None of 345 AWS prices moved from 2026-01-21 to 2026-06-20 or later, none of 829 Azure
    prices from 2026-04-02 to 2026-05-20: zero for half a year is not zero for ever.
    """
    sigmas = _gcp(reference)["on_demand"]
    return _rows(provider, "on_demand", sigmas, _kinds(0.0), _gcp_source(sources), "2026-07-30")


def _kinds(measured_up_to: float) -> list[Kind]:
    return ["measured" if age <= measured_up_to else "derived" for age in AGES]


def _aws_spot(reference: Path) -> list[float]:
    short = [a for a in AGES if a <= 28.0]
    files = ("aws_spot_history_2020.csv.gz", "aws_spot_history_v100_2023.csv.gz")
    histories = [_history(reference / "prices" / name, short) for name in files]
    known = {a: max(s) for a, s in zip(short, zip(*histories, strict=True), strict=True)}
    known[ZONE_QUOTES_AGE] = spread(zone_quote_changes(reference))
    return [interpolated(known, age) for age in AGES]


def interpolated(known: Mapping[float, float], age: float) -> float:
    """Interpolate a spread between known ages on log-log axes; by the root of age beyond."""
    ages = sorted(known)
    if age >= ages[-1]:
        return known[ages[-1]] * math.sqrt(age / ages[-1])
    logs = np.interp(math.log(age), np.log(ages), np.log([known[a] for a in ages]))
    return float(np.exp(logs))


def zone_quote_changes(reference: Path) -> Floats:
    """Changes of AWS zone quotes from late 2025 to mid 2026, where both are market quotes."""
    old, new = (
        _market_quotes(reference / "prices" / name)
        for name in ("aws_spot_by_zone.csv", "extra_aws_spot_by_zone.csv")
    )
    return np.array([math.log(new[key] / usd) for key, usd in old.items() if key in new])


def _market_quotes(path: Path) -> dict[tuple[str, str], float]:
    with open(path, newline="") as file:
        return {
            (row["az_id"], row["instance_type"]): float(row["spot_usd_per_hour"])
            for row in csv.DictReader(file)
            if row["spot_quote"] == "market"
        }


def _history(path: Path, ages: Sequence[float]) -> list[float]:
    prices = read_market(path)
    first, end = min(p.days[0] for p in prices), max(p.days[-1] for p in prices)
    return drift(prices, np.arange(first, end), end, ages)


def _gcp(reference: Path) -> dict[Market, list[float]]:
    result: dict[Market, list[float]] = {}
    for market, column in _COLUMNS.items():
        read = _read(reference / "prices/gcp_history.csv.gz", column).values()
        prices = [without_spikes(_steps(p)) for p in read]
        start, end = float(GCP_FROM[market].toordinal()), max(p.days[-1] for p in prices)
        result[market] = drift(prices, np.arange(start, end, 7.0), end, AGES)
    return result


def _gcp_source(sources: SourceBook) -> int:
    return sources.key(
        "GCP price history 2022-02-09 to 2026-07-30",
        "Apache-2.0",
        "fit",
        "Cyclenerd/google-cloud-pricing-cost-calculator, its history",
    )


_COLUMNS: dict[Market, str] = {"spot": "spot_usd_per_hour", "on_demand": "ondemand_usd_per_hour"}


Points = dict[tuple[str, str], list[tuple[float, float]]]


def _read(path: Path, column: str) -> Points:
    """Read the changes of a price list by type and region: (day, USD)."""
    points: Points = defaultdict(list)
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            if row[column]:
                day = float(date.fromisoformat(row["date"]).toordinal())
                points[row["instance_type"], row["region"]].append((day, float(row[column])))
    return points


def read_azure_spot(reference: Path) -> list[Steps]:
    """Read Azure spot prices, without the rows in which the list was wrong.

    On a few days up to a few dozen rows carry the Windows price (0.046 USD per vCPU and hour
    more). No on-demand price differs between the first and the last list, so a row that
    differs from the last list is such an error, and its spot price too.
    """
    history, last = "prices/azure_history.csv.gz", "prices/azure.csv.gz"
    on_demand, spot = _COLUMNS["on_demand"], _COLUMNS["spot"]
    right = {key: p[-1][1] for key, p in _read(reference / last, on_demand).items()}
    wrong = {
        (key, day)
        for key, points in _read(reference / history, on_demand).items()
        for day, usd in points
        if not math.isclose(usd, right.get(key, usd))
    }
    end = _read(reference / last, spot)
    prices = []
    for key, points in _read(reference / history, spot).items():
        kept = [(day, usd) for day, usd in points if (key, day) not in wrong]
        kept = [p for p in kept if p[0] != end[key][-1][0]] if key in end else kept
        prices.append(without_spikes(_steps([*kept, *end.get(key, [])])))
    return prices


def read_market(path: Path) -> list[Steps]:
    """Read a history of spot prices: one step function per type and zone."""
    return list(named_market(path).values())


def named_market(path: Path) -> dict[tuple[str, str], Steps]:
    """The same by type and zone."""
    points: Points = defaultdict(list)
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            stamp = row.get("utc")
            seconds = datetime.fromisoformat(stamp).timestamp() if stamp else float(row["t_s"])
            point = (seconds / 86400, float(row["usd_per_hour"]))
            points[row["instance_type"], row["zone"]].append(point)
    return {key: _steps(p) for key, p in points.items()}


def _steps(points: list[tuple[float, float]]) -> Steps:
    days, usd = zip(*sorted(points), strict=True)
    return Steps(np.array(days), np.array(usd))


def _rows(
    provider: Provider,
    market: Market,
    sigmas: Sequence[float],
    kinds: Sequence[Kind],
    source: int,
    as_of: str,
) -> list[PriceDrift]:
    return [
        PriceDrift(provider, market, age, round(sigma, 4), kind, source, as_of)
        for age, sigma, kind in zip(AGES, sigmas, kinds, strict=True)
    ]
