"""The list of parallelism strategies, for the step and reports.

A new strategy is a class with the methods of `Strategy` (of `DataParallel` if every GPU runs the
whole network), a place in the list, and its name in `recommender.job.job.Sharding`.
"""

import numpy as np

from recommender.job.job import Job, Sharding
from recommender.performance.clusters import Clusters
from recommender.performance.data_parallel import (
    DATA_PARALLEL,
    ON_REQUEST,
    data_parallel,
    data_parallel_terms,
)
from recommender.performance.link_domain import alike, linked
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
    that share their links count as one, whole racks or equal parts of them (`link_domain.py`).
    """
    needs = bytes_of(job, prior)
    terms = _terms_on(job, prior, linked(job, fleet), needs)
    rows, parts = alike(job, fleet)
    found = {name: getattr(terms, name) for name in StepTerms.__slots__}
    for part in parts:
        other = _terms_on(job, prior, part, needs)
        faster = other.step_s < found["step_s"][:, rows]
        for name, values in found.items():
            found[name] = values.copy()
            found[name][:, rows] = np.where(faster, getattr(other, name), values[:, rows])
    return StepTerms(**found)


def grouped(job: Job, prior: Prior, one: Clusters) -> Clusters:
    """One cluster, with links in racks or in equal parts of them, whichever is faster."""
    needs, tried = bytes_of(job, prior), (linked(job, one), *alike(job, one)[1])
    return min(tried, key=lambda each: float(_terms_on(job, prior, each, needs).step_s.min()))


def _terms_on(job: Job, prior: Prior, fleet: Clusters, needs: Bytes) -> StepTerms:
    terms = data_parallel_terms(job, prior, fleet, needs)
    if not MODEL_PARALLEL.allowed(job):
        return terms
    best = best_layouts(job, prior, fleet, needs)
    names = StepTerms.__slots__
    return StepTerms(*(np.concatenate([getattr(terms, n), getattr(best, n)]) for n in names))


def strategy_of(word: Sharding) -> Strategy:
    """The strategy that a job's `sharding` requests; the simplest under `auto`."""
    return next((s for s in (*STRATEGIES, *ON_REQUEST.values()) if word in s.words), STRATEGIES[0])


def strategies(job: Job) -> tuple[Strategy, ...]:
    """The strategies that may train a job."""
    return (*data_parallel(job), MODEL_PARALLEL)
