"""How providers charge: seconds of machines, fees next to them, traffic between regions.

Which lines were read in the providers' documentation and which are rules of thumb:
docs/research/risk-facts.md.
"""

import csv
from pathlib import Path
from typing import Any

from recommender.catalogs.schema import BillingRule, Egress, Fee, Market, Provider
from tests.research.snapshot.reading import Cells, number, read_hand
from tests.research.snapshot.sources import SourceBook

AS_OF = "2026-08-22"
DAY_S = 86400.0

# (least seconds charged, free if the provider interrupts within, seconds of notice)
BILLING: dict[tuple[Provider, Market], tuple[float, float, float]] = {
    # EC2 User Guide, "Billing for interrupted Spot Instances" and "Spot Instance
    # interruption notices", read 2026-08: Linux except SUSE, no charge in the first hour.
    ("aws", "spot"): (60.0, 3600.0, 120.0),
    ("aws", "on_demand"): (60.0, 0.0, 0.0),
    # "VM instance pricing", read 2026-08: one minute, then seconds. Shutdown period 30 s
    # ("Spot VMs"); a 120 s notice can be requested, in preview.
    ("gcp", "spot"): (60.0, 60.0, 30.0),
    ("gcp", "on_demand"): (60.0, 0.0, 0.0),
    # "Use Azure Spot Virtual Machines", read 2026-08: 30 s notice; no free start is named.
    ("azure", "spot"): (60.0, 0.0, 30.0),
    ("azure", "on_demand"): (60.0, 0.0, 0.0),
    # The user's own offers: nothing is known, so nothing is given away.
    ("own", "spot"): (60.0, 0.0, 0.0),
    ("own", "on_demand"): (60.0, 0.0, 0.0),
}

WAIT_S = DAY_S  # until half of the requested blocks begin; assumed, nobody has published it
# Booked capacity: nobody takes it back before its end.
BOOKED: dict[tuple[Provider, Market], dict[str, Any]] = {
    # "Capacity Blocks for ML", read 2026-11: 1 to 182 days, paid in advance; a block begins 30
    # minutes to 8 weeks from now, and machines are ended from 30 minutes before it is over. It can
    # be extended, and counts on no quota of instances.
    ("aws", "reserved_block"): {
        "minimum_s": DAY_S, "step_s": DAY_S, "maximum_s": 182 * DAY_S, "notice_s": 1800.0,
        "lead_s": 1800.0, "wait_s": WAIT_S, "upfront": True, "quota_market": "none",
    },
    # "Provisioning models" and "Consumption options", read 2026-11: by the second, up to seven
    # days, on the quota of preemptible GPUs.
    ("gcp", "flex_start"): {"minimum_s": 60.0, "maximum_s": 7 * DAY_S, "quota_market": "spot"},
    # Calendar mode: 1 to 90 days, the whole period is charged.
    ("gcp", "reserved_block"): {
        "minimum_s": DAY_S, "step_s": DAY_S, "maximum_s": 90 * DAY_S, "wait_s": WAIT_S,
        "quota_market": "none",
    },
}  # fmt: skip

UNITS = {
    "boot_disk_gib_month": "USD/GiB-month",
    "ipv4_hour": "USD/hour",
    "ipv4_spot_hour": "USD/hour",
    "storage_gib_month": "USD/GiB-month",
    "storage_write_1000": "USD/1000 requests",
    "storage_read_1000": "USD/1000 requests",
    "egress_zone_gb": "USD/GB",  # between zones of a region; AWS and GCP charge each direction
    "egress_region_gb": "USD/GB",  # between regions of a continent
    "egress_continent_gb": "USD/GB",
    "egress_internet_gb": "USD/GB",
}

# List prices of the cheapest large regions (us-east-1, us-central1, eastus), 2026-08. Disks:
# AWS gp3, GCP balanced, Azure Standard SSD E10 (Premium P10 is 0.154). Azure has charged
# nothing between zones since 2023. AWS pairs of regions: the egress table wins.
FEES: dict[Provider, dict[str, float]] = {
    "aws": {
        "boot_disk_gib_month": 0.08,
        "ipv4_hour": 0.005,
        "ipv4_spot_hour": 0.005,
        "storage_gib_month": 0.023,
        "storage_write_1000": 0.005,
        "storage_read_1000": 0.0004,
        "egress_zone_gb": 0.01,
        "egress_region_gb": 0.02,
        "egress_continent_gb": 0.09,
        "egress_internet_gb": 0.09,
    },
    "gcp": {
        "boot_disk_gib_month": 0.10,
        "ipv4_hour": 0.005,
        "ipv4_spot_hour": 0.0025,
        "storage_gib_month": 0.020,
        "storage_write_1000": 0.005,
        "storage_read_1000": 0.0004,
        "egress_zone_gb": 0.01,
        "egress_region_gb": 0.02,
        "egress_continent_gb": 0.08,
        "egress_internet_gb": 0.12,
    },
    "azure": {
        "boot_disk_gib_month": 0.075,
        "ipv4_hour": 0.005,
        "ipv4_spot_hour": 0.005,
        "storage_gib_month": 0.018,
        "storage_write_1000": 0.005,
        "storage_read_1000": 0.0004,
        "egress_zone_gb": 0.0,
        "egress_region_gb": 0.02,
        "egress_continent_gb": 0.05,
        "egress_internet_gb": 0.087,
    },
}

