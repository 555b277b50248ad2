"""What is to be run, read off a plan."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.export.description import even_passes, locations_of, safe_name
from recommender.export.header import header
from recommender.export.train_command import changed_by_fallback
from recommender.plan.limits import Limits
from recommender.plan.plan import Site
from tests.recommender import answers
from tests.recommender.export.runs import AWS, GCP, HOUR, MIXED, ON_DEMAND, described


def test_zones_of_google_are_names_and_those_of_aws_are_ids():
    assert [place.zones for place in GCP.locations] == [
        ("europe-north1-a",), ("europe-west9-a",), ("asia-south2-a",),
    ]  # fmt: skip
    assert [place.zones for place in AWS.locations] == [()] * 4
    assert AWS.locations[0].zone_ids == ("use2-az3",)


def test_zones_of_one_region_that_follow_each_other_are_one_place():
    sites = answers.GCP.sites
    again = (sites[0], replace(sites[0], zone="europe-north1-b"), sites[1], sites[0])
    run = described(replace(answers.GCP, sites=again))
    assert [place.region for place in run.locations] == [
        "europe-north1", "europe-west9", "europe-north1",
    ]  # fmt: skip
    assert run.locations[0].zones == ("europe-north1-a", "europe-north1-b")


def test_on_demand_machines_are_requested_in_their_one_region():
    assert [place.region for place in ON_DEMAND.locations] == ["us-east-1"]
    assert not ON_DEMAND.spot
    assert MIXED.mixed
    assert not GCP.mixed


@pytest.mark.parametrize(
    ("deadline_h", "budget_usd", "cap_h"),
    [
        (None, None, 60.0),  # three times what 1 run in 100 exceeds
        (72.0, None, 72.0),  # the deadline, near or far
        (19.0, None, 19.0),
        (72.0, 1.0, 72.0),
        (None, 9000.0, 60.0),  # or as long as that pays for, which is longer
        (None, 1.0, 60.0),  # the amount stops it
    ],
)
def test_the_user_s_limits_stop_a_run(
    deadline_h: float | None, budget_usd: float | None, cap_h: float
) -> None:
    time = replace(answers.GCP.estimate.time, p99=20 * HOUR)
    plan = replace(answers.GCP, estimate=replace(answers.GCP.estimate, time=time))
    deadline_s = None if deadline_h is None else deadline_h * HOUR
    for each in (plan, replace(plan, fallback=None)):
        run = described(each, Limits(deadline_s=deadline_s, budget_usd=budget_usd))
        paid_h = (budget_usd or 0.0) / plan.usd_per_hour if deadline_h is None else 0.0
        assert run.longest_s == pytest.approx(max(cap_h, paid_h) * HOUR, abs=1)
        assert run.budget_usd == budget_usd
        assert run.usual_s == 20 * HOUR


@pytest.mark.parametrize("deadline_s", [86399.96, 100_000.4, 250_000.2, 1_234_567.0])
def test_a_deadline_that_is_no_round_number_ends_the_run_before_it_is_over(
    deadline_s: float,
) -> None:
    run = described(answers.GCP, Limits(deadline_s=deadline_s))
    assert deadline_s - 1.0 < run.longest_s <= deadline_s
    assert run.on_fallback is not None
    assert run.on_fallback.longest_s == run.longest_s


def test_a_region_without_a_known_zone_is_in_no_list() -> None:
    """Price lists name regions in which no machine of the type stands."""
    sites = answers.GCP.sites
    unzoned = Site("nowhere1", "", 1.0, "")
    for order in ((unzoned, *sites), (*sites, unzoned)):
        found = [each.region for each in locations_of(replace(answers.GCP, sites=order))]
        assert found == list(dict.fromkeys(site.region for site in sites))
    alone = described(replace(answers.GCP, sites=(unzoned,)))
    assert [each.region for each in alone.locations] == ["nowhere1"]
    assert any("No zone of nowhere1 is known" in line for line in header(alone, "", ()))
    assert not any("No zone of" in line for line in header(GCP, "", ()))


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("llama3-8b-lora", "llama3-8b-lora"),
        ("My job; rm -rf /", "my-job-rm-rf"),
        ("8 GPUs", "train-8-gpus"),
        ("日本", "train"),
        ("x" * 60, "x" * 40),
    ],
)
def test_a_name_is_safe_everywhere(name: str, safe: str):
    assert safe_name(name) == safe


@given(st.integers(1, 4096), st.integers(1, 512))
def test_passes_of_one_size_make_the_batch_where_twice_as_many_can(samples: int, most: int):
    passes = even_passes(samples, most)
    fewest = -(-samples // most)
    assert fewest <= passes <= 2 * fewest
    sizes = [n for n in range(1, most + 1) if samples % n == 0 and samples // n <= 2 * fewest]
    assert passes == (samples // max(sizes) if sizes else fewest)


@pytest.mark.parametrize(
    ("sharding", "together"),
    [
        ("fsdp", 1),
        ("TP 8 × PP 4 × DP 2", 32),
        ("TP 8 × FSDP 4", 8),
        ("FSDP 16, CP 8", 8),
        ("PP 4 × DP 16, EP 8", 4),
        ("TP 8 × CP 2 × PP 8 × DP 4", 128),
    ],
)
@pytest.mark.parametrize("most", [1, 6, 7, 32])
def test_the_passes_of_all_copies_of_the_network_make_the_batch(
    sharding: str, together: int, most: int
):
    machines = replace(GCP.plan.machines[0], count=64)
    step = replace(GCP.plan.estimate.step, sharding=sharding, micro_batch=most, accumulation=99)
    found = replace(GCP.plan.estimate, step=step)
    run = described(replace(GCP.plan, machines=(machines,), estimate=found))
    job = replace(run.job, global_batch=4096)
    own = replace(run, job=job).step
    assert own.micro_batch <= most
    assert own.micro_batch * own.accumulation * (512 // together) == 4096
    assert own.accumulation >= step.stages


def test_the_machines_that_take_over_have_a_step_of_their_own():
    """Smaller GPUs do not hold the micro-batch of larger ones, nor fill their layout."""
    own = replace(
        GCP.plan.estimate.step, sharding="fsdp", micro_batch=1, accumulation=8, recompute_s=0.0
    )
    assert GCP.plan.fallback is not None
    late = replace(GCP.plan.fallback, step=own)
    run = described(replace(GCP.plan, fallback=late)).on_fallback
    assert run is not None
    assert (run.step.micro_batch, run.step.accumulation) == (1, 8)
    assert run.step.recompute_s == 0.0
    changed = {
        each.name for each in changed_by_fallback(described(replace(GCP.plan, fallback=late)))
    }
    assert {"MICRO_BATCH", "ACCUMULATION", "ACTIVATION_CHECKPOINTING"} <= changed


def test_a_script_gets_accumulation_steps_that_make_its_batch():
    step = replace(GCP.plan.estimate.step, micro_batch=13, accumulation=5)
    alone = replace(GCP.plan.machines[0], count=1, gpus=1)
    found = replace(GCP.plan.estimate, step=step)
    run = described(replace(GCP.plan, machines=(alone,), estimate=found))
    assert run.job.global_batch == 64
    assert (run.step.micro_batch, run.step.accumulation) == (8, 8)
