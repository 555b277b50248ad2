"""Builds thresholds.csv: `python -P tests/run.py tests.research.fits.build_thresholds --write`.

Without --write it prints the first rows. Takes about a minute of one core.
"""

import argparse
import csv
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product

from recommender.policies.availability import chain
from recommender.policies.availability_fit import of_class
from recommender.policies.policy_table import policy_table
from recommender.policies.state import ModePrices, Task
from recommender.policies.thresholds import AXES, two_thresholds
from tests.research import SOURCES
from tests.shipped import snapshot

WORK_H = (6.0, 24.0, 72.0)
DEADLINE_RATIO = (1.1, 1.3, 1.7, 2.5)
CHANGEOVER_H = (0.1, 0.4)
PRICE_RATIO = (0.25, 0.5, 0.8)
TICKS = 240  # of a table, from the start to the deadline
FILE = SOURCES / "policies" / "thresholds.csv"
HEADER = ("spot_class", *AXES, "wait", "back", "source", "as_of")

Law = tuple[float, float, float, float, float]


def rows() -> Iterator[tuple[str | float, ...]]:
    """One row per class and grid point; classes with the same law share the work."""
    for c in snapshot().spot_classes:
        law = (c.run_mean_s, c.run_sigma, c.outage_sigma, c.availability, c.zone_sd)
        source = "own (policy table)"
        for point in product(WORK_H, DEADLINE_RATIO, CHANGEOVER_H, PRICE_RATIO):
            wait, back = _rule(law, *point)
            yield (c.spot_class, *point, round(wait, 4), round(back, 4), source, c.as_of)


@cache
def _rule(
    law: Law, work_h: float, ratio: float, changeover_h: float, price: float
) -> tuple[float, float]:
    task = Task(work_h * 3600.0, work_h * ratio * 3600.0, changeover_h * 3600.0)
    tick_s = task.deadline_s / TICKS
    process = chain(of_class(*law), tick_s)
    found = two_thresholds(
        policy_table(process, task, ModePrices(price, 1.0), tick_s), process, task
    )
    return found.wait, found.back


def main() -> None:
    """Write the file, or show how it begins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"replace {FILE.name}")
    write = parser.parse_args().write
    if not write:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(HEADER)
        for row, _ in zip(rows(), range(10), strict=False):
            out.writerow(row)
        return
    with FILE.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEADER)
        out.writerows(rows())


if __name__ == "__main__":
    main()
