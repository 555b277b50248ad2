"""Everything a fit tells, on traces with planted answers."""

import math
from datetime import timedelta

import numpy as np
import pytest

from recommender.errors import UsageError
from recommender.traces.fit import fit, watch
from recommender.traces.statistics import losses
from recommender.traces.trace import ADDED, TAKEN, Place, Trace, counted, named_events
from tests.recommender.traces.made import HOUR, START, alternating, trace


def by_the_clock(days: int, name: str = "a") -> Trace:
    """Up from 06 to 18 hours UTC every day, begun at 01:30 UTC."""
    begin = START + timedelta(hours=1, minutes=30)
    hours = [0.0] + [24 * day + hour - 1.5 for day in range(days) for hour in (6, 18)]
    return trace(hours, [0] + [1, 0] * days, 24.0 * days, start=begin, name=name)


def test_hours_of_the_day() -> None:
    found = fit([by_the_clock(10)])
    assert [round(v.value, 9) for v in found.hours] == [0.0] * 6 + [1.0] * 12 + [0.0] * 6
    assert found.hours[7].low == found.hours[7].high == 1.0
    assert fit([trace([0, 5], [1, 0], 30.0)]).hours == ()  # the start is not known


def test_sizes_of_gangs_by_hand() -> None:
    # 4 machines up 6 h of 12, at least 2 for 9 h, at least 1 always; falls at 2, 6, 8, 10 h.
    made = trace([0, 2, 4, 6, 8, 10], [4, 2, 4, 2, 1, 4], 12.0)
    one, two, four = fit([made]).sizes
    assert (one.machines, two.machines, four.machines) == (1, 2, 4)
    assert (one.availability.value, one.run_mean_h, one.interruptions) == (1.0, None, 0)
    assert two.availability.value == pytest.approx(10 / 12)
    assert two.run_mean_h is not None
    assert two.run_mean_h.value == pytest.approx(10.0)
    assert four.availability.value == pytest.approx(6 / 12)
    assert four.run_mean_h is not None
    assert (four.run_mean_h.value, four.interruptions) == (pytest.approx(3.0), 2)


def test_losses_in_groups_by_hand() -> None:
    made = trace([0, 2, 4, 6, 8, 10], [4, 2, 4, 2, 1, 4], 12.0)
    assert losses(made)[1].tolist() == [2, 2, 1]
    groups = fit([made]).groups
    assert groups is not None
    assert (groups.lost, groups.moments) == (5, 3)
    assert groups.mean_group.value == pytest.approx(5 / 3)
    assert groups.share_in_groups.value == pytest.approx(4 / 5)
    assert groups.per_machine_hour.value == pytest.approx(5 / (8 + 4 + 8 + 4 + 2 + 8))
    assert groups.co_interruption is None


def named(rows: list[tuple[float, int, str]], end_h: float) -> Trace:
    events = named_events(rows)
    t_s, machines = counted(events)
    most = int(machines.max())
    return Trace("n", end_h * HOUR, capacity=most, t_s=t_s, machines=machines, events=events)


def test_named_machines_that_go_within_a_minute_go_together() -> None:
    rows = [(60.0, ADDED, f"n{i}") for i in range(8)]
    rows += [(HOUR, TAKEN, "n0"), (HOUR + 30, TAKEN, "n1"), (HOUR + 95, TAKEN, "n2")]
    groups = fit([named(rows, 5.0)]).groups
    assert groups is not None
    assert (groups.lost, groups.moments) == (3, 2)
    # n = (8 + 6)/2 up, groups of m = 1.5: ρ = 1 - (7/1.5 - 1)/6.
    assert groups.co_interruption is not None
    assert groups.co_interruption.value == pytest.approx(1 - (7 / 1.5 - 1) / 6)


