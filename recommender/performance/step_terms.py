"""The terms of one optimiser step, for every cluster and every strategy at once.

Arrays have shape (strategies, clusters); a scalar of the job or a row of the fleet
broadcasts. `docs/models.md`, "Throughput", derives the formulas.
"""

from dataclasses import dataclass, replace

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.job.job import Job
from recommender.performance.clusters import STRATEGIES, Fleet
from recommender.performance.memory import Bytes, bytes_of, largest_micro_batch
from recommender.performance.parallelism import (
    BACKWARD,
    BUCKET_BYTES,
    RECOMPUTED,
    STRAGGLERS,
    CutTerms,
    best_cuts,
    splittable,
)
from recommender.performance.parameter_server import alone_s, service_of, updates_per_s
from recommender.performance.priors import Prior

RECOMPUTE = np.array([again for _, again in STRATEGIES])
SHARDING = np.array([name for name, _ in STRATEGIES])
WANTED: dict[str, Bools] = {
    wanted: np.array([wanted in ("auto", name) for name, _ in STRATEGIES])
    for wanted in ("auto", "ddp", "hsdp", "fsdp", "tensor", "pipeline")
}


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds of one step before the best strategy is chosen; (strategies, clusters).

    Where the network may be cut, `step_s` has one more row, of the best cut of each cluster.
    """

    step_s: Floats  # inf where the strategy cannot run
    compute_s: Floats
    recompute_s: Floats
    exposed_s: Floats  # communication that nothing hides
    network_share: Floats  # of the communication, the part between machines
    input_s: Floats
    micro_batch: Floats
    accumulation: Floats
    cut: CutTerms | None = None  # shape (clusters,)


def terms_of(job: Job, prior: Prior, fleet: Fleet) -> Terms:
    """Every term of every strategy on every cluster.

    step = max(compute + recompute + exposed + bubble, input), all per GPU, with
    compute = (b + ga·b0)·N/R + ga·β·k for b = ceil(B/N) samples in ga = ceil(b/m)
    micro-batches, whose sizes differ by one at most. The step never gets shorter when compute,
    memory, network or links inside the machine get slower, and is never below B/R.
    """
    needs = bytes_of(job, prior)
    plain = _replicated(job, prior, fleet, needs)
    if not splittable(job):
        return plain
    cut = best_cuts(job, prior, fleet, needs)
    return replace(plain, step_s=np.concatenate([plain.step_s, cut.step_s[None]]), cut=cut)


def _replicated(job: Job, prior: Prior, fleet: Fleet, needs: Bytes) -> Terms:
    """Strategies in which every GPU runs the whole network: one row each."""
    micro = largest_micro_batch(needs, fleet.memory_bytes, shards_of(fleet), RECOMPUTE)
    batch = np.ceil(job.global_batch / np.maximum(fleet.gpus, 1.0))
    possible = (micro >= 1) & _runnable(job, fleet)
    micro = np.clip(micro, 1.0, batch)
    rounds = np.ceil(batch / micro)
    with np.errstate(divide="ignore", invalid="ignore"):
        sample_s = np.where(fleet.compute_per_s > 0, fleet.gpus / fleet.compute_per_s, np.inf)
        arithmetic = (batch + rounds * prior.batch_penalty) * sample_s
        compute = arithmetic + rounds * prior.tensor_s * job.gradient_tensors
        again = np.where(RECOMPUTE[:, None], RECOMPUTED * arithmetic, 0.0)
        busy = compute + again
        exposed, network = _exposed(job, prior, fleet, needs, rounds, busy)
        feed = job.global_batch / np.minimum(fleet.prepare_per_s, fleet.fetch_per_s)
        waiting = np.maximum(feed - busy - exposed, 0.0)
        step = np.where(possible, busy + exposed + waiting, np.inf)
    return Terms(
        step_s=np.where(np.isnan(step), np.inf, step),
        compute_s=compute,
        recompute_s=again,
        exposed_s=exposed,
        network_share=network,
        input_s=waiting,
        micro_batch=np.ceil(batch / rounds),
        accumulation=rounds,
    )


def shards_of(fleet: Fleet) -> Floats:
    """Into how many parts each strategy cuts the states; (strategies, clusters)."""
    ways = {"ddp": np.ones_like(fleet.gpus), "hsdp": fleet.gpus_per_machine, "fsdp": fleet.gpus}
    return np.maximum(np.stack([ways[name] for name in SHARDING]), 1.0)


def _runnable(job: Job, fleet: Fleet) -> Bools:
    """Where a strategy makes sense at all, memory aside; (strategies, clusters)."""
    enough = (fleet.gpus >= 1) & (fleet.gpus <= job.global_batch) & (fleet.compute_per_s > 0)
    linked = (fleet.machines <= 1) | (fleet.network_bytes_per_s > 0)
    # Shards inside a machine need machines of one size, or the smallest holds too much.
    alike = fleet.gpus == fleet.machines * fleet.gpus_per_machine
    fitting = (SHARDING[:, None] != "hsdp") | alike
    return np.asarray((enough & linked) & WANTED[job.sharding][:, None] & fitting)


def _exposed(
    job: Job, prior: Prior, fleet: Fleet, needs: Bytes, rounds: Floats, busy: Floats
) -> tuple[Floats, Floats]:
    """Communication that compute does not hide, and the network's share of all of it."""
    inside, between = _traffic_s(job, fleet, needs, rounds)
    if job.sync == "parameter_server":
        local = _unhidden(prior, inside, np.zeros_like(inside), rounds, busy)
        local = local + _late(fleet.gpus_per_machine, busy)
        served = _served(job, prior, fleet, busy + local)
        exposed = local + served
        return exposed, np.where(exposed > 0, served / np.where(exposed > 0, exposed, 1.0), 0.0)
    both = inside + between
    share = np.where(both > 0, between / np.where(both > 0, both, 1.0), 0.0)
    exposed = _unhidden(prior, inside, between, rounds, busy) + _late(fleet.gpus, busy)
    return exposed, share


