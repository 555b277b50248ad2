"""What the kind of a job adds to the spread of its speed."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import LONG_FLOP, SHORT_FLOP, TRAINED, Job, Timing
from recommender.performance.speed_spread import (
    ADAPTERS,
    LONG_RUN,
    NARROW_RECIPE,
    adapters_sd,
    narrow_recipe_sd,
    narrow_sd,
    run_sd,
)
from tests.recommender.performance.parts import P3, P5, columns, llama, resnet

JOB, TYPES = resnet(), (P3, P5)


def of_flop(flop: float) -> Job:
    return replace(JOB, samples=flop / JOB.flop_per_sample)


def test_only_long_runs_are_less_certain_than_their_steps():
    assert run_sd(of_flop(SHORT_FLOP)) == 0.0
    assert run_sd(of_flop(LONG_FLOP)) == run_sd(of_flop(1e25)) == LONG_RUN
    assert 0.0 < run_sd(of_flop(2e21)) < run_sd(of_flop(5e21)) < LONG_RUN


def test_long_runs_take_more_steps_than_they_count():
    short, long = of_flop(SHORT_FLOP), of_flop(1e24)
    assert short.run_steps == short.steps
    assert long.run_steps * TRAINED == pytest.approx(long.steps)
    assert long.seconds_on(8.0, 2.0) == pytest.approx(2.0 * long.run_steps)


def test_a_long_run_widens_every_spread_and_changes_no_speed():
    short, long = (columns(of_flop(flop), TYPES) for flop in (1e18, 1e24))
    assert long.compute_per_s == pytest.approx(short.compute_per_s)
    for name in ("speed_sigma", "speed_sigma_several"):
        assert getattr(long, name) == pytest.approx(np.hypot(getattr(short, name), LONG_RUN))


def test_a_measured_step_does_not_show_what_a_long_run_loses():
    timings = (Timing("H100", 8, 1, 20_000.0),)
    short, long = (columns(replace(of_flop(flop), timings=timings), (P5,)) for flop in (1e18, 1e24))
    assert short.speed_sigma[0] < LONG_RUN
    assert long.speed_sigma[0] == pytest.approx(np.hypot(short.speed_sigma[0], LONG_RUN))


@pytest.mark.parametrize(("hidden", "sd"), [(768, 0.465), (1024, 0.465), (2048, 0.232), (4096, 0)])
def test_shared_layers_are_less_certain_the_narrower_they_are(hidden, sd):
    """ln(1.2/0.26)/3.29 = 0.465 at 1,024, half of it at 2,048."""
    assert narrow_sd(llama(hidden=hidden, sharding="tensor")) == pytest.approx(sd, abs=1e-3)


def test_gpus_that_share_no_layer_are_as_certain_as_before():
    narrow = llama(hidden=1024, sharding="fsdp")
    assert columns(narrow, (P5,)).speed_sigma == columns(llama(), (P5,)).speed_sigma
    shared = columns(replace(narrow, sharding="pipeline"), (P5,))
    assert shared.speed_sigma > columns(narrow, (P5,)).speed_sigma + 0.2


def test_scripts_that_train_adapters_are_less_certain_than_recipes_and_timed_ones():
    lora = llama(method="lora", trainable_parameters=42e6)
    timed = replace(lora, timings=(Timing("H100", 8, 1, 20.0),))
    assert [adapters_sd(job) for job in (llama(), replace(lora, stack="tuned"), timed)] == [0, 0, 0]
    wide, narrow = columns(lora, (P5,)).speed_sigma, columns(llama(), (P5,)).speed_sigma
    assert adapters_sd(lora) == ADAPTERS
    assert wide == pytest.approx(np.hypot(narrow, ADAPTERS))


def test_recipes_of_narrow_decoders_are_less_certain_on_one_machine_until_timed():
    wide, narrow, script = (
        llama(hidden=hidden, stack=stack)
        for hidden, stack in ((4096, "tuned"), (1024, "tuned"), (1024, "typical"))
    )
    timed = replace(narrow, timings=(Timing("H100", 8, 1, 20.0),))
    assert [narrow_recipe_sd(job) for job in (wide, script, timed, JOB)] == [0, 0, 0, 0]
    assert narrow_recipe_sd(narrow) == NARROW_RECIPE
    sure, doubted = columns(wide, TYPES), columns(narrow, TYPES)
    assert doubted.speed_sigma == pytest.approx(np.hypot(sure.speed_sigma, NARROW_RECIPE))
    assert doubted.speed_sigma_several == pytest.approx(sure.speed_sigma_several)
