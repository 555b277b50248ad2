"""Predictions of a calibrated model for sizes that were not timed, and how sure it is of each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from recommender.arrays import Floats
from recommender.job.job import TimedRun
from recommender.performance import least_squares as lsq
from recommender.performance.calibration_model import StepModel
from recommender.performance.calibration_spread import Extrapolation, bases, beyond, own_spread
from tests.research.accuracy.study import Held


@dataclass(frozen=True, slots=True)
class Extrapolated:
    """Predictions from smaller runs, next to what was measured; shape (points,)."""

    labels: tuple[str, ...]
    source: tuple[str, ...]  # who measured
    network: tuple[str, ...]  # what was trained
    predicted: Floats
    measured: Floats
    beyond: Extrapolation  # what was timed
    own: Floats  # sd of ln(true / predicted) that the fit itself tells of

    def held(self) -> Held:
        """The comparison, its spreads with the bases that have not seen the point's source."""
        source, base = np.array(self.source), np.empty(len(self.source))
        for name in set(self.source):
            base[source == name] = self.beyond.base(bases(name))[source == name]
        return Held(
            self.labels,
            self.predicted,
            self.measured,
            np.hypot(base, self.own) * self.beyond.widened,
        )

    def take(self, rows: Iterable[int]) -> "Extrapolated":
        """Some of the points."""
        at = list(rows)
        return Extrapolated(
            labels=tuple(self.labels[i] for i in at),
            source=tuple(self.source[i] for i in at),
            network=tuple(self.network[i] for i in at),
            predicted=self.predicted[at],
            measured=self.measured[at],
            beyond=Extrapolation(
                tuple(self.beyond.kind[i] for i in at),
                self.beyond.links[at],
                self.beyond.gpus[at],
            ),
            own=self.own[at],
        )


def extrapolated(
    model: StepModel,
    fit: lsq.PosteriorFit,
    to: StepModel,
    unseen: tuple[TimedRun, ...],
    source: str,
    network: str,
) -> Extrapolated:
    """The steps of unseen runs under a fit to a model's own, in seconds."""
    return Extrapolated(
        labels=tuple(run.place for run in unseen),
        source=(source,) * len(unseen),
        network=(network,) * len(unseen),
        predicted=np.exp(to(fit.value)),
        measured=np.array([run.step_s for run in unseen]),
        beyond=beyond(to, fit, model.runs),
        own=own_spread(model, fit, to),
    )


def joined(parts: Iterable[Extrapolated]) -> Extrapolated:
    """Several comparisons as one."""
    parts = tuple(parts)
    return Extrapolated(
        labels=tuple(label for part in parts for label in part.labels),
        source=tuple(name for part in parts for name in part.source),
        network=tuple(name for part in parts for name in part.network),
        predicted=np.concatenate([part.predicted for part in parts]),
        measured=np.concatenate([part.measured for part in parts]),
        beyond=Extrapolation(
            tuple(kind for part in parts for kind in part.beyond.kind),
            np.concatenate([part.beyond.links for part in parts]),
            np.concatenate([part.beyond.gpus for part in parts]),
        ),
        own=np.concatenate([part.own for part in parts]),
    )
