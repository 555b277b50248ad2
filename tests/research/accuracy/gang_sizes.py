"""Is the law of capacity right for large gangs? Shares of time by size, recorded against predicted.

    python -P tests/run.py tests.research.accuracy.gang_sizes --reference DIR

Means over the zones of a campaign: as the shipped class has it; by the other zones and one
machine's availability here; by a level and slope that saw gangs of at most eight. Then zone by
zone, from one machine's availability there; and lists of zones: how long at least one of them has
the whole gang.
"""

import argparse
import math
import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from recommender.catalogs.schema import SpotClass
from tests.research.accuracy.spot_zones import gang_forecasts
from tests.research.accuracy.study import Held
from tests.research.accuracy.tables import SPOT, reference_folder
from tests.research.fits.spot_fit import (
    Trace,
    gang_doublings,
    levels,
    logistic,
    logit,
    mean_availability,
    read_traces,
    zone_quantiles,
)
from tests.shipped import snapshot

CAMPAIGNS = {"cbl-aws-08-27-2023": "v100", "skynomad-gcp-2025-10": "h100"}
SIZES = (1, 2, 4, 8, 12, 16)
SEEN = 8  # largest gang that a level and slope are fitted on, to tell the larger ones
LISTS = (1, 2, 4)
_QUANTILES = 400  # of a zone's level


def predicted_level(law: SpotClass, machines: int) -> float:
    """Mean logit of a class's gang over zones."""
    return logit(law.availability) - law.availability_slope * gang_doublings(machines)


def recorded_share(traces: Sequence[Trace], machines: int) -> float:
    """Mean over zones of the share of time that a gang was there."""
    return float(np.mean([trace.up(machines).mean() for trace in traces]))


def predicted_unseen(traces: Sequence[Trace], law: SpotClass, machines: int) -> float:
    """The mean over zones by a level and a slope that saw the smaller gangs only."""
    means = {n: recorded_share(traces, n) for n in SIZES if n <= SEEN}
    location, slope = levels(means, law.zone_sd)
    return mean_availability(location - slope * gang_doublings(machines), law.zone_sd)


def recorded_in_any(traces: Sequence[Trace], zones: int, machines: int) -> float:
    """Share of time that some zone of a list has the gang, the mean over all such lists."""
    ticks = min(len(trace.nodes) for trace in traces)
    up = [trace.up(machines)[:ticks] for trace in traces]
    return float(np.mean([np.any(chosen, axis=0).mean() for chosen in combinations(up, zones)]))


def predicted_in_any(law: SpotClass, zones: int, machines: int) -> float:
    """As the class has it, zones independent of one another."""
    level = predicted_level(law, machines) + law.zone_sd * zone_quantiles(_QUANTILES)
    return 1.0 - float(np.mean(1.0 - logistic(level))) ** zones


def predicted_here(trace: Trace, law: SpotClass, machines: int) -> float:
    """A gang in a zone, by the class's slope from the availability of one machine there."""
    one = float(trace.up(1).mean())
    level = logit(one) - law.availability_slope * gang_doublings(machines)
    return float(logistic(np.array(level)))


def _left_out(held: Held, campaign: str, machines: int) -> tuple[float, float]:
    """Mean and mean absolute error of what other zones told of a zone's gangs."""
    rows = [i for i, label in enumerate(held.labels) if _is(label, campaign, machines)]
    error = held.predicted[rows] - held.measured[rows]
    return float(error.mean()), float(np.abs(error).mean())


def _is(label: str, campaign: str, machines: int) -> bool:
    return label.startswith(campaign) and label.endswith(f" x{machines}")


def _size_lines(folder: Path) -> Iterator[str]:
    held = gang_forecasts(folder)
    laws = {law.spot_class: law for law in snapshot().spot_classes}
    yield "| gang of | recorded | class | by sizes up to 8 | zone left out: bias, mean error |"
    yield "|---|---|---|---|---|"
    for campaign, name in CAMPAIGNS.items():
        traces, law = read_traces(folder, campaign), laws[name]
        for n in SIZES:
            class_share = mean_availability(predicted_level(law, n), law.zone_sd)
            unseen = f"{predicted_unseen(traces, law, n):.3f}" if n > SEEN else ""
            bias, error = _left_out(held, campaign, n) if n > 1 else (math.nan, math.nan)
            left_out = f"{bias:+.3f}, {error:.3f}" if n > 1 else ""
            share = recorded_share(traces, n)
            yield f"| {name}, {n} | {share:.3f} | {class_share:.3f} | {unseen} | {left_out} |"


def _zone_lines(folder: Path) -> Iterator[str]:
    laws = {law.spot_class: law for law in snapshot().spot_classes}
    yield "| zone | " + " | ".join(f"gang of {n}" for n in SIZES) + " |"
    yield "|---" * (1 + len(SIZES)) + "|"
    for campaign, name in CAMPAIGNS.items():
        for trace in read_traces(folder, campaign):
            shares = (
                f"{trace.up(n).mean():.2f} / {predicted_here(trace, laws[name], n):.2f}"
                for n in SIZES
            )
            yield f"| {name}, {trace.zone} | " + " | ".join(shares) + " |"


def _list_lines(folder: Path) -> Iterator[str]:
    law = next(law for law in snapshot().spot_classes if law.spot_class == "h100")
    traces = read_traces(folder, "skynomad-gcp-2025-10")
    yield "| zones in the list | " + " | ".join(f"gang of {n}" for n in SIZES) + " |"
    yield "|---" * (1 + len(SIZES)) + "|"
    for zones in LISTS:
        shares = (
            f"{recorded_in_any(traces, zones, n):.3f} / {predicted_in_any(law, zones, n):.3f}"
            for n in SIZES
        )
        yield f"| {zones} | " + " | ".join(shares) + " |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", default=os.environ.get("RECOMMEND_REFERENCE_DATA"))
    given = parser.parse_args().reference
    folder = reference_folder(Path(given) if given else None, *SPOT)
    print("\n".join([*_size_lines(folder), "", *_zone_lines(folder), "", *_list_lines(folder)]))


if __name__ == "__main__":
    main()
