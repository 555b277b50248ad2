"""How long capacity that is away at a random moment stays away, and the Lomax tail of it.

    python -P tests/run.py tests.research.fits.on_demand_wait --reference DIR

Recorded for spot machines; nobody has published it for on-demand ones, which are served before
them from the same hardware. The shape goes into `recommender/risk/on_demand_wait.py`.
"""

import argparse
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from tests.research.accuracy.tables import SPOT, reference_folder
from tests.research.fits.spot_fit import Trace, read_traces

CAMPAIGNS = {
    "cbl-aws-02-15-2023": (1,),
    "cbl-aws-08-27-2023": (1, 4, 16),
    "skynomad-gcp-2025-10": (1, 4, 16),
}
TAILS = np.arange(0.4, 4.001, 0.05)
LEVELS = (0.25, 0.5, 0.75, 0.9, 0.95)


def waits_met_away(trace: Trace, machines: int) -> Floats:
    """Hours until so many machines are there, from every tick without; inf: not in the series."""
    up = trace.up(machines)
    back = np.append(np.flatnonzero(up), -1)
    away = np.flatnonzero(~up)
    after = back[np.searchsorted(back[:-1], away)]
    return np.where(after < 0, math.inf, (after - away) * trace.gap_h)


def lomax_tail(waits_h: Floats) -> tuple[float, float]:
    """Tail and median of the Lomax law whose quartiles and 90 % are nearest on a log scale."""
    levels = LEVELS[:4]
    seen = np.quantile(waits_h, levels, method="inverted_cdf")
    best = (math.inf, 0.0, 0.0)
    for tail in TAILS.tolist():
        shape = np.array([(1.0 - q) ** (-1.0 / tail) - 1.0 for q in levels])
        apart = np.log(seen) - np.log(shape)
        if np.isfinite(apart).all():
            scale = math.exp(float(apart.mean()))
            missed = float(((apart - apart.mean()) ** 2).sum())
            best = min(best, (missed, tail, scale * (2.0 ** (1.0 / tail) - 1.0)))
    return best[1], best[2]


def line(traces: Sequence[Trace], campaign: str, machines: int) -> str:
    """One row of the table."""
    found = np.concatenate([waits_met_away(trace, machines) for trace in traces])
    away = len(found) / sum(len(trace.nodes) for trace in traces)
    quantiles = np.quantile(found, LEVELS, method="inverted_cdf")
    tail, _ = lomax_tail(found)
    cells = [f"{q:.3g}" if math.isfinite(q) else "not seen" for q in quantiles.tolist()]
    over = float((found > 1.0).mean())
    fitted = f"{tail:.2f}" if tail else "cut"
    return f"| {campaign}, {machines} | {away:.2f} | {over:.2f} | {' | '.join(cells)} | {fitted} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", default=os.environ.get("RECOMMEND_REFERENCE_DATA"))
    given = parser.parse_args().reference
    folder = reference_folder(Path(given) if given else None, *SPOT)
    print(
        "| recorded, machines | away | longer than 1 h | 25 % | 50 % | 75 % | 90 % | 95 % | tail |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for campaign, sizes in CAMPAIGNS.items():
        traces = read_traces(folder, campaign)
        for machines in sizes:
            print(line(traces, campaign, machines))


if __name__ == "__main__":
    main()
