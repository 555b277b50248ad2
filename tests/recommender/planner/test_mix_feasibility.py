"""Where no cluster of one type meets the limits: mixes that do are found, and none is denied."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.search_state import SearchState
from recommender.optimize.space import Entries, Space
from recommender.planner.mix_feasibility import able_providers, find_any
from tests.recommender.optimize.palette import evaluate, every_cluster, every_plan, space
from tests.recommender.optimize.samples import one_in

ENOUGH = 10**6
CHUNKS, PER_CHUNK = 8, 30


def in_two_regions(asked: Space) -> Space:
    """The only site's entries twice, as of a provider: more expensive and slower to start."""
    site, e = asked.sites[0], asked.sites[0].entries
    more = replace(e, usd_per_hour=e.usd_per_hour * 1.3, boot_s=e.boot_s + 60.0)
    both = Entries(*(np.concatenate([getattr(more, n), getattr(e, n)]) for n in Entries.__slots__))
    use = np.concatenate([site.quota_use, site.quota_use], axis=1)
    return replace(asked, sites=(replace(site, entries=both, quota_use=use),))


def of_as_many_kinds(asked: Space) -> bool:
    """Whether every entry is a type and market of its own, as in a region."""
    e = asked.sites[0].entries
    return len(np.unique(e.kind * 2 + e.spot)) == len(e)


def tight(seed: int) -> Space:
    """A question with limits near what is possible at all."""
    asked = space(seed, entries=3 + seed % 2, most=4)
    limits, share = asked.limits, 0.4 + 0.1 * (seed % 7)
    return replace(
        asked,
        limits=replace(
            limits,
            deadline_s=None if limits.deadline_s is None else limits.deadline_s * share,
            budget_usd=None if limits.budget_usd is None else limits.budget_usd * share,
        ),
    )


def a_mix_meets_them(asked: Space) -> bool:
    """Looking at every plan of every cluster of several entries."""
    site = asked.sites[0]
    counts = every_cluster(site, asked.limits.max_machines)
    counts = counts[(counts > 0).sum(axis=1) > 1]
    if not len(counts):
        return False
    return bool(
        np.isfinite(evaluate(asked, site, every_plan(asked, site, counts)).goal_value).any()
    )


@pytest.mark.parametrize("chunk", one_in(CHUNKS, CHUNKS))
def test_a_mix_is_found_where_one_meets_the_limits_and_denied_only_where_none_does(
    chunk: int,
) -> None:
    found = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        asked = tight(seed)
        state = SearchState(slack=0.0, max_plans=ENOUGH)
        complete = find_any(asked, 0, state, ENOUGH, ENOUGH)
        meets = a_mix_meets_them(asked)
        assert bool(state.incumbents) == meets, seed
        assert meets or complete, seed
        found += meets
        if of_as_many_kinds(asked):
            assert able_providers(in_two_regions(asked)) or not meets, seed
    assert 0 < found < PER_CHUNK


def test_a_deadline_shorter_than_any_work_is_denied_at_once() -> None:
    asked = next(q for q in map(tight, range(200)) if q.limits.deadline_s is not None)
    hopeless = replace(asked, limits=replace(asked.limits, deadline_s=60.0))
    assert not able_providers(hopeless)


def test_a_search_that_was_cut_off_denies_nothing() -> None:
    hopeless = (q for q in map(tight, range(200)) if not a_mix_meets_them(q))
    asked = next(q for q in hopeless if of_as_many_kinds(q) and able_providers(q))
    state = SearchState(slack=0.0, max_plans=0, max_supports=0)
    assert not find_any(asked, 0, state, 0, 0)
    assert not state.incumbents
