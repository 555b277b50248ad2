"""Run lengths in zones that the law was not fitted on, against the exponential.

Every zone is predicted by the law of the recommender (lognormal runs, co-interruption of
gangs), fitted as for the shipped classes, on the other zones of its campaign.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from recommender.arrays import Floats
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.likelihood import (
    MIN_CHANCE,
    RunLaw,
    RunsSeen,
    exponential_law,
    log_likelihood,
    lognormal_law,
    runs_seen,
)
from tests.research.accuracy.spot_splits import SOURCE, LeftOut, Split, left_out, sizes_of
from tests.research.accuracy.study import Study
from tests.research.accuracy.tables import SPOT, reference_folder
from tests.research.fits.spot_fit import (
    Trace,
    ZoneLaw,
    co_interruption,
    fit_runs,
    gang_intervals,
    pooled_run_mean,
)
from tests.shipped import snapshot

# Fewer interruptions than this tell a mean but no shape: the shipped class lends its own.
ENOUGH = 20


@dataclass(frozen=True, slots=True)
class RunsForecast:
    """The runs of a zone that was left out, next to two laws of the other zones."""

    left_out: LeftOut
    seen: RunsSeen
    ours: RunLaw
    memoryless: RunLaw

    @property
    def gain(self) -> float:
        """Nats by which our law is more likely than the memoryless one."""
        return log_likelihood(self.seen, self.ours) - log_likelihood(self.seen, self.memoryless)


def run_forecasts(reference: Path | None) -> list[RunsForecast]:
    """Forecast the runs of every zone left out, from the other zones of its campaign.

    The exponential has the mean run of the gang's own size, pooled over the other zones; our
    law has one mean, one sigma and one co-interruption for all sizes of gangs.
    """
    laws: dict[tuple[str, str], ZoneLaw | None] = {}
    found = []
    for case in left_out(reference_folder(reference, *SPOT), "runs"):
        key = (case.split.campaign, case.trace.name)
        if key not in laws:
            laws[key] = _run_law(case.others)
        law, machines = laws[key], case.split.machines
        mean = pooled_run_mean([gang_intervals(t, machines) for t in case.others])
        if law is None:
            ours = lognormal_law(mean, _shipped_sigma(case.split))
        else:
            ours = lognormal_law(law.run_mean(machines), law.run_sigma)
        seen = runs_seen(case.trace, machines)
        found.append(RunsForecast(case, seen, ours, exponential_law(mean)))
    return found


def _run_law(others: tuple[Trace, ...]) -> ZoneLaw | None:
    """Fit runs as the catalog's build does; None where there are too few to show a shape."""
    seen = {n: [gang_intervals(trace, n) for trace in others] for n in sizes_of(others)}
    if sum(zone.interruptions for zone in seen[1]) < ENOUGH:
        return None
    rho = co_interruption({n: pooled_run_mean(zones) for n, zones in seen.items()})
    return fit_runs(seen, rho)


@lru_cache(maxsize=1)
def _shipped() -> Mapping[tuple[str, int], float]:
    return {
        (gpu, gpus): law.run_sigma
        for law in snapshot().spot_classes
        for gpu in law.gpus
        for gpus in range(law.gpus_per_machine_min, law.gpus_per_machine_max + 1)
    }


def _shipped_sigma(split: Split) -> float:
    return _shipped()[split.gpu, split.gpus]


def gain_score(forecasts: list[RunsForecast]) -> Score:
    """Nats per interruption by which our law beats the exponential, and who gains least.

    `mean` is over all interruptions, `median` over zones and sizes; `coverage` is the share of
    ended runs inside our 5-95 % span (`inside_span`).
    """
    events = sum(f.seen.ended for f in forecasts)
    each = [f.gain / f.seen.ended for f in forecasts if f.seen.ended]
    inside = np.concatenate([inside_span(f) for f in forecasts])
    return Score(
        points=events,
        mean=sum(f.gain for f in forecasts) / events,
        median=float(np.median(each)),
        p90=None,
        bias=None,
        unit="nats",
        coverage=float(inside.mean()),
    )


def run_places(forecast: RunsForecast) -> tuple[Floats, Floats]:
    """Where runs fell in our law, 0 (short) to 1 (long): those that ended, and those cut off."""
    seen, law = forecast.seen, forecast.ours
    place = 1.0 - law.beyond(seen.hours_each(0.0), seen.began_before)
    return place[~seen.not_over], place[seen.not_over]


def inside_span(forecast: RunsForecast) -> Floats:
    """Of each run that ended, how much of where it may have ended lies in our 5-95 % span.

    A trace tells the tick of an end and no more, and of runs of one tick only that they were
    shorter than one and a half (`likelihood.run_chances`): places between are alike likely.
    """
    seen, law = forecast.seen, forecast.ours
    least = np.where(seen.ticks == 1, 0.0, seen.hours_each(-0.5))
    first = 1.0 - law.beyond(least, seen.began_before)
    last = 1.0 - law.beyond(seen.hours_each(0.5), seen.began_before)
    shared = np.clip(np.minimum(last, 0.95) - np.maximum(first, 0.05), 0.0, None)
    within = shared / np.maximum(last - first, MIN_CHANCE)
    return np.asarray(within[~seen.not_over])


def _gain(named: tuple[str, str], sizes: range, reference: Path | None) -> Score:
    """Gain in a named campaign (and GPU), gangs of these sizes."""
    return gain_score(
        [
            f
            for f in run_forecasts(reference)
            if (f.left_out.split.campaign, f.left_out.split.gpu) == named
            and f.left_out.split.machines in sizes
        ]
    )


NAMED = (
    ("runs-v100", "V100 on AWS, 2023", ("cbl-aws-02-15-2023", "V100"), range(1, 2)),
    ("runs-k80", "K80 on Google Cloud, 2020", ("dime-gcp-2020-03-01", "K80"), range(1, 2)),
    ("runs-p100", "P100 on Google Cloud, 2020", ("dime-gcp-2020-03-01", "P100"), range(1, 2)),
    ("runs-h100", "H100 on Google Cloud, 2025", ("skynomad-gcp-2025-10", "H100"), range(1, 2)),
    ("runs-h100-gangs", "gangs of 2-16 H100", ("skynomad-gcp-2025-10", "H100"), range(2, 17)),
)
_WORDS = "spot runs, gain over the exponential per interruption"
_BETTER = Target(mean_at_least=0.0)

STUDIES: tuple[Study, ...] = (
    *(
        Study(
            key=key,
            subject=f"{_WORDS}: {words}",
            split="leave one zone out",
            target=_BETTER,
            published="0 (exponential with the mean of the same zones)",
            source=SOURCE,
            run=partial(_gain, named, sizes),
            needs_reference=True,
        )
        for key, words, named, sizes in NAMED
    ),
    Study(
        key="runs-all",
        subject=f"{_WORDS}: all twelve campaigns",
        split="leave one zone out of each",
        target=_BETTER,
        published="0 (exponential with the mean of the same zones)",
        source=SOURCE,
        run=lambda reference: gain_score(run_forecasts(reference)),
        needs_reference=True,
    ),
)
