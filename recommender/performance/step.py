"""The time of one optimiser step on a cluster with the best strategy, and its explanation.

Property-tested, for a fixed number of machines and GPUs and everything else equal: `step_s` does
not rise when compute, memory, network or links inside the machine grow, and is never below global
batch / `compute_per_s`.

If the batch of each GPU is fixed, N GPUs train on N times `job.global_batch` in one optimiser step.
Plans need the time of a fixed amount of work, so `steps` gives the N-th part.
"""

from dataclasses import replace

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.job.job import Job, Sharding
from recommender.performance.clusters import (
    Clusters,
    MachineColumns,
    Steps,
    alike,
    linked,
    slowdown,
)
from recommender.performance.data_parallel import (
    DATA_PARALLEL,
    ON_REQUEST,
    data_parallel,
    data_parallel_terms,
)
from recommender.performance.generation import generation_s
from recommender.performance.memory import (
    GIB,
    SURE,
    VISIBLE,
    Bytes,
    bytes_of,
    fit_chance,
    sure_bytes,
)
from recommender.performance.model_parallel import MODEL_PARALLEL, best_layouts
from recommender.performance.priors import Prior, prior_of
from recommender.performance.strategy import StepTerms, Strategy
from recommender.plan.plan import StepSplit

STRATEGIES: tuple[Strategy, ...] = (*DATA_PARALLEL, MODEL_PARALLEL)
# The strategy of each row of `terms_of`: two of each data-parallel one, one of the best layouts.
STRATEGY_OF_ROW: tuple[Strategy, ...] = (
    *(strategy for strategy in DATA_PARALLEL for _ in range(2)),
    MODEL_PARALLEL,
)
TIE = 1 + 1e-12
DEGREES = ("tensor", "context", "stages", "sharded", "experts", "again")
SECONDS = ("compute_s", "recompute_s", "bubble_s", "input_s")
PARTS = (*SECONDS, "network_share", "micro_batch", "accumulation")


