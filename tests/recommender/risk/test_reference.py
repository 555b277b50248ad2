"""The vectorised simulation against the event-by-event reference, path by path."""

import numpy as np
import pytest

from recommender.risk.monte_carlo import simulate_paths
from tests.recommender.optimize.samples import one_in
from tests.recommender.risk.cases import RESCUE, SPOT, path_inputs, random_plan
from tests.recommender.risk.reference import Numbers, PathOutcome, Plan, simulate_path

PATHS = 64
FIELDS = tuple(PathOutcome.__dataclass_fields__)
# Single precision: starts of runs are sums of up to 512 lengths.
SECONDS, SHARE = 2.0, 2e-4
CHUNKS, PER_CHUNK = 10, 40


def differences(
    row: dict[str, float], deadline_s: float | None, numbers: Numbers
) -> tuple[list[str], int, int]:
    """What differs, paths compared, and paths that outlast the random numbers of the simulation."""
    plans = path_inputs(row)
    ours = simulate_paths(plans, deadline_s, PATHS)
    wrong, compared, beyond = [], 0, 0
    for path in range(PATHS):
        outcome = simulate_path(Plan(plans, 0), numbers, path, deadline_s)
        if outcome is None:
            beyond += 1
            continue
        compared += 1
        for name in FIELDS:
            expected, got = getattr(outcome, name), float(getattr(ours, name)[0, path])
            if abs(got - expected) > SECONDS + SHARE * abs(expected):
                wrong.append(f"path {path}: {name} {got:.6g}, reference {expected:.6g}")
    return wrong, compared, beyond


@pytest.mark.parametrize("chunk", one_in(5, CHUNKS))
def test_every_path_of_random_plans_equals_the_reference(chunk: int) -> None:
    numbers = Numbers(PATHS)
    compared = beyond = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        row, deadline_s = random_plan(np.random.default_rng(seed))
        wrong, some, far = differences(row, deadline_s, numbers)
        assert not wrong, f"seed {seed}: {wrong[:3]}"
        compared, beyond = compared + some, beyond + far
    assert compared > 0.9 * PER_CHUNK * PATHS
    assert beyond < 0.1 * compared


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(10))
def test_every_path_of_many_more_random_plans_equals_the_reference(chunk: int) -> None:
    numbers = Numbers(PATHS)
    for seed in range(10_000 + chunk * 500, 10_000 + (chunk + 1) * 500):
        row, deadline_s = random_plan(np.random.default_rng(seed))
        wrong, _, _ = differences(row, deadline_s, numbers)
        assert len(wrong) <= 1, f"seed {seed}: {wrong[:3]}"  # an interval more or less by rounding


@pytest.mark.parametrize("deadline_h", [4.0, 11.0, 14.0, 20.0, 60.0])
@pytest.mark.parametrize("speed", [0.4, 0.9, 1.0, 1.5, 4.0])
def test_the_fallback_starts_when_that_of_the_reference_does(
    deadline_h: float, speed: float
) -> None:
    row = SPOT | RESCUE | {"fallback_speed": speed, "run_mean_s": 4_000.0}
    wrong, compared, _ = differences(row, deadline_h * 3600, Numbers(PATHS))
    assert not wrong
    assert compared > 50


def test_the_random_plans_cover_every_ending() -> None:
    numbers = Numbers(PATHS)
    seen = {"net at once": 0, "net in a run": 0, "net while waiting": 0, "own end": 0, "no spot": 0}
    for seed in range(120):
        row, deadline_s = random_plan(np.random.default_rng(seed))
        p = Plan(path_inputs(row), 0)
        for path in range(0, PATHS, 8):
            outcome = simulate_path(p, numbers, path, deadline_s)
            if outcome is None:
                continue
            seen["own end"] += outcome.fallback_s == 0 and outcome.spot_s > 0
            seen["no spot"] += outcome.fallback_s == 0 and outcome.spot_s == 0
            if outcome.fallback_s:
                waited = outcome.waiting_s > 0 and outcome.running_s == outcome.fallback_s
                at_once = outcome.running_s == outcome.fallback_s and outcome.interruptions == 0
                seen["net at once"] += at_once
                seen["net while waiting"] += waited
                seen["net in a run"] += outcome.running_s > outcome.fallback_s
    assert min(seen.values()) >= 5, seen
