"""The list of parallelism strategies, for the step, its bounds and reports.

A new strategy is a class with the methods of `Strategy` (of `DataParallel` if every GPU runs the
whole network), a place in the list, and its name in `recommender.job.job.Sharding`.
"""

from dataclasses import fields

import numpy as np

from recommender.job.job import Job, Sharding
from recommender.performance.clusters import Clusters
from recommender.performance.data_parallel import DATA_PARALLEL, data_parallel_terms
from recommender.performance.link_domain import linked
from recommender.performance.memory import Bytes, bytes_of
from recommender.performance.model_parallel import MODEL_PARALLEL, best_layouts
from recommender.performance.priors import Prior
from recommender.performance.strategy import StepTerms, Strategy

STRATEGIES: tuple[Strategy, ...] = (*DATA_PARALLEL, MODEL_PARALLEL)
# The strategy of each row of `terms_of`: two of each data-parallel one, one of the best layouts.
STRATEGY_OF_ROW: tuple[Strategy, ...] = (
    *(strategy for strategy in DATA_PARALLEL for _ in range(2)),
    MODEL_PARALLEL,
)


def terms_of(job: Job, prior: Prior, fleet: Clusters) -> StepTerms:
    """Every term of every layout on every cluster; (rows, clusters).

    The row of the best model-parallel layout exists only if the network may be divided. Machines
    that share their links count as one (`link_domain.py`).
    """
    needs, fleet = bytes_of(job, prior), linked(job, fleet)
    terms = data_parallel_terms(job, prior, fleet, needs)
    if not MODEL_PARALLEL.allowed(job):
        return terms
    best = best_layouts(job, prior, fleet, needs)
    names = (field.name for field in fields(StepTerms))
    return StepTerms(*(np.concatenate([getattr(terms, n), getattr(best, n)]) for n in names))


def strategy_of(word: Sharding) -> Strategy:
    """The strategy that a job's `sharding` requests; the simplest under `auto`."""
    return next((s for s in STRATEGIES if word in s.words), STRATEGIES[0])


def allowed(job: Job) -> tuple[Strategy, ...]:
    """The strategies that a job may be trained with."""
    return tuple(strategy for strategy in STRATEGIES if strategy.allowed(job))


def divides_states(job: Job) -> bool:
    """Whether with more GPUs each may hold less of the states."""
    return any(s.divides_states for s in STRATEGIES if job.sharding in ("auto", *s.words))


def allows_model_parallelism(job: Job) -> bool:
    """Whether GPUs may share the work on a sample."""
    return any(not strategy.whole_network for strategy in allowed(job))


def most_hidden(job: Job, prior: Prior) -> float:
    """The largest share of a step's arithmetic that hides communication, under any strategy."""
    return max((strategy.most_hidden(job, prior) for strategy in allowed(job)), default=1.0)


def large_messages(job: Job) -> bool:
    """Whether a strategy may send larger messages between machines than data parallelism."""
    return allows_model_parallelism(job) and job.stack == "tuned"


def min_penalty(job: Job, prior: Prior) -> float:
    """The least samples' worth of time that a micro-batch loses, per GPU of the cluster."""
    each = (strategy.min_penalty(job, prior) for strategy in allowed(job))
    return min(each, default=prior.batch_penalty)


def min_inside_bytes(job: Job, needs: Bytes) -> float:
    """The least traffic of a GPU over the links of its machine, under any strategy."""
    return min(strategy.min_inside_bytes(job, needs) for strategy in STRATEGIES)


def one_gpu_shardings(job: Job) -> tuple[Sharding, ...]:
    """Shardings that give machines of one GPU the same traffic between machines."""
    if job.sharding == "auto":
        return ("auto",)
    return strategy_of(job.sharding).one_gpu_shardings(job.sharding)
