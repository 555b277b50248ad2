"""Attention over long sequences, and without fused kernels, by hand."""

from dataclasses import replace

import pytest

from recommender.job.jobfile import job_from_text
from recommender.performance.gpu_speed import extra_attention_s, long_attention_flop
from tests.recommender.performance.parts import llama, resnet

OPT = {"hidden": 1024, "heads": 16.0, "layers": 24, "tokens_per_sample": 2048}


def test_long_sequences_pay_for_attention_that_runs_slower_than_the_layers():
    """MPT-7B (32 layers, 4,096 wide) at 65,536 tokens: attention is two thirds of the FLOP."""
    size = {"hidden": 4096, "layers": 32, "parameters": 6.66e9}
    usual, long = (llama(tokens_per_sample=t, **size) for t in (2048, 65_536))
    assert long_attention_flop(usual) == 0.0
    attention = 6 * 4096 * 32 * 65_536**2
    expected = attention * (1 - 2048 / 65_536) * (1 / 0.7 - 1)
    assert long_attention_flop(long) == pytest.approx(expected)
    assert expected / (6 * 6.6e9 * 65_536 + attention) == pytest.approx(0.24, abs=0.04)
    pair = replace(long, post_training="dpo", tokens_per_sample=2 * 65_536)
    assert long_attention_flop(pair) == pytest.approx(2 * expected)


def test_plain_attention_moves_its_score_matrices_and_computes_the_masked_half():
    """OPT-350M: 16 heads, 24 layers, 2,048 tokens: 1.6 G elements, 51.5 GB at 1 TB/s."""
    job = llama(attention="plain", **OPT)
    elements = 16 * 24 * 2048**2
    masked = 6 * 1024 * 24 * 2048**2
    seconds = extra_attention_s(job, 1.0, 1e-14, 1e12)
    assert seconds == pytest.approx(32 * elements / 1e12 + masked * 1e-14)
    assert extra_attention_s(job, 2.0, 0.0, 1e12) == pytest.approx(2 * 32 * elements / 1e12)
    encoder = replace(job, family="encoder")
    assert extra_attention_s(encoder, 1.0, 1.0, 1e12) == pytest.approx(32 * elements / 1e12)
    pair = replace(job, post_training="dpo", tokens_per_sample=4096)
    assert extra_attention_s(pair, 1.0, 1e-14, 1e12) == pytest.approx(2 * seconds)


@pytest.mark.parametrize(("tokens", "fast", "slow"), [(4096, 3247, 2483), (8192, 3083, 1918)])
def test_a_mask_slows_mistral_7b_by_what_was_timed(tokens, fast, slow):
    """Adapters on an A100 80GB whose layers run at 192 TFLOP/s, half of them computed again."""
    size = {"hidden": 4096, "layers": 32, "tokens_per_sample": tokens}
    extra = 1.5 * extra_attention_s(llama(attention="masked", **size), 1.0, 1 / 192e12, 2e12)
    assert extra == pytest.approx(tokens / slow - tokens / fast, rel=0.05)


def test_fused_attention_and_other_networks_add_nothing():
    assert extra_attention_s(llama(**OPT), 1.0, 1.0, 1.0) == 0.0
    assert extra_attention_s(resnet(attention="plain"), 1.0, 1.0, 1.0) == 0.0


def test_plain_attention_keeps_five_bytes_of_each_score():
    """Korthikanti et al.: s·b·h·(34 + 5·a·s/h) a layer; one layer of it when computed again."""
    text = "schema: recommend.job/v1\nlike: gpt2-xl\n"
    fused, plain = job_from_text(text), job_from_text(text + "attention: plain\n")
    scores = 5 * 25 * fused.tokens_per_sample**2
    kept = plain.activation_bytes_per_sample - fused.activation_bytes_per_sample
    assert kept == pytest.approx(48 * scores)


LONG = "schema: recommend.job/v1\nbatch: 8\ntokens: 1B\nseq_len: 2048\n"