_PAGES: dict[Provider, tuple[str, str]] = {
    "aws": ("AWS price pages", "EC2, EBS, S3 and VPC price pages, us-east-1"),
    "gcp": ("Google Cloud price pages", "Compute Engine, VPC and Storage price pages"),
    "azure": ("Azure price pages", "managed disks, bandwidth and blob price pages, eastus"),
}
_RULES: dict[Provider, tuple[str, str]] = {
    "aws": ("EC2 User Guide, billing of instances", "docs.aws.amazon.com/AWSEC2"),
    "gcp": ("Compute Engine documentation, billing of VMs", "cloud.google.com/compute"),
    "azure": ("Azure documentation, Spot Virtual Machines", "MicrosoftDocs/azure-docs"),
    "own": ("assumed for the user's own offers", "placeholders of this project"),
}


_CLOUD_MARKETS: tuple[Market, ...] = ("on_demand", "spot")


def tables(
    reference: Path, sources: SourceBook
) -> dict[str, list[Fee] | list[BillingRule] | list[Egress]]:
    """Build the tables of fees, billing rules and traffic between regions."""
    return {
        "fees": fees(sources),
        "billing": billing(sources),
        "egress": egress(reference, sources),
    }


def billing(sources: SourceBook) -> list[BillingRule]:
    """How every provider charges a machine's seconds in every market."""
    rules = [
        BillingRule(provider, market, *rule, _source(sources, _RULES[provider]), AS_OF)
        for (provider, market), rule in BILLING.items()
    ]
    free = {"free_if_interrupted_within_s": 0.0, "notice_s": 0.0}
    rules += [
        BillingRule(
            provider=provider,
            market=market,
            source=_source(sources, _RULES[provider]),
            as_of="2026-11-22",
            **(free | terms),
        )
        for (provider, market), terms in BOOKED.items()
    ]
    return rules + [
        BillingRule(
            provider=row["provider"],
            market=market,
            minimum_s=float(row["minimum_s"]),
            step_s=float(row["step_s"]),
            free_if_interrupted_within_s=0.0,
            notice_s=float(row["notice_s"]) if market == "spot" else 0.0,
            source=_terms(sources, row),
            as_of=row["as_of"],
            currency=row["currency"],
            new_account=number(row["new_account"]),
        )
        for row in read_hand("cloud_terms")
        for market in _CLOUD_MARKETS
    ]


def fees(sources: SourceBook) -> list[Fee]:
    """Prices next to the machine: list prices of a large region, not checked by a quote."""
    rows = []
    for provider, items in FEES.items():
        source = _source(sources, _PAGES[provider])
        for item, usd in items.items():
            rows.append(Fee(provider, item, usd, UNITS[item], "fallback", source, AS_OF))
    return rows + [
        Fee(
            row["provider"],
            item,
            float(row[item]),
            UNITS[item],
            "fallback",
            _terms(sources, row),
            row["as_of"],
        )
        for row in read_hand("cloud_terms")
        for item in UNITS
        if row.get(item)
    ]


def egress(reference: Path, sources: SourceBook) -> list[Egress]:
    """USD per GB between every pair of AWS regions."""
    source = sources.key(
        "AWS traffic prices between regions (SkyNomad)",
        "Apache-2.0",
        "row",
        "andylizf/skynomad-artifact 62b9aaa, 2026-08-09",
    )
    with open(reference / "prices" / "aws_egress.csv", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda r: (r["from_region"], r["to_region"]))
    return [
        Egress(
            provider="aws",
            from_region=row["from_region"],
            to_region=row["to_region"],
            usd_per_gb=float(row["price_usd_per_gb"]),
            source=source,
            as_of="2026-08-09",
        )
        for row in rows
    ]


def _source(sources: SourceBook, page: tuple[str, str]) -> int:
    name, attribution = page
    return sources.key(name, "facts of public pages", "figure", attribution)


def _terms(sources: SourceBook, row: Cells) -> int:
    return _source(sources, (f"terms: {row['source']}", row["source"]))
