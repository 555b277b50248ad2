"""The time of a plan that waits: inside its span, steady over seeds, moved by every run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.risk.monte_carlo import simulate_paths
from recommender.risk.path_inputs import PathInputs
from recommender.risk.run_statistics import (
    OutcomeCache,
    median_error,
    middle_rows,
    quantiles,
    trimmed_mean,
)
from tests.recommender.risk.cases import path_inputs

H = 3600.0
samples = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=400).map(np.array)
# Of the shipped classes the one whose zones differ most (docs/research/risk-facts.md: h100).
WAITS = {
    "h100": {"run_mean_s": 3.8 * H, "run_sigma": 2.06, "zone_sd": 2.6, "availability": 0.91},
    "a100x8": {"run_mean_s": 1.2 * H, "run_sigma": 1.76, "zone_sd": 2.0, "availability": 0.603},
}


@given(samples)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_typical_value_lies_inside_the_span(values: np.ndarray) -> None:
    low, high = np.quantile(values, (0.05, 0.95))
    assert low * (1 - 1e-12) <= trimmed_mean(values) <= high * (1 + 1e-12)


def test_the_trimmed_mean_leaves_out_one_in_twenty_at_either_end() -> None:
    values = np.random.default_rng(5).permutation(np.arange(1.0, 101.0))
    assert trimmed_mean(values) == pytest.approx(np.mean(np.arange(6.0, 96.0)))
    assert np.sort(values[middle_rows(values)]).tolist() == list(range(46, 56))
    assert trimmed_mean(np.stack([values, 2 * values])).tolist() == [50.5, 101.0]


@given(samples, st.data())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_it_never_falls_when_a_run_takes_longer(values: np.ndarray, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(values) - 1))
    longer = values.copy()
    longer[row] *= data.draw(st.floats(1.0, 1e6))
    assert trimmed_mean(longer) >= trimmed_mean(values) * (1 - 1e-12)


@given(samples, st.floats(0.01, 0.99))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_limit_at_a_quantile_is_met_as_often_as_the_quantile_says(
    values: np.ndarray, share: float
) -> None:
    """And no lower limit is."""
    (least,) = quantiles(values, share)
    assert (values <= least).mean() >= share - 1e-9
    assert (values < least).mean() < share
    assert least == np.quantile(values, share, method="inverted_cdf")


def test_a_deadline_of_the_95_percent_of_2048_runs_is_met_by_95_percent_of_them() -> None:
    """Between two runs it was met by 1,945, and 1,945.6 are requested."""
    times = np.exp(np.random.default_rng(405).standard_normal(2048))
    (late,) = quantiles(times, 0.95)
    assert int((times <= late).sum()) == 1946


def test_the_standard_error_of_a_median_is_the_spread_over_samples() -> None:
    drawn = np.exp(1.5 * np.random.default_rng(11).standard_normal((400, 1000)))
    reported = np.median([median_error(sample) for sample in drawn])
    assert reported == pytest.approx(np.median(drawn, axis=1).std(), rel=0.1)


@pytest.mark.parametrize("law", WAITS)
def test_2048_paths_show_the_time_of_a_plan_that_waits(law: str) -> None:
    """Against 200,704 paths of other seeds; a plain mean is off by far more."""
    facts = dict(WAITS[law])
    up = facts.pop("availability")
    waits = {
        "work_s": 4 * H,
        "changeover_s": 500.0,
        "interval_s": 300.0,
        "speed_sigma": 0.3,
        "outage_sigma": 1.33,
        "availability_logit": float(np.log(up / (1 - up))),
        "zone_count": 2.0,
        "correlation": 0.07,
        "runs_from_start": 0.0,
    }
    inputs = path_inputs(waits | facts)
    many = np.concatenate(
        [simulate_paths(inputs, None, 2048, s).time_s[0] for s in range(500, 598)]
    )
    few = [simulate_paths(inputs, None, 2048, seed).time_s[0] for seed in range(20)]
    errors = np.array([trimmed_mean(times) / trimmed_mean(many) - 1.0 for times in few])
    plain = np.array([times.mean() / many.mean() - 1.0 for times in few])
    assert errors.std() < 0.025
    assert abs(errors.mean()) < 0.01
    assert abs(trimmed_mean(few[7]) / trimmed_mean(many) - 1.0) < 0.05
    assert plain.std() > 4 * errors.std()


def test_remembering_a_plan_keeps_nothing_else_of_its_batch() -> None:
    hours = np.linspace(1.0, 40.0, 24)
    plans = PathInputs.joined(
        [path_inputs({"work_s": H * hour, "run_mean_s": H}) for hour in hours.tolist()]
    )
    cache = OutcomeCache(64, 7)
    cache.outcomes(plans, None)
    arrays = [value for kept in cache.known.values() for value in kept if value.ndim]
    whole = {id(base): base for each in arrays if (base := _owner(each)) is not None}
    assert len(arrays) == 2 * len(hours)  # time and cost
    assert sum(base.nbytes for base in whole.values()) <= sum(each.nbytes for each in arrays)


def _owner(values: np.ndarray) -> np.ndarray:
    """The array whose memory is used."""
    return values if values.base is None else _owner(values.base)
