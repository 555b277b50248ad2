"""GPU clouds and marketplaces: providers without a client of their own, read from public lists.

One `ProviderInfo` each; their shipped machines and prices are one file each in
`tests/research/snapshot/hand/clouds`. Bounds were measured on the lists of 2026-09 and 2026-10,
with margin; names for SkyPilot are those of 0.14.1 (read 2026-11).
"""

from recommender.catalogs.provider_info import ANY_REGION, PriceBounds, ProviderInfo, SpotBounds

LAMBDA = ProviderInfo(
    name="lambda",
    label="Lambda",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"A100", "B200", "H100"}),
        spot=None,
        level=(0.2, 2.9),
    ),
    region_pattern=rf"{ANY_REGION}|[a-z]+-[a-z]+-\d",
    quota_unit="gpu",
    sky_name="lambda",
)

NEBIUS = ProviderInfo(
    name="nebius",
    label="Nebius",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"B200", "H100", "H200"}),
        # Spot floats, as often as every 15 minutes since 2026-10-08.
        spot=SpotBounds(share=(0.15, 0.75), jump=2.0),
        level=(0.3, 1.5),
    ),
    region_pattern=rf"{ANY_REGION}|[a-z]+-[a-z]+\d",
    quota_unit="gpu",
    sky_name="nebius",
)

RUNPOD = ProviderInfo(
    name="runpod",
    label="RunPod",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"A100-80GB", "H100", "H200"}),
        spot=None,
        level=(0.3, 1.3),
    ),
    region_pattern=rf"{ANY_REGION}|[A-Z]{{2}}(-[A-Z]+-\d)?",
    quota_unit="gpu",
    sky_name="runpod",
)

VERDA = ProviderInfo(
    name="verda",
    label="Verda",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"A100-80GB", "B200", "H100", "H200"}),
        spot=SpotBounds(share=(0.2, 0.6), jump=1.35),
        level=(0.05, 1.2),
    ),
    region_pattern=rf"{ANY_REGION}|[A-Z]{{3}}-\d\d",
    quota_unit="gpu",
    sky_name="verda",
)

OCI = ProviderInfo(
    name="oci",
    label="OCI",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"A10", "A100-80GB", "H100"}),
        spot=SpotBounds(share=(0.45, 0.55), jump=1.35),
        level=(0.35, 3.3),
    ),
    region_pattern=rf"{ANY_REGION}|[a-z]+-[a-z]+-\d",
    quota_unit="gpu",
    sky_name="oci",
)

HYPERSTACK = ProviderInfo(
    name="hyperstack",
    label="Hyperstack",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"A100-80GB-PCIe", "H100", "H100-PCIe"}),
        spot=SpotBounds(share=(0.7, 0.85), jump=1.35),
        level=(0.35, 1.2),
    ),
    region_pattern=rf"{ANY_REGION}|[A-Z]+-\d",
    quota_unit="gpu",
)

JARVISLABS = ProviderInfo(
    name="jarvislabs",
    label="JarvisLabs",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"H100", "H200"}),
        spot=None,
        level=(0.6, 1.4),
    ),
    region_pattern=rf"{ANY_REGION}|[A-Z]{{2}}\d",
    quota_unit="gpu",
)

COREWEAVE = ProviderInfo(
    name="coreweave",
    label="CoreWeave",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"A100-80GB", "B200", "H100"}),
        spot=SpotBounds(share=(0.3, 0.6), jump=1.5),
        level=(0.6, 2.0),
    ),
    region_pattern=rf"{ANY_REGION}|[A-Z]+-[A-Z]+-\d+[A-Z]?",
    quota_unit="gpu",
)

CRUSOE = ProviderInfo(
    name="crusoe",
    label="Crusoe",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"A100-80GB-PCIe", "L40S"}),
        spot=None,
        level=(0.5, 1.5),
    ),
    region_pattern=rf"{ANY_REGION}|[a-z]+-[a-z]+\d(-[a-z])?",
    quota_unit="gpu",
)

TOGETHER = ProviderInfo(
    name="together",
    label="Together",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"H100", "H200"}),
        spot=None,
        level=(0.7, 1.5),
    ),
    region_pattern=ANY_REGION,
    quota_unit="gpu",
)

DIGITALOCEAN = ProviderInfo(
    name="digitalocean",
    label="DigitalOcean",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"H100", "L40S"}),
        spot=None,
        level=(0.28, 1.5),
    ),
    region_pattern=rf"{ANY_REGION}|[a-z]{{3}}\d",
    quota_unit="gpu",
    sky_name="do",
)

VULTR = ProviderInfo(
    name="vultr",
    label="Vultr",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"L40S"}),
        spot=None,
        level=(0.7, 1.4),
    ),
    region_pattern=rf"{ANY_REGION}|[a-z]{{3}}",
    quota_unit="gpu",
)

SCALEWAY = ProviderInfo(
    name="scaleway",
    label="Scaleway",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"H100", "L40S"}),
        spot=None,
        level=(0.65, 1.5),
    ),
    region_pattern=rf"{ANY_REGION}|[a-z]{{2}}-[a-z]{{3}}-\d",
    quota_unit="gpu",
)

VAST = ProviderInfo(
    name="vast",
    label="Vast",
    bounds=PriceBounds(
        region_spread=(0.9, 1.1),
        regions=1,
        gpus=frozenset({"H100", "H200", "L40S"}),
        spot=None,
        level=(0.1, 1.6),
    ),
    region_pattern=ANY_REGION,
    quota_unit="gpu",
    sky_name="vast",
    marketplace=True,
)

LIUM = ProviderInfo(
    name="lium",
    label="Lium",
    bounds=PriceBounds(
        region_spread=(0.5, 2.0),
        regions=1,
        gpus=frozenset({"B200", "B300", "H200"}),
        spot=None,
        level=(0.1, 1.6),
    ),
    region_pattern=r"[A-Z]{2}",  # countries
    quota_unit="gpu",
    marketplace=True,
)

GPU_CLOUDS = (
    LAMBDA,
    NEBIUS,
    RUNPOD,
    VERDA,
    OCI,
    HYPERSTACK,
    JARVISLABS,
    COREWEAVE,
    CRUSOE,
    TOGETHER,
    DIGITALOCEAN,
    VULTR,
    SCALEWAY,
    VAST,
    LIUM,
)
