"""Bytes that a transformer keeps for the backward pass, against hand calculations of Llama 3 8B."""

import pytest

from recommender.job.activations import Layers, scores_of
from recommender.job.job import Job, Method, Stack
from recommender.job.jobfile import job_from_text

H, F, KV = 4096, 14336, 1024  # widths of Llama 3 8B: the stream, the gated network, keys
LAYER = 2 * H * H + 2 * H * KV + 3 * H * F
INPUTS = 3 * H + H + 2 * H + F  # of queries, keys and values; output; gate and up; down


def layers(method: Method, adapted: float = 1.0, stack: Stack = "typical") -> Layers:
    return Layers(H, 32, LAYER, method, stack, gated=True, adapted=adapted)


# Bytes of autograd's saved tensors, a token and layer, over the width: hooks on the layers of
# transformers 5.23 and PyTorch 2.13 on a CPU, bf16, fused attention, dropout off (2026-11-23); the
# proportions are those of Llama 3 8B. Recomputed layers kept 2.0.
@pytest.mark.parametrize(
    ("experts", "counted"), [(0, 49.09), (2, 85.48)], ids=["Llama, Qwen 2, Mistral", "Mixtral"]
)
def test_full_training_keeps_what_autograd_was_seen_to_save(experts: int, counted: float) -> None:
    passed = 2 * H * H + 2 * H * KV + 3 * H * F * max(experts, 1)
    layer = Layers(H, 1, passed, "full", "typical", gated=True, experts=experts)
    assert layer.layer_bytes / H == pytest.approx(counted, rel=0.01)
    assert layer.input_bytes == 2.0 * H


def test_fused_kernels_keep_two_thirds() -> None:
    assert layers("full", stack="tuned").layer_bytes == 34 * H


def test_frozen_matrices_keep_what_comes_out_of_them_and_adapters_what_goes_in() -> None:
    norms, outputs = 2 * 4 * H, 2 * (2 * H + 2 * KV + 3 * F)
    assert layers("lora", adapted=0.0).layer_bytes == norms + outputs
    adapters = layers("lora").layer_bytes - norms - outputs
    assert adapters == pytest.approx(3 * INPUTS, rel=0.02)  # keys count as part of the middle


def test_four_bit_matrices_give_back_the_32_bits_of_the_stream() -> None:
    more = layers("qlora").layer_bytes - layers("lora").layer_bytes
    assert more == 2 * (2 * H + 2 * KV + 3 * F)
    assert layers("qlora").input_bytes == 4 * H * 32


# Bytes of an element of a score matrix that autograd saved in a layer, and at the peak of three
# layers that are recomputed: eager attention of transformers 5.23, PyTorch 2.13, on a CPU
# (2026-11-24). A GPU's backward pass of the softmax makes a product of 4 bytes more, 2 in 16 bits
# (`softmax_backward_cuda_out`), and dropout's mask, as wide as its output here, is 1 there.
@pytest.mark.parametrize(
    ("gated", "short", "saved", "peak"),
    [(True, True, 6.0, 12.1), (True, False, 4.0, 12.3), (False, True, 6.0, 8.1)],
    ids=["Llama bf16", "Llama fp32", "GPT-2 and BERT bf16"],
)
def test_scores_are_kept_as_autograd_was_seen_to_save_them(
    gated: bool, short: bool, saved: float, peak: float
) -> None:
    wide, mask = (4.0, 0.0) if gated else (2.0, 1.0)
    counted = scores_of(gated, "full", short)
    assert counted.kept == saved - mask
    assert counted.held == pytest.approx(peak + wide - 2.0 * mask, abs=0.5)


def test_a_step_of_recomputed_layers_holds_the_scores_of_one() -> None:
    """TinyLlama in 4 bits on a T4, 8 × 1,024 tokens, eager attention: 8,018 MiB (FitCheck)."""
    model = "model: TinyLlama/TinyLlama-1.1B-Chat-v1.0\nmethod: qlora\nseq_len: 1024\n"
    text = f"schema: recommend.job/v1\nbatch: 8\nsamples: 64\n{model}attention: "
    plain, fused = (job_from_text(text + word) for word in ("plain", "fused"))
    entries = 32 * 1024**2
    held = plain.layer_bytes_per_sample - fused.layer_bytes_per_sample
    assert held == pytest.approx(16 * entries)
    kept = plain.activation_bytes_per_sample - fused.activation_bytes_per_sample
    assert kept == pytest.approx(22 * 4 * entries)


def test_a_loop_of_adapters_holds_its_logits_until_the_last_layer() -> None:
    full, adapters = (job(f"method: {method}\n") for method in ("full", "lora"))
    assert full.layer_bytes_per_sample == pytest.approx(49 * H * 4096, rel=0.01)
    lora = layers("lora").layer_bytes + 2 * 128_256
    assert adapters.layer_bytes_per_sample == pytest.approx(lora * 4096, rel=0.01)


def job(text: str) -> Job:
    return job_from_text(f"schema: recommend.job/v1\nlike: llama3-8b-lora\n{text}")


def test_adapters_next_to_fewer_matrices_keep_fewer_inputs() -> None:
    queries_and_values = 16 * 32 * (3 * H + KV)
    few = job(f"trainable_params: {queries_and_values}\nlora_rank: 16\n")
    share = queries_and_values / (16 * 20 * H * 32)
    less = job("").activation_bytes_per_sample - few.activation_bytes_per_sample
    assert less == pytest.approx(4096 * 32 * (1 - share) * 3 * INPUTS, rel=0.02)


def test_embeddings_and_head_are_not_quantised_whether_one_table_or_two() -> None:
    assert job("method: qlora\n").unquantized_parameters == pytest.approx(2 * 128256 * H, rel=1e-4)
    text = "schema: recommend.job/v1\nbatch: 8\nsamples: 64\nmethod: qlora\nmodel: "
    tied, two = (job_from_text(text + name) for name in ("google/gemma-2b", "Qwen/Qwen2.5-7B"))
    assert tied.unquantized_parameters == 256_000 * 2048
    assert two.unquantized_parameters == 2 * 152_064 * 3584
    assert job("").unquantized_parameters == 0.0
