"""When a search ends before its proof."""

from recommender.optimize.search_state import PACE_SETS, SearchState


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
