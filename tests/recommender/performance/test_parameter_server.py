"""The queue at the parameter servers: exact chains, simulation, properties, the fit."""

import os
from dataclasses import astuple, replace
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recommender.performance.parameter_server import (
    ServerConstants,
    load_constants,
    service_s,
    updates_per_s,
    worker_s,
)
from tests.research.accuracy.cmdare_data import networks, speeds
from tests.research.fits.fit_parameter_server import (
    Network,
    ServerFit,
    ServerRates,
    Speed,
    constant_rows,
    fit_servers,
    fit_workers,
    read_reference,
    repeat_sd,
    served_s,
    service_error,
    service_sd,
    update_s,
    without,
)

CONSTANTS = ServerConstants(1e-4, 2e-10, 2e-3, 0.2, 4e-3, 0.1)


def rate(workers: int, alone: float, served: float, cv2: float = 0.0) -> float:
    return float(updates_per_s(*(np.array(float(x)) for x in (workers, alone, served)), cv2))


def exact(workers: int, think: float, served: float) -> float:
    """The machine-repair chain: exponential service, any think time; throughput."""
    weights = [
        factorial(workers) / factorial(workers - j) * (served / think) ** j
        for j in range(workers + 1)
    ]
    return (1.0 - weights[0] / sum(weights)) / served


def simulated(thinks: list[float], served: float, updates: int = 40_000) -> float:
    """Workers with exponential think times at one server of constant service, first come."""
    rng = np.random.default_rng(7)
    ready = np.array([rng.exponential(think) for think in thinks])
    free = 0.0
    for _ in range(updates):
        first = int(ready.argmin())
        free = max(free, float(ready[first])) + served
        ready[first] = free + rng.exponential(thinks[first])
    return updates / free


@pytest.mark.parametrize("workers", [1, 2, 5, 12])
@pytest.mark.parametrize("think", [0.05, 0.3, 2.0])
def test_exponential_service_is_exact(workers, think):
    served = 0.1
    assert rate(workers, think + served, served, cv2=1.0) == pytest.approx(
        exact(workers, think, served)
    )


@pytest.mark.parametrize("workers", [2, 4, 8])
@pytest.mark.parametrize("load", [0.3, 0.7, 1.0, 1.5])
def test_constant_service_is_near_a_simulation(workers, load):
    served = 0.1
    think = workers * served / load - served
    assert rate(workers, think + served, served) == pytest.approx(
        simulated([think] * workers, served), rel=0.09
    )


@pytest.mark.parametrize("ratio", [2.0, 5.0])
def test_workers_of_two_types_are_near_as_many_of_their_mean_speed(ratio):
    served, slow = 0.1, 1.0
    alone = [slow, slow, slow / ratio, slow / ratio]
    mean = len(alone) / sum(1 / t for t in alone)
    assert rate(4, mean, served) == pytest.approx(
        simulated([t - served for t in alone], served), rel=0.10
    )


def test_one_worker_does_not_wait():
    assert rate(1, 0.5, 0.1) == pytest.approx(2.0)


def test_a_worker_quicker_than_its_server_takes_the_servers_time():
    assert rate(3, 0.01, 0.1) == pytest.approx(10.0)


@settings(deadline=None, max_examples=200)
@given(
    some.integers(1, 40),
    some.floats(1e-3, 10),
    some.floats(1e-4, 1),
    some.floats(1.0, 5.0),
    some.sampled_from([0.0, 0.5, 1.0]),
)
def test_quicker_workers_quicker_servers_and_more_workers_are_never_slower(
    workers, alone, served, factor, cv2
):
    found = rate(workers, alone, served, cv2) * (1 + 1e-9)
    assert found >= rate(workers, alone * factor, served, cv2)
    assert found >= rate(workers, alone, served * factor, cv2)
    assert found <= rate(workers + 1, alone, served, cv2) * (1 + 1e-8)
    assert found <= min(workers / alone, 1 / served) * (1 + 1e-8)


