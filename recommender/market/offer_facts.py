"""Catalog facts about an offer: planning price, spot law, start-up, fees, egress."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from functools import cache, cached_property
from itertools import permutations

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import CLOUDS, OWN, SPOT_AUCTIONS, is_marketplace
from recommender.catalogs.schema import ONE_HOST, BillingRule, InstanceType, SpotClass
from recommender.job.job import Job
from recommender.market.account_quotas import AccountQuotas
from recommender.market.quotes import expected_quote, interpolated, median, persistence
from recommender.market.user_spot_laws import law_of_failover_list, user_law, with_user_law
from recommender.plan.limits import Choice
from recommender.plan.plan import OWN_TRACE

BOOT_DISK_GIB = 100.0  # a container image and its scratch space
HOURS_PER_MONTH = 730.0
WEIGHT_BYTES = 2.0  # of a parameter of a base model as it is published
STATED_GPUS = 8  # of the machines whose on-demand capacity the catalog states
# How far the AWS interruption range (0 to 4) moves a zone's availability, in between-zone
# standard deviations: the range ranks offers around the class level and no more.
RANGE_SHIFT = 0.2
# What a law that was carried over adds to the sd of the logit of its availability. From other GPUs:
# the sd of the three that were traced (H100 0.910, V100 0.692, K80 0.542; 2023 to 2025). From the
# same GPU in machines of another size: of what eight lose against one (V100 1.26, K80 0.43 logits).
CARRIED_GPU_SD, CARRIED_COUNT_SD = 1.1, 0.6
# Sd of ln(quote / median of its type) over the zones of an auction: what a place may cost that is
# planned at its type's median (954 zones of AWS, mid 2026; docs/research/quotes.md).
FLOOR_SD = 0.38
# Sd of ln(what a host of a marketplace asks / the price listed): two medians for an H100 on Vast,
# 4.00 USD/h on 2026-10-10 and 2.40 on 2026-10-19 (ewyluda/gpu-price-index and a price page).
HOSTS_SD = 0.36
MEDIAN_ERROR = 0.6745  # of a normal law, in sd: a catalog states the median error of derived prices
# A price that the market has made: as quoted, as quoted in an imported version, after a jump.
_MARKET_FLAGS = ("", "imported", "jump")
_POSTED_FLAGS = (*_MARKET_FLAGS, "floor")  # a list price is charged at any level
GB = 1e9
GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Pool:
    """Machines of one type in one market at the places of a failover list: zones or regions."""

    rows: tuple[int, ...]  # catalog rows in the order tried
    market: str
    kind: int
    type: InstanceType
    move_after_s: float = 0.0  # for which only the last place is tried before the others

    def at(self, rows: tuple[int, ...]) -> "Pool":
        """These machines at other places."""
        return Pool(rows, self.market, self.kind, self.type, self.move_after_s)

    @property
    def spot(self) -> bool:
        """Whether its machines are interrupted for other customers."""
        return self.market == "spot"


@dataclass(frozen=True)
class Facts:
    """Look-ups by offer, for one catalog at one moment."""

    catalog: Catalog
    choice: Choice
    job: Job
    now: datetime

    def by(self, rows: Iterable[int], column: str) -> dict[str, list[int]]:
        """Group offers by a column of the catalog, such as their region."""
        groups: dict[str, list[int]] = defaultdict(list)
        values = getattr(self.catalog.offers, column)
        for row in rows:
            groups[values[row]].append(row)
        return dict(sorted(groups.items()))

    def spot_class(self, t: InstanceType, rows: Sequence[int] = ()) -> SpotClass | None:
        """The spot law of a machine in the zones of a failover list.

        It is the law of its class, unless the user saved a law from an own trace for one of the
        zones.
        """
        base = self._classes.get((t.gpu, t.gpus))
        if not self.choice.spot_laws or base is None or not rows:
            return base
        return law_of_failover_list([self.row_law(base, t, row) for row in rows])

    def row_law(self, base: SpotClass, t: InstanceType, row: int) -> SpotClass:
        """The law of one offer: its class's, or one from the user's own trace."""
        if not self.choice.spot_laws:
            return base
        o = self.catalog.offers
        law = user_law(self.choice.spot_laws, t, o.region[row], o.zone[row])
        return base if law is None else with_user_law(base, law)

    @cached_property
    def _classes(self) -> dict[tuple[str, int], SpotClass]:
        return {
            (gpu, count): c
            for c in self.catalog.spot_classes
            for gpu in c.gpus
            for count in range(c.gpus_per_machine_min, c.gpus_per_machine_max + 1)
        }

    @cached_property
    def quotas(self) -> AccountQuotas:
        """The user's quotas."""
        return AccountQuotas(self.catalog, self.choice.quotas)

    def terms(self, t: InstanceType, market: str) -> BillingRule:
        """The terms on which a machine is rented in a market: its own, or its provider's."""
        stated = self.stated_terms(t.provider, market, t.instance_type)
        return stated or self._terms.get((t.provider, market, ""), _UNKNOWN_TERMS)

    def stated_terms(self, provider: str, market: str, name: str) -> BillingRule | None:
        """The terms of one machine; None where those of its provider hold."""
        return self._terms.get((provider, market, name))

    @cached_property
    def _terms(self) -> dict[tuple[str, str, str], BillingRule]:
        return {(b.provider, b.market, b.instance_type): b for b in self.catalog.billing}

    @cached_property
    def _fees(self) -> dict[tuple[str, str], float]:
        return {(f.provider, f.item): f.usd for f in self.catalog.fees}

    def fee(self, provider: str, item: str) -> float:
        """A fee in USD; 0 for a provider without known fees, which the answer then states."""
        return self.known_fee(provider, item) or 0.0

    def known_fee(self, provider: str, item: str) -> float | None:
        """A fee in USD; None if it is not known."""
        return self._fees.get((provider, item))

    def carried_sd(self, t: InstanceType, law: SpotClass) -> float:
        """Sd of the logit of availability if the law was transferred from other machines."""
        if law.basis != "transferred":
            return 0.0
        return CARRIED_COUNT_SD if self.is_traced(t) else CARRIED_GPU_SD

    def is_traced(self, t: InstanceType) -> bool:
        """Whether spot machines with the GPU of a type were traced, of whatever size."""
        return t.gpu in self._traced

    @cached_property
    def _traced(self) -> frozenset[str]:
        """GPUs of which machines of some size were traced."""
        laws = self.catalog.spot_classes
        return frozenset(gpu for c in laws if c.basis == "measured" for gpu in c.gpus)

    def running_fees(self, provider: str, market: str, name: str = "") -> float:
        """Boot disk and address of one running machine, USD per hour."""
        address = self.fee(provider, "ipv4_spot_hour" if market == "spot" else "ipv4_hour")
        return self.disk_usd(provider, market, name) * BOOT_DISK_GIB / HOURS_PER_MONTH + address

    def disk_usd(self, provider: str, market: str, name: str) -> float:
        """USD per GiB-month of the boot disk of a machine: as its terms say, or as is usual."""
        stated = self.stated_terms(provider, market, name)
        if stated is None or stated.disk_usd_per_gib_month is None:
            return self.fee(provider, "boot_disk_gib_month")
        return stated.disk_usd_per_gib_month

    def egress_usd(self, t: InstanceType, market: str) -> float:
        """USD per GB that leaves a machine's provider."""
        stated = self.terms(t, market).egress_usd_per_gb
        return self.fee(t.provider, "egress_internet_gb") if stated is None else stated

    @cached_property
    def boot_s(self) -> Callable[[str, int], float]:
        """Seconds from the request to a running container, by provider and GPUs per machine."""
        return cache(self._boot_s)

    @property
    def staged_gib(self) -> float:
        """GiB of data copied to local disks before each start; 0 if they are streamed."""
        data = self.job.data
        return data.gib if data.read == "stage" else 0.0

    @property
    def base_weight_bytes(self) -> float:
        """Bytes of base weights read by every machine at each start; 0 without adapters.

        Checkpoints contain only the adapters. Libraries store base weights in 16 bits, even if they
        are quantised while they are read. 0 if the user stated the start-up time.
        """
        if self.job.method == "full" or self.job.setup_s is not None:
            return 0.0
        return WEIGHT_BYTES * self.job.parameters

    def _boot_s(self, provider: str, gpus: int) -> float:
        if self.job.setup_s is not None:
            return self.job.setup_s
        known = [s for s in self.catalog.start_up if s.gpus_min <= gpus]
        rows = [s for s in known if s.provider == provider]
        rows = rows or [s for s in known if s.provider == "own"]
        best = max(rows, key=lambda s: s.gpus_min)
        return best.boot_s + (best.cold_image_s if self.job.image == "cold" else 0.0)

    def price_sigma(self, provider: str, market: str, as_of: str, uncertainty: float) -> float:
        """Spread of ln(price), from its age and from how it was derived."""
        derived = uncertainty / MEDIAN_ERROR
        if self.choice.prices_as_quoted:
            return derived
        return math.hypot(self.drift_sd(provider, market, as_of), derived)

    def offer_price_sd(self, row: int) -> float:
        """Spread of ln of an offer's price; wider if the median of its type is used."""
        o = self.catalog.offers
        provider, market = o.provider[row], o.market[row]
        known = self.price_sigma(provider, market, o.as_of[row], o.uncertainty[row])
        if is_marketplace(provider):
            known = math.hypot(known, HOSTS_SD)
        at_floor = o.flag[row] == "floor" and market == "spot" and provider in SPOT_AUCTIONS
        return math.hypot(known, FLOOR_SD) if at_floor else known

    @cached_property
    def drift_sd(self) -> Callable[[str, str, str], float]:
        """Sd of ln(price now / price then) of a provider and market, from the price's date."""
        return cache(self._drift_sd)

    def age_days(self, as_of: str) -> float:
        """Whole days since a date; never negative."""
        return max(0.0, float((self.now.date() - date.fromisoformat(as_of)).days))

    def _drift_sd(self, provider: str, market: str, as_of: str) -> float:
        points = [
            (d.age_days, d.sigma)
            for d in self.catalog.price_drift
            if (d.provider, d.market) == (provider, market)
        ]
        return interpolated(sorted(points), self.age_days(as_of), (0.0, 0.0))

    def wait(self, t: InstanceType, market: str = "on_demand") -> tuple[float, float, float]:
        """Chance that a machine is available at once, the median wait otherwise, and their slope.

        The catalog states them for a machine with eight GPUs on demand. For other sizes, chance and
        wait are scaled like the availability of the class's spot machines; the slope is the loss
        with more machines (`on_demand_wait.OnDemandLaw`). Where the terms of a market state a wait,
        nobody starts at once. The user's own machines with a count are always available,
        unless their file states how long they take to get; a single host is somebody else's.
        """
        stated = self.terms(t, market).wait_s
        if stated is not None:
            return 0.0, stated, 0.0
        if t.provider == OWN and t.instance_type in self.counted and t.network_basis != ONE_HOST:
            return 1.0, 0.0, 0.0
        share, wait_s = self._waits.get(t.gpu, (1.0, 0.0))
        if self.choice.on_demand_obtainable is not None:
            share = self.choice.on_demand_obtainable
        law, eight = self._classes.get((t.gpu, t.gpus)), self._classes.get((t.gpu, STATED_GPUS))
        if law is None or eight is None:
            return share, wait_s, 0.0
        harder = _odds(eight.availability) / _odds(law.availability)
        share = share / (share + (1.0 - share) * harder)
        return share, wait_s * harder, law.availability_slope

    def there(self, t: InstanceType, market: str, rows: Sequence[int]) -> object:
        """A key of how a machine's capacity behaves; equal for machines equally easy to get."""
        if market != "spot":
            return self.wait(t, market)
        return self.spot_class(t, rows) if self.choice.spot_laws else None

    @cached_property
    def counted(self) -> frozenset[str]:
        """The user's own machines with a stated count."""
        quotas = (q for q in self.choice.quotas if q.provider == OWN)
        return frozenset(q.quota_family for q in quotas if q.market == "any")

    @cached_property
    def _waits(self) -> dict[str, tuple[float, float]]:
        first = reversed(self.catalog.obtainability)  # of several rows of a GPU the first counts
        return {gpu: (o.share_at_once, o.wait_s) for o in first for gpu in o.gpus}

    def availability_logit(self, law: SpotClass, interruption_range: int | None) -> float:
        """Availability of one machine in logits, shifted by the provider's ranking."""
        level = math.log(law.availability / (1.0 - law.availability))
        if interruption_range is None or law.basis.startswith(OWN_TRACE):
            return level
        return level + RANGE_SHIFT * law.zone_sd * (1.0 - interruption_range / 2.0)

    def commitment_usd(self, t: InstanceType) -> float | None:
        """USD for each hour of a year for which a machine is committed to; None if not known."""
        return self._commitments.get((t.provider, t.instance_type))

    @cached_property
    def _commitments(self) -> dict[tuple[str, str], float]:
        o, found = self.catalog.offers, dict[tuple[str, str], float]()
        for row, market in enumerate(o.market):
            if market == "committed":
                key = o.provider[row], o.instance_type[row]
                found[key] = min(o.usd_per_hour[row], found.get(key, math.inf))
        return found

    @cached_property
    def egress(self) -> dict[tuple[str, str, str], float]:
        """USD per GB by provider, source region and target region, if listed."""
        return {(e.provider, e.from_region, e.to_region): e.usd_per_gb for e in self.catalog.egress}

    def planning_price(self, row: int) -> float:
        """USD per hour to plan with.

        A quote at the auction's lowest price is not a market price, so the median quote of its type
        is used (docs/catalog.md). Old quotes below that median are moved towards it (`quotes.py`),
        unless prices are taken as quoted.
        """
        return self._planning_prices[row]

    @cached_property
    def _planning_prices(self) -> list[float]:
        o = self.catalog.offers
        prices = list(o.usd_per_hour)
        if self.choice.discounts:
            prices = [self.listed_usd(row) for row in range(len(o))]
        for row, market in enumerate(o.market):
            if market == "spot":
                prices[row] = self._spot_price(row, prices[row])
        return prices

    def _spot_price(self, row: int, usd: float) -> float:
        o = self.catalog.offers
        provider = o.provider[row]
        level = self._typical_spot.get((provider, o.instance_type[row]), 0.0)
        if o.flag[row] == "floor" and provider in SPOT_AUCTIONS:
            return max(usd, level)
        if usd >= level or self.choice.prices_as_quoted:
            return usd
        return expected_quote(usd, level, persistence(provider, self.age_days(o.as_of[row])))

    @cached_property
    def _typical_spot(self) -> dict[tuple[str, str], float]:
        """Median spot quote of each type; an auction's floor is none."""
        o = self.catalog.offers
        quotes: dict[tuple[str, str], list[float]] = {}
        for row, market in enumerate(o.market):
            provider = o.provider[row]
            made = _MARKET_FLAGS if provider in SPOT_AUCTIONS else _POSTED_FLAGS
            if market == "spot" and o.flag[row] in made:
                quotes.setdefault((provider, o.instance_type[row]), []).append(o.usd_per_hour[row])
        return {key: median(values) for key, values in quotes.items()}

    def listed_usd(self, row: int) -> float:
        """USD per hour of an offer, after the user's discount on on-demand prices.

        Contracts (AWS Savings Plans, committed use) lower list prices, but not spot prices.
        """
        o = self.catalog.offers
        given = dict(self.choice.discounts) if o.market[row] == "on_demand" else {}
        return o.usd_per_hour[row] * (1.0 - given.get(o.provider[row], 0.0))


