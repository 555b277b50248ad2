"""The registry of cloud providers: the three with clients of their own, and the GPU clouds.

It is plain data: every part of the program reads names, labels and bounds here. The client of a
provider is in `providers/<name>/` and is found by name.
"""

from collections.abc import Mapping
from types import MappingProxyType

from recommender.catalogs.gpu_clouds import GPU_CLOUDS
from recommender.catalogs.provider_info import PriceBounds, ProviderInfo, SpotBounds

__all__ = [
    "CLOUDS", "NAMES", "OWN", "OWN_CLIENTS", "SPOT_AUCTIONS", "PriceBounds", "ProviderInfo",
    "SpotBounds", "is_confidential",
]  # fmt: skip

OWN = "own"  # machines outside the clouds, which no refresh renews


AWS = ProviderInfo(
    name="aws",
    label="AWS",
    # Measured 2026-08: spot shares 0.100-1.0; 2026-10: spreads over regions 0.64-1.60, and the
    # levels of all clouds. On 92 days of 2020 at most 15 % of the quotes rose by more than 3 %, and
    # as many fell.
    bounds=PriceBounds(
        region_spread=(0.55, 1.8),
        regions=15,
        gpus=frozenset({"T4", "L4", "A10G", "L40S", "A100", "H100", "H200"}),
        spot=SpotBounds(share=(0.08, 1.0), jump=1.5, auction=True, at_once=0.3, floor=0.10),
        level=(0.35, 3.2),
        rises_with_gpus=True,
    ),
    region_pattern=r"[a-z]{2}(?!-iso)(-[a-z]+)+-\d",  # no local, wavelength or edge zones
    zones="id",
    zone_pattern=r"[a-z]+\d-az\d+",
    family_pattern=r"[a-z]+",  # "P" of p5en
    quota_page="https://console.aws.amazon.com/servicequotas",
    sky_name="aws",
    has_client=True,
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
        level=(0.5, 4.2),
        rises_with_gpus=True,
    ),
    region_pattern=r"[a-z]+-[a-z]+\d+",  # no multi-regions
    zones="region",
    quota_unit="gpu",
    family_pattern=r"[a-z]+\d+(?=-)",  # "a3" of a3-highgpu
    quota_page="https://console.cloud.google.com/iam-admin/quotas",
    sky_name="gcp",
    has_client=True,
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
        level=(0.5, 5.2),
    ),
    # No government regions.
    region_pattern=r"(?!usgov|usdod)(?=.{6})[a-z]*(east|west|north|south|central)[a-z]*\d?",
    family_pattern=r"N[A-Z]",  # "ND" of NDH100v5
    quota_page="https://portal.azure.com/#view/Microsoft_Azure_Capacity/QuotaMenuBlade/~/myQuotas",
    sky_name="azure",
    has_client=True,
    notice_owner="Azure's",
    # Series DC, EC and NCC (Azure, "Sizes for confidential VMs", 2026-08). AWS rents none with a
    # GPU; on Google Cloud it is an option of ordinary machines, and off by default.
    confidential=("Standard_DC", "Standard_EC", "Standard_NCC"),
)

CLOUDS: Mapping[str, ProviderInfo] = MappingProxyType(
    {info.name: info for info in (AWS, GCP, AZURE, *GPU_CLOUDS)}
)
NAMES = (*CLOUDS, OWN)
OWN_CLIENTS = tuple(name for name, info in CLOUDS.items() if info.has_client)
SPOT_AUCTIONS = frozenset(
    info.name for info in CLOUDS.values() if info.bounds.spot and info.bounds.spot.auction
)


def is_confidential(provider: str, instance_type: str) -> bool:
    """Whether a machine can only be rented as a confidential VM."""
    info = CLOUDS.get(provider)
    return info is not None and instance_type.startswith(info.confidential)


def is_marketplace(provider: str) -> bool:
    """Whether its machines are those of many hosts, who ask their own prices."""
    info = CLOUDS.get(provider)
    return info is not None and info.marketplace
