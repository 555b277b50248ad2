"""Which clusters go on with their on-demand part, and what a change of size costs them."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.optimize.evaluate import RENDEZVOUS_S, path_inputs_of, reduced
from recommender.performance.step import steps
from recommender.risk.path_inputs import PathInputs
from tests.recommender.optimize.palette import every_cluster, every_plan, job, space

SEEDS = range(24)


def inputs(seed: int, elastic: bool | None) -> PathInputs:
    q = space(seed)
    q, site = replace(q, job=replace(q.job, elastic=elastic)), q.sites[0]
    plans = every_plan(q, site, every_cluster(site, q.limits.max_machines))
    return path_inputs_of(q, site, plans)[0]


@pytest.mark.parametrize(
    ("stated", "resizes"),
    [
        ({}, True),
        ({"sharding": "fsdp"}, True),
        ({"sharding": "tensor"}, False),
        ({"sharding": "pipeline"}, False),
        ({"sync": "parameter_server"}, False),
        ({"elastic": False}, False),
        ({"sharding": "tensor", "elastic": True}, True),
    ],
)
def test_a_job_resizes_where_its_ranks_hold_the_whole_network_unless_it_says(
    stated: dict[str, object], resizes: bool
) -> None:
    assert job(**({"elastic": None} | stated)).resizes is resizes


def test_clusters_of_one_market_are_gangs_and_mixed_ones_of_data_parallel_jobs_are_not() -> None:
    mixed = 0
    for seed in SEEDS:
        found, gang = inputs(seed, None), inputs(seed, False)
        both = (found.base_usd_per_hour > 0) & (found.spot_usd_per_hour > 0)
        assert not gang.elastic_share.any()
        assert not found.elastic_share[~both].any()
        # The part is never faster than the whole, and stating it can only add clusters.
        assert (found.elastic_share <= inputs(seed, True).elastic_share).all()
        mixed += int((found.elastic_share > 0).sum())
    assert mixed > 100


def test_a_change_of_size_takes_the_ranks_meeting_and_a_restore_of_the_whole_by_each_machine() -> (
    None
):
    for seed in SEEDS:
        q = space(seed)
        q, site = replace(q, job=replace(q.job, elastic=None)), q.sites[0]
        plans = every_plan(q, site, every_cluster(site, q.limits.max_machines))
        made = reduced(q, site, plans)
        rows = np.flatnonzero(made.inputs.elastic_share > 0)
        core = np.where(site.entries.spot, 0, plans.counts[rows])
        wanted = RENDEZVOUS_S + made.saves.restore_s[rows]
        assert made.inputs.resize_s[rows] == pytest.approx(wanted)
        later = made.saves.restore_s + made.saves.lag_s
        boot = made.inputs.changeover_s - RENDEZVOUS_S - later
        assert made.inputs.boot_s[rows] == pytest.approx(boot[rows])
        # The same global batch: the share is the ratio of the two steps.
        whole, part = (
            steps(q.job, q.columns, q.fleet(site, counts)).step_s
            for counts in (plans.counts[rows], core)
        )
        assert made.inputs.elastic_share[rows] == pytest.approx(np.minimum(whole / part, 1.0))