# Of the user's own offers where nothing is stated, and of markets whose terms nobody wrote down.
_UNKNOWN_TERMS = BillingRule("own", "on_demand", 60.0, 0.0, 30.0, 0, "")


def _odds(share: float) -> float:
    return share / (1.0 - share)


# How names of a continent's regions begin, or what they hold; the first that fits decides
# ("australiaeast" holds "us").
_CONTINENTS = (
    ("oceania", (), ("australia", "newzealand")),
    (
        "europe",
        ("eu-", "uk"),
        ("europe", "france", "germany", "italy", "norway", "poland", "spain", "sweden")
        + ("switzerland", "austria", "belgium", "denmark"),
    ),
    ("south america", ("sa-",), ("southamerica", "brazil", "chile")),
    ("africa", ("af-",), ("africa",)),
    ("middle east", ("me-", "il-"), ("uae", "qatar", "israel")),
    ("asia", ("ap-",), ("asia", "japan", "korea", "india", "indonesia", "malaysia")),
    ("north america", ("ca-", "mx-"), ("northamerica", "us", "canada", "mexico")),
)


@cache
def continent(region: str) -> str:
    """The continent of a cloud's region by its name; "" if the name does not show it."""
    for name, begins, holds in _CONTINENTS:
        if region.startswith(begins) or any(word in region for word in holds):
            return name
    return ""


