"""The registry of cloud providers.

It is plain data without imports: every part of the program reads names, labels and bounds here. The
client of a provider is in `providers/<name>/` and is found by name.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from recommender.catalogs.frozen import dataclass

OWN = "own"  # machines outside the clouds, which no refresh renews


@dataclass(frozen=True, slots=True)
class SpotBounds:
    """Plausible ranges of a provider's spot prices."""

    share: tuple[float, float]  # of the on-demand price
    jump: float  # a factor since the last price above this one is flagged
    # Bids move the price of each size by itself: no proportions inside a family.
    auction: bool = False
    # So many of the other families' spot prices move when there is a new list of all prices.
    new_list: float = 2.0  # more than all: it is not told
    at_once: float = 1.0  # the share of prices that may move by more than 3 % in a night
    floor: float | None = None  # the share of the on-demand price that unsold capacity costs
    family: float = 0.05  # how far a size may leave the proportion of its family


@dataclass(frozen=True, slots=True)
class PriceBounds:
    """Plausible ranges of a provider's prices, and the offers that must be present.

    A provider without them is never published: measure them on a good price list, with some margin.
    """

    region_spread: tuple[float, float]  # on-demand over the median of the type's regions
    regions: int  # at least
    gpus: frozenset[str]  # offered somewhere, by the catalog's short names
    spot: SpotBounds | None  # None: it sells no spot machines
    rises_with_gpus: bool = False  # more of the same GPUs cost more, in every region


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """A cloud provider: its name, where it rents machines, and the bounds of its prices."""

    name: str  # as catalogs, flags and files write it; the folder of its client
    label: str  # as tables print it
    bounds: PriceBounds
    region_pattern: str  # of the regions that a catalog holds, whole
    # How zones are named: "id" (spot only, ids of no account), "region" (they begin with their
    # region), or "" where prices hold for whole regions.
    zones: Literal["id", "region", ""] = ""
    zone_pattern: str = ""  # of ids, whole
    quota_unit: Literal["vcpu", "gpu"] = "vcpu"  # what its quotas count, where a file says nothing
    family_pattern: str = r"(?!)"  # how families of machines begin that people call by one word
    quota_page: str = ""  # where an increase is requested
    sky_name: str = ""  # as `sky launch --infra` names it; "": SkyPilot does not know it
    notice_owner: str = "the"  # whose interruption notice: "Google's"
    credential_variables: tuple[str, ...] = ()  # looked for by `recommend doctor`
    credential_files: tuple[str, ...] = ()  # neither: its prices are public
    # How the names of its confidential VMs begin. Theirs is a security type of its own at launch,
    # and encrypted copies between processor and GPU.
    confidential: tuple[str, ...] = ()


AWS = ProviderInfo(
    name="aws",
    label="AWS",
    # Measured 2026-08: spot shares 0.100-1.0, spreads over regions 0.64-1.54. On 92 days of 2020 at
    # most 15 % of the quotes rose by more than 3 %, and as many fell.
    bounds=PriceBounds(
        region_spread=(0.55, 1.75),
        regions=15,
        gpus=frozenset({"T4", "L4", "A10G", "L40S", "A100", "H100", "H200"}),
        spot=SpotBounds(share=(0.08, 1.0), jump=1.5, auction=True, at_once=0.3, floor=0.10),
        rises_with_gpus=True,
    ),
    region_pattern=r"[a-z]{2}(?!-iso)(-[a-z]+)+-\d",  # no local, wavelength or edge zones
    zones="id",
    zone_pattern=r"[a-z]+\d-az\d+",
    family_pattern=r"[a-z]+",  # "P" of p5en
    quota_page="https://console.aws.amazon.com/servicequotas",
    sky_name="aws",
    credential_variables=("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    credential_files=("~/.aws/credentials", "~/.aws/config"),
)


GCP = ProviderInfo(
    name="gcp",
    label="GCP",
    # Measured 2026-08: spot shares 0.090-0.600, spreads over regions 0.73-1.44. In the history of
    # 2022-2026 A3 High was at 0.707 for eight months, and of 4,595 moves of spot prices 1 % left
    # the proportion of the family by 0.08 to 0.13: cores, memory and GPU have prices of their own.
    # All 147 moves of spot prices by more than a quarter, and all 24 on demand by more than a
    # tenth, came when 15 % or more of the spot prices of other families moved too.
    bounds=PriceBounds(
        region_spread=(0.65, 1.5),
        regions=20,
        gpus=frozenset({"T4", "L4", "A100", "A100-80GB", "H100"}),
        spot=SpotBounds(share=(0.05, 0.72), jump=1.35, new_list=0.15, family=0.10),
        rises_with_gpus=True,
    ),
    region_pattern=r"[a-z]+-[a-z]+\d+",  # no multi-regions
    zones="region",
    quota_unit="gpu",
    family_pattern=r"[a-z]+\d+(?=-)",  # "a3" of a3-highgpu
    quota_page="https://console.cloud.google.com/iam-admin/quotas",
    sky_name="gcp",
    notice_owner="Google's",
    credential_variables=("GOOGLE_APPLICATION_CREDENTIALS",),
    credential_files=("~/.config/gcloud/application_default_credentials.json",),
)


AZURE = ProviderInfo(
    name="azure",
    label="Azure",
    # Measured 2026-08: spot shares 0.100-0.72, spreads over regions 0.77-1.60. Its 107 moves of
    # spot prices in April and May 2026 were by 0.8 to 1.1; rows that listed the price with Windows
    # were off by 1.03 to 2.3, often the sizes of a family together. At most 10 % moved in a night.
    bounds=PriceBounds(
        region_spread=(0.55, 1.75),
        regions=20,
        gpus=frozenset({"T4", "A10", "A100", "A100-80GB", "H100"}),
        spot=SpotBounds(share=(0.08, 0.9), jump=1.35, at_once=0.15, floor=0.185),
    ),
    # No government regions.
    region_pattern=r"(?!usgov|usdod)(?=.{6})[a-z]*(east|west|north|south|central)[a-z]*\d?",
    family_pattern=r"N[A-Z]",  # "ND" of NDH100v5
    quota_page="https://portal.azure.com/#view/Microsoft_Azure_Capacity/QuotaMenuBlade/~/myQuotas",
    sky_name="azure",
    notice_owner="Azure's",
    # Series DC, EC and NCC (Azure, "Sizes for confidential VMs", 2026-08). AWS rents none with a
    # GPU; on Google Cloud it is an option of ordinary machines, and off by default.
    confidential=("Standard_DC", "Standard_EC", "Standard_NCC"),
)

CLOUDS: Mapping[str, ProviderInfo] = MappingProxyType(
    {info.name: info for info in (AWS, GCP, AZURE)}
)
NAMES = (*CLOUDS, OWN)
SPOT_AUCTIONS = frozenset(
    info.name for info in CLOUDS.values() if info.bounds.spot and info.bounds.spot.auction
)


def is_confidential(provider: str, instance_type: str) -> bool:
    """Whether a machine can only be rented as a confidential VM."""
    info = CLOUDS.get(provider)
    return info is not None and instance_type.startswith(info.confidential)
