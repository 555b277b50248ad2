"""The mixes that are judged first where no machine type alone meets a deadline."""

from dataclasses import replace

import numpy as np

from recommender.optimize.columns import columns_of
from recommender.optimize.safest_mixes import SAME_MACHINES, SURE, safest_mixes
from recommender.optimize.space import Space, within_quota
from tests.recommender.optimize.palette import space

SPACES = 40


def in_time(seed: int) -> Space:
    """A question with a deadline."""
    asked = space(seed, entries=4, most=4)
    return replace(asked, limits=replace(asked.limits, deadline_s=24 * 3600.0))


def test_they_are_clusters_of_several_entries_that_limits_and_quotas_allow() -> None:
    found = 0
    for seed in range(SPACES):
        asked = in_time(seed)
        site = asked.sites[0]
        for mix in safest_mixes(asked, 0):
            counts = np.zeros((1, len(site.entries)), dtype=np.int64)
            counts[0, list(mix.entries)] = mix.counts
            assert len(mix.entries) > 1
            assert min(mix.counts) >= 1
            assert sum(mix.counts) <= asked.limits.max_machines
            assert within_quota(site, counts).all()
            found += 1
    assert found > SPACES


def test_the_same_machines_are_tried_in_few_regions_only() -> None:
    asked = next(each for each in map(in_time, range(SPACES)) if safest_mixes(each, 0))
    mixes = safest_mixes(replace(asked, sites=asked.sites * (SAME_MACHINES + 3)), 0)
    e = asked.sites[0].entries
    machines = [(e.kind[list(m.entries)].tolist(), e.spot[list(m.entries)].tolist(), m.counts)
                for m in mixes]  # fmt: skip
    assert machines
    assert max(machines.count(each) for each in machines) == SAME_MACHINES


def test_the_cheapest_that_seem_sure_enough_come_first() -> None:
    compared = 0
    for asked in map(in_time, range(SPACES)):
        found = columns_of(asked, safest_mixes(asked, 0)) if safest_mixes(asked, 0) else None
        if found is None:
            continue
        late = found.time_quantile_s > SURE * asked.limits.deadline_s
        if asked.limits.budget_usd is None and not late.all():
            assert found.goal_value[found.cluster == 0].min() == found.goal_value[~late].min()
            compared += 1
    assert compared