def usd_per_gb(facts: Facts, provider: str, from_region: str, to_region: str) -> float:
    """Price of a GB sent between two regions of a provider; 0 within a region.

    If the pair is not listed (Google Cloud, Azure), this is the fee of the continent or, between
    two that are known to differ, the fee between continents.
    """
    if from_region == to_region:
        return 0.0
    pair = facts.egress.get((provider, from_region, to_region))
    if pair is not None:
        return pair
    ends = continent(from_region), continent(to_region)
    apart = "" not in ends and ends[0] != ends[1]
    return facts.fee(provider, "egress_continent_gb" if apart else "egress_region_gb")


def migration_usd_per_gb(facts: Facts, provider: str, regions: Sequence[str]) -> float:
    """Mean price of a GB sent from one zone of a failover list to another."""
    if len(set(regions)) < 2:
        return 0.0
    prices = [usd_per_gb(facts, provider, *pair) for pair in permutations(regions, 2)]
    return sum(prices) / len(prices)


def move_usd(facts: Facts, pool: Pool) -> float:
    """Egress of one checkpoint to another location of a list that spans regions.

    On-demand machines stay in the first region that has them, so they do not move.
    """
    if len(pool.rows) < 2 or not pool.spot:
        return 0.0
    gb = facts.job.checkpoint_bytes / GB
    return gb * migration_usd_per_gb(facts, *places_of(facts, pool.rows))


