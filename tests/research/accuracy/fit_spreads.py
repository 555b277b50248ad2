"""Fit the spreads of calibrated models on held-out larger clusters of all scaling studies.

python -m tests.research.accuracy.fit_spreads --reference DIR [--write]

For each kind of extrapolation the sd that just held 90 % of the errors, beside what each fit itself
tells of, and no less than between repeated runs; a source weighs the square root of its points.
The sd of the time on links shared by more GPUs than were timed is the one of a grid with the least
loss of a 90 % quantile (Koenker and Bassett 1978), its base fitted beside it. What an e-fold of
GPUs adds on more machines is the most that any laboratory with twenty such runs asks for (a user is
one that no fit has seen), their bases fitted beside it. Once with everything (what ships), and once
without each source (what judges its own studies).
"""

import argparse
import csv
import io
from pathlib import Path

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.performance import calibration_spread
from recommender.performance.calibration_model import NOISE
from recommender.performance.clusters import WITHIN
from tests.research import SOURCES
from tests.research.accuracy import later_scaling, published_scaling, scaling
from tests.research.accuracy.extrapolation import Extrapolated, joined
from tests.research.fits.held_out import LEAST_RUNS, WANTED_INSIDE, conformal, without

AS_OF = "2026-11-23"
LINKS, GPUS = "links", "gpus"
GRID = tuple(float(sd) for sd in np.arange(0.0, 1.51, 0.05))


def points(reference: Path) -> Extrapolated:
    """Every larger cluster of every scaling study, predicted from smaller ones."""
    return joined(
        (
            published_scaling.from_smaller(reference)[0],
            *(scaling.deepvm(name) for name in scaling.DEEPVM_GBIT),
            *(scaling.gavel(gpu) for gpu in scaling.GAVEL_GPUS),
            scaling.collectives(),
            later_scaling.fitted_on(reference),
        )
    )


def table(found: Extrapolated) -> str:
    """`calibration_spreads.csv`: every sd, without each source and with all."""
    source, kind = np.array(found.source), np.array(found.beyond.kind)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["kind", "left_out", "sd", "runs", "source", "as_of"])
    for left_out in ("", *sorted(set(source))):
        seen = source != left_out
        for name, sd in _sds(found.take(np.flatnonzero(seen))).items():
            further = {LINKS: found.beyond.links, GPUS: found.beyond.gpus}
            shared = further[name] > 0 if name in further else kind == name
            names = " + ".join(sorted(set(source[seen & shared])))
            rows.writerow([name, left_out, round(sd, 3), int((seen & shared).sum()), names, AS_OF])
    return text.getvalue()


def _sds(found: Extrapolated) -> dict[str, float]:
    """The sds of the links and of an e-fold of GPUs, and the base of every kind beside them."""
    kind = np.array(found.beyond.kind)
    inside = found.take(np.flatnonzero(kind == "inside"))
    links = min(GRID, key=lambda sd: _loss(inside, {LINKS: sd, GPUS: 0.0}))
    sds = {LINKS: links, GPUS: _per_fold(found.take(np.flatnonzero(kind != "inside")), links)}
    names = sorted(set(found.beyond.kind))
    return sds | {name: _base(found.take(np.flatnonzero(kind == name)), sds) for name in names}


def _per_fold(found: Extrapolated, links: float) -> float:
    """The sd for an e-fold of GPUs that holds 90 % of each laboratory's runs on more machines."""
    known = np.hypot(_known(found, {LINKS: links, GPUS: 0.0}), NOISE)
    missed = without(np.log(found.predicted / found.measured), known) / found.beyond.gpus
    asked = (missed[rows] for rows in _by_source(found) if len(rows) >= LEAST_RUNS)
    return max((conformal([each], [np.ones(len(each))]) for each in asked), default=0.0)


def _base(found: Extrapolated, sds: dict[str, float]) -> float:
    """The sd that just holds 90 % of some errors, beside what is known of each."""
    missed = without(np.log(found.predicted / found.measured), _known(found, sds))
    parts = [missed[rows] for rows in _by_source(found)]
    return max(conformal(parts, [np.full(len(part), len(part) ** -0.5) for part in parts]), NOISE)


def _loss(found: Extrapolated, sds: dict[str, float]) -> float:
    """How far the ends of the spans are from holding 90 %: the loss that a quantile minimises."""
    sigma = np.hypot(_known(found, sds), _base(found, sds))
    beyond = np.abs(np.log(found.predicted / found.measured)) / WITHIN - sigma
    lost = np.maximum(WANTED_INSIDE * beyond, (WANTED_INSIDE - 1.0) * beyond)
    return float(sum(lost[rows].sum() * len(rows) ** -0.5 for rows in _by_source(found)))


def _known(found: Extrapolated, sds: dict[str, float]) -> Floats:
    return np.hypot(found.own, found.beyond.apart(sds))


def _by_source(found: Extrapolated) -> list[Ints]:
    source = np.array(found.source)
    return [np.flatnonzero(source == name) for name in sorted(set(found.source))]


def main() -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    made = table(points(chosen.reference))
    print(made, end="")
    if chosen.write:
        path = SOURCES / "performance" / calibration_spread.FILE
        path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
