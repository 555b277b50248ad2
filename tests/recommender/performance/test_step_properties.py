"""The contract of the step, and a scalar implementation of it."""

from dataclasses import replace
from itertools import product
from math import ceil, floor, inf, log2
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recommender.job.job import Job
from recommender.performance.clusters import Clusters
from recommender.performance.data_parallel import ROWS
from recommender.performance.layouts import expert_estimate, has_layouts
from recommender.performance.memory import bytes_of, per_sample
from recommender.performance.parameter_server import load_constants
from recommender.performance.priors import Prior, prior_of
from recommender.performance.step import terms_of
from recommender.performance.strategy import BUCKET_BYTES
from tests.recommender.performance.parts import llama, resnet

MANY_EXPERTS = {
    "parameters": 30e9,
    "trainable_parameters": 30e9,
    "active_parameters": 3e9,
    "global_batch": 512,
}
JOBS = (
    llama(),
    llama(global_batch=37, stack="tuned"),
    llama(method="lora", trainable_parameters=42e6, forward_passes=2.0),
    llama(method="qlora", trainable_parameters=42e6, forward_passes=2.0),
    llama(recomputation="full", stack="tuned", global_batch=48),
    llama(sharding="pipeline", tokens_per_sample=1024, global_batch=6),
    llama(sharding="tensor", precision="fp32"),
    llama(family="moe", stack="tuned", parameters=47e9, trainable_parameters=47e9),
    llama(family="moe", stack="tuned", tokens_per_sample=512, **MANY_EXPERTS),
    llama(family="moe", expert_groups=2, tokens_per_sample=1024, vocabulary=9_000, **MANY_EXPERTS),
    llama(sharding="context", tokens_per_sample=32768, global_batch=6),
    resnet(),
    resnet(family="vit", sync="parameter_server"),
    resnet(global_batch=100, precision="fp32"),
    resnet(recomputation="full"),
    resnet(sync="parameter_server", parameter_servers=3, global_batch=64),
    llama(sync="parameter_server", stack="tuned"),
)
SERVED = [job for job in JOBS if job.sync == "parameter_server"]
SCALED = (
    "compute_per_s", "memory_bytes", "network_bytes_per_s", "intra_bytes_per_s",
    "device_bytes_per_s",
)  # fmt: skip


def one(**values: float) -> Clusters:
    """A fleet of one cluster."""
    facts = {"prepare_per_s": inf, "fetch_per_s": inf, "host_bytes_per_s": 1e10}
    facts |= {"disk_bytes_per_s": 1e9, "link_gpus": values["gpus_per_machine"]} | values
    arrays = {name: np.array([value], dtype=np.float64) for name, value in facts.items()}
    return Clusters(kind=np.array([0]), **arrays)


@some.composite
def fleets(draw: some.DrawFn) -> Clusters:
    machines, gpus = draw(some.integers(1, 40)), draw(some.sampled_from([1, 2, 4, 8]))
    return one(
        machines=machines,
        gpus=machines * gpus,
        gpus_per_machine=gpus,
        compute_per_s=draw(some.floats(0.01, 1e5)),
        memory_bytes=draw(some.floats(1e9, 3e11)),
        device_bytes_per_s=draw(some.floats(3e11, 8e12)),
        network_bytes_per_s=draw(some.floats(1e8, 4e11)),
        network_half_bytes=draw(some.sampled_from([0.0, 3e7, 8e7])),
        network_latency_s=draw(some.sampled_from([0.0, 1e-4, 5e-4])),
        intra_bytes_per_s=inf if gpus == 1 else draw(some.floats(1e9, 1e12)),
        prepare_per_s=draw(some.sampled_from([inf, 1e4])),
    )


def best(job: Job, fleet: Clusters) -> float:
    return float(terms_of(job, prior_of(job), fleet).step_s.min())


