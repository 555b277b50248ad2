"""Spot laws from the user's own traces, which replace those of the class where they apply."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recommender.catalogs.schema import InstanceType, SpotClass
from recommender.plan.limits import SHORT_RUN_S, OfferLaw
from recommender.plan.plan import OWN_TRACE
from recommender.risk.laws import RUN_FAMILY

# Logits of slope that a zone has less per share of runs beyond its class's that are short.
# Fitted by tests/research/accuracy/spot_gangs.py on eleven zones (AWS V100, 2023; GCP H100, 2025);
# docs/research/accuracy-spot.md has the errors. A test fits it again.
SLOPE_PER_SHORT_RUNS = 2.6


def expected_short_runs(run_mean_s: float, run_sigma: float) -> float:
    """Share of runs that last at most `SHORT_RUN_S`."""
    limit, mean, shape = np.array(SHORT_RUN_S), np.array(run_mean_s), np.array(run_sigma)
    return 1.0 - float(RUN_FAMILY.survival(limit, mean, shape))


def slope_by_short_runs(of_class: float, beyond: float, per_share: float) -> float:
    """Logits that a gang of n loses per log2(1 + (n-1)/8), estimated from a trace of one machine.

    A pool that comes and goes within minutes does so as a whole and seldom has only a few machines.
    So the more of one machine's runs are short, the less a gang loses. `beyond` is the share of
    short runs minus the share that the class expects.
    """
    return max(of_class - per_share * beyond, 0.0)


def user_law(laws: Sequence[OfferLaw], t: InstanceType, region: str, zone: str) -> OfferLaw | None:
    """The law saved for an offer; the narrowest location wins, then the narrowest machine."""
    places = ("*", region, zone) if zone else ("*", region)
    machines = (t.gpu.lower(), f"{t.gpu}:{t.gpus}".lower(), t.instance_type.lower())
    found = [
        (places.index(law.place), machines.index(law.machine.lower()), i)
        for i, law in enumerate(laws)
        if law.provider == t.provider and law.place in places and law.machine.lower() in machines
    ]
    return laws[max(found)[2]] if found else None


def with_user_law(base: SpotClass, law: OfferLaw) -> SpotClass:
    """Return a class with the figures of a trace instead of its own.

    The spread between zones is at least the class's: between two halves of a trace, the
    availability of a zone moves as far as zones differ (docs/traces.md), which no half can show.
    """
    traced = {
        name: value
        for name in ("availability_slope", "co_interruption")
        if (value := getattr(law, name)) is not None
    }
    if law.availability_slope is None and law.short_runs is not None:
        beyond = law.short_runs - expected_short_runs(base.run_mean_s, base.run_sigma)
        traced["availability_slope"] = slope_by_short_runs(
            base.availability_slope, beyond, SLOPE_PER_SHORT_RUNS
        )
    seen = f", {law.seen}" if law.seen else ""
    return replace(
        base,
        spot_class=f"{law.trace}{seen}",
        run_mean_s=law.run_mean_s,
        run_sigma=law.run_sigma,
        outage_sigma=law.outage_sigma,
        availability=law.availability,
        zone_sd=max(base.zone_sd, law.zone_sd or 0.0),
        held=law.held,
        basis=OWN_TRACE,
        as_of=law.fitted,
        **traced,
    )


def law_of_failover_list(laws: Sequence[SpotClass]) -> SpotClass:
    """One law for a failover list: the first zone's, with the mean level and run length of all.

    Means are of the logits of availability and of the logarithms of mean runs.
    """
    if all(law == laws[0] for law in laws):
        return laws[0]
    first = next(law for law in laws if law.basis == OWN_TRACE)  # the class is one, so some are own
    own = sum(law.basis == OWN_TRACE for law in laws)
    some = "" if own == len(laws) else f", {own} of {len(laws)} zones"
    logit = sum(math.log(law.availability / (1.0 - law.availability)) for law in laws) / len(laws)
    run = math.exp(sum(math.log(law.run_mean_s) for law in laws) / len(laws))
    return replace(
        laws[0],
        spot_class=first.spot_class,
        run_mean_s=run,
        availability=1.0 / (1.0 + math.exp(-logit)),
        basis=f"{OWN_TRACE}{some}",
        as_of=first.as_of,
    )