def save_usd(facts: Facts, pool: Pool) -> float:
    """Egress of one checkpoint to a bucket; nothing where the provider has buckets of its own."""
    cloud = CLOUDS.get(pool.type.provider)
    if cloud is not None and cloud.has_client:
        return 0.0
    return facts.job.checkpoint_bytes / GB * facts.egress_usd(pool.type, pool.market)


def copies_usd(facts: Facts, rows: Sequence[int]) -> float:
    """Egress of the data to the regions of a failover list that do not have them."""
    data = facts.job.data
    if not data.at:
        return 0.0
    return data.gib * GIB / GB * copies_usd_per_gb(facts, *places_of(facts, rows), data.at)


def places_of(facts: Facts, rows: Sequence[int]) -> tuple[str, tuple[str, ...]]:
    """Provider and regions of a failover list, in the order tried."""
    o = facts.catalog.offers
    return o.provider[rows[0]], tuple(o.region[row] for row in rows)


def copies_usd_per_gb(facts: Facts, provider: str, regions: Sequence[str], at: str) -> float:
    """Price per GB of copying the data to every region of a list except their own.

    `at` is the location of the data, "aws:us-east-1". They are sent to another provider once, over
    the internet, at the price of the provider they leave.
    """
    owner, _, home = at.partition(":")
    first = 0.0
    if owner != provider:
        first, home = facts.fee(owner, "egress_internet_gb"), regions[0]
    return first + sum(usd_per_gb(facts, provider, home, other) for other in set(regions))
