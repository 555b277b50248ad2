"""Google Cloud: whole machines composed from the price list of Compute Engine.

Credentials: an API key for the Cloud Billing API in `RECOMMEND_GCP_API_KEY`, or in the file
named by `RECOMMEND_GCP_API_KEY_FILE`; else application default credentials. With a project in
`GOOGLE_CLOUD_PROJECT` and credentials that may view Compute Engine, zones and machine shapes
are read too; `RECOMMEND_GCP_CAPACITY_HISTORY=1` then checks the spot prices against Google's
own history (beta).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.providers.contract import (
    Counters,
    Failed,
    Fetched,
    Quarantined,
    Wanted,
    read_offer,
)
from recommender.catalogs.providers.gcp.client import (
    PriceList,
    Settings,
    guarded,
    make_client,
    settings_from,
)
from recommender.catalogs.providers.gcp.compute import Facts, check_history, machine_facts, token_of
from recommender.catalogs.providers.gcp.price_parts import (
    PartPrices,
    Shape,
    can_compose,
    composed,
    read_parts,
    shape_of,
)
from recommender.catalogs.providers.gcp.quotas import read_quotas
from recommender.catalogs.providers.http import Patience, Web
from recommender.catalogs.providers.quotas import shipped_places
from recommender.catalogs.schema import InstanceType, Market, Offer, Source

if TYPE_CHECKING:
    from google.cloud.billing_v1 import CloudCatalogClient

_SOURCE = Source(
    source=1,
    name="Google Cloud Billing Catalog",
    licence="facts of a public price list",
    taken="row",
    attribution="SKUs of Compute Engine (cloudbilling.googleapis.com), added up to machines",
)

_NOT_ON_DEMAND = ("spot_only", "reservation_only")


def provider() -> "Gcp":
    """The client of Google Cloud, with settings from the environment."""
    return Gcp(settings_from())


@dataclass(frozen=True, slots=True)
class Gcp:
    """Reads Google Cloud's prices."""

    settings: Settings = Settings()
    client: "Callable[[Settings], CloudCatalogClient]" = make_client
    token: Callable[[Settings], str] = token_of
    patience: Patience = Patience()
    name: str = "gcp"

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read the price list and compose every known machine.

        The list is one for all regions, so `Wanted.regions` does not shorten it.

        Raises:
            ProviderError: the price list cannot be read as a whole.
        """
        began = time.monotonic()
        if wanted.parts == {"quotas"}:
            return self._quotas(wanted)
        markets = wanted.listed_markets
        with guarded(lambda: self.client(self.settings), self.settings) as client:
            listed = PriceList(client, self.settings, wanted)
            prices = read_parts(listed.skus())
        made = _Making(wanted, prices, markets)
        token = self._token(made)
        with Web("gcp", wanted, {"Authorization": f"Bearer {token}"}, self.patience) as web:
            made.compose(self._facts(web, wanted, made, token))
            if token and self.settings.capacity_history:
                made.doubt(web, self.settings)
        if not made.offers:
            raise ProviderError("gcp", "format", "no machine can be priced; has the list changed?")
        return Fetched(
            provider="gcp",
            started=wanted.now,
            finished=wanted.now + timedelta(seconds=time.monotonic() - began),
            markets=markets,
            offers=tuple(made.offers),
            sources=(_SOURCE,),
            unknown_types=made.facts.unknown,
            parts=tuple(p for p in prices.of_sums(wanted.types.values()) if p.market in markets),
            contradicted=made.contradicted,
            quarantined=(*prices.quarantined, *made.quarantined),
            failed=tuple(made.failed),
            warnings=tuple(made.warnings),
            counters=Counters(
                calls=listed.pages + listed.retries + web.calls,
                retries=listed.retries + web.retries,
                pages=listed.pages,
                raw_rows=listed.rows,
                ignored=prices.ignored,
                bytes=listed.bytes + web.bytes,
            ),
        )

    def _quotas(self, wanted: Wanted) -> Fetched:
        """Read what the project may run."""
        token = self.token(self.settings) if self.settings.project else ""
        with Web("gcp", wanted, {"Authorization": f"Bearer {token}"}, self.patience) as web:
            found = read_quotas(web, self.settings, wanted, load_snapshot().quotas)
        counters = Counters(calls=web.calls, retries=web.retries, bytes=web.bytes)
        return found.as_fetched("gcp", wanted, counters)

    def _token(self, made: "_Making") -> str:
        """A token for Compute Engine; none without a project or without credentials."""
        if not self.settings.project:
            return ""
        try:
            return self.token(self.settings)
        except ProviderError as error:
            made.warnings.append(f"machine types are as shipped: {error.reason}")
            return ""

    def _facts(self, web: Web, wanted: Wanted, made: "_Making", token: str) -> Facts:
        shipped = shipped_places("gcp")
        if not token:
            return Facts(shipped, {})
        try:
            return machine_facts(web, self.settings, wanted.types, shipped)
        except ProviderError as error:
            made.warnings.append(f"machine types are as shipped: {error.reason}")
            return Facts(shipped, {})


@dataclass(slots=True)
class _Making:
    """Composes offers and writes down what could not be composed."""

    wanted: Wanted
    prices: PartPrices
    markets: frozenset[Market]
    facts: Facts = Facts({}, {})
    offers: list[Offer] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    contradicted: tuple[str, ...] = ()

    def compose(self, facts: Facts) -> None:
        """Compose the price of every machine in every zone that has it."""
        self.facts = facts
        self.warnings += facts.warnings
        known = {region for regions in facts.places.values() for region in regions}
        lost = known - self.prices.regions
        self.failed += [
            Failed(region, "", "the price list names no part of a machine here")
            for region in sorted(lost)
        ]
        more = sorted(self.prices.regions - known - {"global"})
        if more:
            self.warnings.append(f"priced, but no machine known there: {', '.join(more)}")
        for name, machine in sorted(self.wanted.types.items()):
            shape = self._shape(machine)
            if shape is not None:
                for region, zones in sorted(facts.places.get(name, {}).items()):
                    if region not in lost:
                        self._offer(machine, shape, region, zones)

    def _shape(self, machine: InstanceType) -> Shape | None:
        """What is charged of a machine; the provider's word wins over the shipped table."""
        name, listed = machine.instance_type, shape_of(machine)
        if not can_compose(machine):
            reason = f"it is not known which parts a {machine.family} is made of"
            self.quarantined.append(Quarantined("gcp", name, reason, "unknown_family"))
            return None
        stated = self.facts.shapes.get(name)
        if stated is None:
            return listed
        differs = name in self.facts.mixed_shapes
        if differs or stated.gpus != machine.gpus:
            reason = f"Google says {stated.gpus} GPUs, the catalog {machine.gpus}"
            reason = "Google describes it differently from zone to zone" if differs else reason
            self.quarantined.append(Quarantined("gcp", name, reason, "shape"))
            return None
        if stated != listed:
            self.warnings.append(f"{name}: priced as {stated}; the catalog says {listed}")
        return stated

    def _offer(
        self, machine: InstanceType, shape: Shape, region: str, zones: tuple[str, ...]
    ) -> None:
        for market in sorted(self.markets):
            if market == "spot" and not machine.gpu:
                continue  # machines that checkpoints go to are rented on demand
            total = composed(machine, shape, self.prices, market, region)
            if total.missing and market == "on_demand" and machine.status in _NOT_ON_DEMAND:
                continue  # it is not for sale that way, so no part of its price is missed
            if total.missing:
                what = f"{machine.instance_type} {region} {market}"
                reason = f"no price of: {', '.join(total.missing)}"
                self.quarantined.append(Quarantined("gcp", what, reason, "missing_part"))
                continue
            self.offers += [
                read_offer(
                    machine,
                    region,
                    market,
                    total.usd_per_hour,
                    source=_SOURCE.source,
                    as_of=self.wanted.today,
                    zone=zone,
                    kind="composed",
                )
                for zone in zones
            ]

    def doubt(self, web: Web, settings: Settings) -> None:
        """Take out spot offers that Google's own history contradicts."""
        history = check_history(web, settings, self.offers)
        self.offers = [
            offer
            for offer in self.offers
            if offer.market != "spot" or (offer.instance_type, offer.region) not in history.places
        ]
        self.contradicted = history.machines
        self.quarantined += history.contradicted
        self.warnings += history.warnings
