"""Each plan says what its figures rest on, and weak evidence widens them."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.market.offer_entries import widened
from recommender.market.offer_facts import CARRIED_COUNT_SD, CARRIED_GPU_SD
from recommender.performance.priors import load_priors
from recommender.performance.speed_spread import achieved_sd, speed_evidence
from recommender.plan.evidence import Evidence
from recommender.plan.limits import Choice, GpuFilter
from tests.recommender.planning import HOUR, ask
from tests.shipped import snapshot

JOB = "resnet50-imagenet"


def asked(gpu: str, market: str = "any", **choice):
    wish = Choice(gpus=(GpuFilter(gpu),), market=market, **choice)
    return ask(snapshot(), find_job(JOB), wish, deadline_s=60 * HOUR).plans[0].evidence


@pytest.mark.parametrize(
    ("gpu", "grade"),
    [("H100", "measured"), ("T4", "scaled"), ("H100-NVL", "guessed"), ("L40S", "guessed")],
)
def test_a_speed_is_measured_scaled_or_guessed(gpu, grade):
    """T4: its matrix rate was measured, no convolutions of the family; L40S: its datasheet only."""
    assert asked(gpu, market="on_demand").speed == grade


def test_weaker_evidence_of_a_speed_is_a_wider_spread():
    prior = load_priors()["cnn", "typical"]
    rows = snapshot().achieved
    sds = [
        speed_evidence(prior, name, "bf16", replace(rows["H100", "bf16"], kind=kind)).sd
        for name, kind in (("H100", "measured"), ("B300", "measured"), ("L40S", "fallback"))
    ]
    assert sds == sorted(sds)
    assert sds[0] == pytest.approx(achieved_sd(rows["H100", "bf16"]))
    assert sds[2] > sds[1] + 0.05


def test_prices_are_fresh_old_at_the_price_floor_or_derived():
    catalog = snapshot()
    assert asked("H100", market="on_demand").price == "fresh"  # list prices hardly move
    spot = asked("H100", market="spot", providers=("gcp",))
    assert spot.price == ("old" if spot.price_age_days > 14 else "fresh")
    floors = [
        row
        for row in range(len(catalog.offers))
        if catalog.offers.flag[row] == "floor" and catalog.offers.provider[row] == "azure"
    ]
    assert floors
    assert asked("H100-NVL", market="spot").price == "floor"


def test_a_law_of_other_gpus_is_carried_over_and_widens_what_zones_differ_by():
    assert asked("H100", market="spot", instances=("a3-highgpu-1g",)).spot == "measured"
    eight = asked("H100", market="spot", instances=("a3-highgpu-8g",))
    other = asked("L40S", market="spot")
    assert (eight.spot, eight.hazard_sd) == ("carried over", CARRIED_COUNT_SD)
    assert (other.spot, other.hazard_sd) == ("untraced", CARRIED_GPU_SD)
    assert asked("L40S", market="spot", mtbf_h=3.0).spot == "stated"
    assert asked("L40S", market="on_demand").spot is None


def test_what_all_zones_share_is_wider_and_more_correlated():
    """Against drawn zones: z each with correlation r, and a level that all share."""
    rng, z, r, c = np.random.default_rng(3), 1.4, 0.37, 1.1
    common, own, shared = rng.normal(size=(3, 400_000))
    other = rng.normal(size=400_000)
    one = z * (np.sqrt(r) * common + np.sqrt(1 - r) * own) + c * shared
    two = z * (np.sqrt(r) * common + np.sqrt(1 - r) * other) + c * shared
    sd, correlation = widened(z, r, c)
    assert sd == pytest.approx(one.std(), rel=0.01)
    assert correlation == pytest.approx(np.corrcoef(one, two)[0, 1], abs=0.01)
    assert widened(z, r, 0.0) == (z, r)


def test_one_word_names_the_weakest_evidence():
    strong = Evidence("measured", "fresh", "measured", 3.0, 0.02, 0.03, 0.0)
    assert strong.weakest == ""
    assert replace(strong, spot="carried over").weakest == "carried over"
    assert replace(strong, spot="carried over", price="floor").weakest == "floor"
    assert replace(strong, price="derived", speed="guessed").weakest == "guessed"
