"""SkyPilot's published catalog files: GPU clouds that no other public list has, AWS spot by zone.

The file says no date, so it is read at the commit that changed it last, whose date is the data's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Fetched, Wanted
from recommender.catalogs.providers.http import Patience, Web
from recommender.catalogs.providers.public.listed import (
    Cells,
    PublicList,
    Row,
    fetched,
    newest_file,
    table_rows,
)
from recommender.catalogs.schema import Market, Source

_REPOSITORY = "skypilot-org/skypilot-catalog"
_SHA = re.compile(r"[0-9a-f]{40}")
_COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region")
SOURCE = Source(
    source=1,
    name="skypilot-org/skypilot-catalog v8",
    licence="Apache-2.0",
    taken="row",
    attribution="prices of clouds, as collected by skypilot-org/skypilot-catalog",
)
# Clouds whose file holds euros and does not say so: their price pages show the same figures in EUR
# (seeweb.it/en/products/cloud-server-gpu, 2026-09-15).
_IN_EUR = frozenset({"seeweb"})
_EUR_RATE = re.compile(r"""currency=['"]USD['"] rate=['"]([0-9.]{1,10})['"]""")


def reader(name: str) -> "SkyPilotCatalog":
    """The reader of a cloud's file; clouds are named alike there."""
    return SkyPilotCatalog(name)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the files and their dates are."""

    files: str = f"https://raw.githubusercontent.com/{_REPOSITORY}"
    commits: str = f"https://api.github.com/repos/{_REPOSITORY}/commits"
    rates: str = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"  # USD for 1 EUR


@dataclass(frozen=True, slots=True)
class SkyPilotCatalog:
    """Reads one cloud's file."""

    name: str
    places: Places = Places()
    patience: Patience = Patience()

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read the prices of the cloud's known machines.

        Raises:
            ProviderError: the file or its date cannot be read, or is of no known form.
        """
        with Web(self.name, wanted, patience=self.patience) as web:
            day, table = read_file(self.name, self.name, web, wanted, self.places)
            source, rate = SOURCE, 1.0
            if self.name in _IN_EUR:
                rate = _usd_per_eur(self.name, web, self.places.rates)
                words = f"{SOURCE.attribution}; EUR at the European Central Bank's last rate"
                source = replace(SOURCE, attribution=words)
            rows = tuple(row for cells in table for row in _rows(cells, rate))
            return fetched(self.name, wanted, web, PublicList(rows, day, source))


def read_file(
    provider: str, cloud: str, web: Web, wanted: Wanted, places: Places
) -> tuple[date, list[Cells]]:
    """The rows of a cloud's file, and the day on which they last changed.

    Raises:
        ProviderError: the file or its date cannot be read, or is of no known form.
    """
    path = f"catalogs/v8/{cloud}/vms.csv"
    sha, day = _last_change(provider, web.json(f"{places.commits}?path={path}&per_page=1"))
    address = f"{places.files}/{sha}/{path}"
    content = newest_file(web, wanted, f"skypilot-{cloud}", sha, address)
    return day, list(table_rows(provider, content, _COLUMNS))


def _last_change(provider: str, answer: Any) -> tuple[str, date]:
    try:
        sha, moment = answer[0]["sha"], answer[0]["commit"]["committer"]["date"]
        if not _SHA.fullmatch(sha):
            raise ValueError("no commit")
        return sha, date.fromisoformat(moment[:10])
    except (LookupError, TypeError, ValueError) as error:
        reason = f"the date of the file is of no known form ({type(error).__name__})"
        raise ProviderError(provider, "format", reason) from None


def _usd_per_eur(provider: str, web: Web, address: str) -> float:
    found = _EUR_RATE.search(web.content(address).decode("utf-8", "replace"))
    rate = number(found[1]) if found else 0.0
    if not rate:
        raise ProviderError(provider, "format", "no rate of the euro in US dollars")
    return rate


def _rows(cells: Cells, rate: float) -> Iterator[Row]:
    """The prices of a machine; what has no price or no region is not sold that way."""
    markets: tuple[tuple[Market, str], ...] = (("on_demand", "Price"), ("spot", "SpotPrice"))
    for market, column in markets:
        usd = round(number(cells[column]) * rate, 6)
        if usd and cells["InstanceType"] and cells["Region"]:
            gpus = number(cells["AcceleratorCount"])
            name, region = cells["InstanceType"], cells["Region"]
            yield Row(name, region, "", market, usd, cells["AcceleratorName"], gpus)


def number(text: str) -> float:
    """A number of a list; 0 where it is none, which offers nothing."""
    try:
        return float(text)
    except ValueError:
        return 0.0
