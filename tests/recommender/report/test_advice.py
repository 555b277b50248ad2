"""Sentences under the plans of an answer."""

from dataclasses import replace

from recommender.plan.answer import Pick, SensitivityStep, Trio
from recommender.plan.limits import Limits
from recommender.plan.plan import BillItem, Need, Plan, Spread
from recommender.report import cells
from recommender.report.advice import (
    bill_sentence,
    changed,
    comparison,
    fallback_sentence,
    layout_sentence,
    needs_sentence,
    save_sentence,
    spot_sentence,
    time_sentence,
)
from tests.recommender.answers import ANSWER, GCP, ON_DEMAND, QUESTION

HOUR = 3600.0


def with_time(made: Plan, time: Spread) -> Plan:
    return replace(made, estimate=replace(made.estimate, time=time))


def test_the_time_is_the_median_and_what_one_run_in_twenty_exceeds() -> None:
    times = Spread(mean=90 * HOUR, p05=HOUR, p50=2 * HOUR, p95=15 * HOUR, trimmed_mean=4 * HOUR)
    said = time_sentence(with_time(GCP, times))
    assert said.startswith("2 h, 1 run in 20 over 15 h; a usual run: ")
    assert "90" not in said.partition(";")[0]


def test_intervals_that_are_as_good_are_named_where_there_are_others() -> None:
    saving = replace(GCP.checkpointing, interval_s=600.0, as_good_s=(300.0, 1200.0))
    said = save_sentence(replace(GCP, checkpointing=saving))
    assert said.startswith("every 5 to 20 min to the bucket, the cost within 0.1 % the same (takes")
    alone = replace(saving, as_good_s=(600.0, 600.0))
    assert "within" not in save_sentence(replace(GCP, checkpointing=alone))
    hours = replace(saving, as_good_s=(1800.0, 7200.0))
    assert save_sentence(replace(GCP, checkpointing=hours)).startswith("every 30 min to 2 h to")


def test_a_plan_without_checkpoints_in_its_estimate_says_that_exported_files_save() -> None:
    saving = replace(GCP.checkpointing, path="none")
    assert save_sentence(replace(GCP, checkpointing=saving)).startswith("only against crashes")


def test_what_is_no_machine_is_reported_where_it_is_a_good_part_of_the_bill() -> None:
    """Moving large checkpoints between regions may cost more than the machines."""
    moved = BillItem("checkpoints moved between regions", 60.0)
    dear = replace(GCP.estimate, bill=(BillItem("1x a3-highgpu-8g spot", 40.0), moved))
    said = bill_sentence(replace(GCP, estimate=dear))
    assert said == (
        "60 % of the cost is for checkpoints moved between regions (60 USD); "
        "--failover zone stays in one region"
    )
    cheap = replace(dear, bill=(dear.bill[0], replace(moved, usd=4.0)))
    assert bill_sentence(replace(GCP, estimate=cheap)) == ""


def test_model_parallel_code_is_requested_and_sharding_offered_where_sequences_are_whole():
    step = replace(GCP.estimate.step, recompute_s=0.0)
    tensor, shared = (replace(step, sharding=word) for word in ("TP 8 × FSDP 4", "FSDP 16, CP 8"))
    assert layout_sentence(replace(step, sharding="fsdp")) == ""
    assert layout_sentence(tensor).endswith("; --sharding fsdp plans without it")
    assert layout_sentence(shared).endswith("that shares each sequence among GPUs")


def test_a_plan_with_recomputation_advises_activation_checkpointing() -> None:
    kept = replace(GCP.estimate.step, sharding="fsdp", recompute_s=0.0)
    assert layout_sentence(kept) == ""
    assert "activation checkpointing" in layout_sentence(replace(kept, recompute_s=1.0))


def test_patience_before_a_move_is_reported_only_where_there_is_some() -> None:
    patient = replace(GCP, move_after_s=1800.0)
    assert "after 30 min without spot in its zone, failover to" in spot_sentence(patient)
    assert "30 min without spot: next region" in cells.remarks(patient)
    assert "without spot" not in spot_sentence(GCP)
    assert not cells.remarks(GCP)


