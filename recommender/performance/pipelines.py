"""The step of a network that is cut into layers' parts and stages, with its best micro-batch.

A stage needs X seconds for all samples of a replica and Y for each micro-batch, so r
micro-batches through p stages take (r + p - 1)·(X/r + Y): the bubble is (p - 1)/(r + p - 1) of
it (GPipe, arXiv 1811.06965; 1F1B, arXiv 2104.04473). r is the best whole number that fits the
memory: more micro-batches shorten the bubble, fewer waste less.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.job import Job
from recommender.performance.fleet import Fleet
from recommender.performance.memory import Bytes
from recommender.performance.priors import Prior
from recommender.performance.splits import (
    WAYS,
    Splits,
    held_bytes,
    lost_share,
    sample_bytes,
    splits_of,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BUCKET_BYTES = 25 * 2.0**20  # torch DistributedDataParallel, bucket_cap_mb=25 (docs, 2.9)
BACKWARD = 2.0 / 3.0  # share of a step's arithmetic that is the backward pass
RECOMPUTED = 1.0 / 3.0  # the forward pass done again: 4/3 of the arithmetic
REDUCED = 4.0  # all-reduces per layer and micro-batch, two each way (Megatron-LM, 1909.08053)
REDUCED_AGAIN = 6.0  # with the forward pass done twice


# Share of the compute by which the slowest of twice as many GPUs is later: 0.5 % was best in every
# one of the published sources that was left out (docs/accuracy-scaling.md; 2026-11).
STRAGGLERS = 0.005
AGAIN = np.array([[False], [True]])  # rows of the arrays below: nothing recomputed, everything


@dataclass(frozen=True, slots=True)
class CutTerms:
    """Seconds of one step of each cut, without and with recomputation: shape (2, cuts), or
    (cuts,) where both agree. Of the best cuts: shape (clusters,).
    """

    step_s: Floats  # inf where it cannot run
    compute_s: Floats
    recompute_s: Floats
    exposed_s: Floats
    bubble_s: Floats  # stages wait for the first and the last micro-batch
    input_s: Floats
    network_share: Floats
    micro_batch: Floats
    accumulation: Floats
    tensor: Floats
    stages: Floats


@dataclass(frozen=True, slots=True)
class _Turns:
    """What the terms of some cuts follow from; shape (2, cuts), or (cuts,) where both agree."""

    step_s: Floats
    batch: Floats  # samples of a replica
    rounds: Floats  # its micro-batches
    grown_s: Floats  # arithmetic without recomputation
    again: Floats  # times it, with recomputation
    launch_s: Floats  # of the gradient tensors, per micro-batch
    turns_s: Floats  # all micro-batches through one stage
    waits_s: Floats  # for the gradients of the replicas
    outside_s: Floats  # of the communication, on the network
    inside_s: Floats  # on the links
    feed_s: Floats  # of the input pipeline
    tensor: Floats
    stages: Floats

    def take(self, again: Ints, cut: Ints) -> "_Turns":
        """Some cuts, each with or without recomputation; (cuts,)."""
        each = (getattr(self, name) for name in self.__slots__)
        return _Turns(*(x[cut] if x.ndim == 1 else x[again, cut] for x in each))


def best_cuts(job: Job, prior: Prior, fleet: Fleet, needs: Bytes) -> CutTerms:
    """The fastest cut of the network on each cluster; (clusters,), inf where there is none."""
    splits = splits_of(job, fleet, needs.states)
    memory, gpus = fleet.memory_bytes[splits.cluster], fleet.gpus[splits.cluster]
    least = sample_bytes(needs, True, splits.tensor, splits.stages) + needs.context
    splits = splits.take(memory >= least + held_bytes(needs, gpus, splits.tensor, splits.stages))
    turns = _turns(job, prior, fleet.take(splits.cluster), needs, splits)
    again = (turns.step_s[1] < turns.step_s[0]).astype(np.int64)
    number = np.zeros((len(WAYS), len(fleet)), dtype=np.int64)
    step = np.full(number.shape, np.inf)
    number[splits.way, splits.cluster] = np.arange(len(again))
    step[splits.way, splits.cluster] = turns.step_s.min(axis=0)
    way = step.argmin(axis=0)
    cluster = np.flatnonzero(np.isfinite(step.min(axis=0)))
    cut = number[way[cluster], cluster]
    found = _terms(turns.take(again[cut], cut))
    rows = {}
    for name in CutTerms.__slots__:
        rows[name] = np.full(len(fleet), np.inf if name == "step_s" else 1.0)
        rows[name][cluster] = getattr(found, name)
    return CutTerms(**rows)


def cut_terms(job: Job, prior: Prior, fleet: Fleet, needs: Bytes, splits: Splits) -> CutTerms:
    """Every term of some cuts; the fleet has one row per cut.

    Per stage: arithmetic (b/t + r·b0·φ)·N/R/p, φ of `lost_share`, and r·β·k/p; all-reduces of
    b·s·h bytes in each of L/p layers over the links; activations handed on and gradients back,
    over the links or the network; after the pipeline the replicas' gradients, hidden only
    where p = 1.
    """
    return _terms(_turns(job, prior, fleet, needs, splits))


def _turns(job: Job, prior: Prior, fleet: Fleet, needs: Bytes, splits: Splits) -> _Turns:
    t, p = splits.tensor, splits.stages
    batch = np.ceil(job.global_batch * t * p / fleet.gpus)
    room = fleet.memory_bytes - needs.context - held_bytes(needs, fleet.gpus, t, p)
    sample = np.stack([sample_bytes(needs, again, t, p) for again in (False, True)])
    fits = np.floor(room / np.maximum(sample, 1e-9))
    runs = (fits >= 1) & (fleet.gpus <= t * p * job.global_batch)
    least = np.ceil(batch / np.clip(fits, 1.0, batch))
    sample_s = fleet.gpus / (fleet.compute_per_s * t * p)
    again = 1.0 + RECOMPUTED * AGAIN
    launch = prior.tensor_s * job.gradient_tensors / p
    lost = prior.batch_penalty * t * lost_share(job, t)  # samples of a replica
    inside, between, each = _talk(job, fleet, splits)
    all_s = batch * (sample_s * again + inside + between)
    each_s = lost * sample_s * again + launch + each
    rounds = _best_rounds(all_s, each_s, least, batch, p)
    late = 1.0 + STRAGGLERS * np.log2(fleet.gpus)
    turns = (all_s + rounds * each_s) * late
    grown = (batch + rounds * lost) * sample_s
    near, far = _gradients(fleet, needs, splits)
    busy = grown * again + rounds * launch
    hidden = np.where(p > 1, 0.0, prior.overlap * BACKWARD * busy / rounds)
    waits = np.maximum(near + far - hidden, 0.0)
    feed = job.global_batch / np.minimum(fleet.prepare_per_s, fleet.fetch_per_s)
    step = np.maximum(turns * (1.0 + (p - 1.0) / rounds) + waits, feed)
    return _Turns(
        step_s=np.where(runs, step, np.inf),
        batch=batch,
        rounds=rounds,
        grown_s=grown,
        again=np.broadcast_to(again, rounds.shape),
        launch_s=launch,
        turns_s=turns,
        waits_s=waits,
        outside_s=batch * between + rounds * each + far,
        inside_s=batch * inside + near,
        feed_s=feed,
        tensor=t,
        stages=p,
    )


def _terms(c: _Turns) -> CutTerms:
    """The parts of the steps of some cuts."""
    compute = c.grown_s + c.rounds * c.launch_s
    again = (c.again - 1.0) * c.grown_s
    bubble = (c.stages - 1.0) / c.rounds * c.turns_s
    talked = np.maximum(c.outside_s + c.inside_s, 1e-30)
    return CutTerms(
        step_s=c.step_s,
        compute_s=compute,
        recompute_s=again,
        exposed_s=c.turns_s - compute - again + c.waits_s,
        bubble_s=bubble,
        input_s=np.maximum(c.feed_s - c.turns_s - bubble - c.waits_s, 0.0),
        network_share=c.outside_s / talked,
        micro_batch=np.ceil(c.batch / c.rounds),
        accumulation=c.rounds,
        tensor=c.tensor,
        stages=c.stages,
    )


def _best_rounds(all_s: Floats, each_s: Floats, least: Floats, most: Floats, p: Floats) -> Floats:
    """The whole number r from `least` to `most` that minimises (r + p - 1)·(X/r + Y).

    The sum is convex in r with its least at sqrt((p - 1)·X/Y).
    """
    waste = (p - 1.0) * all_s
    below = np.clip(np.floor(np.sqrt(waste / np.maximum(each_s, 1e-300))), least, most)
    above = np.minimum(below + 1.0, most)
    later = waste / above + above * each_s < waste / below + below * each_s
    return np.where(later, above, below)


def _talk(job: Job, fleet: Fleet, splits: Splits) -> tuple[Floats, Floats, Floats]:
    """Seconds per sample on the links and on the network, and per micro-batch on the network.

    A stage sends each sample's activations on and their gradients back, each of its t GPUs a
    t-th; a machine's network carries them where the replica spans machines.
    """
    t, p = splits.tensor, splits.stages
    wide = 4.0 if job.precision in ("fp32", "tf32") else 2.0
    sent = float(job.tokens_per_sample) * job.hidden * wide
    across = t * p > fleet.gpus_per_machine
    handed = 2.0 * sent * (p > 1)
    reduced = np.where(AGAIN, REDUCED_AGAIN, REDUCED) * (job.layers * 2.0 * sent)
    local = np.where(across, 0.0, handed / t)
    inside = (reduced * ((t - 1.0) / (t * p)) + local) / fleet.intra_bytes_per_s
    rate = np.where(across, fleet.network_bytes_per_s, np.inf)
    each = 2.0 * (fleet.network_half_bytes / rate + across * fleet.network_latency_s)
    return inside, handed / rate, each


def _gradients(fleet: Fleet, needs: Bytes, splits: Splits) -> tuple[Floats, Floats]:
    """Seconds in which the replicas sum their gradients, on the links and on the network."""
    replica = splits.tensor * splits.stages
    g, n = fleet.gpus_per_machine, fleet.machines
    alike = np.maximum(g / replica, 1.0)  # replicas of one machine
    share = np.minimum(g / replica, 1.0)  # of the network that a machine holds
    others = n * share  # machines that hold the same part
    near = 2.0 * needs.reduced / replica * (1.0 - 1.0 / alike) / fleet.intra_bytes_per_s
    message = np.minimum(BUCKET_BYTES, needs.reduced * share)
    alone = others <= 1.0
    rate = fleet.network_bytes_per_s * message / (message + fleet.network_half_bytes)
    sent = 2.0 * needs.reduced * share * (1.0 - 1.0 / np.maximum(others, 1.0))
    far = sent / np.where(alone, 1.0, rate)
    far = far + fleet.network_latency_s * np.log2(np.maximum(others, 1.0))
    return near, np.where(alone, 0.0, far)
