"""GPU clouds and marketplaces: providers without a client of their own, read from public lists.

One registration each; their shipped machines and prices are one file each in
`tests/research/snapshot/hand/clouds`. Bounds were measured on the lists of 2026-09 and 2026-10,
with margin; names for SkyPilot are those of 0.14.1 (read 2026-11).
"""

from collections.abc import Iterator

from recommender.catalogs.provider_info import ANY_REGION, PriceBounds, ProviderInfo, SpotBounds


def _cloud(
    label: str,
    gpus: str,
    level: tuple[float, float],
    regions: str,
    spot: SpotBounds | None = None,
    *,
    name: str = "",
    sky_name: str = "",
    region_spread: tuple[float, float] = (0.9, 1.1),
    marketplace: bool = False,
) -> ProviderInfo:
    """A provider; its prices hold anywhere, or in `regions` (a pattern; "": it names none)."""
    return ProviderInfo(
        name=name or label.lower(),
        label=label,
        bounds=PriceBounds(
            region_spread=region_spread,
            regions=1,
            gpus=frozenset(gpus.split()),
            spot=spot,
            level=level,
        ),
        region_pattern=f"{ANY_REGION}|{regions}" if regions else ANY_REGION,
        quota_unit="gpu",
        sky_name=sky_name,
        marketplace=marketplace,
    )


def _clouds() -> Iterator[ProviderInfo]:
    yield _cloud("Lambda", "A100 B200 H100", (0.2, 2.9), r"[a-z]+-[a-z]+-\d", sky_name="lambda")
    # Nebius's spot floats, as often as every 15 minutes since 2026-10-08.
    floats = SpotBounds(share=(0.15, 0.75), jump=2.0)
    yield _cloud(
        "Nebius", "B200 H100 H200", (0.3, 1.5), r"[a-z]+-[a-z]+\d", floats, sky_name="nebius"
    )
    secure = r"[A-Z]{2}(-[A-Z]+-\d)?"
    yield _cloud("RunPod", "A100-80GB H100 H200", (0.3, 1.3), secure, sky_name="runpod")
    half = SpotBounds(share=(0.2, 0.6), jump=1.35)
    known = "A100-80GB B200 H100 H200"
    yield _cloud("Verda", known, (0.05, 1.2), r"[A-Z]{3}-\d\d", half, sky_name="verda")
    rule = SpotBounds(share=(0.45, 0.55), jump=1.35)
    yield _cloud(
        "OCI", "A10 A100-80GB H100", (0.35, 3.3), r"[a-z]+-[a-z]+-\d", rule, sky_name="oci"
    )
    posted = SpotBounds(share=(0.7, 0.85), jump=1.35)
    yield _cloud("Hyperstack", "A100-80GB-PCIe H100 H100-PCIe", (0.35, 1.2), r"[A-Z]+-\d", posted)
    yield _cloud("JarvisLabs", "H100 H200", (0.6, 1.4), r"[A-Z]{2}\d")
    listed = SpotBounds(share=(0.3, 0.6), jump=1.5)
    zones = r"[A-Z]+-[A-Z]+-\d+[A-Z]?"
    yield _cloud("CoreWeave", "A100-80GB B200 H100", (0.6, 2.0), zones, listed)
    yield _cloud("Crusoe", "A100-80GB-PCIe L40S", (0.5, 1.5), r"[a-z]+-[a-z]+\d(-[a-z])?")
    yield _cloud("Together", "H100 H200", (0.7, 1.5), "")
    yield _cloud("DigitalOcean", "H100 L40S", (0.28, 1.5), r"[a-z]{3}\d", sky_name="do")
    yield _cloud("Vultr", "L40S", (0.7, 1.4), "[a-z]{3}")
    yield _cloud("Scaleway", "H100 L40S", (0.65, 1.5), r"[a-z]{2}-[a-z]{3}-\d")
    yield _cloud(
        "Seeweb", "A100-80GB-PCIe H200", (0.3, 1.3), r"[a-z]{2}-[a-z]+\d", sky_name="seeweb"
    )
    yield _cloud("OVHcloud", "A10 H100-PCIe L40S", (0.4, 1.8), "", name="ovh")
    places = "[a-z0-9]+([_-][a-z0-9]+)+"  # of partners, whose machines CloudRift lists
    yield _cloud("CloudRift", "V100", (0.05, 1.2), places, marketplace=True)
    yield _cloud("Vast", "H100 H200 L40S", (0.1, 1.6), "", sky_name="vast", marketplace=True)
    # Lium's regions are countries.
    yield _cloud(
        "Lium", "B200 B300 H200", (0.1, 1.6), "[A-Z]{2}",
        region_spread=(0.5, 2.0), marketplace=True,
    )  # fmt: skip


GPU_CLOUDS = tuple(_clouds())
