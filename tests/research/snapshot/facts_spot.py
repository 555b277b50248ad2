"""The classes of spot capacity: fitted where somebody measured, transferred elsewhere.

What was fitted on what, how well it agrees, and what is assumed: docs/research/risk-facts.md.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from recommender.catalogs.schema import Kind, SpotClass
from tests.research.fits.spot_fit import (
    GANGS,
    HOUR,
    ZoneLaw,
    day_shares,
    fit_runs,
    fit_zones,
    gang_intervals,
    levels,
    location_of_mean,
    logit,
    mean_availabilities,
    read_traces,
    sigma_of_mean_and_median,
)
from tests.research.snapshot.sources import SourceBook

Size = Literal["1", "2-4", "8", "16"]
SIZES: dict[Size, tuple[int, int]] = {"1": (1, 1), "2-4": (2, 4), "8": (5, 8), "16": (9, 72)}
# Share of the step from one to eight GPUs: log2(GPUs) / 3, 2-4 in their middle.
STEPS: dict[Size, float] = {"1": 0.0, "2-4": 0.5, "8": 1.0, "16": 4 / 3}
H100_CAMPAIGN = "skynomad-gcp-2025-10"
V100_CAMPAIGN = "cbl-aws-02-15-2023"
V100_GANG_CAMPAIGN = "cbl-aws-08-27-2023"
# Same zones and weeks with 1 and with 8 GPUs per machine; cbl-aws-10-26-2022 repeats the first.
SIZE_CAMPAIGNS = ("sst-2022-10-26", "sst-2022-11-28", "sst-2022-12-13")

# Review A11 (2026-08): ρ = 0.95-0.99 on V100, gangs of 2 to 16.
RHO_V100, RHO_OTHER = 0.98, 0.90
# `fit_gangs` on gangs of 1-16 one-GPU H100 machines, days of 1, 4 and 16, in all thirteen zones:
# andylizf/skynomad-artifact 62b9aaa, data/h100_16_runs, 3-18 October 2025, read 2026-11-29. Five of
# them are not in the reference tables; without them gangs are too good (accuracy-spot.md).
H100 = ZoneLaw(
    run_mean_h=4.193,
    run_sigma=1.988,
    outage_sigma=1.37,
    location=2.1255,
    slope=1.6634,
    zone_sd=2.2,
    co_interruption=0.86,
)
# Mean correlation of two zones of one region, 45 pairs of V100, K80 and H100 (2020-2025).
CORRELATION_REGION = 0.37


@dataclass(frozen=True, slots=True)
class Group:
    """GPUs that share their spot classes, and which of the classes were measured on them."""

    name: str
    gpus: tuple[str, ...]
    like: str  # whose laws it has: "v100", "h100", "a100", "k80", "small"
    measured: tuple[Size, ...]
    as_of: str


GROUPS = (
    Group("v100", ("V100", "V100-32GB", "V100-PCIe"), "v100", ("1", "8"), "2023-03-31"),
    Group("h100", ("H100",), "h100", ("1",), "2025-10-18"),
    Group(
        "h200",
        ("H100-NVL", "H100-PCIe", "H200", "B200", "B300", "GB200", "GB300"),
        "h100",
        (),
        "2025-10-18",
    ),
    Group("a100", ("A100", "A100-80GB", "A100-80GB-PCIe"), "a100", (), "2025-10-18"),
    Group(
        "small",
        (
            *("T4", "T4G", "L4", "A10", "A10G", "L40", "L40S", "RTX-A6000"),
            *("RTX-PRO-4500", "RTX-PRO-6000"),
        ),
        "small",
        (),
        "2023-03-31",
    ),
    Group("k80", ("K80",), "k80", ("1", "8"), "2023-01-28"),
    Group("old", ("M60", "P4", "P100"), "k80", (), "2023-01-28"),
    Group("other", ("MI300X", "Trainium1", "Trainium2"), "a100", (), "2025-10-18"),
)


def tables(reference: Path, sources: SourceBook) -> dict[str, list[SpotClass]]:
    """Build the table of spot classes from the reference data."""
    laws = fitted_laws(reference)
    source = sources.key(
        "spot availability traces and published fits (SkyNomad, Can't Be Late)",
        "Apache-2.0; published fits without stated licence",
        "fit",
        "andylizf/skynomad-artifact (NSDI'27), skypilot-org/spot-traces (NSDI'24), "
        "Michaelvll/skypilot-spot-strategy: constants fitted by us",
    )
    rows = [_row(g, size, laws[g.like][size], source) for g in GROUPS for size in SIZES]
    return {"spot_classes": rows}


def _row(group: Group, size: Size, law: ZoneLaw, source: int) -> SpotClass:
    measured = size in group.measured
    kind: Kind = "measured" if measured else "derived"
    return SpotClass(
        spot_class=group.name if size == "1" else f"{group.name}x{size}",
        gpus=group.gpus,
        gpus_per_machine_min=SIZES[size][0],
        gpus_per_machine_max=SIZES[size][1],
        run_mean_s=round(law.run_mean_h * HOUR, -1),
        run_sigma=round(law.run_sigma, 2),
        outage_sigma=round(law.outage_sigma, 2),
        availability=round(1 / (1 + math.exp(-law.location)), 3),
        availability_slope=round(law.slope, 2),
        zone_sd=law.zone_sd,
        co_interruption=law.co_interruption,
        correlation_region=CORRELATION_REGION,
        held=False,
        basis="measured" if measured else "transferred",
        kind=kind,
        source=source,
        as_of=group.as_of,
    )


@dataclass(frozen=True, slots=True)
class SizeStep:
    """What changes from one GPU per machine to eight, in the same zones and weeks."""

    run_log: float  # of ln(mean run)
    run_sigma: float
    level: float  # of the zones' mean logit, in units of their sd

    def between(self, other: "SizeStep") -> "SizeStep":
        """Halfway between two steps."""
        return SizeStep(
            (self.run_log + other.run_log) / 2,
            (self.run_sigma + other.run_sigma) / 2,
            (self.level + other.level) / 2,
        )

    def apply(self, law: ZoneLaw, size: Size) -> ZoneLaw:
        """Give the law of machines with that many GPUs from that of machines with one."""
        share = STEPS[size]
        return replace(
            law,
            run_mean_h=law.run_mean_h * math.exp(share * self.run_log),
            run_sigma=law.run_sigma + share * self.run_sigma,
            location=law.location + share * self.level * law.zone_sd,
        )


@dataclass(frozen=True, slots=True)
class Published:
    """Published fits of several campaigns, pooled by the hours observed."""

    run_mean_h: float
    run_sigma: float
    availability: float


def fitted_laws(reference: Path) -> dict[str, dict[Size, ZoneLaw]]:
    """Fit or transfer the law of every family of GPUs and size of machine."""
    v100, h100 = fit_v100(reference), H100
    v_step = size_step(reference, "V100", v100)
    k80 = fit_k80(v100, reference)
    k_step = size_step(reference, "K80", k80)
    both = v_step.between(k_step)
    small = replace(v100, co_interruption=RHO_OTHER)
    a100 = replace(between(v100, h100), co_interruption=RHO_OTHER)
    h_step = both.between(gang_step(h100))
    families = {
        "v100": (v100, v_step),
        "k80": (k80, k_step),
        "small": (small, both),
        "h100": (h100, h_step),
        "a100": (a100, both.between(h_step)),
    }
    return {
        name: {size: step.apply(law, size) for size in SIZES}
        for name, (law, step) in families.items()
    }


def fit_v100(reference: Path) -> ZoneLaw:
    """Fit single V100 machines (AWS, 2023), and the fall of availability with the gang."""
    traces = read_traces(reference, V100_CAMPAIGN)
    seen = [gang_intervals(trace, 1) for trace in traces]
    whole = published(reference, "V100", 1, (V100_CAMPAIGN,))  # nine zones; six are traces here
    law = replace(fit_runs({1: seen}, RHO_V100), run_mean_h=whole.run_mean_h)
    law = fit_zones(law, {1: whole.availability}, {1: float(day_shares(traces, 1).std())})
    gangs = read_traces(reference, V100_GANG_CAMPAIGN)
    means = mean_availabilities({n: [gang_intervals(trace, n) for trace in gangs] for n in GANGS})
    return replace(law, slope=levels(means, law.zone_sd)[1])


def fit_k80(v100: ZoneLaw, reference: Path) -> ZoneLaw:
    """Fit single K80 machines (AWS, late 2022); spreads and gangs as on V100."""
    whole = published(reference, "K80", 1, SIZE_CAMPAIGNS)
    like = published(reference, "V100", 1, SIZE_CAMPAIGNS)
    return replace(
        v100,
        run_mean_h=whole.run_mean_h,
        run_sigma=v100.run_sigma + whole.run_sigma - like.run_sigma,
        location=location_of_mean(whole.availability, v100.zone_sd),
        co_interruption=RHO_OTHER,
    )


def size_step(reference: Path, gpu: str, law: ZoneLaw) -> SizeStep:
    """Compare published fits of eight-GPU machines with those of one GPU in the same zones.

    The mean run is the measured one; the level is a difference, since two favourable zones
    say little about all zones.
    """
    one, eight = (published(reference, gpu, size, SIZE_CAMPAIGNS) for size in (1, 8))
    return SizeStep(
        run_log=math.log(eight.run_mean_h / law.run_mean_h),
        run_sigma=eight.run_sigma - one.run_sigma,
        level=(logit(eight.availability) - logit(one.availability)) / law.zone_sd,
    )


def gang_step(law: ZoneLaw) -> SizeStep:
    """Treat a machine of eight GPUs as a gang of eight machines with one."""
    return SizeStep(
        run_log=math.log(law.run_mean(8) / law.run_mean(1)),
        run_sigma=0.0,
        level=(law.level(8) - law.level(1)) / law.zone_sd,
    )


def between(one: ZoneLaw, other: ZoneLaw) -> ZoneLaw:
    """Halfway between two laws: geometric for runs, arithmetic for levels and spreads."""
    return ZoneLaw(
        run_mean_h=math.sqrt(one.run_mean_h * other.run_mean_h),
        run_sigma=(one.run_sigma + other.run_sigma) / 2,
        outage_sigma=(one.outage_sigma + other.outage_sigma) / 2,
        location=(one.location + other.location) / 2,
        slope=(one.slope + other.slope) / 2,
        zone_sd=(one.zone_sd + other.zone_sd) / 2,
        co_interruption=(one.co_interruption + other.co_interruption) / 2,
    )


def published(reference: Path, gpu: str, size: int, campaigns: Sequence[str]) -> Published:
    """Pool published fits: hours up per interruption, and the sigma of mean and median."""
    with open(reference / "spot" / "fits.csv", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["campaign"] in campaigns
            and (row["gpu"], row["gpus_per_node"]) == (gpu, str(size))
        ]
    hours = np.array([float(row["hours"]) for row in rows])
    up = hours * np.array([float(row["availability"]) for row in rows])
    runs = np.array([float(row["preemptions"]) for row in rows])
    sigmas = [
        sigma_of_mean_and_median(float(row["mtbp_up_h"]), float(row["lognorm_median_h"]))
        for row in rows
    ]
    return Published(
        run_mean_h=float(up.sum() / runs.sum()),
        run_sigma=float(np.average(sigmas, weights=runs)),
        availability=float(up.sum() / hours.sum()),
    )