def by_stack(model: str, more: str = ""):
    text = LONG + f"model: {model}\n" + more
    names = ("typical", "transformers", "unsloth", "megatron-deepspeed", "nemo", "tuned")
    return {name: job_from_text(f"{text}stack: {name}\n").attention for name in names}


def test_the_stack_decides_whether_attention_is_fused():
    """A Llama has sdpa in transformers; Megatron-DeepSpeed fuses only if it is told to."""
    llama_3 = by_stack("meta-llama/Llama-3.1-8B")
    assert {name for name, kind in llama_3.items() if kind == "plain"} == {"megatron-deepspeed"}


@pytest.mark.parametrize("model", ["google/gemma-2-9b", "openai/gpt-oss-20b", "bigscience/bloom"])
def test_networks_without_sdpa_in_transformers_are_plain_there_and_fused_elsewhere(model):
    """`_supports_sdpa` is False or unset in their classes of transformers 5.24."""
    found = by_stack(model)
    assert [name for name, kind in found.items() if kind == "fused"] == ["unsloth", "nemo", "tuned"]
    assert "attention" in job_from_text(LONG + f"model: {model}\n").assumed


@pytest.mark.parametrize("word", ["fused", "plain"])
def test_what_a_job_states_of_its_attention_overrides_the_stack(word):
    for model in ("google/gemma-2-9b", "meta-llama/Llama-3.1-8B"):
        assert set(by_stack(model, f"attention: {word}\n").values()) == {word}


def test_plain_attention_of_a_stack_takes_time_and_memory_as_if_it_were_stated():
    text = LONG + "model: meta-llama/Llama-3.1-8B\nstack: megatron-deepspeed\n"
    by_default = job_from_text(text)
    stated = job_from_text(text.replace("megatron-deepspeed", "typical") + "attention: plain\n")
    assert by_default.activation_bytes_per_sample == stated.activation_bytes_per_sample
    times = [extra_attention_s(job, 1.0, 1e-14, 1e12) for job in (by_default, stated)]
    moved, masked = 32 * 32 * 32 * 2048**2 / 1e12, 6 * 4096 * 32 * 2048**2 * 1e-14
    assert times[0] == times[1] == pytest.approx(moved + masked)


def test_short_encoders_are_fused_unless_stated_because_their_constants_contain_plain_scores():
    text = "schema: recommend.job/v1\nbatch: 8\nmodel: microsoft/deberta-v3-large\nsamples: 1M\n"
    short, long = (f"{text}seq_len: {tokens}\n" for tokens in (512, 513))
    assert [job_from_text(each).attention for each in (short, long)] == ["fused", "plain"]
    assert job_from_text(short + "attention: plain\n").attention == "plain"


def test_scores_are_counted_for_the_heads_of_the_network():
    """Qwen2.5-1.5B: 28 layers of 12 heads of 128, where its width alone would say 24 of 64."""
    text = LONG + "model: Qwen/Qwen2.5-1.5B\n"
    fused, plain = job_from_text(text), job_from_text(text + "attention: plain\n")
    kept = plain.activation_bytes_per_sample - fused.activation_bytes_per_sample
    assert kept == pytest.approx(28 * 6 * 12 * 2048**2)
    guessed = job_from_text(
        LONG + "family: decoder\nparams: 1.5B\nhidden: 1536\nlayers: 28\nattention: plain\n"
    )
    assert (guessed.heads, "heads" in guessed.assumed) == (24, True)
    assert "heads" not in fused.assumed + plain.assumed


def test_a_recipe_fuses_what_scripts_do_not_unless_it_is_stated():
    text = LONG + "model: google/gemma-2-9b\n"
    assert job_from_text(text).as_recipe.attention == "fused"
    assert job_from_text(text + "attention: plain\n").as_recipe.attention == "plain"


def test_images_have_no_scores_whatever_the_stack():
    text = "schema: recommend.job/v1\nlike: resnet50-imagenet\nstack: keras\n"
    job = job_from_text(text)
    assert (job.attention, "attention" in job.assumed) == ("fused", False)
