"""Attention over long sequences, and without fused kernels, by hand."""

from dataclasses import replace

import pytest

from recommender.job.jobfile import job_from_text
from recommender.performance.attention import long_attention_flop, plain_attention_s
from tests.recommender.performance.parts import llama, resnet

OPT = {"hidden": 1024, "layers": 24, "tokens_per_sample": 2048}


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
    seconds = plain_attention_s(job, 1.0, 1e-14, 1e12)
    assert seconds == pytest.approx(32 * elements / 1e12 + masked * 1e-14)
    assert plain_attention_s(job, 2.0, 0.0, 1e12) == pytest.approx(2 * 32 * elements / 1e12)
    encoder = replace(job, family="encoder")
    assert plain_attention_s(encoder, 1.0, 1.0, 1e12) == pytest.approx(32 * elements / 1e12)
    pair = replace(job, post_training="dpo", tokens_per_sample=4096)
    assert plain_attention_s(pair, 1.0, 1e-14, 1e12) == pytest.approx(2 * seconds)


def test_fused_attention_and_other_networks_add_nothing():
    assert plain_attention_s(llama(**OPT), 1.0, 1.0, 1.0) == 0.0
    assert plain_attention_s(resnet(attention="plain"), 1.0, 1.0, 1.0) == 0.0


def test_plain_attention_keeps_five_bytes_of_each_score():
    """Korthikanti et al.: s·b·h·(34 + 5·a·s/h) a layer; one layer of it when computed again."""
    text = "schema: recommend.job/v1\nlike: gpt2-xl\n"
    fused, plain = job_from_text(text), job_from_text(text + "attention: plain\n")
    scores = 5 * 25 * fused.tokens_per_sample**2
    kept = plain.activation_bytes_per_sample - fused.activation_bytes_per_sample
    assert kept == pytest.approx(48 * scores)
