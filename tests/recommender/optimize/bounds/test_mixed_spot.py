"""No mix of random small regions costs less than the bound from its types alone."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.bounds.mixed_spot import min_mix_usd
from recommender.optimize.space import Space
from tests.recommender.optimize.palette import space
from tests.recommender.optimize.samples import one_in
from tests.recommender.optimize.test_merged_regions import best_mix, provider, question, regions

CHUNKS, PER_CHUNK = 8, 30


def by_cost(asked: Space) -> Space:
    return replace(asked, limits=replace(asked.limits, objective="cost"))


@pytest.mark.parametrize("chunk", one_in(8, CHUNKS))
def test_no_mix_of_any_region_costs_less_than_its_bound(chunk: int) -> None:
    checked, close = 0, 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        asked = by_cost(question(seed))
        local = regions(asked, seed)
        asked = replace(asked, sites=(local[0],))
        best = best_mix(asked, local)
        if not np.isfinite(best):
            continue
        for cutoff in (1.001 * best, 3.0 * best):
            bound = min_mix_usd(asked, [provider(local)], cutoff)
            assert bound <= best * 1.001, seed
        checked, close = checked + 1, close + (bound > 0.5 * best)
    assert checked > 0
    assert close > 0


def test_a_cutoff_below_the_bound_is_returned() -> None:
    for seed in range(20):
        asked = by_cost(space(seed, entries=3, most=4))
        assert min_mix_usd(asked, asked.sites, 1e-9) == 1e-9


def test_a_site_without_machines_bounds_nothing() -> None:
    asked = by_cost(space(1, entries=3, most=4))
    none = asked.sites[0].only(np.zeros(0, dtype=np.int64))
    assert min_mix_usd(asked, [none], 5.0) == 5.0
