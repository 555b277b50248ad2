"""Clusters rated for one limit have the plans and the rates that they have when rated afresh."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.columns import Cluster, columns_of, rated_columns
from recommender.optimize.rated_clusters import RatedClusters, RatedPlans
from recommender.optimize.search_state import Candidate
from recommender.optimize.space import NONE, Space
from recommender.plan.limits import Limits
from tests.recommender.optimize.palette import space
from tests.recommender.optimize.test_least_needs import clusters_of

HOUR_S = 3600.0


def rated(asked: Space, known: RatedClusters, clusters: list[Cluster]) -> dict[Candidate, tuple]:
    """The mean cost and time of every plan by its rates, and the work of its simulation."""
    found = {}
    for part in known.plans_of(asked, clusters):
        rates = part.rates(asked.limits.deadline_s)
        means = zip(
            rates.mean(rates.usd), rates.mean(rates.time_s), part.inputs.work_s, strict=True
        )
        found |= {part.candidate(row): each for row, each in enumerate(means)}
    return found


def under(asked: Space, **values: float | None) -> Space:
    limits = Limits(max_machines=asked.limits.max_machines, confidence=0.9)
    return replace(asked, limits=replace(limits, **values))


@pytest.mark.parametrize("seed", range(12))
def test_what_other_limits_rated_before_changes_nothing(seed: int) -> None:
    asked = space(seed)
    clusters, known = clusters_of(asked), RatedClusters()
    half = clusters[: len(clusters) // 2]
    questions = (
        ({}, clusters),
        ({"deadline_s": 20.0 * HOUR_S}, half),
        ({"deadline_s": 2.0 * HOUR_S, "budget_usd": 50.0}, clusters),
        ({"deadline_s": 2.0 * HOUR_S, "hourly_usd": 20.0}, clusters),
        ({"deadline_s": 5.0 * HOUR_S, "confidence": 0.5}, half[::-1]),
    )
    for values, some in questions:
        again, afresh = (
            rated(under(asked, **values), each, some) for each in (known, RatedClusters())
        )
        assert again.keys() == afresh.keys()
        for candidate, figures in afresh.items():
            assert again[candidate] == pytest.approx(figures, rel=1e-12)


@pytest.mark.parametrize("deadline_h", [2.0, 20.0])
def test_the_rates_under_a_deadline_are_those_of_the_linear_program(deadline_h: float) -> None:
    """Which computes them from the limits themselves, for one deadline only."""
    helped = 0
    for seed in range(12):
        asked = under(space(seed), deadline_s=deadline_h * HOUR_S)
        clusters = clusters_of(asked)
        found = rated(asked, RatedClusters(), clusters)
        for columns in rated_columns(asked, clusters):
            for row, number in enumerate(columns.cluster.tolist()):
                plan = Candidate(
                    site=clusters[number].site,
                    entries=clusters[number].entries,
                    counts=clusters[number].counts,
                    checkpoint_path=int(columns.checkpoint_path[row]),
                    fallback=int(columns.fallback[row]),
                )
                assert found[plan][0] == pytest.approx(columns.usd[row], rel=1e-9)
                helped += plan.fallback >= 0
    assert helped > 50


def test_only_plans_under_a_deadline_have_fallbacks() -> None:
    asked = next(s for s in map(space, range(50)) if len(s.sites[0].fallbacks))
    clusters, known = clusters_of(asked), RatedClusters()

    def fallbacks(parts: list[RatedPlans]) -> bool:
        return bool((np.concatenate([part.fallback for part in parts]) >= 0).any())

    assert fallbacks(list(known.plans_of(under(asked, deadline_s=HOUR_S), clusters)))
    assert not fallbacks(list(known.plans_of(under(asked), clusters)))


def test_estimates_are_of_their_own_clusters_where_some_have_no_checkpoint_path() -> None:
    """Without checkpoints spot machines are none of the plans; the others keep their clusters."""
    asked = next(
        s
        for s in map(space, range(50))
        if 0 < s.sites[0].entries.spot.sum() < len(s.sites[0].entries)
    )
    clusters, spot = clusters_of(asked), asked.sites[0].entries.spot
    found = columns_of(replace(asked, checkpoint_paths=(NONE,)), clusters)
    assert len(found)
    assert not any(spot[clusters[number].entries[0]] for number in found.cluster.tolist())
