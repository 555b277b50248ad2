"""Catalogs that differ from the shipped one in a way whose effect on an answer is known."""

from array import array
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from recommender.catalogs.catalog import Catalog, Offers, extended
from recommender.catalogs.schema import InstanceType, Offer
from recommender.inputs.offers_file import OwnMachines, read_offers
from tests.research.leads import NOW


def permuted(catalog: Catalog, random: Random) -> Catalog:
    """The same rows in another order."""
    order = list(range(len(catalog.offers)))
    random.shuffle(order)
    types = list(catalog.instance_types.items())
    random.shuffle(types)
    return replace(catalog, offers=taken(catalog.offers, order), instance_types=dict(types))


def taken(offers: Offers, rows: Sequence[int]) -> Offers:
    """Some offers, in that order."""
    columns: dict[str, Any] = {}
    for each in fields(Offers):
        column = getattr(offers, each.name)
        values = [column[row] for row in rows]
        columns[each.name] = array("d", values) if isinstance(column, array) else tuple(values)
    return Offers(**columns)


def scaled(catalog: Catalog, times: float) -> Catalog:
    """The same world in another currency: every price, fee and transfer times a number."""
    usd = array("d", [times * price for price in catalog.offers.usd_per_hour])
    return replace(
        catalog,
        offers=replace(catalog.offers, usd_per_hour=usd),
        fees=tuple(replace(fee, usd=times * fee.usd) for fee in catalog.fees),
        egress=tuple(replace(e, usd_per_gb=times * e.usd_per_gb) for e in catalog.egress),
    )


def repriced(catalog: Catalog, row: int, usd_per_hour: float) -> Catalog:
    """The catalog with another price of one offer."""
    usd = array("d", catalog.offers.usd_per_hour)
    usd[row] = usd_per_hour
    return replace(catalog, offers=replace(catalog.offers, usd_per_hour=usd))


def with_offer(catalog: Catalog, offer: Offer) -> Catalog:
    """The catalog with one more offer of a machine that it knows."""
    columns = {each.name: (getattr(offer, each.name),) for each in fields(Offers)}
    return extended(catalog, {}, Offers(**columns))


def own_twin(catalog: Catalog, machine: InstanceType, usd_per_hour: float) -> OwnMachines:
    """What a file of own machines is read as that tells all of a machine that the catalog knows."""
    cells = {
        "label": "twin",
        "gpu": machine.gpu,
        "gpus": machine.gpus,
        "usd_per_hour": usd_per_hour,
        "network_gbit_per_s": machine.network_gbit_per_s or "",
        "network": machine.network_kind,
        "intra": machine.intra_kind,
        "intra_gb_per_s": machine.intra_gb_per_s or "",
        "vcpus": machine.vcpus,
        "memory_gib": machine.memory_gib,
        "disk_mb_per_s": machine.local_disk_mb_per_s or "",
        "host_gb_per_s": machine.host_gb_per_s,
        "gpu_memory_gib": machine.gpu_memory_mib / 1024,
    }
    memory = {gpu.gpu: gpu.memory_mib for gpu in catalog.gpus.values()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "own.csv"
        path.write_text(f"{','.join(cells)}\n{','.join(map(str, cells.values()))}\n", "utf-8")
        return read_offers(path, memory, catalog.instance_types.values(), NOW.date())
