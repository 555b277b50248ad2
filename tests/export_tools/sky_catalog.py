"""Writes our catalog as SkyPilot reads its own, so that its loader works without the network.

    python -P tests/run.py tests.export_tools.sky_catalog HOME_FOLDER

SkyPilot downloads `~/.sky/catalogs/v8/CLOUD/vms.csv` at its first use and keeps a newer file of the
user's. Names of machines and regions, which its loader checks, are the clouds' own in both.
"""

import csv
import sys
from pathlib import Path

from recommender.catalogs.load import SNAPSHOT, load
from recommender.catalogs.registry import CLOUDS

VERSION = "v8"  # of the schema of SkyPilot 0.14's catalogs
COLUMNS = (
    "InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo",
    "Region", "AvailabilityZone", "Price", "SpotPrice", "Arch", "LocalDiskType", "LocalDiskSize",
    "NVMeSupported", "LocalDiskCount",
)  # fmt: skip
_EMPTY = {  # files that the loader opens besides
    "aws/images.csv": "Tag,Region,OS,OSVersion,ImageId,CreationDate,BaseImageId",
    "aws/instance_quota_mapping.csv": "InstanceType,OnDemandInstanceCode,SpotInstanceCode",
    "gcp/images.csv": "Tag,Region,OS,OSVersion,ImageId,CreationDate",
    "gcp/accelerator_quota_mapping.csv": "Accelerator,OnDemandInstanceCode,SpotInstanceCode",
    "azure/images.csv": "Tag,Region,OS,OSVersion,ImageId,CreationDate",
}


def rows(provider: str) -> list[tuple[object, ...]]:
    """One row for each machine, region and zone."""
    catalog = load(SNAPSHOT)
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in range(len(catalog.offers)):
        offer = catalog.offers[row]
        if offer.provider == provider:
            key = (offer.instance_type, offer.region, offer.zone)
            found.setdefault(key, {})[offer.market] = offer.usd_per_hour
    made = []
    for (name, region, zone), usd in sorted(found.items()):
        t = catalog.instance_types[provider, name]
        gpu = t.gpu.replace("-", "") if t.gpu.startswith("RTX") else t.gpu
        zone = "" if CLOUDS[provider].zones == "id" else zone
        prices = (usd.get("on_demand", ""), usd.get("spot", ""))
        made.append((name, gpu, t.gpus, t.vcpus, t.memory_gib, "", region, zone, *prices,
                     "x86_64", "", "", "", ""))  # fmt: skip
    return made


def write(home: Path) -> None:
    """Write the catalogs of all three clouds below a home folder."""
    folder = home / ".sky" / "catalogs" / VERSION
    for provider in CLOUDS:
        (folder / provider).mkdir(parents=True, exist_ok=True)
        with (folder / provider / "vms.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(rows(provider))
    for name, head in _EMPTY.items():
        (folder / name).write_text(f"{head}\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
