"""Wrong answers that clients have given, each as a change of an honest fetch."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from recommender.catalogs.providers.contract import Failed, Fetched
from recommender.catalogs.schema import Offer
from tests.catalogs.refresh.world import Fault
from tests.shipped import snapshot

Made = Callable[[Random], Fault]
Pick = Callable[[Offer], bool]


def on_demand(offer: Offer) -> bool:
    """An on-demand offer."""
    return offer.market == "on_demand"


def is_spot(offer: Offer) -> bool:
    """A spot offer."""
    return offer.market == "spot"


def some(random: Random, fetched: Fetched, pick: Pick, share: float = 0.02) -> set[int]:
    """A few offers of a kind, by index."""
    rows = [i for i, offer in enumerate(fetched.offers) if pick(offer)]
    return set(random.sample(rows, max(1, round(share * len(rows)))))


def priced(factor: float, pick: Pick, share: float = 0.02) -> Made:
    """Some prices are multiplied."""

    def made(random: Random) -> Fault:
        def fault(fetched: Fetched) -> Fetched:
            rows = some(random, fetched, pick, share)
            offers = tuple(
                replace(o, usd_per_hour=o.usd_per_hour * factor) if i in rows else o
                for i, o in enumerate(fetched.offers)
            )
            return replace(fetched, offers=offers)

        return fault

    return made


def changed(pick: Pick = lambda offer: True, **fields: object) -> Made:
    """Some offers say something else."""

    def made(random: Random) -> Fault:
        def fault(fetched: Fetched) -> Fetched:
            rows = some(random, fetched, pick)
            offers = tuple(
                replace(o, **fields) if i in rows else o  # type: ignore[arg-type]
                for i, o in enumerate(fetched.offers)
            )
            return replace(fetched, offers=offers)

        return fault

    return made


def two_prices(random: Random) -> Fault:
    """Some offers come twice, at different prices."""

    def fault(fetched: Fetched) -> Fetched:
        rows = some(random, fetched, lambda offer: True)
        more = [
            replace(o, usd_per_hour=o.usd_per_hour * 1.1)
            for i, o in enumerate(fetched.offers)
            if i in rows
        ]
        return replace(fetched, offers=(*fetched.offers, *more))

    return fault


def without_region(random: Random) -> Fault:
    """Some regions are missing in silence."""

    def fault(fetched: Fetched) -> Fetched:
        regions = sorted({offer.region for offer in fetched.offers})
        gone = set(random.sample(regions, max(1, len(regions) // 5)))
        kept = tuple(offer for offer in fetched.offers if offer.region not in gone)
        return replace(fetched, offers=kept)

    return fault


def region_down(random: Random) -> Fault:
    """One region cannot be read, and the client says so."""

    def fault(fetched: Fetched) -> Fetched:
        region = random.choice(sorted({offer.region for offer in fetched.offers}))
        kept = tuple(offer for offer in fetched.offers if offer.region != region)
        failed = (*fetched.failed, Failed(region, "", "HTTP 503"))
        return replace(fetched, offers=kept, failed=failed)

    return fault


def without_type(random: Random) -> Fault:
    """A machine is renamed, so that it is unknown."""

    def fault(fetched: Fetched) -> Fetched:
        name = random.choice(sorted({offer.instance_type for offer in fetched.offers}))
        offers = tuple(
            replace(o, instance_type=f"{name}-plus") if o.instance_type == name else o
            for o in fetched.offers
        )
        return replace(fetched, offers=offers)

    return fault


def halved_type(random: Random) -> Fault:
    """A discount SKU is taken for a machine's on-demand price, in all regions."""

    def fault(fetched: Fetched) -> Fetched:
        name = random.choice(sorted({offer.instance_type for offer in fetched.offers}))
        offers = tuple(
            replace(o, usd_per_hour=0.47 * o.usd_per_hour)
            if o.instance_type == name and on_demand(o)
            else o
            for o in fetched.offers
        )
        return replace(fetched, offers=offers)

    return fault


def cut_short(random: Random) -> Fault:
    """The listing ends after a few pages."""

    def fault(fetched: Fetched) -> Fetched:
        rows = random.randrange(len(fetched.offers) // 2)
        return replace(fetched, offers=fetched.offers[:rows])

    return fault


def nothing(random: Random) -> Fault:
    """An empty answer, well-formed."""
    return lambda fetched: replace(fetched, offers=())


def part_of_a_gpu(random: Random) -> Fault:
    """A machine with an eighth of a GPU is described as one with none."""

    def fault(fetched: Fetched) -> Fetched:
        known = snapshot().instance_types[fetched.provider, fetched.offers[0].instance_type]
        machine = replace(known, instance_type="g6f.large", gpus=0)
        offer = replace(fetched.offers[0], instance_type="g6f.large", usd_per_hour=0.2)
        return replace(fetched, types=(machine,), offers=(*fetched.offers, offer))

    return fault


FAULTS: Mapping[str, Made] = {
    "capacity block at 0.00": priced(0.0, on_demand),
    "spot at zero": priced(0.0, is_spot),
    "negative price": priced(-1.0, on_demand),
    "not a number": priced(float("nan"), on_demand),
    "infinite": priced(float("inf"), is_spot),
    "monthly price as hourly": priced(730.0, on_demand),
    "cents as dollars": priced(100.0, is_spot),
    "dollars as cents": priced(0.01, is_spot),
    "price of one GPU of eight": priced(0.125, on_demand),
    "reserved for three years as on-demand": priced(0.4, on_demand),
    "Windows or SQL as Linux": priced(3.5, on_demand),
    "cores and memory only, the GPU left out": priced(0.3, on_demand, share=1.0),
    "part of a GPU": part_of_a_gpu,
    "DWS twin": halved_type,
    "spot taken for on-demand": changed(is_spot, market="on_demand"),
    "on-demand taken for spot": changed(on_demand, market="spot"),
    "another provider's row": changed(provider="own"),
    "wavelength zone as region": changed(region="us-west-2-lax-1"),
    "multi-region": changed(region="us"),
    "unknown machine": changed(instance_type="g9.huge"),
    "unlisted source": changed(source=9),
    "date of tomorrow": changed(as_of="2999-01-01"),
    "date of last year": changed(as_of="2025-01-01"),
    "word of no schema": changed(obtainable="perhaps"),
    "two prices for one key": two_prices,
    "regions missing in silence": without_region,
    "region down": region_down,
    "type renamed": without_type,
    "listing cut short": cut_short,
    "empty answer": nothing,
}