def _late(gpus: Floats, busy: Floats) -> Floats:
    """How long GPUs that wait for each other wait for the slowest."""
    return STRAGGLERS * np.log2(np.maximum(gpus, 1.0)) * busy


def _unhidden(
    prior: Prior, inside: Floats, between: Floats, rounds: Floats, busy: Floats
) -> Floats:
    """Seconds of communication that a synchronous step waits for.

    DDP: 2(n-1)/n·G between machines and 2(g-1)/g·G inside, once per step, behind the last
    backward pass. FSDP: two gathers and one reduction of every micro-batch, behind all of the
    compute. HSDP: that traffic inside the machine, gradients between machines once.
    """
    last = prior.overlap * BACKWARD * busy / rounds
    whole = prior.overlap * busy
    kind = SHARDING[:, None]
    both = inside + between
    exposed = np.where(
        kind == "ddp",
        both - last,
        np.where(kind == "fsdp", both - whole, np.maximum(between - last, both - whole)),
    )
    return np.maximum(exposed, 0.0)


def _traffic_s(job: Job, fleet: Fleet, needs: Bytes, rounds: Floats) -> tuple[Floats, Floats]:
    """Seconds on the links inside machines and between them; (strategies, clusters)."""
    kind = SHARDING[:, None]
    n, g = fleet.machines, np.maximum(fleet.gpus_per_machine, 1.0)
    reduced = 2.0 * needs.reduced
    gathered = rounds * (2.0 * needs.gathered + needs.reduced)
    layer = needs.gathered / job.layers if job.layers else BUCKET_BYTES
    message = np.where(kind == "ddp", min(BUCKET_BYTES, needs.reduced), layer)
    rate = fleet.network_bytes_per_s * message / (message + fleet.network_half_bytes)
    inside = np.where(kind == "ddp", reduced, gathered) * ((g - 1) / g) / fleet.intra_bytes_per_s
    sent = np.where(kind == "fsdp", gathered, reduced) * ((n - 1) / n)
    calls = np.where(kind == "fsdp", 3.0 * rounds, 1.0)
    latency = calls * fleet.network_latency_s * np.log2(n)
    alone = n <= 1
    between = np.where(alone, 0.0, sent / np.where(alone | (rate <= 0), 1.0, rate) + latency)
    return inside, between


def _served(job: Job, prior: Prior, fleet: Fleet, local_s: Floats) -> Floats:
    """Seconds by which asynchronous parameter servers lengthen a step; 0 on one machine.

    Each machine is a worker: its GPUs add up their gradients, then it sends one update. A
    global batch is n updates, so a step takes n/X(n).
    """
    served = service_of(job, prior, fleet).served_s
    rate = updates_per_s(fleet.machines, alone_s(job, local_s), served)
    waited = fleet.machines / np.where(rate > 0, rate, 1.0) - local_s
    return np.where(fleet.machines > 1, np.maximum(waited, 0.0), 0.0)
