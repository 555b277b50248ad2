"""What records tell of the links of an instance type: inside, between machines, to the host."""

from collections.abc import Iterable
from statistics import median

from benchmarks import figures
from benchmarks.record import Record
from catalogs.catalog import Catalog
from catalogs.schema import InstanceType
from recommender.bench.figures import Links
from recommender.bench.pool import Kept

_FROM_GPU = "from GPU pinned"
Found = dict[str, float]


def links_of(kept: Iterable[Kept], catalog: Catalog) -> tuple[Links, ...]:
    """The links of every instance type that a record names; medians over machines.

    Of each machine the newest record that holds a link counts for it: runs with one process and
    under torchrun on one machine and on several hold different ones.
    """
    last: dict[tuple[str, str], dict[tuple[str, str], tuple[float, str]]] = {}
    for i, each in enumerate(sorted(kept, key=lambda k: k.record.taken_at)):
        own = each.record
        machine = catalog.instance_types.get((own.place.provider, own.place.instance_type))
        if each.gpu and machine is not None and machine.gpus:
            group = last.setdefault((machine.provider, machine.instance_type), {})
            for name, value in link_rates(own, machine).items():
                group[name, own.machine.machine or str(i)] = value, own.taken_at[:10]
    return tuple(_links(*key, found) for key, found in sorted(last.items()) if found)


def _links(
    provider: str, instance_type: str, found: dict[tuple[str, str], tuple[float, str]]
) -> Links:
    def middle(wanted: str) -> float | None:
        rates = [value for (name, _), (value, _) in found.items() if name == wanted]
        return median(rates) if rates else None

    as_of = max(day for _, day in found.values())
    rates = middle("intra"), middle("network"), middle("host")
    return Links(provider, instance_type, *rates, as_of)


def link_rates(record: Record, machine: InstanceType) -> Found:
    """GB/s of each link in one record, as the catalog counts them.

    Inside: an all-reduce of all GPUs of the machine. Between n machines of g GPUs: plans take the
    seconds of an all-reduce of S bytes for 2(g-1)/g·S/B_intra + 2(n-1)/n·S/B_net, so that B_net
    is what is left of the measured ones; none where the inside alone would take longer.
    """
    found: Found = {}
    host = figures.rate_of(record, "transfer", _FROM_GPU)
    if host:
        found["host"] = host
    own = figures.exchanges(record)
    for each in own:
        if each.machines == 1 and each.processes == machine.gpus:
            found["intra"] = each.bytes_per_s / 1e9
    inside = found.get("intra") or machine.intra_gb_per_s
    for each in own:
        if each.machines > 1 and each.processes == each.machines * machine.gpus:
            rate = _between(each, machine.gpus, inside)
            if rate:
                found["network"] = rate
    return found


def _between(each: figures.Exchange, gpus: int, intra: float | None) -> float | None:
    seconds = _ring(each.processes) / (each.bytes_per_s / 1e9)  # of a GB
    inside = _ring(gpus) / intra if gpus > 1 and intra else 0.0
    left = seconds - inside
    return _ring(each.machines) / left if left > 0 else None


def _ring(n: int) -> float:
    """Bytes that cross the busiest link of n in an all-reduce, per byte of the message."""
    return 2.0 * (n - 1) / n