def terms_of(job: Job, prior: Prior, fleet: Clusters) -> StepTerms:
    """Every term of every layout on every cluster; (rows, clusters).

    The row of the best model-parallel layout exists only if the network may be divided. Machines
    that share their links count as one, whole racks or equal parts of them (`clusters.py`).
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


def steps(job: Job, columns: MachineColumns, fleet: Clusters, prior: Prior | None = None) -> Steps:
    """The fastest feasible step of every cluster; (clusters,), seconds per `job.global_batch`.

    With the speed constants of the job, or others; only clusters of the stated number of machines.

    If the user measured a type at several sizes, those clusters are slowed to the measurement
    (never sped up: the columns are already as fast as the fastest timing).
    """
    terms = terms_of(job, prior or prior_of(job), fleet)
    # Where the input sets the pace, strategies tie but for rounding: the plainest one is meant.
    seconds = terms.step_s.min(axis=0)
    best = (terms.step_s <= seconds * TIE).argmax(axis=0)
    runs = np.isfinite(seconds)
    least = np.where(np.isfinite(terms.step_s), terms.least_bytes, np.inf).min(axis=0)
    if job.machines:
        runs &= fleet.machines == job.machines
    generated = generation_s(job, columns, fleet)
    step = np.where(runs, seconds * slowdown(columns, fleet) + generated, np.inf)
    part = _parts(terms, np.where(runs, best, 0), runs)
    part["compute_s"] = part["compute_s"] + np.where(runs, generated, 0.0)
    # What a measured slowdown adds is communication: the reading at the smallest size set R.
    known = part["compute_s"] + part["recompute_s"] + part["bubble_s"] + part["input_s"]
    exposed = np.maximum(np.where(runs, np.where(runs, step, 0.0) - known, 0.0), 0.0)
    network = np.where(fleet.machines > 1, part.pop("network_share"), 0.0)
    growth = job.batch_growth(np.maximum(fleet.gpus, 1.0))
    part |= {name: part[name] / growth for name in SECONDS}
    step, exposed = step / growth, exposed / growth
    return Steps(
        step_s=step,
        exposed_network_s=exposed * network,
        exposed_intra_s=exposed * (1.0 - network),
        row=np.where(runs, best, 0).astype(np.int64),
        fits=np.where(runs, fit_chance(job, least, fleet.memory_bytes), 0.0),
        **part,
    )


def _parts(terms: StepTerms, best: Ints, runs: Bools) -> dict[str, Floats]:
    """The terms of the best row of every cluster by name; 0 where none runs."""
    columns = np.arange(len(best))
    part = {name: np.where(runs, getattr(terms, name)[best, columns], 0.0) for name in PARTS}
    return part | {name: getattr(terms, name)[best, columns] for name in DEGREES}


def explain(job: Job, columns: MachineColumns, fleet: Clusters, row: int) -> StepSplit:
    """One cluster's step term by term, and the memory of one GPU line by line."""
    one = fleet.take(np.array([row]))
    found = steps(job, columns, one)
    if not np.isfinite(found.step_s[0]):
        raise ValueError(why_infeasible(job, columns, fleet, row))
    strategy = strategies(job)[int(found.row[0]) // 2]  # two rows each, one of the last
    layout = strategy.layout(bytes_of(job, prior_of(job)), grouped(job, prior_of(job), one), found)
    growth = float(job.batch_growth(float(one.gpus[0])))
    return StepSplit(
        step_s=growth * float(found.step_s[0]),
        compute_s=growth * float(found.compute_s[0]),
        recompute_s=growth * float(found.recompute_s[0]),
        exposed_network_s=growth * float(found.exposed_network_s[0]),
        exposed_intra_s=growth * float(found.exposed_intra_s[0]),
        bubble_s=growth * float(found.bubble_s[0]),
        input_s=growth * float(found.input_s[0]),
        micro_batch=int(found.micro_batch[0]),
        accumulation=int(found.accumulation[0]),
        sharding=layout.label,
        memory_gib=sum(gib for _, gib in layout.memory_parts_gib),
        memory_parts_gib=layout.memory_parts_gib,
        visible_gib=VISIBLE * float(one.memory_bytes[0]) / GIB,
        memory_fits=float(found.fits[0]),
    )


def safer_setting(job: Job, columns: MachineColumns, fleet: Clusters, row: int) -> str:
    """The first change of a step's setting with which a cluster is sure to fit; "" without one."""
    one = fleet.take(np.array([row]))
    step, sure = explain(job, columns, one, 0), sure_bytes(job, float(one.memory_bytes[0])) / GIB
    parts = dict(step.memory_parts_gib)
    samples = parts["activations"] + parts["logits"]
    micro = int(step.micro_batch * (sure - step.memory_gib + samples) / max(samples, 1e-9))
    if 1 <= micro < step.micro_batch and not parts["update"]:
        return f"micro_batch: {micro}"
    for words, changed in _states_with_less(job) if job.method == "full" else ():
        if steps(changed, columns, one).fits[0] >= SURE:
            return words
    return ""


def _states_with_less(job: Job) -> tuple[tuple[str, Job], ...]:
    """A job with states that take less memory, from those that change its training least."""
    return (
        ("optimizer: adamw_8bit", replace(job, optimizer="adamw_8bit")),
        ("offload: optimizer", replace(job, offload="optimizer")),
        ("offload: parameters", replace(job, offload="parameters")),
    )


def why_infeasible(job: Job, columns: MachineColumns, fleet: Clusters, row: int) -> str:
    """Why a cluster cannot train the job, with the deciding number; "" if it can."""
    one = fleet.take(np.array([row]))
    if np.isfinite(steps(job, columns, one).step_s[0]):
        return ""
    kind = int(one.kind[0])
    if kind >= 0 and columns.reasons[kind]:
        return columns.reasons[kind]
    if job.machines not in (0, one.machines[0]):
        return f"the job asks for exactly {job.machines} machines"
    needs = bytes_of(job, prior_of(job))
    together = linked(job, one)
    each = (strategy.min_memory_bytes(job, needs, together) for strategy in strategies(job))
    least = [x for some in each for x in some]
    if not least:
        return strategy_of(job.sharding).why_none(job, one)
    if one.machines[0] > 1 and one.network_bytes_per_s[0] <= 0:
        return "its network bandwidth is not known: one machine only"
    name = columns.names[kind] if kind >= 0 else "the smallest GPU"
    has = float(one.memory_bytes[0])
    return f"needs {min(least) / GIB:.1f} GiB per GPU, {name} has {has / GIB:.1f} usable"
