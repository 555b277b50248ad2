"""How long a machine takes to start, and how often on-demand capacity is served at once."""

from pathlib import Path

from recommender.catalogs.schema import Obtainability, Provider, StartUp
from tests.research.snapshot.sources import SourceBook

# Median seconds from the API request to the first boot script, all types (Spare Cores
# inspector, 2026-06 to 2026-08). GPU types with less than 8 GPUs: AWS 31, GCP 46, Azure 50.
BOOT_S: dict[Provider, float] = {"aws": 31.0, "gcp": 42.0, "azure": 41.0}
# a2-highgpu-8g; others with 8 GPUs 51-129 s, A3 Ultra 302-322 s.
BOOT_8_GPUS_S = 105.0
# From the first boot script until a GPU container runs (drivers, image of some GB): median
# of the GPU types of AWS, GCP and Azure; 188-761 s, AWS 327, GCP 294, Azure 379.
COLD_IMAGE_S = 310.0

# Review A10 (2026-08): no public measurement was found; "assumed" until the user knows better.
SERVED_AT_ONCE: tuple[tuple[float, tuple[str, ...]], ...] = (
    (
        0.99,
        (
            *("T4", "T4G", "L4", "A10", "A10G", "L40S", "RTX-PRO-4500", "RTX-PRO-6000"),
            *("K80", "M60", "P4", "P100", "V100", "V100-32GB", "V100-PCIe"),
            *("L40", "RTX-A6000"),
        ),
    ),
    (0.90, ("A100", "A100-80GB", "A100-80GB-PCIe", "Trainium1")),
    (
        0.70,
        (
            *("H100", "H100-NVL", "H100-PCIe", "H200", "B200", "B300", "GB200", "GB300"),
            *("MI300X", "Trainium2"),
        ),
    ),
)
WAIT_S = 3600.0  # "within the hour"


def tables(reference: Path, sources: SourceBook) -> dict[str, list[StartUp] | list[Obtainability]]:
    """Build the tables of start-up times and of obtainability; both are single figures."""
    del reference  # nothing is computed: medians of a share-alike source, cited one by one
    return {"start_up": start_up(sources), "obtainability": obtainability(sources)}


def start_up(sources: SourceBook) -> list[StartUp]:
    """Seconds until a machine boots and until a container runs, by provider and size."""
    source = sources.key(
        "Spare Cores inspector data, timing of machine starts",
        "CC BY-SA 4.0 (medians cited, no rows taken)",
        "figure",
        "SpareCores/sc-inspector-data, 2026-08",
    )
    rows = []
    for provider, boot in BOOT_S.items():
        for gpus, seconds in ((1, boot), (8, BOOT_8_GPUS_S)):
            rows.append(
                StartUp(provider, gpus, seconds, COLD_IMAGE_S, "measured", source, "2026-08-10")
            )
    assumed = StartUp("own", 1, BOOT_S["gcp"], COLD_IMAGE_S, "fallback", source, "2026-08-10")
    return [*rows, assumed]


def obtainability(sources: SourceBook) -> list[Obtainability]:
    """Share of on-demand requests served at once, by GPU; assumed, not measured."""
    source = sources.key(
        "assumed: no public measurement of on-demand capacity",
        "none needed",
        "figure",
        "placeholders of this project, 2026-08",
    )
    return [
        Obtainability(gpus, share, WAIT_S, "fallback", source, "2026-08-22")
        for share, gpus in SERVED_AT_ONCE
    ]
