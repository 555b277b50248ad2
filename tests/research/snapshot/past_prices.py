"""Prices of the last year by the day on which they changed, for machines that the catalog offers.

Google Cloud: every change since 2022, by region; Azure: twenty days of April and May 2026; AWS: on
demand three lists of 2026, Capacity Blocks five; GPU clouds: pairs of dated list prices. Each
series ends in the snapshot's own price. Quotes of AWS spot by zone have no dates before 2026-06.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path

from recommender.catalogs.files import gzipped
from recommender.catalogs.history import COLUMNS, SHIPPED, ShippedKey
from recommender.catalogs.schema import InstanceType, Offer
from tests.research.snapshot.reading import Cells, read_hand, read_table

YEAR = timedelta(days=365)
_SAME = 5e-4  # lists of four decimals repeat a price
_EXACT = 0.01  # a machine is priced by its GPUs if its price is that of so many of them
Series = dict[ShippedKey, dict[str, float]]  # USD by day


def write_past_prices(
    folder: Path, reference: Path, offers: Iterable[Offer], types: Iterable[InstanceType]
) -> Path:
    """Write the series next to a snapshot's folder."""
    path = folder / SHIPPED.name
    path.write_bytes(gzipped(_table(series(reference / "prices", list(offers), types)).encode()))
    return path


def series(prices: Path, offers: list[Offer], types: Iterable[InstanceType]) -> Series:
    """Every series with a price of another day than today's."""
    now: Series = {}
    for offer in offers:
        now.setdefault(_key(offer), {}).setdefault(offer.as_of[:10], offer.usd_per_hour)
    past: Series = {}
    gpus = {(t.provider, t.instance_type): (t.gpu, t.gpus) for t in types}
    for key, day, usd in (*_lists(prices), *_cloud_steps(offers, gpus)):
        past.setdefault(key, {})[day] = usd
    known = {key: days | now[key] for key, days in past.items() if key in now}
    cut = {key: _of_a_year(days) for key, days in known.items()}
    return {key: days for key, days in sorted(cut.items()) if len(days) > 1}


def _key(offer: Offer) -> ShippedKey:
    return offer.provider, offer.instance_type, offer.region, offer.market


def _lists(prices: Path) -> Iterator[tuple[ShippedKey, str, float]]:
    for provider in ("gcp", "azure"):
        for row in read_table(prices / f"{provider}_history.csv"):
            yield from _of_row(provider, row)
    for name in ("aws_on_demand", "extra_aws_on_demand"):
        for row in read_table(prices / f"{name}.csv"):
            key = ("aws", row["instance_type"], row["region"], "on_demand")
            yield key, row["date"], float(row["usd_per_hour"])
    for row in read_table(prices / "aws_capacity_block_history.csv"):
        key = ("aws", row["instance_type"], row["region"], "reserved_block")
        yield key, row["date"], float(row["usd_per_instance_hour"])


def _of_row(provider: str, row: Cells) -> Iterator[tuple[ShippedKey, str, float]]:
    for market, column in (("on_demand", "ondemand"), ("spot", "spot")):
        if usd := row[f"{column}_usd_per_hour"]:
            yield (provider, row["instance_type"], row["region"], market), row["date"], float(usd)


def _cloud_steps(
    offers: Iterable[Offer], gpus: dict[tuple[str, str], tuple[str, int]]
) -> Iterator[tuple[ShippedKey, str, float]]:
    """List prices by GPU of machines that cost as much as their GPUs."""
    steps = read_hand("cloud_price_changes")
    for offer in (each for each in offers if each.market == "on_demand"):
        gpu, count = gpus[offer.provider, offer.instance_type]
        for row in steps:
            later = count * float(row["later_usd_per_gpu"])
            same = (row["provider"], row["gpu"]) == (offer.provider, gpu)
            if same and abs(later / offer.usd_per_hour - 1.0) < _EXACT:
                yield _key(offer), row["from_date"], count * float(row["usd_per_gpu"])


def _of_a_year(days: dict[str, float]) -> dict[str, float]:
    """The days on which a price changed in the last year, its first one, and the last day."""
    ordered = sorted(days.items())
    first = (date.fromisoformat(ordered[-1][0]) - YEAR).isoformat()
    before = [each for each in ordered if each[0] < first]
    within = [*before[-1:], *(each for each in ordered if each[0] >= first)]
    kept = within[:1]
    for day, usd in within[1:]:
        if abs(usd / kept[-1][1] - 1.0) > _SAME:
            kept.append((day, usd))
    return dict([*kept, within[-1]])


def _table(found: Series) -> str:
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for key, days in found.items():
        table.writerow([*key, " ".join(f"{day}:{usd:.6g}" for day, usd in sorted(days.items()))])
    return out.getvalue()
