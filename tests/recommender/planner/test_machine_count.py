"""`machines: N`: plans of exactly so many machines, and the best of those."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.performance.clusters import clusters_of
from recommender.performance.step import steps, why_infeasible
from recommender.plan.limits import Choice, Limits
from tests.recommender.performance.parts import G4DN, columns, resnet
from tests.recommender.planning import HOUR, NOW, recommend
from tests.shipped import snapshot

HERE = Choice(regions=("us-east-1",), instances=("g4dn.xlarge", "p3.16xlarge", "p4d.24xlarge"))
LIMITS = Limits(deadline_s=48 * HOUR, max_machines=6)


def answered(machines, limits=LIMITS, choice=HERE, job="resnet50-imagenet"):
    asked = find_job(job, flags=JobFlags(machines=machines))
    return recommend(asked, limits, choice, catalog=snapshot(), now=NOW)


def counts(plan):
    return sum(group.count for group in plan.machines)


@pytest.mark.parametrize("mix", ["no", "yes"])
def test_every_plan_has_as_many_machines_as_were_requested(mix):
    found = answered("3", choice=replace(HERE, mix=mix))
    assert found.plans
    assert {counts(plan) for plan in found.plans} == {3}


def test_the_best_number_of_machines_gives_the_same_best_plan_when_it_is_requested():
    """On demand: the cluster that a spot plan falls back to has the same number as well."""
    choice = replace(HERE, market="on_demand")
    free = answered(None, choice=choice).plans[0]
    fixed = answered(str(counts(free)), choice=choice).plans[0]
    assert fixed.estimate.cost.mean == pytest.approx(free.estimate.cost.mean)
    other = answered(str(counts(free) + 1), choice=choice).plans[0]
    assert other.estimate.cost.mean > free.estimate.cost.mean


def test_a_stated_number_may_be_more_than_are_looked_at_without():
    assert {counts(plan) for plan in answered("20", Limits()).plans} == {20}


def test_a_number_that_cannot_train_the_job_is_named_with_the_nearest_that_can():
    for number, none in (("1", "no machine"), ("2", "no cluster of exactly 2 machines")):
        found = answered(number, job="llama3-70b-sft").infeasible
        assert found is not None
        assert found.binding == (
            f"{none} among those allowed can train this job",
            f"--machines {number} is too few; 4 can train it",
        )
    assert answered("3", Limits(), job="llama3-70b-sft").infeasible is not None
    # Four fill 93 % of the memory, which fits in 88 of 100 cases.
    assert answered("4", Limits(confidence=0.85), job="llama3-70b-sft").plans


def test_other_numbers_of_machines_have_no_step_and_say_why():
    job, known = resnet(machines=2), columns(resnet(), (G4DN,))
    fleet = clusters_of(known, np.array([[1], [2], [3]]))
    assert np.isfinite(steps(job, known, fleet).step_s).tolist() == [False, True, False]
    assert why_infeasible(job, known, fleet, 0) == "the job asks for exactly 2 machines"
