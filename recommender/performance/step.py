"""How long one optimiser step takes on a cluster, with the best strategy, and why.

Contract with the optimiser's bounds (property-tested), for a fixed number of machines and
GPUs and everything else equal: `step_s` does not rise when compute, memory, network or links
inside the machine grow, and is never below global batch / `compute_per_s`.
"""

import numpy as np
from numpy.typing import NDArray

from recommender.job import Job
from recommender.performance.fleet import STRATEGIES, Fleet, MachineColumns, Steps
from recommender.performance.memory import GIB, bytes_of, parts_gib, per_sample
from recommender.performance.priors import prior_of
from recommender.performance.readings import slowdown
from recommender.performance.terms import shards_of, terms_of
from recommender.plan import StepSplit

TIE = 1 + 1e-12


def steps(job: Job, columns: MachineColumns, fleet: Fleet) -> Steps:
    """The fastest feasible step of every cluster; (clusters,), seconds.

    Where the user measured a type at several sizes, those clusters are slowed to what was
    measured (never sped up: the columns are already as fast as the fastest reading).
    """
    terms = terms_of(job, prior_of(job), fleet)
    # Where the input sets the pace, strategies tie but for rounding: the plainest one is meant.
    best = (terms.step_s <= terms.step_s.min(axis=0) * TIE).argmax(axis=0)
    rows = np.arange(len(fleet))
    runs = np.isfinite(terms.step_s[best, rows])
    stretch = slowdown(columns, fleet)

    def pick(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(runs, values[best, rows], 0.0)

    step = np.where(runs, terms.step_s.min(axis=0) * stretch, np.inf)
    compute, again, waiting = (
        pick(terms.compute_s),
        pick(terms.recompute_s),
        pick(terms.input_s),
    )
    # What a measured slowdown adds is communication: the reading at the smallest size set R.
    exposed = np.where(runs, np.where(runs, step, 0.0) - compute - again - waiting, 0.0)
    exposed = np.maximum(exposed, 0.0)
    network = np.where(fleet.machines > 1, pick(terms.network_share), 0.0)
    return Steps(
        step_s=step,
        compute_s=compute,
        recompute_s=again,
        exposed_network_s=exposed * network,
        exposed_intra_s=exposed * (1.0 - network),
        input_s=waiting,
        strategy=np.where(runs, best, 0).astype(np.int64),
        micro_batch=pick(terms.micro_batch),
        accumulation=pick(terms.accumulation),
    )


def explain(job: Job, columns: MachineColumns, fleet: Fleet, row: int) -> StepSplit:
    """One cluster's step term by term, and the memory of one GPU line by line."""
    one = fleet.take(np.array([row]))
    found = steps(job, columns, one)
    if not np.isfinite(found.step_s[0]):
        raise ValueError(why_infeasible(job, columns, fleet, row))
    strategy = int(found.strategy[0])
    sharding, again = STRATEGIES[strategy]
    shards = float(shards_of(one)[strategy, 0])
    needs = bytes_of(job, prior_of(job))
    parts = parts_gib(needs, shards, float(found.micro_batch[0]), again)
    return StepSplit(
        step_s=float(found.step_s[0]),
        compute_s=float(found.compute_s[0]),
        recompute_s=float(found.recompute_s[0]),
        exposed_network_s=float(found.exposed_network_s[0]),
        exposed_intra_s=float(found.exposed_intra_s[0]),
        input_s=float(found.input_s[0]),
        micro_batch=int(found.micro_batch[0]),
        accumulation=int(found.accumulation[0]),
        sharding=sharding,
        memory_gib=sum(gib for _, gib in parts),
        memory_parts_gib=parts,
    )


def why_infeasible(job: Job, columns: MachineColumns, fleet: Fleet, row: int) -> str:
    """Why a cluster cannot train the job, naming the number; "" where it can."""
    one = fleet.take(np.array([row]))
    if np.isfinite(steps(job, columns, one).step_s[0]):
        return ""
    kind = int(one.kind[0])
    if kind >= 0 and columns.reasons[kind]:
        return columns.reasons[kind]
    gpus, batch = int(one.gpus[0]), job.global_batch
    if gpus > batch:
        return f"{gpus} GPUs share a batch of {batch}: less than one sample each"
    if one.machines[0] > 1 and one.network_bytes_per_s[0] <= 0:
        return "its network bandwidth is not known: one machine only"
    needs, shards = bytes_of(job, prior_of(job)), shards_of(one)[:, 0]
    allowed = [i for i, (name, _) in enumerate(STRATEGIES) if job.sharding in ("auto", name)]
    least = min(
        needs.context + needs.states / shards[i] + per_sample(needs, STRATEGIES[i][1])
        for i in allowed
    )
    name = columns.names[kind] if kind >= 0 else "the smallest GPU"
    has = float(one.memory_bytes[0])
    return f"needs {least / GIB:.1f} GiB per GPU, {name} has {has / GIB:.1f} usable"
