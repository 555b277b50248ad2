"""Every kind of wrong data from every provider: known rows, new machines and new regions.

What is published and differs from the truth is wrong. Whatever is wrong must be reported, and
no price may be off by a quarter; `pytest -m slow -s` prints the table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random

import pytest

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.refresh.collect import Collected
from recommender.catalogs.refresh.draft import Draft, catalog_of, start_draft
from recommender.catalogs.refresh.past import Past
from recommender.catalogs.refresh.report import ProviderReport
from recommender.catalogs.refresh.run import RefreshRequest, _take
from recommender.catalogs.registry import OWN_CLIENTS
from recommender.catalogs.schema import InstanceType, Offer, Source
from recommender.catalogs.store import Store
from recommender.catalogs.validation import CANARIES, read_canaries
from tests.catalogs.refresh.false_data import FAULTS
from tests.catalogs.refresh.world import Fault
from tests.shipped import snapshot

NOW = datetime(2026, 9, 1, 3, tzinfo=UTC)
TODAY = "2026-09-01"
ORDER = RefreshRequest(Store(Path("nowhere")), {})
SEEDS = (1, 2)


def key_of(offer: Offer) -> tuple[str, str, str, str]:
    """What a reader looks an offer up by."""
    return offer.instance_type, offer.region, offer.zone, offer.market


@cache
def shipped() -> Catalog:
    """The snapshot, every price read last night."""
    catalog = snapshot()
    offers = catalog.offers
    return replace(catalog, offers=replace(offers, as_of=("2026-08-31",) * len(offers)))


@cache
def truth(provider: str) -> tuple[Offer, ...]:
    """What the provider really charges today: what it charged last night."""
    known = (o for o in shipped().offers if o.provider == provider and o.kind != "derived")
    rows = [
        replace(o, source=1, as_of=TODAY, kind="quote", flag="", uncertainty=0.0) for o in known
    ]
    return tuple(sorted(rows, key=lambda o: not shipped().type_of(o).gpu))  # faults take the first


@dataclass(frozen=True)
class Night:
    """A night of one provider: what was known before, and what came of it."""

    provider: str
    base: Catalog
    fetched: Fetched

    def taken(self) -> tuple[Draft, ProviderReport]:
        """What a refresh makes of it."""
        draft = start_draft(self.base, self.base, ())
        collected = Collected(self.fetched, "", 1.0)
        canaries = read_canaries(CANARIES)
        return _take(
            self.provider,
            collected,
            draft,
            self.base,
            ORDER,
            Past(ORDER.store, "", self.base, NOW.date()),
            canaries,
        )


def fetched(provider: str, types: Sequence[InstanceType] = ()) -> Fetched:
    """An honest fetch."""
    return Fetched(
        provider=provider,
        started=NOW,
        finished=NOW,
        markets=frozenset({"on_demand", "spot"}),
        offers=truth(provider),
        sources=(Source(1, f"{provider} price list", "facts", "row", "read nightly"),),
        types=tuple(types),
    )


def without_type(name: tuple[str, str]) -> Catalog:
    """The tables of before a machine was known."""
    catalog = shipped()
    rows = [o for o in catalog.offers if (o.provider, o.instance_type) != name]
    return _with(catalog, rows, name)


def without_region(provider: str, region: str) -> Catalog:
    """The tables of before a region was known."""
    catalog = shipped()
    rows = [o for o in catalog.offers if (o.provider, o.region) != (provider, region)]
    kept = tuple(e for e in catalog.egress if e.to_region != region)
    return _with(replace(catalog, egress=kept), rows, None)


def _with(catalog: Catalog, rows: Sequence[Offer], gone: tuple[str, str] | None) -> Catalog:
    types = {key: each for key, each in catalog.instance_types.items() if key != gone}
    draft = start_draft(catalog, catalog, ())
    offers: dict[str, tuple[Offer, ...]] = {}
    for provider in draft.offers:
        offers[provider] = tuple(o for o in rows if o.provider == provider)
    return replace(
        catalog_of(replace(catalog, instance_types=types), replace(draft, offers=offers)),
        instance_types=types,
    )


@dataclass(frozen=True)
class Outcome:
    """What became of an error."""

    wrong: int  # offers published that are not true
    worst: float  # the largest factor that a published price is off by
    reported: bool

    @property
    def word(self) -> str:
        """What the table says."""
        return "stopped" if not self.wrong else "reported" if self.reported else "PUBLISHED"


def outcome(night: Night) -> Outcome:
    """Compare what was published of a night with the truth."""
    draft, report = night.taken()
    true = {key_of(o): o.usd_per_hour for o in truth(night.provider)}
    machines = {**shipped().instance_types, ("aws", ""): None}
    described = {t.instance_type: t for t in draft.types}
    wrong, worst = 0, 1.0
    for offer in draft.offers[night.provider]:
        if offer.as_of != TODAY:
            continue
        usd = true.get(key_of(offer))
        factor = max(offer.usd_per_hour / usd, usd / offer.usd_per_hour) if usd else float("inf")
        real = machines.get((night.provider, offer.instance_type))
        said = described.get(offer.instance_type, real)
        if real is not None and said is not None and said.gpus != real.gpus:
            factor = max(said.gpus / real.gpus, real.gpus / said.gpus)
        if factor > 1.001:
            wrong, worst = wrong + 1, max(worst, factor)
    reported = bool(report.reasons or report.alerts or report.failed)
    return Outcome(wrong, worst, reported)


def moved(factor: float, pick: Callable[[Offer], bool]) -> Fault:
    """All prices of a kind are multiplied."""
    return lambda f: replace(
        f,
        offers=tuple(
            replace(o, usd_per_hour=o.usd_per_hour * factor) if pick(o) else o for o in f.offers
        ),
    )


def renamed(names: dict[str, str]) -> Fault:
    """Regions bear other names; zones that begin with theirs go with them."""

    def changed(offer: Offer) -> Offer:
        region = names.get(offer.region, offer.region)
        return replace(offer, region=region, zone=offer.zone.replace(offer.region, region))

    return lambda f: replace(f, offers=tuple(changed(o) for o in f.offers))


INVENTED = {"aws": "xx-north-9", "gcp": "xx-north9", "azure": "northmoon"}


def on_demand_prices(provider: str, region: str) -> dict[str, float]:
    """The on-demand prices of a region."""
    return {
        o.instance_type: o.usd_per_hour
        for o in truth(provider)
        if (o.region, o.market) == (region, "on_demand")
    }


def large_regions(provider: str) -> list[str]:
    """Regions with many machines, of different prices."""
    rows = [o.region for o in truth(provider)]
    return sorted({r for r in rows}, key=lambda r: (-rows.count(r), r))[:8]


def uniform_faults(provider: str) -> Iterator[tuple[str, Fault]]:
    """A tax, a currency or a discount, on a market, everywhere or in a region."""
    region = large_regions(provider)[0]
    for factor in (1.19, 1.2, 1.25, 0.9, 0.92, 0.79, 1.03, 1.01):
        for market in ("on_demand", "spot", ""):
            pick = lambda o, market=market: market in ("", o.market)  # noqa: E731
            yield f"{market or 'all'} x{factor}", moved(factor, pick)
    for factor in (1.19, 0.8):
        yield f"a region x{factor}", moved(factor, lambda o: o.region == region)
        spot = moved(factor, lambda o: (o.region, o.market) == (region, "spot"))
        yield f"a region's spot x{factor}", spot


def region_faults(provider: str) -> Iterator[tuple[str, Fault]]:
    """Regions under other names."""
    first, *others = large_regions(provider)
    yield "region renamed", renamed({first: INVENTED[provider]})
    for other in others[:4]:
        same = on_demand_prices(provider, first) == on_demand_prices(provider, other)
        if not same:
            yield f"swapped with {other}", renamed({first: other, other: first})
    a, b = others[:2]
    yield "three regions in a circle", renamed({first: a, a: b, b: first})


def type_faults(machine: InstanceType) -> Iterator[tuple[str, Callable[[Fetched], Fetched]]]:
    """A machine that is new to the catalog, described wrongly."""

    def gpus(count: int) -> Fault:
        return lambda f: replace(f, types=(replace(machine, gpus=count),))

    def price(factor: float) -> Fault:
        return moved(factor, lambda o: o.instance_type == machine.instance_type)

    counts = {machine.gpus * 2, machine.gpus * 8, 1, machine.gpus // 2, 16} - {0, machine.gpus}
    for count in sorted(counts):
        yield f"{machine.gpus} GPUs as {count}", gpus(count)
    for factor in (0.125, 0.5, 2.0, 8.0):
        yield f"price x{factor}", price(factor)


def old_rows(provider: str) -> Iterator[tuple[str, Night]]:
    """Lies about what is known."""
    for seed in SEEDS:
        for name, made in FAULTS.items():
            fault = made(Random(f"{seed} {name} {provider}"))
            yield name, Night(provider, shipped(), fault(fetched(provider)))
    for name, fault in (*uniform_faults(provider), *region_faults(provider)):
        yield name, Night(provider, shipped(), fault(fetched(provider)))


def new_types(provider: str, every: int = 1) -> Iterator[tuple[str, Night]]:
    """Wrong data of new machines."""
    named = sorted({o.instance_type for o in truth(provider) if o.market == "on_demand"})
    known = [shipped().instance_types[provider, name] for name in named]
    for machine in [each for each in known if each.gpu][::every]:
        base = without_type((provider, machine.instance_type))
        for name, fault in type_faults(machine):
            made = fault(fetched(provider, [machine]))
            yield f"{machine.instance_type}: {name}", Night(provider, base, made)


def new_regions(provider: str) -> Iterator[tuple[str, Night]]:
    """Wrong data of new regions."""
    for region in large_regions(provider)[:3]:
        base = without_region(provider, region)
        for factor in (0.5, 1.0, 1.19, 2.0):
            fault = moved(factor, lambda o, region=region: o.region == region)
            name = f"{region} x{factor}"
            yield name, Night(provider, base, fault(fetched(provider)))
            renamed_too = renamed({region: INVENTED[provider]})(fault(fetched(provider)))
            yield f"{name} renamed", Night(provider, base, renamed_too)


def judged(nights: Iterator[tuple[str, Night]], scope: str) -> list[str]:
    """Print what became of each error; list those that went wrong."""
    bad, counts = [], {"stopped": 0, "reported": 0, "PUBLISHED": 0}
    for name, night in nights:
        found = outcome(night)
        counts[found.word] += 1
        said = f"{night.provider} {scope} {name}: {found.word} {found.wrong} x{found.worst:.3g}"
        if found.word == "PUBLISHED" or found.worst >= 1.25:
            bad.append(said)
        if found.wrong:
            print(said)
    print(f"{scope}: {counts}")
    return bad


@pytest.mark.parametrize("provider", OWN_CLIENTS)
def test_an_honest_night_is_published_without_a_word(provider: str) -> None:
    _, report = Night(provider, shipped(), fetched(provider)).taken()
    assert (report.result, report.reasons, report.alerts) == ("published", (), ())


@pytest.mark.parametrize("provider", OWN_CLIENTS)
def test_no_price_of_tax_currency_or_another_region_is_published(provider: str) -> None:
    nights = [*uniform_faults(provider), *region_faults(provider)][::10]
    each = ((name, Night(provider, shipped(), fault(fetched(provider)))) for name, fault in nights)
    assert judged(each, "old rows") == []


@pytest.mark.parametrize("provider", OWN_CLIENTS)
def test_no_mistyped_machine_is_published(provider: str) -> None:
    assert judged(new_types(provider, every=150), "new types") == []


@pytest.mark.slow
@pytest.mark.parametrize("provider", OWN_CLIENTS)
@pytest.mark.parametrize("scope", [old_rows, new_types, new_regions])
def test_every_lie(provider: str, scope: Callable[[str], Iterator[tuple[str, Night]]]) -> None:
    assert judged(scope(provider), scope.__name__.replace("_", " ")) == []


@pytest.mark.slow
def test_most_real_new_machines_with_siblings_need_no_review() -> None:
    """Counted, so that a rule that made all of them wait would be noticed."""
    waited = believed = 0
    for provider in OWN_CLIENTS:
        for name in sorted({o.instance_type for o in truth(provider) if o.market == "on_demand"}):
            machine = shipped().instance_types[provider, name]
            if not machine.gpu:
                continue
            night = Night(provider, without_type((provider, name)), fetched(provider, [machine]))
            draft, _ = night.taken()
            found = any(t.instance_type == name for t in draft.types)
            believed, waited = believed + found, waited + (not found)
    print(f"new machines: {believed} believed at once, {waited} wait")
    assert believed > 20
