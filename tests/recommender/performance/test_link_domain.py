"""Machines whose GPUs share the links of a rack: GB200 NVL72, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.jobfile import job_from_text
from recommender.performance.clusters import clusters_of, link_gpus, linked
from recommender.performance.machines import machine_columns
from recommender.performance.memory import bytes_of
from recommender.performance.priors import prior_of
from recommender.performance.step import explain, steps, terms_of
from tests.recommender.performance.parts import P5, clusters, columns, llama, resnet
from tests.shipped import snapshot

RACK = ("azure", "Standard_ND128isr_NDR_GB200_v6")
LINKS, CARD = 673e9, 200e9  # bytes/s of a GPU's links, and of a machine's 1,600 Gbit/s
RESNET = resnet(global_batch=2**16, gradient_tensors=0, sharding="ddp", precision="bf16")


def rack(job):
    catalog = snapshot()
    return machine_columns(job, (catalog.instance_types[RACK],), catalog.gpus, catalog.achieved)


def sent_s(machines, job=RESNET):
    """Seconds of the all-reduce of DDP, none of it hidden, no GPU late."""
    found = rack(job)
    prior = replace(prior_of(job), overlap=0.0)
    terms = terms_of(job, prior, clusters(found, {0: machines}))
    return float(terms.exposed_s[0, 0]), float(terms.network_share[0, 0])


def test_a_rack_takes_eighteen_machines_of_four():
    assert link_gpus("GB200", 4) == link_gpus("GB300", 4) == 72
    assert link_gpus("H100", 8) == 8
    assert link_gpus("GB200", 72) == 72


@pytest.mark.usefixtures("punctual")
@pytest.mark.parametrize("machines", [2, 9, 18])
def test_machines_of_one_rack_send_nothing_over_the_network(machines):
    """2·(N - 1)/N of 25.6 M gradients of 32 bits, over the links."""
    gpus = 4 * machines
    seconds, network = sent_s(machines)
    assert seconds == pytest.approx(2 * RESNET.parameters * 4 * (gpus - 1) / gpus / LINKS)
    assert network == 0.0


@pytest.mark.usefixtures("punctual")
def test_two_racks_exchange_over_the_cards_of_all_their_machines():
    """72 GPUs inside; 18 cards at half their gradients' way, and one latency."""
    found = rack(RESNET)
    message, half = 25 * 2.0**20, float(found.network_half_bytes[0])
    size = 2 * RESNET.parameters * 4
    rate = 18 * CARD * message / (message + 18 * half)
    far = size / 2 / rate + float(found.network_latency_s[0])
    seconds, network = sent_s(36)
    assert seconds == pytest.approx(size * 71 / 72 / LINKS + far)
    assert network == pytest.approx(far / seconds)


def test_nineteen_machines_are_two_racks_of_ten_and_nine():
    """Ten stand for both; what needs groups alike has each machine for one."""
    fleet = clusters(rack(RESNET), {0: 19})
    found = linked(RESNET, fleet)
    assert (found.machines[0], found.gpus_per_machine[0], found.gpus[0]) == (2, 40, 76)
    hybrid = replace(RESNET, sharding="hsdp")
    of_four = replace(fleet, link_gpus=fleet.gpus_per_machine)
    each = (float(steps(hybrid, rack(RESNET), some).step_s[0]) for some in (fleet, of_four))
    assert next(each) == next(each) < np.inf


def test_no_number_of_machines_is_refused_between_two_that_run():
    """Llama 405B in fp8 on 250 to 272 machines of four: 254 and 256 are no multiples of a rack."""
    job = job_from_text(
        "schema: recommend.job/v1\nmodel: meta-llama/Llama-3.1-405B\nmethod: full\ntokens: 1B\n"
        "seq_len: 8192\nbatch: 768\nstack: tuned\nprecision: fp8\n"
    )
    fleet = clusters(rack(job), *({0: n} for n in range(250, 273, 2)))
    step_s = steps(job, rack(job), fleet).step_s
    assert np.isfinite(step_s).all()
    assert step_s.max() < 2.0 * step_s.min()


def test_other_machines_and_parameter_servers_are_as_they_were():
    ours = clusters(columns(resnet(), (P5,)), {0: 4})
    assert linked(resnet(), ours) is ours
    fleet = clusters(rack(RESNET), {0: 4})
    assert linked(resnet(sync="parameter_server"), fleet) is fleet
    unknown = replace(fleet, network_bytes_per_s=np.zeros(1))
    assert linked(RESNET, unknown).machines[0] == 4


def test_racks_are_not_shared_with_machines_of_another_type():
    catalog = snapshot()
    types = (catalog.instance_types[RACK], catalog.instance_types["aws", "p5.48xlarge"])
    both = machine_columns(RESNET, types, catalog.gpus, catalog.achieved)
    fleet = clusters_of(both, np.array([[3, 0], [3, 1]]))
    assert fleet.link_gpus.tolist() == [72, 8]
    assert linked(RESNET, fleet).machines.tolist() == [1, 4]


def test_states_are_divided_among_the_gpus_of_a_rack():
    """HSDP on two racks: 16 bytes a parameter over 72 GPUs, and what one gathers of them."""
    job = llama(sharding="hsdp", global_batch=4096)
    found = rack(job)
    lines = dict(explain(job, found, clusters(found, {0: 36}), 0).memory_parts_gib)
    states = lines["weights"] + lines["gradients"] + lines["optimizer"]
    whole = bytes_of(job, prior_of(job)).whole * 71 / 72
    assert states == pytest.approx((16 * job.parameters / 72 + whole) / 2**30, rel=0.01)


def test_more_machines_of_a_rack_are_faster_than_without_its_links():
    job = llama(global_batch=64, stack="tuned")  # typical scripts hide all of it
    found = rack(job)
    fleet = clusters(found, {0: 16})
    apart = replace(fleet, link_gpus=fleet.gpus_per_machine)
    assert steps(job, found, fleet).step_s[0] < steps(job, found, apart).step_s[0]