@settings(deadline=None, max_examples=300)
@given(fleets(), some.sampled_from(JOBS), some.sampled_from(SCALED), some.floats(1.0, 50.0))
def test_better_hardware_never_lengthens_the_step(fleet, job, name, factor):
    better = replace(fleet, **{name: getattr(fleet, name) * factor})
    each = terms_of(job, prior_of(job), fleet).step_s
    after = terms_of(job, prior_of(job), better).step_s
    # Micro-batches are as many as is best without traffic, so of 43,000 random steps five got
    # longer, by up to 8e-4.
    assert (after <= each * (1 + 1e-3)).all()


@settings(deadline=None, max_examples=200)
@given(fleets(), some.sampled_from(JOBS))
def test_the_step_is_never_below_the_batch_over_the_compute_rate(fleet, job):
    assert best(job, fleet) >= job.global_batch / fleet.compute_per_s[0] * (1 - 1e-12)


@settings(deadline=None, max_examples=100)
@given(fleets(), some.sampled_from(JOBS[:7]), some.floats(0.1, 10.0))
def test_units_cancel(fleet, job, unit):
    """Seconds k times longer make every step k times longer."""
    prior = prior_of(job)
    slow = replace(
        fleet,
        **{n: getattr(fleet, n) / unit for n in (*SCALED[:1], *SCALED[2:], "prepare_per_s")},
        network_latency_s=fleet.network_latency_s * unit,
    )
    before = terms_of(job, prior, fleet).step_s
    seconds = ("tensor_s", "launch_s", "gathered_launch_s", "model_parallel_launch_s")
    seconds += ("link_wait_s",)
    later = replace(prior, **{name: getattr(prior, name) * unit for name in seconds})
    after = terms_of(job, later, slow).step_s
    np.testing.assert_allclose(after, before * unit, rtol=1e-9)


