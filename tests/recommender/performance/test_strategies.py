"""Every parallelism strategy in the list, through what the step and reports ask."""

import numpy as np
import pytest

from recommender.job.job import MODEL_PARALLEL_SHARDINGS, SHARDINGS
from recommender.performance.data_parallel import ROWS, Fsdp
from recommender.performance.memory import GIB, bytes_of, extra_gathered_bytes, per_sample
from recommender.performance.priors import prior_of
from recommender.performance.step import explain, steps
from recommender.performance.strategies import (
    STRATEGIES,
    STRATEGY_OF_ROW,
    strategy_of,
    terms_of,
)
from tests.recommender.performance.parts import clusters, columns, llama, resnet

WORDS = [word for word in SHARDINGS if word != "auto"]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_a_job_file_has_one_strategy(word):
    assert [word in strategy.words for strategy in STRATEGIES].count(True) == 1
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
    assert STRATEGY_OF_ROW[int(step.row[0])] is strategy_of(word)
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
