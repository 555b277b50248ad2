"""Timing: warm-up is not counted, medians come with an interval, disturbances are seen."""

import math
import random
from collections.abc import Callable, Iterator
from statistics import median

import pytest

from recommender.benchmarks.method import (
    CpuTimes,
    Interference,
    Result,
    Rule,
    cpu_times,
    enough,
    interference,
    measure,
    measure_in_turns,
    median_interval,
    together_of,
)
from recommender.benchmarks.subject import Case, Trial

RULE = Rule(warm_up=2, least=3, most=5, most_s=100.0, half_width=0.0)


class Clock:
    """A clock that moves only when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def case(clock: Clock, steps: Iterator[float], log: list[str] | None = None) -> Case:
    said = log if log is not None else []

    def run() -> None:
        said.append("run")
        clock.now += next(steps)

    trial = Trial(run, lambda: said.append("check") or 0.5, lambda: said.append("close"))
    return Case("matmul", "fp32 8", "GFLOP/s", 6.0, lambda: trial)


def test_warm_up_is_run_and_not_counted():
    clock, log = Clock(), []
    result = measure(case(clock, iter((9.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0)), log), RULE, None, clock)
    assert result.seconds == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert log == ["run"] * 7 + ["check", "close"]
    assert result.error == 0.5


def test_a_gpu_gets_as_many_short_kernels_at_once_as_fill_a_hundredth_of_a_second():
    clock, log = Clock(), []
    result = measure(case(clock, iter([0.002] * 99), log), RULE, lambda: None, clock)
    assert result.seconds == pytest.approx((0.002,) * 5)
    assert dict(result.facts)["runs_per_repetition"] == 5
    assert log.count("run") == 2 + 5 * 5
    assert [together_of(s) for s in (1e-7, 0.004, 0.01, 1.0)] == [1000, 3, 1, 1]


def test_the_device_is_waited_for_before_and_after_each_repetition():
    clock = Clock()

    def wait() -> None:
        clock.now += 10.0  # work that was queued

    result = measure(case(clock, iter([1.0] * 9)), RULE, wait, clock)
    assert set(result.seconds) == {11.0}


def test_a_trial_is_closed_even_if_it_fails():
    closed: list[int] = []

    def fails() -> None:
        raise ArithmeticError

    trial = Trial(fails, close=lambda: closed.append(1))
    with pytest.raises(ArithmeticError):
        measure(Case("a", "b", "GB/s", 1.0, lambda: trial), RULE, None)
    assert closed == [1]


def test_repetitions_stop_when_the_median_is_known_or_time_is_up():
    rule = Rule(1, 5, 100, 10.0, 0.02)
    assert not enough([1.0] * 4, rule, 19.0)
    assert enough([1.0] * 5, rule, 0.0)
    noisy = [1.0, 1.5] * 10
    assert not enough(noisy, rule, 9.9)
    assert enough(noisy, rule, 10.0)
    assert enough(noisy * 5, rule, 0.0)


@pytest.mark.parametrize("draw", [random.Random.expovariate, random.Random.gauss])
def test_the_interval_holds_the_median_as_often_as_stated(
    draw: Callable[[random.Random, float], float],
):
    """Coverage over 2,000 samples from laws whose median is known; skewed ones too."""
    rng = random.Random(1)
    if draw is random.Random.gauss:
        true, sample = 0.0, lambda: rng.gauss(0.0, 1.0)
    else:
        true, sample = math.log(2), lambda: rng.expovariate(1.0)
    for n in (11, 25, 60):
        inside = 0
        for _ in range(2000):
            low, high = median_interval([sample() for _ in range(n)])
            inside += low <= true <= high
        assert inside / 2000 >= 0.94


def test_a_rate_is_the_work_over_the_median_second():
    result = Result("matmul", "fp32 8", "GFLOP/s", 6.0, (1.0, 4.0, 2.0), 0.0, ceiling=4.0)
    assert result.median == 3.0
    assert result.share == 0.75
    assert result.spread == pytest.approx((6.0 - 1.5) / 3.0)
    low, high = result.interval
    assert low <= result.median <= high


def test_other_programs_and_the_hypervisor_are_seen():
    before = CpuTimes(own=10.0, busy=100.0, steal=1.0, total=400.0)
    after = CpuTimes(own=11.0, busy=104.0, steal=2.0, total=410.0)
    found = interference([1.0] * 6, before, after)
    assert found.others == pytest.approx(0.3)  # 4 s busy, 1 s of them ours, of 10
    assert found.steal == pytest.approx(0.1)
    assert found.seen


def test_the_other_processes_of_a_collective_are_no_other_programs():
    before = CpuTimes(own=10.0, busy=100.0, steal=0.0, total=400.0)
    after = CpuTimes(own=11.0, busy=104.1, steal=0.0, total=440.0)
    found = interference([1.0] * 6, before, after, processes=4)
    assert found.others == pytest.approx(0.1 / 40)
    assert not found.seen


def test_an_interval_too_short_for_the_kernels_counters_gives_no_figure():
    before = CpuTimes(0.0, 0.0, 0.0, 0.0)
    found = interference([1.0] * 6, before, CpuTimes(0.0, 0.1, 0.0, 0.1))
    assert found == Interference(None, None, 0, 0.0)
    assert not found.seen


def test_slow_repetitions_and_drift_are_seen():
    assert interference([1.0, 1.0, 3.0, 1.0, 1.0, 1.0], None, None).slow == 1
    slower = interference([1.0] * 5 + [1.2] * 5, None, None)
    assert slower.drift == pytest.approx(0.2)
    assert slower.seen
    assert not interference([1.0, 1.01] * 5, None, None).seen


def test_counters_of_the_kernel_are_read_where_there_are_any(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 50 0 0 20 0 0\ncpu0 1 2\n")
    found = cpu_times(stat)
    assert found is not None
    assert found.busy / found.total == pytest.approx(150 / 1020)
    assert found.steal / found.total == pytest.approx(20 / 1020)
    assert cpu_times(tmp_path / "none") is None
    stat.write_text("cpu 1 2\n")
    assert cpu_times(stat) is None


def test_what_is_compared_is_measured_in_turns_and_equally_often():
    log: list[str] = []

    def one(name: str, seconds: float) -> tuple[Case, Trial]:
        def timed() -> float:
            log.append(name)
            return seconds

        trial = Trial(lambda: None, lambda: 0.0, timed=timed)
        return Case("collectives", name, "GB/s", 1.0, lambda: trial), trial

    rule = Rule(1, 5, 100, 10.0, 0.02)
    found = measure_in_turns([one("a", 1.0), one("b", 2.0)], rule)
    assert "".join(log) == "ab" * 11
    assert [each.seconds for each in found] == [(1.0,) * 10, (2.0,) * 10]


def test_a_run_of_minutes_is_repeated_three_times_only():
    rule = Rule(1, 9, 100, 10.0, 0.02)
    assert not enough([60.0] * 2, rule, 120.0)
    assert enough([60.0] * 3, rule, 180.0)
    assert not enough([6.0] * 3, rule, 18.0)


def test_the_median_needs_no_assumption():
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert median(range(9)) == 4
