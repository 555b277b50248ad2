"""AWS without an account: list prices by region, and spot prices from the feed of its price pages.

The feed states the lowest spot price over a region's zones, and no zone. Quotes by zone come from
SkyPilot's file. Where the two disagree the feed wins: zone quotes are taken only of a machine and
region whose lowest one is the feed's price; elsewhere there is one offer, of the whole region.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.contract import Counters, Failed, Fetched, Wanted, read_offer
from recommender.catalogs.providers.http import Patience, Web
from recommender.catalogs.providers.public import skypilot
from recommender.catalogs.schema import Market, Offer, Source

DOCUMENTS = "https://b0.p.awsstatic.com/pricing/2.0/meteredUnitMaps/ec2/USD/current"
_LIST = "ec2-ondemand-without-sec-sel"
_FEED = "https://website.spot.ec2.aws.a2z.com/spot.json"
_SAME = 0.05  # as far apart are two quotes of one price, read some hours apart
# As the price pages name regions (2026-11): European ones begin with "EU".
LOCATIONS: Mapping[str, str] = MappingProxyType(
    {
        "us-east-1": "US East (N. Virginia)", "us-east-2": "US East (Ohio)",
        "us-west-1": "US West (N. California)", "us-west-2": "US West (Oregon)",
        "ca-central-1": "Canada (Central)", "ca-west-1": "Canada West (Calgary)",
        "mx-central-1": "Mexico (Central)", "sa-east-1": "South America (Sao Paulo)",
        "eu-west-1": "EU (Ireland)", "eu-west-2": "EU (London)", "eu-west-3": "EU (Paris)",
        "eu-central-1": "EU (Frankfurt)", "eu-central-2": "EU (Zurich)",
        "eu-north-1": "EU (Stockholm)", "eu-south-1": "EU (Milan)", "eu-south-2": "EU (Spain)",
        "ap-northeast-1": "Asia Pacific (Tokyo)", "ap-northeast-2": "Asia Pacific (Seoul)",
        "ap-northeast-3": "Asia Pacific (Osaka)", "ap-southeast-1": "Asia Pacific (Singapore)",
        "ap-southeast-2": "Asia Pacific (Sydney)", "ap-southeast-3": "Asia Pacific (Jakarta)",
        "ap-southeast-4": "Asia Pacific (Melbourne)", "ap-southeast-5": "Asia Pacific (Malaysia)",
        "ap-south-1": "Asia Pacific (Mumbai)", "ap-south-2": "Asia Pacific (Hyderabad)",
        "ap-east-1": "Asia Pacific (Hong Kong)", "me-south-1": "Middle East (Bahrain)",
        "me-central-1": "Middle East (UAE)", "il-central-1": "Israel (Tel Aviv)",
        "af-south-1": "Africa (Cape Town)",
    }
)  # fmt: skip
PAGES = "AWS on-demand price documents"
_FACTS = "facts of public pages"
_SOURCES = (
    Source(1, PAGES, _FACTS, "row", "list prices of EC2 by region, b0.p.awsstatic.com"),
    Source(2, "AWS spot price feed", _FACTS, "row",
           "lowest spot price of a region, website.spot.ec2.aws.a2z.com"),
    replace(skypilot.SOURCE, source=3),
)  # fmt: skip
# How often AWS interrupts spot machines, by type and region.
ADVISOR = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
_RANGES = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")  # interruptions a month, index 0 to 4
Ranges = dict[tuple[str, str], int]  # index of the range by (instance type, region)
Prices = dict[tuple[str, str], float]  # USD by (instance type, region)
Zones = Mapping[tuple[str, str], Mapping[str, float]]  # USD by zone id, of the same


def reader(_name: str) -> "AwsLists":
    """The reader of AWS's public prices."""
    return AwsLists()


@dataclass(frozen=True, slots=True)
class Places:
    """Where the documents are."""

    documents: str = DOCUMENTS
    feed: str = _FEED
    zones: skypilot.Places = skypilot.Places()


@dataclass(frozen=True, slots=True)
class AwsLists:
    """Reads AWS's public prices."""

    places: Places = Places()
    patience: Patience = Patience(tries=3)
    name: str = "aws"

    def fetch(self, wanted: Wanted) -> Fetched:
        """Read list and spot prices; what cannot be read is said, and keeps its last prices.

        Raises:
            ProviderError: neither can be read.
        """
        with Web("aws", wanted, patience=self.patience) as web:
            listed, errors = listed_prices(web, wanted, self.places.documents)
            spot, problem = _or_problem(lambda: feed_prices(web.json(self.places.feed)))
            zones, no_zones = _or_problem(lambda: self._zones(web, wanted)) if spot else ({}, "")
            if not listed and not spot:
                raise ProviderError("aws", "network", problem or "no price document was read")
        offers = [
            *_offers(listed, wanted, "on_demand", 1),
            *_offers(_without_zones(spot, zones), wanted, "spot", 2),
            *_zone_offers(spot, zones, wanted),
        ]
        failed = [Failed(region, "on_demand", e.reason) for region, e in errors.items()]
        failed += [Failed("", "spot", problem)] if problem else []
        return Fetched(
            provider="aws",
            started=wanted.now,
            finished=wanted.now,
            markets=wanted.listed_markets,
            offers=tuple(offer for offer in offers if offer.market in wanted.listed_markets),
            sources=_SOURCES,
            failed=tuple(failed),
            warnings=(f"spot quotes by zone: {no_zones}",) if no_zones else (),
            counters=Counters(calls=web.calls, retries=web.retries, bytes=web.bytes),
            machines=frozenset(offer.instance_type for offer in offers),
        )

    def _zones(self, web: Web, wanted: Wanted) -> Zones:
        """Spot quotes by zone id, of each machine in each region."""
        found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        _, table = skypilot.read_file("aws", "aws", web, wanted, self.places.zones)
        for cells in table:
            name, region, zone = cells["InstanceType"], cells["Region"], cells["AvailabilityZone"]
            usd = skypilot.number(cells["SpotPrice"])
            if usd and zone:
                found[name, region][zone] = usd
        return found


