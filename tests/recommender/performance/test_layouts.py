"""Which layouts there are, and what a GPU holds under them, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.performance.layouts import (
    EXPERT_GPUS,
    expert_estimate,
    has_layouts,
    head_layers,
    layouts_of,
    longest_share,
)
from recommender.performance.memory import (
    Degrees,
    bytes_of,
    held_bytes,
    layout_memory_gib,
    min_recomputed_share,
    sample_bytes,
)
from recommender.performance.model_parallel import lost_share
from recommender.performance.priors import prior_of
from recommender.performance.step import explain, steps
from tests.recommender.performance.parts import G6, G6X8, P5, clusters, columns, llama, resnet


def degrees(machines, kind=P5, **changes):
    """(t, p) of every layout of a transformer of 80 layers and short sequences on some machines."""
    size = {"layers": 80, "hidden": 8192, "flop_per_sample": 6 * 70e9 * 4096}
    job = llama(tokens_per_sample=4096, **size, **changes)
    found = layouts_of(job, clusters(columns(job, (kind,)), {0: machines}))
    return set(zip(found.tensor.tolist(), found.stages.tolist(), strict=True))


IN_ONE_MACHINE = {(8, 1), (1, 2), (1, 4), (1, 8), (2, 1), (4, 1), (2, 2), (2, 4), (4, 2)}


def test_one_machine_shares_layers_or_has_stages():
    assert degrees(1) == IN_ONE_MACHINE


def test_four_machines_are_up_to_four_stages_of_eight_gpus_and_sixteen_of_two():
    several = {(8, 2), (8, 4), (4, 4), (4, 8), (2, 8), (2, 16)}
    assert degrees(4) == IN_ONE_MACHINE | several


def test_only_all_gpus_of_a_machine_share_layers_of_a_mixture():
    """Its experts are divided instead: "Prefer EP over TP" (Megatron Core, README of its MoE)."""
    found = degrees(4, family="moe", stack="tuned")
    assert {t for t, _ in found} == {1, 8}


def test_five_machines_are_one_pipeline_of_five_stages_of_nearly_as_many_layers():
    assert (8, 5) in degrees(5)
    assert (8, 5) not in degrees(5, sharding="tensor")
    assert degrees(11) == degrees(1)  # a stage of 8 layers, where the mean is 7.4


def test_a_machine_that_no_pipeline_needs_is_idle():
    """126 layers lie in sixteen stages, not in seventeen."""
    sizes = {"parameters": 405e9, "trainable_parameters": 405e9, "active_parameters": 405e9}
    sizes |= {"layers": 126, "hidden": 16384, "flop_per_sample": 6 * 405e9 * 8192}
    job = llama(stack="tuned", sharding="pipeline", **sizes)
    found = columns(job, (P5,))
    both = clusters(found, {0: 16}, {0: 17})
    step_s = steps(job, found, both).step_s
    assert step_s[0] == step_s[1] < np.inf
    labels = [explain(job, found, both, row).sharding for row in (0, 1)]
    assert labels[1] == f"{labels[0]}, idle 8"


def test_126_layers_lie_in_sixteen_stages():
    """Llama 3 405B (arXiv 2407.21783): stages of eight layers, the last ones of seven."""
    job = llama(layers=126, hidden=16384, stack="tuned")
    found = layouts_of(job, clusters(columns(job, (P5,)), {0: 16}))
    assert (8.0, 16.0) in set(zip(found.tensor.tolist(), found.stages.tolist(), strict=True))


def test_a_stage_has_at_least_a_layer():
    """128 machines could be one pipeline of 128 stages, and 126 layers nearly fill it."""
    job = llama(layers=126, hidden=16384, stack="tuned", sharding="pipeline")
    for machines in (126, 127, 128):
        found = layouts_of(job, clusters(columns(job, (P5,)), {0: machines}))
        assert (max(found.stages, default=0.0) == machines) == (machines == 126)
        assert found.stages.max(initial=0.0) <= 126


def test_pipelines_that_people_train_with_are_among_the_layouts():
    """NVIDIA's Llama 3.1 405B on 576 GPUs (TP 8, CP 2, PP 9, DP 4), and BLOOM's 12 stages."""
    job = llama(layers=126, hidden=16384, stack="tuned", tokens_per_sample=8192)
    found = layouts_of(job, clusters(columns(job, (P5,)), {0: 72}))
    rows = zip(found.tensor, found.context, found.stages, strict=True)
    assert (8.0, 2.0, 9.0) in {tuple(map(float, row)) for row in rows}
    bloom = llama(layers=70, hidden=14336, stack="tuned", tokens_per_sample=2048)
    found = layouts_of(bloom, clusters(columns(bloom, (P5,)), {0: 48}))
    assert 12.0 in found.stages
    assert 9.0 not in found.stages  # 48 machines are not replicas of nine


def test_no_layout_is_tried_twice_on_a_cluster():
    job = llama(layers=126, hidden=16384, stack="tuned", tokens_per_sample=131072)
    for kind in (P5, G6):
        for machines in range(1, 37):
            found = layouts_of(job, clusters(columns(job, (kind,)), {0: machines}))
            each = (found.tensor, found.stages, found.context, found.sharded, found.experts)
            rows = list(zip(*(column.tolist() for column in each), strict=True))
            assert len(set(rows)) == len(rows)


def test_single_gpus_are_stages():
    assert degrees(8, kind=G6) == {(1, 2), (1, 4), (1, 8)}
    assert degrees(32, kind=G6) == {(1, 2), (1, 4), (1, 8), (1, 16)}
    assert degrees(1, kind=G6) == set()


def test_machines_of_unlike_size_have_no_layouts():
    job = llama()
    found = columns(job, (P5, G6))
    assert len(layouts_of(job, clusters(found, {0: 1, 1: 1})).cluster) == 0


def test_networks_that_fit_one_gpu_have_layouts_only_if_requested_and_possible():
    assert has_layouts(llama(stack="tuned"))
    assert not has_layouts(llama(stack="typical"))
    assert not has_layouts(llama(stack="tuned", parameters=0.4e9))
    assert has_layouts(llama(stack="typical", parameters=70e9))
    assert not has_layouts(llama(stack="typical", parameters=70e9, method="lora"))
    assert has_layouts(llama(stack="tuned", parameters=70e9, method="lora"))
    assert has_layouts(llama(parameters=0.4e9, sharding="pipeline"))
    assert not has_layouts(llama(sharding="fsdp"))
    assert not has_layouts(resnet(sharding="tensor"))


def test_shared_layers_lose_an_eighth_each_unless_they_get_narrow():
    """8192/8 is as wide as the networks of the fit; 4096/8 is half of it, 1024/8 an eighth."""
    shares = [lost_share(llama(hidden=h), np.array([1.0, 8.0])) for h in (8192, 4096, 1024, 512)]
    assert [share.tolist() for share in shares] == [[1, 1 / 8], [1, 1 / 4], [1, 1], [1, 1]]


def test_a_gpu_of_175b_over_eight_by_eight_by_two_holds_16_6_gb():
    """(2 + 2)/64 + 12/128 bytes per parameter, with the optimizer over both replicas."""
    job = llama(parameters=175e9, trainable_parameters=175e9)
    needs = bytes_of(job, prior_of(job))
    held = held_bytes(needs, 128.0, np.array([8.0]), np.array([8.0]))
    assert held == pytest.approx(175e9 * (4 / 64 + 12 / 128), rel=1e-9)


def test_activations_of_a_sample_are_34_shl_over_t():
    """Korthikanti et al.: 34·s·h·L/t on the first stage, whatever the number of stages."""
    job = llama(vocabulary=0)
    needs, p = bytes_of(job, prior_of(job)), np.array([1.0, 2.0, 8.0])
    sample = sample_bytes(needs, 0.0, np.full(3, 8.0), p)
    assert sample.tolist() == pytest.approx([34 * 8192 * 4096 * 32 / 8] * 3)


def test_logits_lie_on_the_last_stage_only():
    job = llama()
    needs = bytes_of(job, prior_of(job))
    whole = sample_bytes(needs, 1.0, np.array([8.0]), np.array([1.0]))
    last = sample_bytes(needs, 1.0, np.array([8.0]), np.array([4.0]))
    assert needs.logits > needs.layer > 0
    assert whole == pytest.approx((needs.inputs + needs.logits) / 8)
    assert last == pytest.approx((needs.inputs / 4 + needs.logits) / 8)


@pytest.mark.parametrize("stages", [1.0, 2.0, 8.0])
@pytest.mark.parametrize("again", [0.0, 0.4, 1.0])
def test_the_lines_add_up(stages, again):
    job = llama()
    needs = bytes_of(job, prior_of(job))
    t, p = np.array([4.0]), np.array([stages])
    total = held_bytes(needs, 64.0, t, p) + needs.context + 3 * sample_bytes(needs, again, t, p)
    lines = dict(layout_memory_gib(needs, 64.0, Degrees(4.0, 1.0, stages, False), 3.0, again))
    assert sum(lines.values()) == pytest.approx(float(total[0]) / 2**30)


def test_as_few_layers_are_computed_again_as_let_one_sample_fit():
    """Of 32 layers in four stages, eight each: room for half of what all of them keep.

    Next to what stays, the one layer that is computed takes a thirtieth of what all would spare.
    """
    job = llama(vocabulary=0)
    needs, t, p = bytes_of(job, prior_of(job)), np.array([8.0]), np.array([4.0])
    whole, least = (sample_bytes(needs, again, t, p) for again in (0.0, 1.0))
    room = whole - (whole - least) * np.array([0.0, 0.48, 0.49, 0.51, 1.0, 2.0])
    again = min_recomputed_share(needs, room * (1 + 1e-12), t, p, job.layers)
    assert again.tolist() == [0.0, 0.5, 0.625, 0.625, 1.0, 1.0]
    assert (sample_bytes(needs, again, t, p) <= room * (1 + 1e-9))[:-1].all()


def test_llama_405b_computes_a_part_of_its_layers_again_on_sixteen_thousand_h100():
    """Meta's run (arXiv 2407.21783) computed none again; all again would cost a third.

    Without shared sequences, as in Meta's run.
    """
    size = {"parameters": 4.06e11, "trainable_parameters": 4.06e11, "hidden": 16384, "layers": 126}
    size["flop_per_sample"] = 8192 * (6 * 4.037e11 + 6 * 16384 * 126 * 8192)
    token = 8192.0 * 16384
    kept = {
        "activation_bytes_per_sample": 34.0 * token * 126,
        "recomputed_activation_bytes_per_sample": (2.0 * 126 + 34.0) * token,
    }
    job = llama(global_batch=2048, stack="tuned", sharding="pipeline", **size, **kept)
    found = steps(job, columns(job, (P5,)), clusters(columns(job, (P5,)), {0: 2048}))
    assert float(found.tensor[0]) == 8.0
    assert float(found.stages[0]) in (8.0, 16.0)  # Meta's had 16
    assert 0.0 < float(found.again[0]) < 0.5
    assert float(found.recompute_s[0] / found.compute_s[0]) < 0.5 / 3


def test_llama_8b_fits_eight_small_gpus_only_with_model_parallelism():
    """Eight L4 of 24 GB: no strategy that keeps whole layers fits a sample of 8,192 tokens."""
    job = llama()
    assert degrees(1, kind=G6X8)
    needs = bytes_of(job, prior_of(job))
    whole = needs.states / 8 + needs.context + needs.inputs + needs.logits
    divided = held_bytes(needs, 8.0, np.array([8.0]), np.array([1.0])) + needs.context
    divided += sample_bytes(needs, 1.0, np.array([8.0]), np.array([1.0]))
    assert whole > 20.7 * 2**30 > float(divided[0])


def contexts(tokens, machines=4, **changes):
    """(t, c, p, sharded) of the layouts that share sequences."""
    job = llama(layers=80, hidden=8192, tokens_per_sample=tokens, **changes)
    found = layouts_of(job, clusters(columns(job, (P5,)), {0: machines}))
    every = zip(*(getattr(found, name).tolist() for name in DEGREES), strict=True)
    return {layout for layout in every if layout[1] > 1}


DEGREES = ("tensor", "context", "stages", "sharded")


def test_sequences_are_shared_where_each_gpu_keeps_4096_tokens():
    assert not contexts(4096)
    assert {layout[1] for layout in contexts(8192)} == {2}
    assert {layout[1] for layout in contexts(131_072, machines=16)} == {2, 4, 8, 16}
    assert not contexts(131_072, family="encoder", sharding="tensor")


def test_a_shared_sequence_lies_in_one_machine_or_on_whole_ones():
    """TP 8 × CP 2 on two of four machines, × PP 2 on all; without TP inside each."""
    assert contexts(8192) == {
        (8, 2, 1, 0), (8, 2, 2, 0), (8, 2, 1, 1), (1, 2, 1, 0), (1, 2, 1, 1),
    }  # fmt: skip


def test_weights_are_sharded_under_tp_only_among_several_replicas():
    job = llama(tokens_per_sample=2048)

    def sharded(machines):
        found = layouts_of(job, clusters(columns(job, (P5,)), {0: machines}))
        return found.tensor[found.sharded > 0].tolist()

    assert (sharded(1), sharded(4)) == ([], [8.0])


def test_fsdp_and_tp_hold_all_states_once_on_the_cluster():
    """70B on 4 × 8 GPUs: 16 B a parameter over 32, and an eighth of what the four gather."""
    job = llama(parameters=70e9, trainable_parameters=70e9)
    needs = bytes_of(job, prior_of(job))
    held = held_bytes(needs, 32.0, np.array([8.0]), np.array([1.0]), np.array([1.0]))
    assert held == pytest.approx(70e9 * 16 / 32 + needs.whole / 8 * 3 / 4)


def test_the_label_names_the_degrees():
    assert Degrees(8.0, 1.0, 4.0, False).label(64.0) == "TP 8 × PP 4 × DP 2"
    assert Degrees(8.0, 2.0, 1.0, False).label(16.0) == "TP 8 × CP 2"
    assert Degrees(8.0, 1.0, 1.0, True).label(32.0) == "TP 8 × FSDP 4"
    assert Degrees(1.0, 2.0, 1.0, True).label(8.0) == "FSDP 8, CP 2"


def divided(job, machines=4):
    """(t, p, e) of the layouts that divide experts, on some machines of eight."""
    found = layouts_of(job, clusters(columns(job, (P5,)), {0: machines}))
    chosen = found.take(found.experts > 1)
    every = (chosen.tensor, chosen.stages, chosen.experts)
    return sorted(zip(*(part.tolist() for part in every), strict=True))


def test_experts_are_divided_among_the_gpus_of_a_machine_and_stages_are_machines():
    """On four machines of eight: one, two or four stages; no other family has experts."""
    job = llama(family="moe", tokens_per_sample=2048)
    assert divided(job) == [(1, 1, 8), (1, 2, 8), (1, 4, 8)]
    assert not divided(llama(tokens_per_sample=2048))


def test_many_experts_are_divided_among_several_machines():
    """DeepSeek-V3 on four machines of eight: all of them, or two stages of two machines."""
    sizes = {"parameters": 671e9, "active_parameters": 37.6e9, "hidden": 7168, "layers": 61}
    job = llama(family="moe", tokens_per_sample=2048, **sizes)
    expected = [(1, 1, 8), (1, 1, 16), (1, 1, 32), (1, 2, 8), (1, 2, 16), (1, 4, 8)]
    assert divided(job) == expected  # of 64 places in four stages the output layer fills 1.5


def test_a_part_of_a_link_domain_divides_experts():
    """Of 64 linked GPUs 32 hold Qwen3 235B's experts once, as in NVIDIA's recipe for GB200."""
    sizes = {"parameters": 235.1e9, "active_parameters": 22.2e9, "layers": 94}
    job = llama(family="moe", tokens_per_sample=2048, **sizes)
    four = clusters(columns(job, (P5,)), {0: 4})
    linked = replace(four, gpus=np.array([256.0]), gpus_per_machine=np.array([64.0]))
    found = layouts_of(job, linked)
    assert (2.0, 32.0) in set(zip(found.stages.tolist(), found.experts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("billions", "active", "hidden", "layers", "experts"),
    [(46.7, 12.9, 4096, 32, 8), (235.1, 22.2, 4096, 94, 128), (671.0, 37.6, 7168, 61, 256)],
)
def test_a_link_domain_divides_experts_if_there_are_as_many(
    billions, active, hidden, layers, experts
):
    """Mixtral 8x7B, Qwen3 235B and DeepSeek-V3 (config.json) on four domains of 8 to 64 GPUs."""
    job = llama(
        family="moe",
        tokens_per_sample=2048,
        parameters=billions * 1e9,
        active_parameters=active * 1e9,
        hidden=hidden,
        layers=layers,
    )
    four = clusters(columns(job, (P5,)), {0: 4})
    for size in (8, 16, 32, 64):
        domains = replace(four, gpus=np.array([4.0 * size]), gpus_per_machine=np.array([size]))
        most = layouts_of(job, domains).experts.max()
        assert min(size, experts / 4) <= most <= experts


@pytest.mark.parametrize(
    ("model", "experts"),
    [
        ("mistralai/Mixtral-8x22B-v0.1", 8),
        ("meta-llama/Llama-4-Scout-17B-16E", 16),
        ("meta-llama/Llama-4-Maverick-17B-128E", 128),
        ("openai/gpt-oss-20b", 32),
        ("Qwen/Qwen1.5-MoE-A2.7B", 60),
        ("allenai/OLMoE-1B-7B-0924", 64),
        ("deepseek-ai/DeepSeek-V2", 160),
    ],
)
def test_no_more_gpus_divide_experts_than_a_published_network_has(model, experts):
    estimate = expert_estimate(find_job("llama3-8b-pretrain", flags=JobFlags(model=model)))
    assert experts / 8 <= max(gpus for gpus in EXPERT_GPUS if gpus <= estimate) <= experts


def test_a_gpu_holds_an_eighth_of_the_experts_and_all_of_the_rest():
    """Mixtral 8x7B: of 46.7 B parameters 2.4 B in attention, 4·h² a layer, and two tables."""
    size = {"parameters": 46.7e9, "trainable_parameters": 46.7e9, "vocabulary": 32_000}
    needs = bytes_of(job := llama(family="moe", stack="tuned", **size), prior_of(job))
    rest = 4 * 32 * 4096**2 + 2 * 32_000 * 4096
    assert needs.routed == pytest.approx(1 - rest / 46.7e9)
    held = held_bytes(needs, 16.0, np.array([1.0]), np.array([2.0]), 0.0, np.array([8.0]))
    assert held == pytest.approx(4 * (rest + (46.7e9 - rest) / 8) / 2 + 12 * 46.7e9 / 16)
    lines = dict(layout_memory_gib(needs, 16.0, Degrees(1.0, 1.0, 2.0, False, 8.0), 1.0, 0.0))
    states = lines["weights"] + lines["gradients"] + lines["optimizer"]
    assert states == pytest.approx(float(held[0]) / 2**30)
    assert Degrees(1.0, 1.0, 4.0, False, 8.0).label(64.0) == "PP 4 × DP 16, EP 8"


def decoder(layers, hidden, vocabulary, multiplied, tokens):
    """A network whose layers and output layer multiply with so many weights."""
    flop = tokens * (6 * multiplied + 6 * hidden * layers * tokens)
    size = {"layers": layers, "hidden": hidden, "vocabulary": vocabulary}
    return llama(tokens_per_sample=tokens, flop_per_sample=flop, **size)


def test_the_output_layer_takes_as_long_as_some_layers():
    """Weights of the output layer over those of a layer, and h·s for its causal attention.

    GPT-3: 617 M over 12·h² = 1,812 M + 25 M. GPT-2 124M: 38.6 M over 7.08 M + 0.79 M; its table of
    words is also its output layer. Llama 3.1 405B: 2,101 M over 3,188 M + 134 M. Llama 3 8B: 525 M
    over 218.1 M + 33.6 M.
    """
    gpt3 = decoder(96, 12288, 50_257, 96 * 1812e6 + 617e6, 2048)
    assert head_layers(gpt3) == pytest.approx(617 / (1812 + 25), rel=0.01)
    llama_405b = decoder(126, 16384, 128_256, 126 * 3188e6 + 2101e6, 8192)
    assert head_layers(llama_405b) == pytest.approx(2101 / (3188 + 134), rel=0.01)
    shipped = {"gpt2-124m": 38.6 / (7.08 + 0.79), "llama3-8b-pretrain": 525 / (218.1 + 33.6)}
    for name, layers in shipped.items():
        job = find_job(name)
        assert head_layers(job) == pytest.approx(layers, rel=0.01), name
        adapters = replace(job, flop_per_sample=job.flop_per_sample / 1.5, forward_passes=2.0)
        assert head_layers(adapters) == pytest.approx(layers, rel=0.01), name


def test_the_longest_stage_of_405b_has_no_output_layer():
    """126 layers in 16 stages: 15 of eight and one of six, with an output layer as long as 0.63."""
    job = decoder(126, 16384, 128_256, 126 * 3188e6 + 2101e6, 8192)
    found = longest_share(job, np.array([16.0, 1.0]), np.array([1.0, 1.0]))
    assert found == pytest.approx([8 * 16 / (126 + head_layers(job)), 1.0])
    even = replace(job, layers=128)  # the last stage has eight as well, and the output layer
    assert longest_share(even, np.array([16.0]), np.array([1.0]))[0] > 1.06
