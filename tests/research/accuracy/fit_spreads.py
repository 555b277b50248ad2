"""Fit the spreads of calibrated models on held-out larger clusters of all scaling studies.

python -P tests/run.py tests.research.accuracy.fit_spreads --reference DIR [--write]

For each kind of extrapolation this is the sd that just held 90 % of the errors, in addition to the
spread of each fit, and no less than between repeated runs. Every network of a laboratory has the
same weight, and the quantile is that of one network more: a user's job is a new network.
The sd of the time on links shared by more GPUs than were timed is the one of a grid with the least
loss of a 90 % quantile (Koenker and Bassett 1978), with its base fitted again for each. So is the
sd that an e-fold of GPUs adds on more machines; ranges of distance (up to 2, 8 and 32 times the
GPUs, and beyond) have the same weight, because spans are needed at any distance. The table has
these figures with all sources, which ship, and without each source, for the studies of that source.
"""

import argparse
import csv
import io
from pathlib import Path

import numpy as np

from recommender.arrays import Z_90, Floats, Ints
from recommender.performance import calibration_spread
from recommender.performance.calibration_model import NOISE
from tests.research import SOURCES
from tests.research.accuracy import later_scaling, published_scaling, scaling
from tests.research.accuracy.extrapolation import Extrapolated, joined
from tests.research.accuracy.later_scaling import DISTANCES
from tests.research.fits.held_out import WANTED_INSIDE, conformal, without

AS_OF = "2026-11-26"
LINKS, GPUS = "links", "gpus"
GRID = tuple(float(sd) for sd in np.arange(0.0, 1.51, 0.05))
FOLDS = tuple(float(sd) for sd in np.arange(0.0, 0.101, 0.005))


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
    """The sds of the links and of an e-fold of GPUs, and the base of every kind next to them."""
    machines = found.beyond.gpus > 0
    one, more = (found.take(np.flatnonzero(rows)) for rows in (~machines, machines))
    links = min(GRID, key=lambda sd: _loss(one, {LINKS: sd, GPUS: 0.0}))
    sds = {LINKS: links, GPUS: min(FOLDS, key=lambda sd: _loss(more, {LINKS: links, GPUS: sd}))}
    return sds | _bases(found, sds)


def _bases(found: Extrapolated, sds: dict[str, float]) -> dict[str, float]:
    """The base of every kind next to what is known of each run."""
    kind = np.array(found.beyond.kind)
    names = sorted(set(found.beyond.kind))
    return {name: _base(found.take(np.flatnonzero(kind == name)), sds) for name in names}


def _base(found: Extrapolated, sds: dict[str, float]) -> float:
    """The sd that just holds 90 % of some errors, next to what is known of each."""
    missed = without(np.log(found.predicted / found.measured), _known(found, sds))
    parts = [missed[rows] for rows in _by_network(found)]
    return max(conformal(parts, [np.full(len(part), 1.0 / len(part)) for part in parts]), NOISE)


def _loss(found: Extrapolated, sds: dict[str, float]) -> float:
    """How far the ends of the spans are from holding 90 %: the loss that a quantile minimises.

    Every distance counts alike, and so does every network in it.
    """
    bases = _bases(found, sds)
    base = np.array([bases[kind] for kind in found.beyond.kind])
    sigma = np.hypot(_known(found, sds), base)
    beyond = np.abs(np.log(found.predicted / found.measured)) / Z_90 - sigma
    lost = np.maximum(WANTED_INSIDE * beyond, (WANTED_INSIDE - 1.0) * beyond)
    return sum(_mean(found.take(rows), lost[rows]) for rows in _by_distance(found))


def _mean(found: Extrapolated, lost: Floats) -> float:
    """The mean of some losses, every network counting alike."""
    return float(np.mean([lost[rows].mean() for rows in _by_network(found)]))


def _by_distance(found: Extrapolated) -> list[Ints]:
    """Points by how many times the GPUs that were timed they have."""
    times = np.exp(found.beyond.gpus) * (1.0 - 1e-9)
    bands = (np.flatnonzero((times > low) & (times <= most)) for _, low, most in DISTANCES)
    return [rows for rows in ((times <= 1.0).nonzero()[0], *bands) if len(rows)]


def _known(found: Extrapolated, sds: dict[str, float]) -> Floats:
    return np.hypot(found.own, found.beyond.added(sds))


def _by_network(found: Extrapolated) -> list[Ints]:
    """The points of each network of each laboratory."""
    each = np.array([f"{s}: {n}" for s, n in zip(found.source, found.network, strict=True)])
    return [np.flatnonzero(each == name) for name in sorted(set(each.tolist()))]


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