@settings(deadline=None, max_examples=300)
@given(fleets(), some.sampled_from([job for job in JOBS if job.sync == "allreduce"]))
def test_arrays_equal_the_scalar_formulas(fleet, job):
    prior = prior_of(job)
    expected = [
        scalar(job, prior, fleet, *strategy) if job.sharding == "auto" else inf for strategy in ROWS
    ]
    if has_layouts(job):
        expected.append(best_layout(job, prior, fleet))
    found = terms_of(job, prior_of(job), fleet).step_s[:, 0]
    assert found.tolist() == pytest.approx(expected, rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(
    fleets(),
    some.sampled_from([job for job in JOBS if job.family != "cnn"]),
    some.sampled_from([1, 4, 18, 72]),
    some.sampled_from(["as it is", "tensor", "pipeline", "context"]),
)
def test_no_number_of_machines_is_refused_between_two_that_run(fleet, job, linked, sharding):
    """What trains on some machines trains on more, as long as each GPU has a sample."""
    job = job if sharding == "as it is" else replace(job, sharding=sharding)
    most = int(min(job.global_batch // fleet.gpus_per_machine[0], 80))
    machines = np.arange(1.0, most + 1.0)
    grown = ("machines", "gpus", "compute_per_s", "prepare_per_s", "fetch_per_s")
    facts = {name: np.repeat(getattr(fleet, name), most) for name in Clusters.__slots__}
    facts |= {name: machines * facts[name] / fleet.machines for name in grown}
    facts["link_gpus"] = linked * facts["gpus_per_machine"]
    runs = np.flatnonzero(
        np.isfinite(terms_of(job, prior_of(job), Clusters(**facts)).step_s.min(0))
    )
    assert not len(runs) or (np.diff(runs) == 1).all()


@settings(deadline=None, max_examples=200)
@given(fleets(), some.sampled_from(SERVED), some.integers(1, 4))
def test_more_servers_never_lengthen_the_step(fleet, job, more):
    servers = job.parameter_servers + more
    assert best(replace(job, parameter_servers=servers), fleet) <= best(job, fleet) * (1 + 1e-9)


@settings(deadline=None, max_examples=200)
@given(fleets(), some.sampled_from(SERVED))
def test_servers_pass_on_no_more_updates_than_their_network_and_tensors_allow(fleet, job):
    machines, used = float(fleet.machines[0]), min(job.parameter_servers, fleet.machines[0])
    found, needs = load_constants(), bytes_of(job, prior_of(job))
    least = needs.reduced / used / float(fleet.network_bytes_per_s[0])
    least += found.tensor_s * job.gradient_tensors / used
    if machines > 1:
        assert best(job, fleet) >= machines * least * (1 - 1e-9)


@settings(deadline=None, max_examples=300)
@given(fleets(), some.sampled_from(SERVED))
def test_steps_of_served_clusters_equal_the_scalar_formulas(fleet, job):
    expected = [scalar(job, prior_of(job), fleet, *strategy) for strategy in ROWS]
    found = terms_of(job, prior_of(job), fleet).step_s[:, 0]
    assert found.tolist() == pytest.approx(expected, rel=1e-9)


def scalar(job: Job, prior: Prior, fleet: Clusters, sharding: str, recompute: bool) -> float:
    """One strategy on one cluster, in plain Python."""
    n, gpus, g = (float(x[0]) for x in (fleet.machines, fleet.gpus, fleet.gpus_per_machine))
    if gpus > job.global_batch or (job.recomputation == "full" and not recompute):
        return inf
    needs = bytes_of(job, prior)
    shards = {"ddp": 1.0, "hsdp": g, "fsdp": gpus}[sharding]
    room = float(fleet.memory_bytes[0]) - needs.context - needs.states / shards
    room -= needs.whole * (1 - 1 / shards)
    most = floor(room / per_sample(needs, recompute))
    # An update holds a copy of the weights, divided like them, while activations are gone.
    updating = needs.context + (needs.states + needs.update) / shards
    if room <= 0 or most < 1 or float(fleet.memory_bytes[0]) < updating:
        return inf
    batch = ceil(job.global_batch / gpus)
    rounds = ceil(batch / min(most, batch))
    arithmetic = (batch + rounds * prior.batch_penalty) * gpus / float(fleet.compute_per_s[0])
    starts = prior.launch_s + (prior.gathered_launch_s if sharding != "ddp" else 0.0)
    both = (lambda a, b: a + b) if prior.adapters else max
    busy = both(arithmetic, rounds * starts)
    busy += recompute * both(job.recomputed_share * arithmetic, rounds * starts / 2)
    moved = rounds * (2 + recompute) * prior.quantized_bytes + prior.update_bytes / shards
    busy += moved / float(fleet.device_bytes_per_s[0])
    busy += rounds * prior.tensor_s * job.gradient_tensors
    if job.sync == "parameter_server":
        alone = replace(fleet, machines=np.array([1.0]))
        waits = scalar_exposed(job, prior, alone, sharding, rounds, busy)
        busy += waits + 0.005 * log2(g) * busy
        exposed = scalar_served(job, prior, fleet, busy)
    else:
        exposed = scalar_exposed(job, prior, fleet, sharding, rounds, busy)
        exposed += 0.005 * log2(gpus) * busy
    return max(busy + exposed, job.global_batch / float(fleet.prepare_per_s[0]))


def scalar_exposed(
    job: Job, prior: Prior, fleet: Clusters, sharding: str, rounds: int, busy: float
) -> float:
    needs = bytes_of(job, prior)
    n, g = float(fleet.machines[0]), float(fleet.gpus_per_machine[0])
    once, often = 2 * needs.reduced, rounds * (2 * needs.gathered + needs.reduced)
    inside = (once if sharding == "ddp" else often) * (g - 1) / g
    inside /= float(fleet.intra_bytes_per_s[0])
    between = 0.0
    if n > 1:
        message = needs.gathered / job.layers if job.layers else BUCKET_BYTES
        if sharding == "ddp":
            message = min(BUCKET_BYTES, needs.reduced)
        half, rate = float(fleet.network_half_bytes[0]), float(fleet.network_bytes_per_s[0])
        sent = (often if sharding == "fsdp" else once) * (n - 1) / n
        calls = 3 * rounds if sharding == "fsdp" else 1
        between = sent / (rate * message / (message + half))
        between += calls * float(fleet.network_latency_s[0]) * log2(n)
    last, whole = prior.overlap * 2 / 3 * busy / rounds, prior.overlap * busy
    if sharding == "ddp":
        return max(inside + between - last, 0.0)
    if sharding == "fsdp":
        return max(inside + between - whole, 0.0)
    return max(between - last, inside + between - whole, 0.0)


def scalar_served(job: Job, prior: Prior, fleet: Clusters, busy: float) -> float:
    """What the queue at the parameter servers adds to a step."""
    machines = int(fleet.machines[0])
    if machines == 1:
        return 0.0
    c, used = load_constants(), min(job.parameter_servers, machines)
    sent = bytes_of(job, prior).reduced / used**0.5
    service = c.tensor_s * job.gradient_tensors / used + c.update_s
    service += sent * (c.byte_s + 1 / min(float(fleet.network_bytes_per_s[0]), 0.85e9))
    own = (c.worker_tensor_s * job.gradient_tensors + c.worker_update_s) / 8
    alone, queued, rate = max(busy + own, service), 0.0, 0.0
    for n in range(1, machines + 1):
        rate = min(n / (alone + 0.5 * service * queued), 1 / service)
        queued = n - (alone - service) * rate
    return machines / rate - busy


def best_layout(job: Job, prior: Prior, fleet: Clusters) -> float:
    """The fastest layout, or of those of which a part of the machines is a multiple."""
    n, g = int(fleet.machines[0]), int(fleet.gpus_per_machine[0])
    whole = fastest_of(job, prior, fleet, every_layout(job, n, g))
    if whole < inf or n == 1:
        return whole
    tried, seen = [inf], set()
    longest = max(p for p in range(1, n + 1) if nearly_even(job, p))
    for some_of_them in range(n, 0, -1):
        share = some_of_them / n
        names = ("machines", "gpus", "compute_per_s", "prepare_per_s")
        part = replace(fleet, **{name: getattr(fleet, name) * share for name in names})
        each = {x for x in every_layout(job, some_of_them, g) if x.p in (*STAGES, longest)}
        tried.append(fastest_of(job, prior, part, sorted(each - seen)))
        seen |= each
    return min(tried)


def fastest_of(job: Job, prior: Prior, fleet: Clusters, layouts: list["Layout"]) -> float:
    """Every degree and every number of micro-batches."""
    g = int(fleet.gpus_per_machine[0])
    tried, shares = [inf], (1.0,) if job.recomputation == "full" else (0.0, 1.0, None)
    for layout, again in product(layouts, shares):
        p = layout.p
        chunks = [v for v in range(2, 9) if p > 1 and nearly_even(job, p * v)]
        few, many = [v for v in chunks if v <= 4], [v for v in chunks if v > 4]
        interleaved = (few[-1:] + many[-1:]) if job.stack == "tuned" else []
        for v, hides in product((1, *interleaved), (False, True)):
            if not hides or (job.stack == "tuned" and layout.e > g and (p == 1 or v > 1)):
                tried.append(scalar_layout(job, prior, fleet, layout, again, v, hides))
    return min(tried)


class Layout(NamedTuple):
    """GPUs that share a layer, groups that share a sequence, stages; are weights sharded too."""

    t: int
    c: int
    p: int
    sharded: bool
    e: int = 1  # GPUs that divide the experts


STAGES = (1, 2, 3, 4, 6, 8, 9, 12, 16)


def every_layout(job: Job, n: int, g: int) -> list[Layout]:
    """Every layout on n machines of g GPUs."""
    every = {*STAGES, n}
    stages = {"auto": every, "tensor": {1}, "pipeline": every - {1}, "context": every}
    contexts = [c for c in (1, 2, 4, 8, 16) if c * 4096 <= job.tokens_per_sample or c == 1]
    if job.sharding != "auto":
        contexts = [c for c in contexts if (c > 1) is (job.sharding == "context")]
    tensors = {1, min(g, 8)} | ({t for t in (2, 4) if t < g and job.family != "moe"})
    degrees = product(tensors, contexts, sorted(stages[job.sharding]), (False, True))
    found = [
        layout for layout in (Layout(*each) for each in degrees) if is_known(job, n, g, layout)
    ]
    if job.family != "moe":
        return found
    experts = [e for e in (2, 4, 8, 16, 32, 64) if min(g, 8) <= e <= expert_estimate(job)]
    degrees = product((1, 2, 4, 8, 16), experts)
    return found + [Layout(1, 1, p, False, e) for p, e in degrees if is_divided(job, n, g, p, e)]


def is_divided(job: Job, n: int, g: int, p: int, e: int) -> bool:
    """Whether each stage is a part of a machine, or some of them."""
    if not nearly_even(job, p) or (g % e and e % g):
        return False
    return g % (p * e) == 0 or (p * e > g and p * e % g == 0 and n % (p * e // g) == 0)


def is_known(job: Job, n: int, g: int, layout: Layout) -> bool:
    t, c, p, sharded, e = layout
    replica = t * c * p
    if replica == 1 or (c > 1 and p not in STAGES) or not nearly_even(job, p):
        return False
    if sharded and (p > 1 or n * g == t or t * c == 1):
        return False
    if t == 1 < g and (c > g or (p > 1 and (c > 1 or p not in (2, 4, 8)))):
        return False
    if 1 < t < g and (c > 1 or sharded or p not in STAGES):
        return False
    if replica > g:
        return replica % g == 0 and n % (replica // g) == 0
    return g % replica == 0


def nearly_even(job: Job, parts: int) -> bool:
    places = job.layers + head_layers(job)
    return parts <= job.layers and ceil(job.layers / parts) * parts <= 1.04 * places


def scalar_layout(
    job: Job,
    prior: Prior,
    fleet: Clusters,
    layout: Layout,
    again: float | None,
    chunks: int,
    hides: bool,
) -> float:
    """One layout with its best micro-batches, found by trying them all.

    `again` is the share of the layers that is computed again; None: of the numbers of layers of a
    stage the least with which one sample fits.
    """
    t, c, p, sharded, e = layout
    if again is None:
        each = ceil(job.layers / p)
        shares = [k / each for k in range(each + 1)]
        rest = chunks, hides
        found = (scalar_layout(job, prior, fleet, layout, share, *rest) for share in shares)
        return next((seconds for seconds in found if seconds < inf), inf)
    needs, gpus = bytes_of(job, prior), float(fleet.gpus[0])
    replicas = gpus / (t * c * p)
    if replicas > job.global_batch:
        return inf
    inputs, layer = needs.recomputed - needs.layer, needs.layer / (t * c) if again else 0.0
    kept = (again * inputs + (1 - again) * needs.activations) / (t * c)
    last = max(needs.logits / (t * c), layer)  # the loss is over before a layer is computed again
    sample = kept + last if p == 1 else max(kept + layer, kept / p + last)
    sample *= 1 + (p - 1) * (chunks > 1) / (p * chunks) + hides / (p * chunks)
    weights = (needs.weights + needs.gradients) * (1 - needs.routed * (1 - 1 / e))
    held = weights / (gpus if sharded else t * p) + needs.optimizer / gpus + needs.context
    routed = 1 - needs.routed * (1 - 1 / e)
    held += needs.whole * (1 - t / gpus) / t * routed if sharded else 0.0
    fits = floor((float(fleet.memory_bytes[0]) - held) / sample)
    if fits < 1:
        return inf
    batch = ceil(job.global_batch / replicas)
    least = ceil(batch / min(fits, batch))
    fewest = max(p if chunks > 1 else 1, 1 + hides)
    if batch < fewest:
        return inf
    tried = range(max(least, fewest), batch + 1)
    rest = chunks, hides
    step = min(layout_step(job, prior, fleet, layout, again, batch, r, *rest) for r in tried)
    return max(step, job.global_batch / float(fleet.prepare_per_s[0]))


def layout_step(
    job: Job,
    prior: Prior,
    fleet: Clusters,
    layout: Layout,
    again: float,
    batch: int,
    rounds: int,
    chunks: int,
    hides: bool,
) -> float:
    """r micro-batches through p stages, and then the gradients."""
    t, c, p, sharded, e = layout
    g, links = float(fleet.gpus_per_machine[0]), float(fleet.intra_bytes_per_s[0])
    rate, latency = float(fleet.network_bytes_per_s[0]), float(fleet.network_latency_s[0])
    half = float(fleet.network_half_bytes[0])
    gpu_s = float(fleet.gpus[0] / fleet.compute_per_s[0])
    share = max(1 / t, min(1.0, 1024 / job.hidden))
    longest = longest_stage(job, p, chunks)
    busy = (batch / rounds / t + prior.batch_penalty * share) / c * gpu_s * longest
    busy *= 1 + again * job.recomputed_share
    unpacked = (2 + again) * prior.quantized_bytes / (t * p) / float(fleet.device_bytes_per_s[0])
    started = prior.tensor_s * job.gradient_tensors / p + unpacked
    busy += started
    wide = 4 if job.precision == "fp32" else 2
    message = batch / rounds * job.tokens_per_sample / c * job.hidden * wide
    passed = message / links + prior.link_wait_s
    turn = busy + (4 + 2 * again) * job.layers / p * 2 * (t - 1) / t * passed
    if p > 1:
        far = (g / t * message + half) / rate + latency  # each GPU by its part of the network
        turn += 2 * chunks * (far if t * c * p * e > g else message / t / links)
    turn += exchange(job, fleet, layout, again, message, hides * batch / rounds * gpu_s * longest)
    if c > 1:
        width = min(job.hidden, 1024) if job.stack == "tuned" else job.hidden
        calls, keys = (3 + again) * job.layers / p, 2 * wide * width / t
        keys *= batch / rounds * job.tokens_per_sample * (c - 1) / c
        turn += calls * (keys / links if t * c <= g else (keys * g + half) / rate)
        turn += calls * latency * log2(c) * (t * c > g)
    turn = max(turn, prior.model_parallel_launch_s / p)
    sums = scalar_states(job, prior, fleet, layout, rounds)
    hidden = prior.overlap * 2 / 3 * busy if p == 1 else 0.0
    hidden = prior.overlap * rounds * busy if sharded else hidden
    least = (1 / t + prior.batch_penalty * share) / c * gpu_s * longest
    least *= 1 + again * job.recomputed_share
    least += started
    hidden += (1 - 1 / chunks) * min(sums, p * 2 / 3 * least)
    turn *= 1 + 0.005 * log2(float(fleet.gpus[0]))
    return (rounds + (p - 1) / chunks) * turn + max(sums - hidden, 0.0)


def head_layers(job: Job) -> float:
    """Layers that take as long as the product with the vocabulary."""
    head = job.vocabulary * job.hidden * job.tokens_per_sample * 2 * job.forward_passes
    return job.layers * head / max(job.flop_per_sample - head, job.flop_per_sample / 2)


def longest_stage(job: Job, p: int, chunks: int) -> float:
    """The share of the arithmetic in the longest stage; the last one also has the output layer."""
    head = head_layers(job)
    if p == 1:
        return 1.0
    each = [(ceil(job.layers / (p * chunks)) + more) * chunks for more in range(1 + ceil(head))]
    longest = min(max(some, max(job.layers - (p - 1) * some, 0) + head) for some in each)
    return longest / (job.layers + head)


def exchange(
    job: Job, fleet: Clusters, layout: Layout, again: float, message: float, busy: float
) -> float:
    """What tokens need to their experts and back that is not hidden."""
    g, links = float(fleet.gpus_per_machine[0]), float(fleet.intra_bytes_per_s[0])
    rate, latency = float(fleet.network_bytes_per_s[0]), float(fleet.network_latency_s[0])
    own, machines = min(layout.e, g), max(layout.e / g, 1.0)
    if layout.e == 1:
        return 0.0
    copies, calls = job.token_experts, (4 + 2 * again) * job.layers / layout.p
    near = copies * (own - 1) / own * message / links
    others = copies * (1 - 1 / machines)
    if job.stack == "tuned":
        others = (machines - 1) * (1 - (1 - 1 / machines) ** copies)
        if job.expert_groups:
            others = min(others, job.expert_groups * (1 - 1 / machines))
    far = others * message * g / rate if machines > 1 else 0.0
    hidden = 0.26 * busy * (1 + again * job.recomputed_share)
    hidden *= again < 1
    waits = float(fleet.network_half_bytes[0]) / rate + latency if machines > 1 else 0.0
    return calls * (near + waits) + max(calls * (far - near) - hidden, 0.0)


def scalar_states(job: Job, prior: Prior, fleet: Clusters, layout: Layout, rounds: int) -> float:
    """What is sent of gradients at the end, or of sharded weights in every micro-batch."""
    n, g = float(fleet.machines[0]), float(fleet.gpus_per_machine[0])
    rate, half = float(fleet.network_bytes_per_s[0]), float(fleet.network_half_bytes[0])
    links, latency = float(fleet.intra_bytes_per_s[0]), float(fleet.network_latency_s[0])
    needs, alone = bytes_of(job, prior), layout.t * layout.p * layout.e
    inside = max(g / alone, 1.0)
    if layout.sharded:
        sent, layer = 2 * needs.gathered + needs.reduced, needs.gathered / job.layers
        sums = sent / layout.t * (inside - 1) / inside / links
        if n > 1:
            sums += sent * (n - 1) / n / (rate * layer / (layer + half)) + 3 * latency * log2(n)
        return rounds * sums
    if layout.e == 1:
        sums = 2 * needs.reduced / alone * (inside - 1) / inside / links
        return sums + summed(job, fleet, needs.reduced, alone)
    routed, stage = needs.routed * needs.reduced, min(layout.e, g)
    copies = max(g / layout.p, stage)
    sums = 2 * routed / alone * (inside - 1) / inside / links
    sums += 2 * (needs.reduced - routed) / layout.p * (copies - 1) / copies / links
    if layout.e <= g:
        return sums + summed(job, fleet, needs.reduced, layout.p * stage)
    sums += summed(job, fleet, needs.reduced - routed, layout.p * stage)
    return sums + summed(job, fleet, routed, alone)


def summed(job: Job, fleet: Clusters, reduced: float, alone: float) -> float:
    """Seconds on the network for gradients that `alone` GPUs hold once."""
    n, g = float(fleet.machines[0]), float(fleet.gpus_per_machine[0])
    rate, half = float(fleet.network_bytes_per_s[0]), float(fleet.network_half_bytes[0])
    others = n * min(g / alone, 1.0)
    if others <= 1:
        return 0.0
    part = reduced * others / n
    large = 2 * max(40e6, 1e6 * n * g / alone)  # Megatron Core's buckets
    bucket = min(large if job.stack == "tuned" else BUCKET_BYTES, part)
    sums = 2 * part * (others - 1) / others / (rate * bucket / (bucket + half))
    return sums + float(fleet.network_latency_s[0]) * log2(others)