def test_rows_of_a_table_do_not_see_one_another():
    workers, alone = np.array([1.0, 8.0, 3.0]), np.array([[0.5, 0.2, 0.3], [1.0, 1.0, 0.01]])
    found = updates_per_s(workers, alone, np.array(0.05))
    each = [[rate(int(n), t, 0.05) for n, t in zip(workers, row, strict=True)] for row in alone]
    assert found == pytest.approx(np.array(each))


def test_service_is_tensors_bytes_network_and_a_fixed_part():
    one = service_s(100, 1e7, 1e9, CONSTANTS)
    assert float(one) == pytest.approx(0.010 + 0.002 + 0.010 + 0.002)


def test_a_worker_with_twice_the_vcpus_spends_half_the_time():
    assert worker_s(50, 4.0, CONSTANTS) == pytest.approx((0.2 + 0.1) / 4)
    assert worker_s(50, 8.0, CONSTANTS) == pytest.approx(worker_s(50, 4.0, CONSTANTS) / 2)


def test_the_fit_finds_the_constants_of_servers_it_was_given():
    truth = ServerRates(1.2e-4, 3e-10, 1e-3)
    known = {
        name: Network(name, "resnet", 1e9, size, tensors)
        for name, size, tensors in (("a", 1e6, 50), ("b", 2e7, 200), ("c", 3e6, 300))
    }
    found = fit_servers([*clusters_of(known, truth), *repeats(known)], known)
    assert astuple(found.rates) == pytest.approx(astuple(truth), rel=0.01)


ALONE_S = 0.15
NOISE = 0.03


def clusters_of(known: dict[str, Network], truth: ServerRates) -> list[Speed]:
    """Exact speeds of clusters whose workers take `ALONE_S`."""
    empty = [Speed("x", "P100", name, n, 1, 1.0) for name in known for n in (2, 4, 8, 16)]
    workers = np.array([float(row.workers) for row in empty])
    service = served_s(empty, known, truth, [1.0] * len(empty))
    found = updates_per_s(workers, np.full(len(empty), ALONE_S), service)
    return [replace(row, updates_per_s=float(x)) for row, x in zip(empty, found, strict=True)]


def repeats(known: dict[str, Network], off: str = "") -> list[Speed]:
    """One worker in two campaigns, either side of `ALONE_S`; of `off` both are 10 % too fast."""
    return [
        Speed(campaign, "P100", name, 1, 1, np.exp(move + 0.1 * (name == off)) / ALONE_S)
        for name in known
        for campaign, move in (("x", NOISE / 2**0.5), ("y", -NOISE / 2**0.5))
    ]


def test_the_spread_of_repeats_is_that_between_campaigns():
    known = {"a": Network("a", "resnet", 1e9, 1e6, 50), "b": Network("b", "resnet", 1e9, 2e7, 200)}
    assert repeat_sd(repeats(known), "P100") == pytest.approx(NOISE)


def test_a_worker_that_was_timed_too_fast_is_put_down_to_its_timing():
    """Both runs of one worker 10 % too fast, and four clusters of it that say what is right."""
    truth = ServerRates(1.2e-4, 3e-10, 1e-3)
    known = {
        name: Network(name, "resnet", 1e9, size, tensors)
        for name, size, tensors in (("a", 1e6, 50), ("b", 2e7, 200), ("c", 3e6, 300))
    }
    made = [*clusters_of(known, truth), *repeats(known, off="a")]
    whole = [1.0] * len(made)
    right = served_s(made, known, truth, whole)
    assert served_s(made, known, fit_servers(made, known).rates, whole) == pytest.approx(
        right, rel=0.01
    )
    # Taken as exact, the same timings ask clusters of up to eight for servers that take longer.
    own = [row for row in made if row.network == "a" and 1 < row.workers <= 8]
    speed, one = np.array([row.updates_per_s for row in own]), ALONE_S * np.exp(-0.1)
    n, served = (
        np.array([float(row.workers) for row in own]),
        served_s(own, known, truth, [1.0] * 3),
    )
    missed = {
        more: float((np.log(updates_per_s(n, np.array(one), served * more) / speed) ** 2).sum())
        for more in np.arange(0.8, 4.0, 0.02)
    }
    assert min(missed, key=lambda more: missed[more]) > 1.25


