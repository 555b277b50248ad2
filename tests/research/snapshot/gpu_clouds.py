"""Machines and list prices of GPU clouds: one file each, kept by hand in `hand/clouds`.

A row is a machine as its provider names it, with its own dates and sources. `regions` is `anywhere`
where one list holds wherever the machine is in stock: types times regions say nothing of stock.
`size_source` is where vCPUs, memory and disk come from, if not from the price list; sizes that
nobody published are the smallest with these GPUs at other clouds, and of kind "fallback".
On a marketplace a row is a stranger's host; a price by GPU is the median of the hosts.
Left out: prices without a date, and machines whose name was not seen.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from recommender.catalogs.gpu_clouds import GPU_CLOUDS
from recommender.catalogs.schema import Gpu, InstanceType, Market, Offer
from tests.research.snapshot.fabric import HostCopies, intra_machine
from tests.research.snapshot.machines import pcie_generations
from tests.research.snapshot.reading import HAND, Cells, number, read_hand, read_table
from tests.research.snapshot.sources import SourceBook, cite

NAMES = tuple(info.name for info in GPU_CLOUDS)
ASSUMED = "smallest of other clouds"  # the source of sizes that nobody published


def cloud_offers(book: SourceBook) -> list[Offer]:
    """Build all offers of the GPU clouds: list prices, and spot where a quote is known."""
    return [
        offer for name in NAMES for row in rows_of(name) for offer in offers_of(name, row, book)
    ]


def offers_of(provider: str, row: Cells, book: SourceBook) -> Iterator[Offer]:
    """Offer a machine in each of its regions, in each market with a price."""
    for region in row["regions"].split():
        if row["usd_per_hour"]:
            yield _offer(provider, row, region, "on_demand", "", book)
        if row["spot_usd_per_hour"]:
            yield _offer(provider, row, region, "spot", "spot_", book)


def cloud_machines(reference: Path, gpus: list[Gpu], book: SourceBook) -> list[InstanceType]:
    """Describe the machines of the GPU clouds."""
    memory = {gpu.gpu: gpu.memory_mib for gpu in gpus}
    host, pcie = HostCopies(reference, {}), pcie_generations(reference)
    alone = {row["provider"] for row in read_hand("cloud_terms") if row["one_host"] == "yes"}
    machines = []
    for provider in NAMES:
        named = {row["instance_type"]: row for row in rows_of(provider)}  # of hosts alike one
        for row in named.values():
            gpu, gpus_each = row["gpu"], int(row["gpus"])
            intra = intra_machine(gpu, gpus_each)
            rate = number(row["network_gbit_per_s"])
            unknown = "one_host" if provider in alone else "unknown"
            machines.append(
                InstanceType(
                    provider=provider,
                    instance_type=row["instance_type"],
                    family=gpu,
                    gpu=gpu,
                    gpus=gpus_each,
                    gpu_memory_mib=memory[gpu],
                    vcpus=int(row["vcpus"]),
                    memory_gib=float(row["memory_gib"]),
                    arch="arm64" if gpu.startswith("G") else "x86_64",  # Grace processors
                    network_gbit_per_s=rate,
                    network_peak_gbit_per_s=None,
                    network_kind=row["network_kind"],
                    network_basis="documented" if rate else unknown,
                    intra_kind=intra.kind,
                    intra_gb_per_s=intra.gb_per_s,
                    host_gb_per_s=host.rate(provider, gpu, pcie.get(gpu, "")),
                    local_disk_gib=number(row["local_disk_gib"]) or 0.0,
                    local_disk_mb_per_s=0.0,
                    quota_family=gpu,
                    status=row["status"],  # type: ignore[arg-type]
                    kind="fallback" if row["size_source"] == ASSUMED else "quote",
                    source=cite(book, row["size_source"] or row["source"] or row["spot_source"]),
                    as_of=row["size_as_of"] or row["as_of"] or row["spot_as_of"],
                )
            )
    return machines


@cache
def rows_of(provider: str) -> tuple[Cells, ...]:
    """The machines and prices of a GPU cloud."""
    return tuple(read_table(HAND / "clouds" / f"{provider}.csv"))


def _offer(
    provider: str, row: Cells, region: str, market: Market, kind: str, book: SourceBook
) -> Offer:
    return Offer(
        provider=provider,
        instance_type=row["instance_type"],
        region=region,
        zone="",
        market=market,
        usd_per_hour=float(row[f"{kind}usd_per_hour"]),
        obtainable=row["status"],  # type: ignore[arg-type]
        kind="quote",
        flag="",
        uncertainty=0.0,
        interruption_range=None,
        source=cite(book, row[f"{kind}source"]),
        as_of=row[f"{kind}as_of"],
    )
