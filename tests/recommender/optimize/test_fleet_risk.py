"""Chances of a fleet as a whole, against runs counted one by one."""

from collections.abc import Sequence

import numpy as np
import pytest

from recommender.optimize.fleet_risk import Run, apart, together

HOUR = 3600.0


def drawn(seed: int, paths: int, jobs: int = 4) -> list[Run]:
    """Jobs whose runs are now and then finished by a fallback, on quotas that overlap."""
    rng = np.random.default_rng(seed)
    runs = []
    for number in range(jobs):
        time_s = rng.gamma(4.0, 2.0 * HOUR, paths)
        late = rng.random(paths) < 0.3
        runs.append(
            Run(
                f"job {number}", float(rng.integers(0, 6)) * HOUR, 14.0 * HOUR,
                {f"q{number % 2}": float(rng.integers(1, 4))},
                {"q0": float(rng.integers(1, 5))} if number % 3 else {},
                time_s, np.where(late, time_s * rng.uniform(0.1, 0.6, paths), 0.0),
                rng.uniform(5.0, 50.0, paths),
            )
        )  # fmt: skip
    return runs


def used(runs: Sequence[Run], path: int, quota: str, moment: float) -> float:
    """How much of a quota is in use at a moment of a path."""
    total = 0.0
    for run in runs:
        end = run.start_s + run.time_s[path]
        begin = end - run.fallback_s[path]
        if begin <= moment < end and quota in run.fallback:
            total += run.fallback[quota]
        elif run.start_s <= moment < end:
            total += run.held.get(quota, 0.0)
    return total


def test_chances_are_those_of_runs_counted_one_by_one() -> None:
    quotas = {"q0": 5.0, "q1": 4.0}
    for seed in range(5):
        runs, paths = drawn(seed, 60), 60
        found = together(runs, quotas)
        in_time, short = 0, dict.fromkeys(quotas, 0)
        within = 0
        for path in range(paths):
            moments = [run.start_s for run in runs]
            moments += [run.start_s + run.time_s[path] - run.fallback_s[path] for run in runs]
            over = {
                quota: any(used(runs, path, quota, moment) > most for moment in moments)
                for quota, most in quotas.items()
            }
            within += not any(over.values())
            in_time += all(run.time_s[path] <= run.due_s for run in runs)
            for quota in quotas:
                short[quota] += over[quota]
        assert found.in_time == pytest.approx(in_time / paths)
        assert found.within_quotas == pytest.approx(within / paths)
        assert found.short == {q: pytest.approx(n / paths) for q, n in short.items() if n}
        totals = sorted(sum(run.cost_usd[path] for run in runs) for path in range(paths))
        assert found.usd_p95 == pytest.approx(totals[56])


def test_printed_paths_give_the_chances_of_many_more() -> None:
    quotas = {"q0": 6.0, "q1": 5.0}
    runs = drawn(3, 20_000)
    many = together(runs, quotas)
    few = together([run.on_paths(np.arange(2048)) for run in runs], quotas)
    assert 0.02 < many.in_time < 0.98
    assert 0.02 < many.within_quotas < 0.98
    assert few.in_time == pytest.approx(many.in_time, abs=0.025)  # two errors of 2,048 paths
    assert few.within_quotas == pytest.approx(many.within_quotas, abs=0.025)


def test_independent_fates_multiply() -> None:
    rng = np.random.default_rng(1)
    time_s = np.where(rng.random(20_000) < 0.9, HOUR, 3 * HOUR)
    runs = [Run(f"{n}", 0.0, 2 * HOUR, {}, {}, time_s, 0.0 * time_s, time_s) for n in range(3)]
    assert together(runs, {}).in_time == pytest.approx(0.9, abs=0.01)
    assert apart(runs, {}).in_time == pytest.approx(0.9**3, abs=0.01)


def test_a_fleet_of_no_jobs_is_sure() -> None:
    assert together([], {"q": 0.0}).within_quotas == 1.0
