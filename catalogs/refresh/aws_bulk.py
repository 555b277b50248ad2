"""On-demand prices from the public price list files: no account, some 100 MB a region.

Each region's file is read line by line; lines that cannot be a price are dropped before they
are parsed.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping

from catalogs.errors import ProviderError
from catalogs.jsontext import parsed
from catalogs.refresh.aws_calls import Caller
from catalogs.refresh.aws_files import FIRST_LINES, read_lines, read_whole
from catalogs.refresh.aws_prices import REGION, Listing, PriceRow, judge
from catalogs.schema import InstanceType

_INDEX = "/offers/v1.0/aws/AmazonEC2/current/region_index.json"
_VERSION = re.compile(r"/offers/v1\.0/aws/AmazonEC2/[\w.-]+/[a-z0-9-]+/index\.json")
_MOST_INDEX = 4 << 20
# The columns that are read, by the field that each fills.
_COLUMNS = (
    ("instance_type", "Instance Type"),
    ("region", "Region Code"),
    ("location_type", "Location Type"),
    ("operating_system", "Operating System"),
    ("tenancy", "Tenancy"),
    ("software", "Pre Installed S/W"),
    ("licence", "License Model"),
    ("capacity_status", "CapacityStatus"),
    ("market_option", "MarketOption"),
    ("term", "TermType"),  # reserved terms are of the same product, so of the same MarketOption
    ("usage_type", "usageType"),
    ("operation", "operation"),
    ("vcpus", "vCPU"),
    ("gpus", "GPU"),
    ("begin", "StartingRange"),
    ("end", "EndingRange"),
    ("unit", "Unit"),
    ("currency", "Currency"),
    ("price", "PricePerUnit"),
    ("effective", "EffectiveDate"),
)


def bulk_files(caller: Caller, base: str) -> dict[str, str]:
    """Find the price list file of each region, by region.

    Raises:
        ProviderError: the index cannot be read, or is of no known form.
    """
    url = base + _INDEX
    try:
        listed = parsed(read_whole(caller, url, "aws-price-lists", _MOST_INDEX))["regions"].values()
        files = {str(each["regionCode"]): str(each["currentVersionUrl"]) for each in listed}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the index of price lists is of no known form ({type(error).__name__})"
        raise ProviderError("aws", "format", reason) from None
    wanted = caller.wanted.regions
    found = {
        region: base + path.removesuffix("index.json") + "index.csv"
        for region, path in sorted(files.items())
        if REGION.fullmatch(region)
        and _VERSION.fullmatch(path)
        and (not wanted or region in wanted)
    }
    if not found:
        raise ProviderError("aws", "format", "the index of price lists names no region")
    return found


def bulk_prices(
    caller: Caller, region: str, url: str, machines: Mapping[str, InstanceType | None]
) -> Listing:
    """Read the on-demand prices of one region.

    Raises:
        ProviderError: the file cannot be read to its end, or lacks a column.
    """
    out = Listing()
    lines = read_lines(caller, url, f"aws-prices-{region}", _is_likely)
    columns = _header(lines, region)
    for cells in csv.reader(_likely(lines)):
        if len(cells) <= max(columns.values()):
            out.rows += 1
            out.refuse(f"a row of {region}", "format", f"{len(cells)} cells")
            continue
        row = PriceRow(**{field: cells[index] for field, index in columns.items()})
        if row.region and row.region != region:
            out.rows += 1
            out.refuse(row.name, "region", f"in the file of {region}")
            continue
        judge(row, machines, caller.wanted.today, out)
    return out


def _header(lines: Iterable[bytes], region: str) -> dict[str, int]:
    for number, line in enumerate(lines):
        cells = next(csv.reader([line.decode("utf-8", "replace")]), [])
        if cells[:1] == ["SKU"]:
            missing = [name for _, name in _COLUMNS if name not in cells]
            if not missing:
                return {field: cells.index(name) for field, name in _COLUMNS}
            reason = f"the price list of {region} has no column {', '.join(missing)}"
            raise ProviderError("aws", "format", reason)
        if number >= FIRST_LINES:
            break
    raise ProviderError("aws", "format", f"the price list of {region} has no header")


def _likely(lines: Iterable[bytes]) -> Iterator[str]:
    """Only the lines of machines on demand: one in some fifty."""
    for line in lines:
        if _is_likely(line):
            yield line.decode("utf-8", "replace")


def _is_likely(line: bytes) -> bool:
    return b'"OnDemand"' in line and b'"Linux"' in line and b'"Shared"' in line
