"""The parts of a plan add up: its time split, its notes and its bill."""

from dataclasses import replace

import pytest

from recommender.inputs.units import parse_comparison
from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.plan.limits import Choice, Limits
from tests.recommender.planning import HOUR, NOW, recommend
from tests.shipped import snapshot

HERE = Choice(regions=("us-east-1",), instances=("g4dn.xlarge", "p3.16xlarge", "p4d.24xlarge"))


@pytest.mark.parametrize("steps", ["1", "1.5", "200"])
def test_tiny_jobs_are_planned_as_quickly_as_others_and_take_little_more_than_their_start(
    steps: str,
) -> None:
    job = find_job("resnet50-imagenet", flags=JobFlags(steps=steps))
    answer = recommend(job, Limits(deadline_s=86_400.0), catalog=snapshot(), now=NOW)
    assert answer.proof.plans_simulated < 1500
    for plan in answer.plans:
        split, time = plan.estimate.split, plan.estimate.time
        known = split.start_up_s + split.work_s + split.waiting_s + split.restart_s
        assert known + split.lost_s + split.checkpoint_s == pytest.approx(time.p50, rel=0.03)
        if all(m.market == "on_demand" for m in plan.machines):
            assert time.p50 <= split.start_up_s + 2.0 * split.work_s + 60.0


@pytest.mark.parametrize("mtbf_h", [0.1, 4.0])
def test_a_plan_that_lives_on_free_first_hours_says_so(mtbf_h: float) -> None:
    choice = replace(HERE, mtbf_h=mtbf_h, market="spot")
    limits = Limits(deadline_s=86_400.0, confidence=0.5)
    plans = recommend(
        find_job("resnet50-imagenet"), limits, choice, catalog=snapshot(), now=NOW
    ).plans
    notes = [note for plan in plans for note in plan.notes if "are not billed" in note]
    assert bool(notes) == (mtbf_h < 1.0)


@pytest.mark.parametrize(
    "choice",
    [
        HERE,
        replace(HERE, market="on_demand"),
        replace(HERE, regions=()),
        Choice(checkpoint_to="memory_tier", instances=("g6.2xlarge", "p4d.24xlarge")),
        Choice(checkpoint_to="anchor", mix="yes", regions=("us-east-1",)),
    ],
)
@pytest.mark.parametrize("limits", [Limits(hourly_usd=30.0), Limits(deadline_s=6 * HOUR)])
def test_every_line_of_a_bill_is_paid_and_they_sum_to_the_cost(
    choice: Choice, limits: Limits
) -> None:
    job = find_job("resnet50-imagenet")
    limits = replace(limits, max_machines=4)
    answer = recommend(job, limits, choice, catalog=snapshot(), now=NOW)
    for plan in answer.plans + answer.baselines:
        bill = plan.estimate.bill
        assert min(line.usd for line in bill) > 0.0
        cost = plan.estimate.cost.mean
        assert sum(line.usd for line in bill) == pytest.approx(cost, rel=1e-4, abs=0.03)


def test_the_bill_of_a_job_of_a_few_cents_sums_to_its_cost() -> None:
    """Lines of less than half a cent are 3 % of the cost of ResNet-18 on CIFAR-10."""
    job = find_job("resnet18-cifar10")
    answer = recommend(job, Limits(deadline_s=24 * HOUR), catalog=snapshot(), now=NOW)
    first = answer.plans[0].estimate
    assert first.cost.mean < 0.1
    assert sum(line.usd for line in first.bill) == pytest.approx(first.cost.mean, rel=1e-3)


def test_a_mean_of_interruptions_is_not_that_of_usual_runs() -> None:
    """Few runs have many: the share with any, and what 1 run in 20 has, are those simulated."""
    job, limits = find_job("llama3-8b-lora"), Limits(deadline_s=24 * HOUR)
    choice = Choice(instances=("a4-highgpu-8g",), market="spot")
    found = recommend(job, limits, choice, catalog=snapshot(), now=NOW).plans[0].estimate
    assert found.interruptions <= found.interrupted * found.interruptions_p95 * 2.0
    assert found.interrupted < 0.5 < 1.0 < found.interruptions < found.interruptions_p95
    on_demand = replace(choice, market="on_demand", instances=("p4d.24xlarge",))
    sure = recommend(job, limits, on_demand, catalog=snapshot(), now=NOW).plans[0].estimate
    assert (sure.interrupted, sure.interruptions_p95) == (0.0, 0.0)


def test_parameter_servers_are_paid() -> None:
    """Of twice as many servers the bill and the price per hour hold twice as much; of one none."""
    job = replace(find_job("resnet50-imagenet"), sync="parameter_server")
    found = {}
    for servers, rented in ((1, "4x g4dn.xlarge"), (2, "4x g4dn.xlarge"), (2, "1x p4d.24xlarge")):
        answer = recommend(
            replace(job, parameter_servers=servers),
            Limits(max_machines=1),
            HERE,
            compare=parse_comparison(rented, "--compare"),
            catalog=snapshot(),
            now=NOW,
        )
        assert answer.compared is not None
        found[servers, rented] = answer.compared
    one, two, alone = found.values()
    hours = [plan.estimate.time.mean / HOUR for plan in (one, two)]
    paid = [dict((b.item, b.usd) for b in p.estimate.bill)["parameter servers"] for p in (one, two)]
    assert paid[1] / hours[1] == pytest.approx(2.0 * paid[0] / hours[0], rel=0.01)
    rented = 4 * one.machines[0].usd_per_hour
    assert two.usd_per_hour - rented == pytest.approx(2.0 * (one.usd_per_hour - rented))
    assert any("2 CPU machines on demand for parameter servers" in note for note in two.notes)
    assert not [line for line in alone.estimate.bill if "server" in line.item]
    assert sum(line.usd for line in two.estimate.bill) == pytest.approx(
        two.estimate.cost.mean, rel=1e-4, abs=0.03
    )
