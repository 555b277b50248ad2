"""The countries of regions, by ISO 3166 codes: where data and machines are.

`countries.csv` follows the providers' lists of regions (AWS, Google Cloud and Azure 2026-11; GPU
clouds: their own pages, 2026-10). A region named `anywhere` may be in any of its countries; those
of RunPod, OCI, CoreWeave, Together and Vultr are too many or unstated, so they have none.
"""

import csv
from functools import cache
from pathlib import Path

# Member states of the European Union (2026).
EU = frozenset({
    "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IT",
    "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK",
})  # fmt: skip


@cache
def countries_of(provider: str, region: str) -> frozenset[str]:
    """Where a machine of a region may be; nothing where that is not known."""
    return _countries().get((provider, region), frozenset())


@cache
def known_countries() -> frozenset[str]:
    """The countries that some region is in."""
    return frozenset().union(*_countries().values())


@cache
def _countries() -> dict[tuple[str, str], frozenset[str]]:
    text = Path(__file__).with_name("countries.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(r["provider"], r["region"]): frozenset(r["countries"].split()) for r in rows}
