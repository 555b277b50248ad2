"""The study on recorded markets keeps its promises in every set and setting."""

import pytest

from recommender.policies.backtest import Market, closed_by_sums
from tests.recommender.policies.markets import reference
from tests.recommender.policies.study import SETS, TASKS, dearer, late_share, left_out, run, traces

pytestmark = [reference, pytest.mark.reference]
OURS, LIKELY, UNWATCHED = "cost-optimal", "cost-optimal, 95 %", "cost-optimal, zone left out"


def test_a_zone_left_out_is_fitted_on_the_others_only():
    of_set = traces("16 x V100, AWS 2023")
    contender, _, blind = left_out(of_set, 0)
    assert blind.past.size == 0
    other: Market = of_set[1]
    law, _ = contender.enter(blind)
    again, *_ = left_out([of_set[0], other], 0)[0].enter(blind)
    assert (law.law.exits_per_hour == again.law.exits_per_hour).all()
    poor, usual, good = law.law.exits_per_hour  # one other zone, no worse and no better one seen
    assert (poor[0] < usual[0]).all()
    assert (usual[0] < good[0]).all()
    assert (poor[1] == good[1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_ours_is_safe_and_cheap_in_every_setting(name):
    rows = run(name)
    for task in TASKS:
        some = [row for row in rows if row.task == task]
        assert dearer(some, OURS) <= 0.005
        assert dearer(some, UNWATCHED) <= 0.005
        assert late_share([row for row in some if row.policy == OURS]) == 0.0
        assert late_share([row for row in some if row.policy == LIKELY]) <= 0.05
    ours, likely, uniform = (
        [row for row in rows if row.policy == policy]
        for policy in (OURS, LIKELY, "uniform progress")
    )
    assert closed_by_sums(likely) > closed_by_sums(ours) > closed_by_sums(uniform)
