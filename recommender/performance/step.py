"""How long one optimiser step takes on a cluster, with the best strategy, and why.

Contract with the optimiser's bounds (property-tested), for a fixed number of machines and
GPUs and everything else equal: `step_s` does not rise when compute, memory, network or links
inside the machine grow, and is never below global batch / `compute_per_s`.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints
from recommender.job.job import Job
from recommender.performance.clusters import STRATEGIES, Fleet, MachineColumns, Steps
from recommender.performance.measured import slowdown
from recommender.performance.memory import GIB, bytes_of, parts_gib, per_sample
from recommender.performance.parallelism import (
    cut_parts_gib,
    held_bytes,
    sample_bytes,
    splits_of,
    splittable,
)
from recommender.performance.priors import prior_of
from recommender.performance.step_terms import Terms, shards_of, terms_of
from recommender.plan.plan import StepSplit

TIE = 1 + 1e-12
PARTS = ("compute_s", "recompute_s", "input_s", "network_share", "micro_batch", "accumulation")


def steps(job: Job, columns: MachineColumns, fleet: Fleet) -> Steps:
    """The fastest feasible step of every cluster; (clusters,), seconds.

    Where the user measured a type at several sizes, those clusters are slowed to what was
    measured (never sped up: the columns are already as fast as the fastest reading).
    """
    terms = terms_of(job, prior_of(job), fleet)
    # Where the input sets the pace, strategies tie but for rounding: the plainest one is meant.
    seconds = terms.step_s.min(axis=0)
    best = (terms.step_s <= seconds * TIE).argmax(axis=0)
    runs = np.isfinite(seconds)
    step = np.where(runs, seconds * slowdown(columns, fleet), np.inf)
    part = _parts(terms, np.where(runs, best, 0), runs)
    # What a measured slowdown adds is communication: the reading at the smallest size set R.
    known = part["compute_s"] + part["recompute_s"] + part["bubble_s"] + part["input_s"]
    exposed = np.maximum(np.where(runs, np.where(runs, step, 0.0) - known, 0.0), 0.0)
    network = np.where(fleet.machines > 1, part.pop("network_share"), 0.0)
    return Steps(
        step_s=step,
        exposed_network_s=exposed * network,
        exposed_intra_s=exposed * (1.0 - network),
        strategy=np.where(runs, best, 0).astype(np.int64),
        **part,
    )


def _parts(terms: Terms, best: Ints, runs: Bools) -> dict[str, Floats]:
    """The terms of the best strategy of every cluster by name; 0 where none runs."""
    plain, rows = np.minimum(best, len(STRATEGIES) - 1), np.arange(len(best))
    part = {name: np.where(runs, getattr(terms, name)[plain, rows], 0.0) for name in PARTS}
    part |= {"bubble_s": np.zeros(len(best)), "tensor": np.ones(len(best))}
    part["stages"] = part["tensor"]
    if terms.cut is not None:
        is_cut = best == len(STRATEGIES)
        for name, values in part.items():
            part[name] = np.where(is_cut, getattr(terms.cut, name), values)
    return part


def explain(job: Job, columns: MachineColumns, fleet: Fleet, row: int) -> StepSplit:
    """One cluster's step term by term, and the memory of one GPU line by line."""
    one = fleet.take(np.array([row]))
    found = steps(job, columns, one)
    if not np.isfinite(found.step_s[0]):
        raise ValueError(why_infeasible(job, columns, fleet, row))
    sharding, parts = _layout(job, one, found)
    return StepSplit(
        step_s=float(found.step_s[0]),
        compute_s=float(found.compute_s[0]),
        recompute_s=float(found.recompute_s[0]),
        exposed_network_s=float(found.exposed_network_s[0]),
        exposed_intra_s=float(found.exposed_intra_s[0]),
        bubble_s=float(found.bubble_s[0]),
        input_s=float(found.input_s[0]),
        micro_batch=int(found.micro_batch[0]),
        accumulation=int(found.accumulation[0]),
        sharding=sharding,
        memory_gib=sum(gib for _, gib in parts),
        memory_parts_gib=parts,
    )


def _layout(job: Job, one: Fleet, found: Steps) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Where the network lies, in words, and the memory of one GPU in GiB, part by part."""
    needs, micro = bytes_of(job, prior_of(job)), float(found.micro_batch[0])
    strategy, again = int(found.strategy[0]), bool(found.recompute_s[0] > 0)
    if strategy < len(STRATEGIES):
        shards = float(shards_of(one)[strategy, 0])
        return STRATEGIES[strategy][0], parts_gib(needs, shards, micro, again)
    t, p, gpus = float(found.tensor[0]), float(found.stages[0]), float(one.gpus[0])
    degrees = (("TP", t), ("PP", p), ("DP", gpus / (t * p)))
    text = " × ".join(f"{name} {degree:.0f}" for name, degree in degrees if degree > 1)
    return text, cut_parts_gib(needs, gpus, t, p, micro, again)


def why_infeasible(job: Job, columns: MachineColumns, fleet: Fleet, row: int) -> str:
    """Why a cluster cannot train the job, naming the number; "" where it can."""
    one = fleet.take(np.array([row]))
    if np.isfinite(steps(job, columns, one).step_s[0]):
        return ""
    kind = int(one.kind[0])
    if kind >= 0 and columns.reasons[kind]:
        return columns.reasons[kind]
    least = _least_memory(job, one)
    if not len(least):
        return _no_strategy(job, one)
    if one.machines[0] > 1 and one.network_bytes_per_s[0] <= 0:
        return "its network bandwidth is not known: one machine only"
    name = columns.names[kind] if kind >= 0 else "the smallest GPU"
    has = float(one.memory_bytes[0])
    return f"needs {min(least) / GIB:.1f} GiB per GPU, {name} has {has / GIB:.1f} usable"


def _least_memory(job: Job, one: Fleet) -> list[float]:
    """Bytes of one GPU for one sample under each strategy that the cluster's size allows."""
    needs, gpus = bytes_of(job, prior_of(job)), float(one.gpus[0])
    least = [
        needs.context + needs.states / float(shards) + per_sample(needs, again)
        for (name, again), shards in zip(STRATEGIES, shards_of(one)[:, 0], strict=True)
        if job.sharding in ("auto", name) and gpus <= job.global_batch
    ]
    if splittable(job):
        cuts = splits_of(job, one)
        cuts = cuts.take(gpus <= cuts.tensor * cuts.stages * job.global_batch)
        held = held_bytes(needs, gpus, cuts.tensor, cuts.stages) + needs.context
        least += (held + sample_bytes(needs, True, cuts.tensor, cuts.stages)).tolist()
    return least


def _no_strategy(job: Job, one: Fleet) -> str:
    """Why no strategy suits a cluster, whatever its memory."""
    gpus, machines = int(one.gpus[0]), int(one.machines[0])
    if job.sharding not in ("tensor", "pipeline"):
        return f"{gpus} GPUs share a batch of {job.global_batch}: less than one sample each"
    if not splittable(job):
        return f"{job.sharding} parallelism needs a transformer of known width and layers"
    return (
        f"no {job.sharding} parallelism of 2, 4 or 8 divides {gpus} GPUs on {machines} machines "
        f"and {job.layers} layers"
    )
