"""One on-demand machine next to spot machines of its type, where only it can hold checkpoints."""

from dataclasses import replace

import numpy as np

from recommender.optimize.search import anchors_only, search_anchored
from recommender.optimize.search_state import SearchState
from recommender.optimize.space import ANCHOR, NONE, OBJECT_STORE, Space
from tests.recommender.optimize.palette import oracle, space


def anchored(seed: int) -> Space:
    """A small question in which spot machines may save to an anchor only."""
    q = replace(space(seed, entries=4, most=4), checkpoint_paths=(ANCHOR, NONE))
    return replace(q, sites=tuple(replace(site, region="here") for site in q.sites))


def test_the_best_of_these_clusters_is_that_of_the_oracle() -> None:
    found_any = 0
    for seed in range(120):
        q = anchored(seed)
        e = q.sites[0].entries
        plans, values = oracle(q)
        used = plans.counts > 0
        steady, spot = used & ~e.spot, used & e.spot
        pair = (steady.sum(axis=1) == 1) & (spot.sum(axis=1) == 1)
        pair &= (plans.counts * ~e.spot).sum(axis=1) == 1
        pair &= e.kind[steady.argmax(axis=1)] == e.kind[spot.argmax(axis=1)]
        best = float(values.goal_value[pair].min(initial=np.inf))
        state = SearchState(slack=0.0, max_plans=10_000)
        search_anchored(q, state)
        if np.isfinite(best):
            found_any += 1
            assert state.best_goal <= best * 1.001, seed
        assert (state.best_goal >= best * 0.999) or not np.isfinite(state.best_goal), seed
    assert found_any > 5


def test_an_anchor_is_sought_where_nothing_else_may_be_saved_to() -> None:
    q = anchored(0)
    assert anchors_only(q)
    assert not anchors_only(replace(q, checkpoint_paths=(OBJECT_STORE, ANCHOR, NONE)))