def _or_problem(read: Any) -> tuple[Any, str]:
    """What is read, and why nothing is."""
    try:
        return read(), ""
    except ProviderError as error:
        return {}, error.reason
    except KeyError as error:
        return {}, f"no column {error}"


def listed_prices(
    web: Web, wanted: Wanted, documents: str
) -> tuple[Prices, dict[str, ProviderError]]:
    """The list prices of the regions wanted, and why some ("": all that follow) were not read."""
    found: Prices = {}
    failed: dict[str, ProviderError] = {}
    for region, location in LOCATIONS.items():
        if wanted.regions and region not in wanted.regions:
            continue
        address = f"{documents}/{_LIST}/{quote(location)}/Linux/index.json"
        try:
            found |= document_prices(web.json(address), region, location)
        except ProviderError as error:
            if error.fault == "network":  # of the others nothing else can come
                return found, {**failed, "": error}
            failed[region] = error
        wanted.progress(f"list prices of {region}")
    return found, failed


def document_prices(tree: Any, region: str, location: str) -> Prices:
    """The list prices of a region's document.

    Raises:
        ProviderError: it is of no known form.
    """
    try:
        rows = tree["regions"][location].values()
        prices = {(str(r["Instance Type"]), region): float(r["price"]) for r in rows}
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"the price document of {region} has changed its form ({type(error).__name__})"
        raise ProviderError("aws", "format", reason) from None
    return {key: usd for key, usd in prices.items() if isfinite(usd) and usd > 0}


def feed_prices(tree: Any) -> Prices:
    """The lowest spot price of each Linux machine in each region; 0 and words are no price.

    Raises:
        ProviderError: it is of no known form.
    """
    try:
        found = {
            (str(size["size"]), str(region["region"])): _usd(size)
            for region in tree["config"]["regions"]
            for kind in region["instanceTypes"]
            for size in kind["sizes"]
        }
    except (LookupError, TypeError, AttributeError) as error:
        reason = f"the spot feed has changed its form ({type(error).__name__})"
        raise ProviderError("aws", "format", reason) from None
    return {key: usd for key, usd in found.items() if isfinite(usd) and usd > 0}


def _usd(size: Any) -> float:
    for column in size["valueColumns"]:
        if column["name"] == "linux":
            return skypilot.number(column["prices"]["USD"])
    return 0.0


def agrees(feed_usd: float, zones: Mapping[str, float]) -> bool:
    """Whether zone quotes are as new as the feed: their lowest is its price."""
    return bool(zones) and abs(min(zones.values()) / feed_usd - 1.0) <= _SAME


def _without_zones(spot: Prices, zones: Zones) -> Prices:
    return {key: usd for key, usd in spot.items() if not agrees(usd, zones.get(key, {}))}


def _zone_offers(spot: Prices, zones: Zones, wanted: Wanted) -> Iterator[Offer]:
    for (name, region), usd in spot.items():
        quotes = zones.get((name, region), {})
        if agrees(usd, quotes):
            for zone, quote_usd in quotes.items():
                yield from _offers({(name, region): quote_usd}, wanted, "spot", 3, zone)


def _offers(
    prices: Prices, wanted: Wanted, market: Market, source: int, zone: str = ""
) -> Iterator[Offer]:
    for (name, region), usd in sorted(prices.items()):
        machine = wanted.types.get(name)
        if machine is not None and region in LOCATIONS and (machine.gpu or market == "on_demand"):
            yield read_offer(
                machine, region, market, usd, source=source, as_of=wanted.today, zone=zone
            )


def read_advisor(web: Web, url: str) -> Ranges:
    """Read the interruption range of every Linux machine in every region.

    The format of the file is not documented, so it is used only if it is unchanged.

    Raises:
        ProviderError: the file cannot be read, or does not look as it always has.
    """
    tree = web.json(url)
    try:
        return ranges_of(tree)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the spot advisor's file has changed its form ({type(error).__name__}: {error})"
        raise ProviderError("aws", "format", reason[:200]) from None


def ranges_of(tree: Any) -> Ranges:
    """Extract the ranges from the file; ValueError and similar if its format differs."""
    labels = {each["index"]: each["label"] for each in tree["ranges"]}
    if labels != dict(enumerate(_RANGES)):
        raise ValueError("other ranges")
    found: Ranges = {}
    for region, systems in tree["spot_advisor"].items():
        for name, row in systems.get("Linux", {}).items():
            index, saving = row["r"], row["s"]
            whole = type(index) is int and type(saving) is int
            if not whole or not 0 <= index < len(_RANGES) or not -100 <= saving <= 100:
                raise ValueError("a range or saving that is none")
            found[name, region] = index
    if not found:
        raise ValueError("no machine")
    return found
