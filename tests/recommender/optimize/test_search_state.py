"""When a search ends before its proof."""

import pytest

from recommender.optimize.search_state import PACE_SETS, PACED_AFTER, SearchState


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


def test_it_goes_on_while_the_best_plan_improves() -> None:
    improved = searched(1600, 69.0)
    improved.improved_at = 1600 - PACED_AFTER + 1
    assert not improved.is_out_of_reach(100, 40.0)
    improved.improved_at = 1600 - PACED_AFTER
    assert improved.is_out_of_reach(100, 40.0)


def sets_looked_at(bounds: list[float]) -> SearchState:
    """A search of at most 600 sets, with its bound after every 50 of them."""
    state = SearchState(slack=0.0, max_plans=10**6, max_supports=600, patience=100, best_goal=100.0)
    for bound in bounds:
        state.explore_from(bound)
        state.count_supports(PACE_SETS)
    if bounds:
        state.explore_from(bounds[-1])
    return state


def test_a_search_of_mixes_ends_where_its_bound_hardly_rises() -> None:
    """By hand: 400 sets are left after 200, for gaps of 30 and 20 at three times the pace."""
    assert sets_looked_at([60.0, 68.0, 69.0, 70.0]).exhausted
    assert not sets_looked_at([60.0, 65.0, 72.0, 80.0]).exhausted


def test_many_sets_at_once_say_nothing_of_the_pace() -> None:
    state = sets_looked_at([])
    state.explore_from(60.0)
    state.count_supports(200)
    assert not state.exhausted
