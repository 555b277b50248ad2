"""When a search ends before its proof."""

import pytest

from recommender.optimize.search_state import PACED_AFTER, SearchState


def searched(plans: int, bound: float, paced: bool = True, best: float = 100.0) -> SearchState:
    """A search that began after 100 plans at a bound of 40, and may simulate 3,100."""
    return SearchState(
        slack=0.0, max_plans=3100, paced=paced, best_goal=best, plans_evaluated=plans, bound=bound
    )


@pytest.mark.parametrize(
    ("bound", "out_of_reach"),
    # Half of 3,000 plans have to close half of the gap of 60: up to 70.
    [(69.0, True), (71.0, False)],
)
def test_a_paced_search_ends_where_its_pace_is_too_slow_for_a_proof(
    bound: float, out_of_reach: bool
) -> None:
    assert searched(1600, bound).is_out_of_reach(100, 40.0) is out_of_reach


def test_it_goes_on_while_little_is_known_or_no_plan_is_found() -> None:
    assert not searched(100 + PACED_AFTER - 1, 40.0).is_out_of_reach(100, 40.0)
    assert not searched(1600, 40.0, best=float("inf")).is_out_of_reach(100, 40.0)
    assert not searched(1600, 40.0, paced=False).is_out_of_reach(100, 40.0)