def test_a_quota_is_requested_in_full() -> None:
    """Twelve machines of 192 vCPU do not start under a quota of 2,300."""
    need = Need("All P5 Spot Instance Requests", 2304, "vcpu", "us-east-2", 0)
    assert "≥ 2,304 vCPU in us-east-2" in needs_sentence(replace(GCP, needs=(need,)), QUESTION)


def test_other_limits_are_compared_with_the_best_by_the_goal_which_need_not_lead() -> None:
    """A plan that is 3 h faster for 4 USD more is no change if it leads anyway."""
    picks = [Pick(role, rank, GCP) for role, rank in (("sensible", 2), ("cheapest", 1))]
    other = Trio(*picks, Pick("safest", 3, GCP))
    assert changed(replace(ANSWER, trio=None)) == "What would change the answer"
    assert changed(replace(ANSWER, trio=other)) == "What other limits would change, against plan 1"
    step = SensitivityStep("--deadline 28h", "plan 2: costs 29 USD more", None)
    both = replace(ANSWER, trio=other, sensitivity=(step,))
    assert changed(both) == "What other limits would change"


def test_saves_in_the_background_are_reported_where_waiting_for_them_would_matter() -> None:
    """22 s every minute would slow a Trainer that waits by a third."""
    large = replace(GCP.checkpointing, interval_s=60.0, stall_s=0.3, transfer_s=22.0)
    assert "asynchronous_save: no" in save_sentence(replace(GCP, checkpointing=large))
    small = replace(large, transfer_s=1.0)
    assert "background" not in save_sentence(replace(GCP, checkpointing=small))
    waited = replace(large, stall_s=22.0)
    assert "background" not in save_sentence(replace(GCP, checkpointing=waited))


def test_a_fallback_that_shares_the_network_in_another_way_says_so() -> None:
    assert GCP.fallback is not None
    step = replace(GCP.estimate.step, sharding="TP 8 × PP 8")
    late = replace(GCP, fallback=replace(GCP.fallback, step=step))
    assert "; its layout is TP 8 × PP 8" in fallback_sentence(late, QUESTION.job)
    alike = replace(late, estimate=replace(late.estimate, step=step))
    assert "layout" not in fallback_sentence(alike, QUESTION.job)
    assert "layout" not in fallback_sentence(GCP, QUESTION.job)


def test_one_gpu_is_no_plural() -> None:
    for amount, said in ((1.0, "≥ 1 GPU in"), (4.0, "≥ 4 GPUs in")):
        need = Need("Preemptible NVIDIA H100 GPUs", amount, "gpu", "us-east4")
        assert said in needs_sentence(replace(GCP, needs=(need,)), QUESTION)


def test_an_on_demand_plan_over_the_budget_is_called_neither_the_fastest_nor_the_cheapest() -> None:
    """Where none is within the budget, the one compared is not the fastest that money can buy."""
    cost = GCP.estimate.cost.mean
    led = replace(GCP, saving=1.0 - cost / ON_DEMAND.estimate.cost.mean)
    poor = replace(ON_DEMAND, estimate=replace(ON_DEMAND.estimate, chance=0.1))
    limited = replace(QUESTION, limits=Limits(budget_usd=200.0))
    answer = replace(ANSWER, goal="time", plans=(led,), baselines=(poor,))
    assert comparison(answer, limited) == (
        "Plan 1 is 74 % cheaper than the all-on-demand plan (249 USD; it costs up to 351 USD: "
        "over budget)."
    )
    within = replace(limited, limits=Limits(budget_usd=400.0))
    affordable = replace(answer, baselines=(ON_DEMAND,))
    assert comparison(affordable, within) == (
        "Plan 1 is 74 % cheaper than the fastest on-demand plan (249 USD)."
    )


def test_a_save_that_blocks_training_to_its_end_is_given_one_length() -> None:
    """It takes 240 ms, and training stops for 242 ms: one figure is enough."""
    blocking = replace(GCP.checkpointing, transfer_s=0.240, stall_s=0.242)
    assert "(blocks training for 242 ms)" in save_sentence(replace(GCP, checkpointing=blocking))
    copied = replace(blocking, stall_s=0.002)
    said = save_sentence(replace(GCP, checkpointing=copied))
    assert "(takes 240 ms, blocks training for 2 ms)" in said
    assert "(takes 240 ms)" in save_sentence(
        replace(GCP, checkpointing=replace(blocking, stall_s=0.0))
    )