@pytest.mark.parametrize("rho", [0.3, 0.8])
def test_a_planted_co_interruption_of_named_machines_is_found(rho: float) -> None:
    """Machines with a shared and an own hazard; each lost one comes back at once."""
    rng, n, rate = np.random.default_rng(9), 16, 0.1
    rows: list[tuple[float, int, str]] = [(1.0, ADDED, f"a{i}") for i in range(n)]
    t, number, up = 0.0, n, [f"a{i}" for i in range(n)]
    shared, own = rate * rho, n * rate * (1 - rho)
    while (t := t + rng.exponential(1 / (shared + own))) < 4000:
        taken = list(up) if rng.random() < shared / (shared + own) else [rng.choice(up)]
        for name in taken:
            rows.append((t * HOUR + 2, TAKEN, str(name)))
            up.remove(str(name))
            up.append(f"a{number}")
            rows.append((t * HOUR + 3, ADDED, f"a{number}"))
            number += 1
    groups = fit([named(rows, 4001.0)]).groups
    assert groups is not None
    found = groups.co_interruption
    # Λ(n) = λ·(ρ + n(1-ρ)) = λ·(1 + (n-1)(1-ρ)), as the law has it.
    assert found is not None
    assert found.value == pytest.approx(rho, abs=0.05)
    assert found.low is not None
    assert found.low <= rho <= (found.high or 0.0)


def test_zones_that_differ() -> None:
    good = alternating(np.full(60, 3.0), np.full(60, 1.0), name="good")
    bad = alternating(np.full(60, 1.0), np.full(60, 3.0), name="bad")
    zones = fit([good, bad]).zones
    assert zones is not None
    assert (zones.lowest, zones.highest) == ("bad", "good")
    assert zones.sd.value == pytest.approx(0.5 / math.sqrt(2), abs=1e-9)
    assert zones.sd.low is not None
    assert zones.sd.low <= zones.sd.value <= (zones.sd.high or 0.0)
    assert fit([good]).zones is None


def test_prices_weighted_by_the_time_they_held() -> None:
    made = Trace(
        name="p",
        end_s=100 * HOUR,
        start=START,
        price_t_s=np.array([0.0, 60.0, 90.0]) * HOUR,
        usd_per_hour=np.array([1.0, 2.0, 4.0]),
    )
    prices = fit([made]).series[0].prices
    assert prices is not None
    assert prices.mean_usd.value == pytest.approx((60 * 1 + 30 * 2 + 10 * 4) / 100)
    assert (prices.min_usd, prices.most_usd) == (1.0, 4.0)
    assert prices.changes_per_day.value == pytest.approx(2 / (100 / 24))
    # A day later: 36 h the same, 24 h doubled (from 36 to 60), then 6 same ... by hand below.
    hours = np.arange(100)
    usd = np.select([hours < 60, hours < 90], [1.0, 2.0], 4.0)
    move = np.log(usd[24:] / usd[:-24])
    move = np.append(move, math.log(4.0 / usd[76]))  # the last hour ends with the trace
    assert prices.moves_1d is not None
    assert prices.moves_1d.value == pytest.approx(math.sqrt((move**2).mean()))
    assert prices.moves_7d is None


def test_a_price_that_never_moves() -> None:
    made = Trace(
        "p", 200 * HOUR, price_t_s=np.array([0.0]), usd_per_hour=np.array([18.98]), start=START
    )
    found = fit([made])
    prices = found.series[0].prices
    assert prices is not None
    assert (prices.mean_usd.value, prices.changes_per_day.value) == (pytest.approx(18.98), 0.0)
    assert prices.moves_1d is not None
    assert prices.moves_1d.value == 0.0
    assert (found.no_law, found.laws) == ("only prices were watched", ())


def test_what_is_not_alike_is_not_pooled() -> None:
    v100 = trace([0, 1], [1, 0], 5.0, place=Place(gpu="V100", gpus=1), name="a")
    eight = trace([0, 1], [1, 0], 5.0, place=Place(gpu="V100", gpus=8), name="b", kind="hold")
    with pytest.raises(UsageError) as caught:
        fit([v100, eight])
    assert "different machines (1x V100, 8x V100); choose with --series" in str(caught.value)
    assert "some series were probed and some held" in str(caught.value)
    assert len(watch([v100, eight]).series) == 2


def test_a_series_is_shown_in_equal_parts() -> None:
    (seen,) = watch([trace([0, 8], [0, 2], 16.0, start=START)]).series
    assert seen.shares == (0.0,) * 16 + (1.0,) * 16
    assert (seen.begin, seen.end) == ("2026-03-01T00:00:00Z", "2026-03-01T16:00:00Z")
    assert (seen.hours, seen.interruptions) == (16.0, 0)


def test_the_same_trace_gives_the_same_figures() -> None:
    assert fit([by_the_clock(8)]) == fit([by_the_clock(8)])