def test_the_spread_of_a_fit_is_what_its_constants_change():
    """Against service times at constants drawn from the covariance."""
    fit = ServerFit(ServerRates(1e-4, 3e-10, 1e-3), np.diag([0.01, 0.04, 0.09]))
    known = {"a": Network("a", "resnet", 1e9, 1e7, 100)}
    row = [Speed("x", "P100", "a", 4, 1, 1.0)]
    rng = np.random.default_rng(5)
    drawn = [
        served_s(row, known, ServerRates(*(np.array(astuple(fit.rates)) * each)), [1.0])[0]
        for each in np.exp(rng.standard_normal((4000, 3)) * [0.1, 0.2, 0.3])
    ]
    assert fit.spread(row, known, [1.0])[0] == pytest.approx(np.std(np.log(drawn)), rel=0.08)


def test_a_network_whose_servers_take_longer_shows_it():
    truth = ServerRates(1.2e-4, 3e-10, 1e-3)
    known = {"a": Network("a", "resnet", 1e9, 2e7, 100)}
    made = [*clusters_of(known, truth), *repeats(known)]
    row = [made[0]]
    twice = ServerRates(2.4e-4, 6e-10, 2e-3)
    right = served_s(row, known, truth, [1.0]) / served_s(row, known, twice, [1.0])
    assert service_error(made, known, "a", twice) == pytest.approx(np.log(right[0]), abs=0.01)


def test_the_spread_of_the_servers_is_that_of_networks_left_out():
    """By hand from three errors: root mean square, and 1.405 of Student's law at three."""
    names = ("resnet15", "resnet32", "shakeshake_small")
    rows = [row for row in speeds() if row.network in names]
    errors = [
        service_error(rows, networks(), name, fit_servers(without(rows, name), networks()).rates)
        for name in names
    ]
    by_hand = 1.405 * (sum(x * x for x in errors) / 3) ** 0.5
    assert service_sd(rows, networks()) == pytest.approx(by_hand, rel=1e-3)


def test_what_the_runs_leave_open_of_the_constants_adds_little_to_the_shipped_spread():
    fit, known = fit_servers(speeds(), networks()), networks()
    rows = [Speed("x", "P100", name, 4, 1, 1.0) for name in known]
    both = np.hypot(load_constants().service_sd, fit.spread(rows, known, [1.0] * len(rows)))
    assert both.max() < 1.05 * load_constants().service_sd


def test_the_fit_finds_the_constants_of_workers_it_was_given():
    known = {
        str(i): Network(str(i), "resnet", i * 1e9, 1e6, 30 * (i % 4) + 10) for i in range(1, 9)
    }
    truth = fit_workers([r for r in speeds() if r.campaign == "single_20cnn"], networks())
    made = [
        Speed("x", gpu, name, 1, 1, 1 / update_s(gpu, network, truth))
        for gpu in truth.gpus
        for name, network in known.items()
    ]
    found = fit_workers(made, known)
    assert found.flop_per_s == pytest.approx(truth.flop_per_s)
    assert (found.tensor_s, found.update_s) == pytest.approx((truth.tensor_s, truth.update_s))


def shipped(rows: list[dict[str, str]]) -> None:
    for row in rows:
        assert float(row["value"]) == pytest.approx(
            getattr(load_constants(), row["constant"]), rel=0.01
        )


def test_the_shipped_constants_are_the_fit_of_the_carried_figures():
    shipped(constant_rows(networks(), speeds()))


@pytest.mark.reference
@pytest.mark.skipif(
    not os.environ.get("RECOMMEND_REFERENCE_DATA"), reason="needs RECOMMEND_REFERENCE_DATA"
)
def test_the_shipped_constants_are_the_fit_of_the_reference_table():
    folder = Path(os.environ["RECOMMEND_REFERENCE_DATA"]) / "cmdare"
    shipped(constant_rows(*read_reference(folder)))
