"""Every parallelism strategy in the list, through what the step and reports ask."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from recommender.job.job import MODEL_PARALLEL_SHARDINGS, SHARDINGS
from recommender.performance.data_parallel import ON_REQUEST, ROWS, ZERO_COPIES, Fsdp
from recommender.performance.memory import GIB, bytes_of, extra_gathered_bytes, per_sample
from recommender.performance.priors import prior_of
from recommender.performance.step import (
    STRATEGIES,
    STRATEGY_OF_ROW,
    explain,
    steps,
    strategy_of,
    terms_of,
)
from tests.recommender.performance.parts import clusters, columns, llama, resnet

WORDS = [word for word in SHARDINGS if word != "auto"]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_a_job_file_has_one_strategy(word):
    known = (*STRATEGIES, *ON_REQUEST.values())
    assert [word in strategy.words for strategy in known].count(True) == 1
    assert word in strategy_of(word).words


def test_every_row_of_the_terms_belongs_to_a_strategy():
    job = llama(stack="tuned")
    terms = terms_of(job, prior_of(job), clusters(columns(job), {0: 1}))
    assert len(terms.step_s) == len(STRATEGY_OF_ROW)
    assert [STRATEGY_OF_ROW[i].words for i in range(len(ROWS))] == [(name,) for name, _ in ROWS]


@pytest.mark.parametrize("word", WORDS)
def test_a_step_is_explained_by_the_strategy_that_was_requested(word):
    job = llama(sharding=word, parameters=4e8, trainable_parameters=4e8)
    found = columns(job)
    fleet = clusters(found, {0: 2})
    step = steps(job, found, fleet)
    row = {"zero1": "ddp", "zero2": "ddp", "zero3": "fsdp"}.get(word, word)
    assert STRATEGY_OF_ROW[int(step.row[0])] is strategy_of(row)
    split = explain(job, found, fleet, 0)
    assert split.sharding == word or word in MODEL_PARALLEL_SHARDINGS
    assert 0 < split.memory_gib <= found.memory_bytes[0] / GIB


def test_the_lines_of_the_memory_add_up():
    job = llama(sharding="fsdp")
    needs, found = bytes_of(job, prior_of(job)), columns(job)
    fleet = clusters(found, {0: 1})
    lines = dict(Fsdp().layout(needs, fleet, steps(job, found, fleet)).memory_parts_gib)
    split = explain(job, found, fleet, 0)
    shards = float(fleet.gpus[0])
    total = needs.states / shards + extra_gathered_bytes(needs, shards) + needs.context
    total += split.micro_batch * per_sample(needs, split.recompute_s > 0)
    assert sum(lines.values()) == pytest.approx(total / GIB)
    assert lines["logits"] == pytest.approx(split.micro_batch * 8192 * 128_256 * 12 / GIB)


def test_a_job_without_any_strategy_has_no_step():
    job = resnet(sharding="tensor")
    assert not any(strategy.allowed(job) for strategy in STRATEGIES)
    assert np.isinf(steps(job, columns(job), clusters(columns(job), {0: 1})).step_s[0])


# Bytes of the states of 7.5 B parameters in GB on so many GPUs: ZeRO's own figures (Rajbhandari et
# al., arXiv 1910.02054, table 1), stages 1, 2 and 3.
ZERO = {
    1: (120.0, 120.0, 120.0), 4: (52.5, 41.3, 30.0), 16: (35.6, 21.6, 7.5),
    64: (31.4, 16.6, 1.88), 256: (30.4, 15.4, 0.47), 1024: (30.1, 15.1, 0.12),
}  # fmt: skip


@pytest.mark.parametrize("gpus", ZERO)
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_states_are_divided_as_zero_says(gpus, stage):
    job = llama(
        parameters=7.5e9, trainable_parameters=7.5e9, active_parameters=7.5e9, stack="tuned"
    )
    needs, prior = bytes_of(job, prior_of(job)), prior_of(job)
    assert prior.gradient_bytes == 2.0
    fleet = SimpleNamespace(gpus=np.array([float(gpus)]))
    strategy = strategy_of({1: "zero1", 2: "zero2", 3: "fsdp"}[stage])
    held = sum(float(part[0]) for part in strategy.held_parts(needs, fleet))
    moving = extra_gathered_bytes(needs, float(gpus)) if stage == 3 else 0.0  # which it leaves out
    moving += 2.0 * 7.5e9 * (1 - 1 / gpus) if stage == 2 else 0.0
    assert (held - moving) / 1e9 == pytest.approx(ZERO[gpus][stage - 1], rel=0.02, abs=0.005)


def test_dividing_more_takes_less_memory_and_more_traffic():
    words = ("ddp", "zero1", "zero2", "fsdp")
    jobs = [llama(sharding=word, parameters=4e8, trainable_parameters=4e8) for word in words]
    found = columns(jobs[0])
    fleet = clusters(found, {0: 4})
    splits = [explain(job, found, fleet, 0) for job in jobs]
    states = [
        sum(dict(split.memory_parts_gib)[n] for n in ("weights", "gradients", "optimizer"))
        for split in splits
    ]
    assert states == sorted(states, reverse=True)
    assert len(set(states)) == 3  # DeepSpeed's second stage has whole gradients before it divides


# DeepSpeed's estimators (deepspeed/runtime/zero/stage_1_and_2.py; read 2026-11-29) count 4 bytes a
# parameter whole, and the optimizer's divided; its README of bf16_master_weight 32-bit gradients.
@pytest.mark.parametrize("gpus", [1, 8, 64])
def test_stages_hold_what_deepspeed_estimates(gpus):
    job = llama(parameters=7.5e9, trainable_parameters=7.5e9, stack="tuned")
    needs = bytes_of(job, prior_of(job))
    fleet = SimpleNamespace(gpus=np.array([float(gpus)]))
    second = float(strategy_of("zero2").held_bytes(needs, fleet)[0])
    assert 7.5e9 * (4 + 12 / gpus) == pytest.approx(second)
    third = strategy_of("zero3")
    fused = third.updating_bytes(replace(needs, update=4 * 7.5e9 / ZERO_COPIES), fleet)
    assert float(fused[0]) == pytest.approx(7.5e9 * 16 / gpus + 4 * min(7.5e9 / gpus, 1e9))
