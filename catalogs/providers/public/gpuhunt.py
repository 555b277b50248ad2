"""The catalogs that gpuhunt publishes, one small file for each provider, hourly and without a key.

Read by the description of their format (docs/markets.md), not by its library, which has no time
limit, no copies on disk and no date. `<base>/<provider>/version` names the newest file and so its
day; the file is written before it. A copy of the last file is read while it is the newest one.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Fetched, Quarantined, Wanted
from recommender.catalogs.providers.http import Patience, Web
from recommender.catalogs.providers.public.listed import (
    MAX_BYTES,
    Cells,
    PublicList,
    Row,
    fetched,
    newest_file,
    table_rows,
)
from recommender.catalogs.schema import Market, Source

BASE = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
# Of the providers that it publishes, those that are read here, by its names.
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "gcp": "gcp", "lambda": "lambdalabs", "nebius": "nebius", "oci": "oci",
        "runpod": "runpod", "verda": "verda", "cloudrift": "cloudrift",
    }
)  # fmt: skip
_VERSION = re.compile(r"(\d{4})(\d\d)(\d\d)-\d+")
_COLUMNS = ("instance_name", "location", "price", "gpu_count", "gpu_name", "spot", "flags")
# Rows with another flag are other products: calendar reservations, previews, clusters.
_MEANT = frozenset({"gcp-a4", "gcp-g4", "oci-spot", "lambda-arm"})
# RunPod's cards, by the words that the catalog's names of its Secure Cloud use.
_RUNPOD = {
    "NVIDIA H100 80GB HBM3": "H100-SXM", "NVIDIA H100 PCIe": "H100", "NVIDIA H100 NVL": "H100-NVL",
    "NVIDIA A100 80GB PCIe": "A100-80GB", "NVIDIA A100-SXM4-80GB": "A100-80GB-SXM",
    "NVIDIA H200": "H200-SXM", "NVIDIA B200": "B200", "NVIDIA B300 SXM6 AC": "B300",
}  # fmt: skip


def reader(name: str) -> "GpuhuntCatalog":
    """The reader of a provider's catalog."""
    return GpuhuntCatalog(name)


@dataclass(frozen=True, slots=True)
class GpuhuntCatalog:
    """Reads one provider's published catalog."""

    name: str
    base: str = BASE
    patience: Patience = Patience()

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read the prices of the provider's known machines.

        Raises:
            ProviderError: the file cannot be read, or is of no known form.
        """
        with Web(self.name, wanted, patience=self.patience) as web:
            where = f"{self.base}/{NAMES[self.name]}"
            version = web.content(f"{where}/version").decode("ascii", "replace").strip()
            day = self._day(version)
            address = f"{where}/{version}/catalog.zip"
            content = newest_file(web, wanted, f"gpuhunt-{self.name}", version, address)
            rows = tuple(self._rows(content))
        named, refused, ignored = _read(self.name, rows)
        return fetched(
            self.name, wanted, web, PublicList(named, day, _source(self.name), ignored, refused)
        )

    def _day(self, version: str) -> date:
        """The day of a version, which is that of its prices."""
        found = _VERSION.fullmatch(version)
        try:
            return date(*map(int, found.groups() if found else ()))
        except (TypeError, ValueError):
            raise ProviderError(self.name, "format", "its version is of no known form") from None

    def _rows(self, content: bytes) -> Iterator[Cells]:
        """The rows of the table in the file."""
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                member = packed.getinfo(f"{NAMES[self.name]}.csv")
                if member.file_size > MAX_BYTES:
                    raise ValueError("it unpacks to too much")
                text = packed.read(member)
        except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
            reason = f"the published catalog is of no known form ({error})"
            raise ProviderError(self.name, "format", reason[:200]) from None
        return table_rows(self.name, text, _COLUMNS)


def _source(provider: str) -> Source:
    return Source(
        source=1,
        name="gpuhunt's published catalog (dstack)",
        licence="none stated (public price facts)",
        taken="row",
        attribution=f"list prices of {provider}, as collected by dstackai/gpuhunt",
    )


def _read(
    provider: str, table: tuple[Cells, ...]
) -> tuple[tuple[Row, ...], tuple[Quarantined, ...], int]:
    """The rows that are meant, those not understood, and how many are not meant."""
    rows, refused, ignored = [], [], 0
    for cells in table:
        try:
            row = _row(provider, cells)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            what = f"{provider} {cells.get('instance_name')} {cells.get('location')}"
            refused.append(Quarantined(provider, what, str(error)[:100], "malformed"))
            continue
        if row is None:
            ignored += 1
        else:
            rows.append(row)
    return tuple(rows), tuple(refused), ignored


def _row(provider: str, cells: Cells) -> Row | None:
    """A row; None for one that is not meant: another product, or nothing for sale."""
    if not set(cells["flags"].split()) <= _MEANT:
        return None
    name, count = _NAME_OF.get(provider, _same)(cells), float(cells["gpu_count"] or 0)
    usd = float(cells["price"])
    if not name or not usd:
        return None
    market: Market = {"True": "spot", "False": "on_demand"}[cells["spot"]]  # type: ignore[assignment]
    zone = cells["location"] if provider == "gcp" else ""
    region = zone.rpartition("-")[0] if zone else cells["location"]
    return Row(name, region, zone, market, usd, cells["gpu_name"], count)


def _same(cells: Cells) -> str:
    return cells["instance_name"]


def _nebius(cells: Cells) -> str:
    """Platform and preset, which the catalog joins by an underscore."""
    return cells["instance_name"].replace(" ", "_")


def _gcp(cells: Cells) -> str:
    """N1 hosts with the GPUs attached to them; others have theirs in the name."""
    name, gpus = cells["instance_name"], int(float(cells["gpu_count"] or 0))
    return f"{name}+{gpus}x{cells['gpu_name']}" if name.startswith("n1-") and gpus else name


def _runpod(cells: Cells) -> str:
    """Pods of the Secure Cloud; a country alone is the place of a stranger's host."""
    card = _RUNPOD.get(cells["instance_name"])
    secure = "-" in cells["location"]
    gpus = int(float(cells["gpu_count"] or 0))
    return f"{gpus}x_{card}_SECURE" if card and secure else ""


_NAME_OF: Mapping[str, Callable[[Cells], str]] = MappingProxyType(
    {"nebius": _nebius, "gcp": _gcp, "runpod": _runpod}
)
