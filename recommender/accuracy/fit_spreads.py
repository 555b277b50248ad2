"""Fit the spreads of calibrated models on held-out larger clusters of all scaling studies.

python -m recommender.accuracy.fit_spreads --reference DIR [--write]

For each kind of extrapolation the sd that just held 90 % of the errors, beside what each fit itself
tells of, and no less than between repeated runs; a source weighs the square root of its points.
Once with everything (what ships), and once without each source (what judges its own studies).
"""

import argparse
import csv
import io
from pathlib import Path

import numpy as np

from recommender.accuracy import published_scaling, scaling
from recommender.accuracy.extrapolation import Extrapolated, joined
from recommender.performance import calibration_spread
from recommender.performance.calibration_model import NOISE
from recommender.performance.fit.held_out import conformal, without

AS_OF = "2026-11-21"


def points(reference: Path) -> Extrapolated:
    """Every larger cluster of every scaling study, predicted from smaller ones."""
    return joined(
        (
            published_scaling.from_smaller(reference)[0],
            *(scaling.deepvm(name) for name in scaling.DEEPVM_GBIT),
            *(scaling.gavel(gpu) for gpu in scaling.GAVEL_GPUS),
            scaling.collectives(),
        )
    )


def table(found: Extrapolated) -> str:
    """`calibration_spreads.csv`: the base of every kind, without each source and with all."""
    source, kind = np.array(found.source), np.array(found.kind)
    missed = without(np.log(found.predicted / found.measured), found.own)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["kind", "left_out", "sd", "runs", "source", "as_of"])
    for name in sorted(set(found.kind)):
        for left_out in ("", *sorted(set(found.source))):
            used = (kind == name) & (source != left_out)
            parts = [missed[used & (source == other)] for other in sorted(set(source[used]))]
            weights = [np.full(len(part), len(part) ** -0.5) for part in parts]
            base = round(max(conformal(parts, weights), NOISE), 3)
            names = " + ".join(sorted(set(source[used])))
            rows.writerow([name, left_out, base, int(used.sum()), names, AS_OF])
    return text.getvalue()


def main() -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    made = table(points(chosen.reference))
    print(made, end="")
    if chosen.write:
        path = Path(calibration_spread.__file__).with_name(calibration_spread.FILE)
        path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
