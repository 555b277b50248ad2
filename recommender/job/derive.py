"""Completes a job from what its user states, and names the derived values.

FLOP           6·(N − rows only looked up) + 6·L·h·s per token, 12·L·h·s without a causal
               mask (Kaplan et al. 2020, arXiv 2001.08361); adapters need 4 of the 6, because
               frozen weights have no gradient of their own
activations    `activations.py`; without logits, which the memory model adds
checkpoint     weights fp32 4 B + bf16 2 B (language models) + optimiser state per parameter
post-training  a sample of dpo is a pair, each half also through the frozen reference (F/3 more);
               grpo: a completion, with the reference and the policy before its update; ppo:
               also a trained critic and a reward model; generation: performance/generation.py
adapters       r·(in + out) of every linear layer, about 20·h·r per layer (Llama 3 8B: 20.0,
               70B: 19.8, counted over the published shapes)
"""

import math
from dataclasses import field
from statistics import NormalDist
from typing import Any, TypeVar

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.training_software import Software, software
from recommender.inputs.units import format_count
from recommender.job.activations import (
    Layers,
    heads_of,
    held_logit_bytes,
    logit_bytes,
    scores_of,
)
from recommender.job.job import (
    AMOUNTS,
    LOW_PRECISIONS,
    SERVED_SHARDINGS,
    Attention,
    DataSet,
    Job,
    Precision,
    Timing,
    moment_bytes,
)
from recommender.job.schema import Batch, DataFile, JobFile
from recommender.job.timings import timing

T = TypeVar("T")

TOKEN_FAMILIES = ("encoder", "decoder", "moe", "encdec")
TRANSFORMERS = (*TOKEN_FAMILIES, "vit")
_GENERATING = ("grpo", "ppo")
# Sd of the lengths of examples over their mean: 0.5 to 0.6 of Orca-Math, whose micro-batches of 2,
# 4 and 8 have 1.28, 1.54 and 1.81 times the tokens (foundation-model-stack/fms-acceleration,
# refs_orca, 2024-09), 0.6 of Alpaca, 0.79 of a news set (ms-swift, Benchmark.md, 2024).
_LENGTHS = 0.6
_PLAIN_IN_CONSTANTS = 512  # tokens: BERT of Lambda and DeepLearningExamples (docs/models.md)
# Adapters of UNets belong to their attention (LoRA scripts of diffusers, read 2026-11).
_ADAPTED = {"lora": (*TRANSFORMERS, "diffusion"), "qlora": TRANSFORMERS}
_SEEING = ("cnn", "vit", "diffusion")  # families of pictures; the latter two in patches

# Of each kind of post-training: sequences in an example, forward passes without a backward one
# in thirds of full training (the reference's; of KTO also those of mismatched answers, by both:
# TRL 1.16, KTOTrainer; of GRPO the policy's own before its update, of PPO also the critic's values
# and the reward: stages of verl's ray_trainer, read 2026-11-29), the unit, and whether a frozen
# copy of the network stands beside it.
KINDS: dict[str, tuple[int, int, str, bool]] = {
    "dpo": (2, 1, "pair", True), "kto": (1, 3, "answer", True), "reward": (2, 0, "pair", False),
    "grpo": (1, 2, "completion", True), "ppo": (1, 4, "completion", True),
    "distillation": (1, 0, "sequence", False),
}  # fmt: skip
_ADAPTER_CHECKPOINT_BYTES = 12.0  # fp32 and two moments
_ADAPTED_PER_HIDDEN = 20.0
_ADAPTED_TENSORS = 14  # two for each of seven matrices
_FORWARD = 1 / 3  # of the FLOP of full training
COMPLETION = 0.75  # of an example, the rest is its prompt; assumed
_GROUPED = 4  # query heads of each key-value head: Llama 3 8B, Mistral 7B (config.json)
_LORA_RANK = 16  # the rank of MLPerf's Llama 2 70B LoRA task, 2024
# Bytes kept for each training FLOP: ResNet-50 45 MB / 24.5 GFLOP, SD-XL 7 GB / 20.3 TFLOP,
# DLRM 32 kB / 14.8 MFLOP; counted over the architectures of our presets.
_BYTES_PER_FLOP = {"cnn": 1.8e-3, "diffusion": 3.5e-4, "recsys": 2.2e-3}
# Of the presets that the constants were fitted on, ResNet-50 and DLRM
_FLOP_PER_KEPT_BYTE = {"cnn": 24.535e9 / 45e6, "recsys": 14.757e6 / 32e3}
_RECOMPUTED_SHARE = 1 / 3  # block outputs and one block, ResNet-50: 16 of 45 MB
_WIDTH_PER_LAYER = 128  # hidden / layers of the Llama and GPT-3 shapes
_VIT_WIDTH_PER_LAYER = 50  # of ViT-B 64, L 43, H 40 (arXiv 2010.11929, table 1)
_PATCH = 16  # the usual patch of a vision transformer
_CPU_S_PER_IMAGE = 0.008  # 125 images/s and vCPU, decode, crop, flip: assumed, no source
_IMAGE_BYTES = 115_440.0  # ILSVRC2012_img_train.tar 147.9 GB / 1,281,167
_EXPERTS = 2  # that a token passes: Mixtral; others route to more, smaller ones
# Of DeepSeek-V3; Qwen3 235B has 1,536, GPT-OSS 120B 2,880, Mixtral 8x7B 14,336 (config.json)
_EXPERT_WIDTH = 2048
# What the kernels of a layer read and write per position in a forward pass, in widths: two norms
# 4, queries, keys and values 4, attention 4, its output 2, sums with the residual stream 6; and 18
# in a feed-forward network that is four widths wide.
_ATTENTION_ELEMENTS = 20.0
_DENSE_ELEMENTS = _ATTENTION_ELEMENTS + 18.0
# A mixture's router reads the stream, and the outputs of the experts are added up to one. Each
# copy of a position is gathered, multiplied twice, weighted and scattered, between the
# multiplications in the width of an expert.
_ROUTER_ELEMENTS = 2.0
_COPY_ELEMENTS = 5.0
_EXPERT_ELEMENTS = 6.0
_SEQ_LEN = {"encoder": 512, "encdec": 512, "decoder": 2048, "moe": 2048}
_VOCABULARY = {"encoder": 30_522, "encdec": 32_128, "decoder": 128_256, "moe": 32_000}
_TENSORS = {  # per layer, besides
    "decoder": (9, 3), "moe": (31, 3), "encoder": (16, 14), "encdec": (11, 3), "vit": (12, 8),
}  # fmt: skip
# Per layer of a mixture in vendors' recipes, which multiply all experts with one kernel for
# each of their three matrices (grouped GEMM of Megatron Core and Transformer Engine, 2024)
_GROUPED_TENSORS = 10
_UNITS = {"cnn": "image", "vit": "image", "diffusion": "image", "recsys": "sample"}
_NEEDED = {
    "family": "cnn, vit, encoder, decoder, moe, encdec, diffusion or recsys (or like: a preset)",
    "params": "the number of parameters, such as 8B",
    "batch": "samples per optimiser step, such as 256 or 4M tokens",
}


@dataclass(slots=True)
class _Derived:
    """Takes what is stated, else what is derived, and remembers the name."""

    assumed: list[str] = field(default_factory=list)

    def pick(self, name: str, stated: T | None, derived: T) -> T:
        if stated is not None:
            return stated
        self.assumed.append(name)
        return derived


@dataclass(frozen=True, slots=True)
class _Shape:
    """The network's size, complete."""

    family: str
    params: float
    active: float
    hidden: int
    layers: int
    attention: int  # heads × head size
    heads: float
    vocabulary: int
    tokens: int  # per sample; 1 for images and the like
    flop: float  # per sample, full training
    longest: float  # positions of the longest sample


def job_of(file: JobFile, fallback_name: str) -> Job:
    """Turn a checked job file into a job; every problem is reported at once."""
    absent = [key for key in _NEEDED if getattr(file, key) is None]
    absent = [key for key in absent if key != "batch" or file.batch_per_gpu is None]
    problems = [f"{key}: is missing; give {_NEEDED[key]}" for key in absent]
    problems += _amount_problems(file) + _batch_problems(file)
    problems += _kind_problems(file) + _sync_problems(file)
    if problems:
        raise UsageError(*problems)
    derived = _Derived(list(file.assumed))
    shape = _shape(file, derived)
    return _assemble(file, shape, derived, fallback_name)


def is_sequence(file: JobFile) -> bool:
    """Whether a sample of the job is a sequence of tokens."""
    return file.family in TOKEN_FAMILIES and file.sample_unit in (None, "sequence")


def _amount_problems(file: JobFile) -> list[str]:
    given = [key for key in AMOUNTS if getattr(file, key) is not None]
    if not given and file.data.samples is None:
        wanted = "tokens" if file.family in (None, *TOKEN_FAMILIES) else "samples"
        return [f"{wanted}: is missing; state how much to train on, such as {wanted}: 1B"]
    if len(given) > 1:
        return [f"{', '.join(given)}: give only one of them"]
    if file.epochs is not None and file.data.samples is None:
        message = "needs the size of one epoch, data: {samples: …} in a job file; or give steps"
        return [f"epochs: {message}"]
    in_tokens = {
        key: batch is not None and batch.in_tokens
        for key, batch in (("batch", file.batch), ("batch_per_gpu", file.batch_per_gpu))
    }
    timed = any(each.unit == "tokens/s" for each in file.measured)
    stated = {"tokens": file.tokens is not None, **in_tokens, "measured": timed}
    for key, counted in stated.items():
        if counted and file.family is not None and not is_sequence(file):
            return [f"{key}: {_counted(file)} counts samples, not tokens; give a number of samples"]
    return []


def _batch_problems(file: JobFile) -> list[str]:
    """Fields that contradict a batch per GPU."""
    if file.batch_per_gpu is None:
        surplus = file.max_global_batch is not None
        return ["max_global_batch: needs batch_per_gpu; leave it out"] if surplus else []
    if file.batch is not None:
        return ["batch, batch_per_gpu: give only one of them"]
    if file.steps is not None:
        message = "depends on the number of GPUs with batch_per_gpu; give samples, tokens or epochs"
        return [f"steps: what {file.steps:g} steps train on {message}"]
    return []


def _counted(file: JobFile) -> str:
    unit = file.sample_unit or _UNITS.get(str(file.family), "sequence")
    return f"{'an' if unit[:1] in 'aeiou' else 'a'} {unit} job"


def _sync_problems(file: JobFile) -> list[str]:
    """Fields that only one way of exchanging gradients knows."""
    if file.sync == "parameter_server":
        if file.sharding not in (None, *SERVED_SHARDINGS):
            return [f"sharding: {file.sharding} needs all-reduce; remove it or sync"]
        return []
    surplus = file.parameter_servers is not None
    return ["parameter_servers: needs sync: parameter_server"] if surplus else []


def _kind_problems(file: JobFile) -> list[str]:
    """Fields that are missing for the kind of network, and those that it does not know."""
    if file.family is None:
        return []
    if not is_sequence(file) and (file.seq_len or file.max_seq_len):
        key = "seq_len" if file.seq_len else "max_seq_len"
        return [f"{key}: {_counted(file)} has no sequences of tokens; leave it out"]
    for key, seeing in (("image_size", _SEEING), ("patch_size", _SEEING[1:])):
        if getattr(file, key) is not None and file.family not in seeing:
            return [f"{key}: {_counted(file)} has none; leave it out"]
    adapted = _ADAPTED.get(file.method or "full")
    if adapted and file.family not in adapted:
        unet = " or a UNet" if file.method == "lora" else ""
        return [f"method: {file.method} needs a transformer{unet}, not the family {file.family}"]
    counted = file.family in TRANSFORMERS or file.adapted_width or file.trainable_params
    if adapted and not counted:
        return [
            "trainable_params: is missing; state how many the adapters have, such as 23M, or name "
            "the network (model), from which they are counted"
        ]
    if file.post_training is not None and file.family not in ("decoder", "moe"):
        return [f"post_training: {file.post_training} needs a decoder, not {file.family}"]
    if file.generation_share is not None and file.post_training not in _GENERATING:
        return ["generation_share: needs post_training: grpo or ppo; leave it out"]
    if file.completion_tokens is not None and file.post_training not in _GENERATING:
        return ["completion_tokens: needs post_training: grpo or ppo; leave it out"]
    if file.lora_rank is not None and file.method not in ("lora", "qlora"):
        fits = file.family in TRANSFORMERS
        instead = "choose the method lora or qlora, or leave it out" if fits else "leave it out"
        return [f"lora_rank: has no effect if all weights are trained; {instead}"]
    known = (*TOKEN_FAMILIES, "vit") if file.image_size else TOKEN_FAMILIES
    if file.family not in known and file.flop_per_sample is None:
        unit, flop = ("image", "105G") if file.family == "vit" else ("sample", "24.5G")
        model = ", or image_size: 224" if file.family == "vit" else ", or model: (--model)"
        message = f"state the FLOP to train on one {unit}, such as {flop}{model}"
        return [f"flop_per_sample: is missing; {message}"]
    return []


def _shape(file: JobFile, derived: _Derived) -> _Shape:
    family, params = str(file.family), float(file.params or 0)
    active = (
        derived.pick("active_parameters", file.active_params, params)
        if family == "moe"
        else (file.active_params or params)
    )
    hidden = layers = vocabulary = 0
    if family in TRANSFORMERS:
        ratio = _VIT_WIDTH_PER_LAYER if family == "vit" else _WIDTH_PER_LAYER
        width = round((active * ratio / 12) ** (1 / 3))  # N ≈ 12·L·h²
        hidden = derived.pick("hidden", file.hidden, max(width, 1))
        layers = derived.pick("layers", file.layers, max(round(active / 12 / hidden**2), 1))
    if family in TOKEN_FAMILIES:
        vocabulary = derived.pick("vocabulary", file.vocab, _VOCABULARY[family])
    tokens = 1
    if is_sequence(file):
        tokens = derived.pick("tokens_per_sample", file.seq_len, _SEQ_LEN[family])
    flop, attention = file.flop_per_sample, file.attention_width or hidden
    if flop is None:
        seen = tokens if family != "vit" else _positions(file, derived)
        flop = seen * _flop_per_token(file, active, layers * _attended(file, attention, seen))
        flop *= padding(file, tokens)
        derived.assumed.append("flop_per_sample")
    heads = float(file.heads or heads_of(hidden))
    if heads > hidden > 0:
        raise UsageError(f"heads: {heads:,.0f} is more than the {hidden:,} the network is wide")
    longest = float(file.max_seq_len or tokens)
    halves = _halves(file)  # of a pair: chosen and rejected
    tokens, flop, longest = halves * tokens, halves * flop, halves * longest
    if not is_sequence(file):
        longest = flop / (6 * active)  # positions that the parameters are applied to
    return _Shape(
        family, params, active, hidden, layers, attention, heads, vocabulary, tokens, flop, longest
    )


def padding(file: JobFile, tokens: int) -> float:
    """Tokens that are computed over those of the examples, as each is as long as the longest.

    Of m examples at once, whose lengths are normal, that is 1 + cv · Φ⁻¹((m - 3/8)/(m + 1/4)) times
    their mean (Blom, 1958). Examples have several lengths if the longest is stated, and are at once
    if a micro-batch is.
    """
    at_once, most = file.micro_batch or 1, (file.max_seq_len or tokens) / tokens
    packs = _software(file).stack == "tuned" or file.post_training in _GENERATING
    if at_once == 1 or most <= 1.0 or packs:
        return 1.0
    return min(1.0 + _LENGTHS * NormalDist().inv_cdf((at_once - 0.375) / (at_once + 0.25)), most)


def _halves(file: JobFile) -> int:
    return KINDS[file.post_training][0] if file.post_training else 1


def _positions(file: JobFile, derived: _Derived) -> int:
    """Patches of a picture, and the class token."""
    side = file.image_size or 0
    patch = derived.pick("patch_size", file.patch_size, _PATCH)
    if patch > side:
        raise UsageError(f"image_size: {side} holds no patch of {patch} × {patch}")
    return (side // patch) ** 2 + 1


def _attended(file: JobFile, width: int, tokens: int) -> float:
    """Width of attention × positions, per layer; a causal window w sees w·(1 - w/2s) on average."""
    window, windowed = file.window or 0, min(file.windowed_width or 0, width)
    if not 0 < window < tokens:
        return float(width * tokens)
    return (width - windowed) * tokens + windowed * window * (2.0 - window / tokens)


def _flop_per_token(file: JobFile, active: float, attended: float) -> float:
    multiplied = active - min(file.lookup_params or 0.0, active / 2)
    if file.family == "encdec":
        multiplied /= 2  # a token passes the encoder or the decoder
    return 6 * multiplied + (12 if file.family in ("encoder", "vit") else 6) * attended


def _assemble(file: JobFile, shape: _Shape, derived: _Derived, fallback_name: str) -> Job:
    method = file.method or "full"
    batch = _batch(file.batch or file.batch_per_gpu, shape)
    samples = _samples(file, shape, batch, derived)
    _refuse_too_little(file, shape, samples, batch)
    trainable = _trainable(file, shape, derived)
    kept = _activations(file, shape, derived)
    completion = _completion(file, shape, derived)
    longest = completion and max(shape.longest - shape.tokens + completion, completion)
    usual = _software(file).saves == "background"
    return Job(
        name=file.name or fallback_name,
        title=file.title or _title(file, shape, samples),
        family=file.family or "decoder",
        parameters=shape.params,
        active_parameters=shape.active,
        trainable_parameters=trainable,
        sample_unit=file.sample_unit or _unit(file, shape),
        tokens_per_sample=shape.tokens,
        flop_per_sample=shape.flop * _share_of_full_training(file, derived),
        post_training=file.post_training,
        completion_tokens=completion,
        longest_completion=longest,
        cache_bytes_per_token=4.0 * shape.layers * (file.kv_width or shape.hidden / _GROUPED),
        other_network_bytes=_other_networks(file) * shape.params,
        samples=samples,
        global_batch=batch,
        batch_per_gpu=file.batch_per_gpu is not None,
        max_global_batch=_most(file, shape, samples, batch),
        examples=file.data.samples or 0.0,
        gradient_tensors=_tensors(file, shape, derived),
        hidden=shape.hidden,
        layers=shape.layers,
        vocabulary=shape.vocabulary,
        activation_bytes_per_sample=kept.all,
        recomputed_activation_bytes_per_sample=kept.recomputed,
        layer_bytes_per_sample=kept.layer,
        intensity_ratio=_intensity_ratio(file, shape),
        forward_passes=_forward_passes(file, derived),
        token_experts=_token_experts(file, shape) if shape.family == "moe" else 1.0,
        expert_groups=file.expert_groups or 0,
        checkpoint_bytes=_checkpoint(file, shape, trainable, derived),
        data=_data(file.data, shape, samples, derived),
        precision=_precision(file, derived),
        method=method,
        unquantized_parameters=_ends(file, shape) if method == "qlora" else 0.0,
        attention=_attention(file, shape, derived),
        heads=shape.heads,
        stack=derived.pick("stack", file.stack.stack if file.stack else None, "typical"),
        software=file.stack.name if file.stack else "",
        asynchronous_save=derived.pick("asynchronous_save", file.asynchronous_save, usual),
        setup_s=file.setup,
        timings=_timings(file, shape, batch),
        calibration=file.calibration,
        memory_gib_at_batch=tuple(sorted(file.memory_gib_at_batch.items())),
        assumed=tuple(dict.fromkeys(derived.assumed)),
        **_stated(file),
    )


def _timings(file: JobFile, shape: _Shape, batch: int) -> tuple[Timing, ...]:
    each_gpu = file.batch_per_gpu is not None
    return tuple(timing(each, batch, shape.tokens, each_gpu) for each in file.measured)


def _stated(file: JobFile) -> dict[str, Any]:
    """The settings that a job takes from its file as they are, where it states them."""
    names = (
        "optimizer", "optimizer_in_backward", "master_weights", "offload", "micro_batch",
        "recomputation", "sharding", "sync",
        "parameter_servers", "machines", "elastic", "writer", "image", "fault_rate_per_hour",
    )  # fmt: skip
    return {name: value for name in names if (value := getattr(file, name)) is not None}


def lacks_low_precision(file: JobFile) -> bool:
    """Whether it states 8 or 4 bits, in which no software trains such a network.

    They are for linear layers of transformers (Transformer Engine, torchao; read 2026-11), and
    QLoRA's frozen weights are in 4 bits of another kind (bitsandbytes computes in 16).
    """
    linear = file.family in TRANSFORMERS and file.method != "qlora"
    return file.precision in LOW_PRECISIONS and not linear


def _precision(file: JobFile, derived: _Derived) -> Precision:
    stated = None if lacks_low_precision(file) else file.precision
    return derived.pick("precision", stated, "mixed")


def _software(file: JobFile) -> Software:
    return file.stack or software()["typical"]


def _is_fused(file: JobFile, shape: _Shape) -> bool:
    """Whether attention is fused: as stated, else as the software runs it by default.

    The constants of encoders are of scripts with plain attention: short sequences contain it.
    """
    if file.attention is not None:
        return file.attention != "plain"
    contained = file.family == "encoder" and shape.tokens <= _PLAIN_IN_CONSTANTS
    scores = file.family in TOKEN_FAMILIES and not contained
    return not scores or _software(file).is_fused(file.sdpa)


def _attention(file: JobFile, shape: _Shape, derived: _Derived) -> Attention:
    """The attention of a job; that it is plain is reported where it was not stated."""
    if _is_fused(file, shape):
        return file.attention or "fused"
    if file.attention is None:
        derived.assumed.append("attention")
    if file.heads is None:
        derived.assumed.append("heads")
    return "plain"


def _intensity_ratio(file: JobFile, shape: _Shape) -> float:
    """FLOP per byte moved, over that of the networks that the family's constants were fitted on."""
    if shape.family == "moe":
        width = file.expert_width or _EXPERT_WIDTH
        return expert_ratio(shape.hidden, width, _token_experts(file, shape))
    return intensity_ratio(shape.family, shape.flop, file.activation_bytes_per_sample)


def _unit(file: JobFile, shape: _Shape) -> str:
    if file.post_training is not None:
        return KINDS[file.post_training][2]
    return _UNITS.get(shape.family, "sequence")


def _share_of_full_training(file: JobFile, derived: _Derived) -> float:
    """FLOP of a sample over those of training on it in full."""
    trained = 2 / 3 if file.method in ("lora", "qlora") else 1.0
    if trained == 1.0 and file.trainable_params and file.family in TRANSFORMERS:
        trained = (2.0 + min(file.trainable_params / (file.params or 1.0), 1.0)) / 3  # rest frozen
    if file.post_training is None:
        return trained
    others = (KINDS[file.post_training][1] + _teachers(file)) * _FORWARD
    critic = trained if file.post_training == "ppo" else 0.0
    return (trained + others + critic) / (1.0 - (file.generation_share or 0.0))


def _teachers(file: JobFile) -> float:
    """Parameters of the network to learn from, over those of the one that learns."""
    taught = file.post_training == "distillation"
    return (file.teacher_params or file.params or 1.0) / (file.params or 1.0) if taught else 0.0


def _completion(file: JobFile, shape: _Shape, derived: _Derived) -> float:
    """Tokens of a sample that are generated; 0 where a stated share of the time covers them."""
    if file.post_training not in _GENERATING or file.generation_share is not None:
        return 0.0
    found = derived.pick("completion_tokens", file.completion_tokens, COMPLETION * shape.tokens)
    if found > shape.tokens:
        raise UsageError(
            f"completion_tokens: {found:,.0f} are more than the {shape.tokens:,} of an example"
        )
    return found


def _forward_passes(file: JobFile, derived: _Derived) -> float:
    """FLOP of a sample over those of the forward pass of what is trained: 3, with adapters 2.

    Reference networks and generation keep nothing for a backward pass; PPO trains a critic as well.
    """
    trained = 2.0 if file.post_training == "ppo" else 1.0
    return _share_of_full_training(file, derived) / (trained * _FORWARD)


def _other_networks(file: JobFile) -> float:
    """Bytes per parameter of other networks in memory; adapters share the base's weights."""
    full = file.method in (None, "full")
    if file.post_training == "distillation":
        return 2.0 * _teachers(file)
    if file.post_training == "ppo":  # reference, reward, a critic with its states; or the reward
        return 2.0 + 2.0 + 16.0 if full else 2.0
    return 2.0 if file.post_training and KINDS[file.post_training][3] and full else 0.0


def _refuse_too_little(file: JobFile, shape: _Shape, samples: float, batch: int) -> None:
    if samples < batch:
        key = next((key for key in AMOUNTS if getattr(file, key) is not None), "data.samples")
        stated = file.batch or file.batch_per_gpu
        in_samples = stated is not None and not stated.in_tokens and shape.tokens > 1
        hint = f", or batch: {format_count(batch)} tokens" if in_samples else ""
        raise UsageError(f"{key}: is less than one step of {batch:,} samples; write more{hint}")


def _batch(stated: Batch | None, shape: _Shape) -> int:
    if stated is None:
        raise UsageError("batch: is missing")
    count = stated.count / (shape.tokens if stated.in_tokens else 1)
    return max(round(count), 1)


def _most(file: JobFile, shape: _Shape, samples: float, batch: int) -> int | None:
    """The largest global batch: as stated, else all the samples in one step."""
    if file.batch_per_gpu is None:
        return None
    if file.max_global_batch is None:
        return max(int(samples), batch)
    most = _batch(file.max_global_batch, shape)
    if most < batch:
        raise UsageError(f"max_global_batch: {most:,} is less than the {batch:,} of one GPU")
    return most


def _samples(file: JobFile, shape: _Shape, batch: int, derived: _Derived) -> float:
    if file.tokens is not None:
        return file.tokens / shape.tokens
    if file.samples is not None:
        return file.samples
    if file.steps is not None:
        return file.steps * batch
    return derived.pick("epochs", file.epochs, 1.0) * (file.data.samples or 1)


def _title(file: JobFile, shape: _Shape, samples: float) -> str:
    amount = f"{format_count(float(f'{samples * shape.tokens:.3g}'))} "
    amount += "tokens" if shape.tokens > 1 else f"{file.sample_unit or _UNITS.get(shape.family)}s"
    method = "" if file.method in (None, "full") else f", {file.method}"
    size = f"{format_count(float(f'{shape.params:.3g}'))} parameters"
    return f"{file.model or size}, {amount}{method}"


def size_of_work(job: Job) -> str:
    """Describe how much a job trains on: examples × epochs × tokens = tokens."""
    per, unit = job.tokens_per_sample, f"{job.sample_unit}s"
    whole = f"{_amount(job.samples * per)} {'tokens' if per > 1 else unit}"
    unit = "examples" if job.examples and job.sample_unit == "sequence" else unit
    if not job.examples or math.isclose(job.epochs, 1.0):
        return whole if per == 1 else f"{_amount(job.samples)} {unit} × {per:,} tokens = {whole}"
    parts = [f"{_amount(job.examples)} {unit}", f"{job.epochs:.3g} epochs"]
    parts += [f"{per:,} tokens"] if per > 1 else []
    return f"{' × '.join(parts)} = {whole}"


def _amount(value: float) -> str:
    """A count for reading: in full up to a million, then three digits."""
    if value < 1e6:
        return f"{value:,.0f}"
    return format_count(float(f"{value:.3g}"))


def _trainable(file: JobFile, shape: _Shape, derived: _Derived) -> float:
    if file.trainable_params is not None or file.method in (None, "full"):
        return file.trainable_params or shape.params
    rank = derived.pick("lora_rank", file.lora_rank, _LORA_RANK)
    if rank > shape.hidden > 0:
        raise UsageError(f"lora_rank: {rank} is more than the {shape.hidden} the network is wide")
    width = file.adapted_width or _ADAPTED_PER_HIDDEN * shape.hidden * shape.layers
    return min(rank * width, shape.params)


def _tensors(file: JobFile, shape: _Shape, derived: _Derived) -> int:
    each, besides = _TENSORS.get(shape.family, (0, 100))
    if file.method in ("lora", "qlora") and shape.layers:
        each, besides = _ADAPTED_TENSORS, 0
    found = derived.pick("gradient_tensors", file.gradient_tensors, each * shape.layers + besides)
    grouped = shape.family == "moe" and _software(file).stack == "tuned"
    return min(found, _GROUPED_TENSORS * shape.layers + besides) if grouped else found


@dataclass(frozen=True, slots=True)
class _Kept:
    """Bytes of a sample: all that is kept; with every layer recomputed, and of that one layer."""

    all: float
    recomputed: float
    layer: float


def _activations(file: JobFile, shape: _Shape, derived: _Derived) -> _Kept:
    wide = 2 if file.precision in ("fp32", "tf32") else 1
    if shape.family in TRANSFORMERS:
        found = _of_transformer(file, shape, wide)
    else:
        kept = wide * _BYTES_PER_FLOP[shape.family] * shape.flop
        stated = file.activation_bytes_per_sample
        least = _RECOMPUTED_SHARE * (wide * stated if stated else kept)
        found = _Kept(kept, least, 0.0)
    key = "activation_bytes_per_sample"
    full = derived.pick(key, _times(wide, file.activation_bytes_per_sample), found.all)
    stated = _times(wide, file.recomputed_activation_bytes_per_sample)
    least = derived.pick(f"recomputed_{key}", stated, min(found.recomputed, full))
    return _Kept(full, least, found.layer if least == found.recomputed else 0.0)


def _times(wide: int, stated: float | None) -> float | None:
    return None if stated is None else wide * stated


def _of_transformer(file: JobFile, shape: _Shape, wide: int) -> _Kept:
    layers = _layers(file, shape)
    words = shape.vocabulary * (shape.family in ("decoder", "moe"))  # others project few or none
    longer = max(shape.longest - shape.tokens, 0.0)
    logits = logit_bytes(layers.method, layers.stack) * words * longer
    pair = float(_halves(file))
    entries = pair * shape.heads * (shape.longest / pair) ** 2
    entries *= not _is_fused(file, shape)
    scores = scores_of(layers.gated, layers.method, wide == 1)
    layer = wide * shape.longest * layers.layer_bytes + scores.held * entries
    layer += held_logit_bytes(layers.method) * words * shape.longest
    kept = wide * shape.longest * layers.kept_bytes + scores.kept * entries * shape.layers
    inputs = wide * shape.longest * layers.input_bytes
    return _Kept(kept + logits, inputs + logits + layer, layer)


def _layers(file: JobFile, shape: _Shape) -> Layers:
    passed = shape.active - min(_ends(file, shape), shape.active / 2)
    width = file.adapted_width or _ADAPTED_PER_HIDDEN * shape.hidden * shape.layers
    adapted = 1.0
    if file.trainable_params and file.lora_rank:  # of fewer matrices than all, if so stated
        adapted = min(file.trainable_params / (file.lora_rank * width), 1.0)
    gated = shape.family in ("decoder", "moe") if file.gated is None else file.gated
    return Layers(
        hidden=shape.hidden,
        number=shape.layers,
        parameters=passed / shape.layers,
        method=file.method or "full",
        stack=_software(file).stack,
        gated=gated,
        experts=_EXPERTS if shape.family == "moe" else 0,
        adapted=adapted,
    )


def _ends(file: JobFile, shape: _Shape) -> float:
    """Parameters of embeddings and head; two tables unless a network's own count says one."""
    head = float(shape.vocabulary) * shape.hidden
    if file.lookup_params is not None or file.model:
        return head + (file.lookup_params or 0.0)
    return 2.0 * head


def intensity_ratio(family: str, flop: float, kept_bytes: float | None) -> float:
    """FLOP per byte that a network moves, relative to the network its family's constants were
    fitted on.

    Most kernels read and write the tensors stored for the backward pass. For recommenders the bytes
    are proportional to these, for convolutional networks to their root, the best exponent of 0, 1/2
    and 1 on networks with other ratios (docs/research/fits.md).
    """
    if not kept_bytes or family not in _FLOP_PER_KEPT_BYTE:
        return 1.0
    ratio = flop / kept_bytes / _FLOP_PER_KEPT_BYTE[family]
    return math.sqrt(ratio) if family == "cnn" else ratio


def _token_experts(file: JobFile, shape: _Shape) -> float:
    """About how many experts a position passes: their weights over those of one, 3·h·w a layer.

    3.7 of GPT-OSS 120B (true: 4), 1.9 of Mixtral 8x7B (2), 8.2 to 8.6 of Qwen3 and DeepSeek-V3 (8,
    and a shared one).
    """
    width = file.expert_width or _EXPERT_WIDTH
    attention = 4.0 * shape.hidden**2 * shape.layers
    passed = shape.active - _ends(file, shape) - attention
    return max(passed / (3.0 * shape.hidden * width * shape.layers), 1.0)


def expert_ratio(hidden: int, width: float, copies: float) -> float:
    """FLOP per byte that a mixture of experts moves, relative to a dense decoder as wide.

    A position is copied to each of its experts and back, whatever their width, and each multiplies
    it with 3·h·w weights: the narrower the experts, the more bytes for each FLOP.
    """
    flop = (4.0 * hidden + 3.0 * width * copies) / (12.0 * hidden)
    moved = (_ATTENTION_ELEMENTS + _ROUTER_ELEMENTS) * hidden
    moved += copies * (_COPY_ELEMENTS * hidden + _EXPERT_ELEMENTS * width)
    return flop * _DENSE_ELEMENTS * hidden / moved


def _checkpoint(file: JobFile, shape: _Shape, trainable: float, derived: _Derived) -> float:
    if file.method in ("lora", "qlora"):
        return derived.pick(
            "checkpoint_bytes", file.checkpoint_bytes, _ADAPTER_CHECKPOINT_BYTES * trainable
        )
    language = shape.family in ("decoder", "moe") and file.precision not in ("fp32", "tf32")
    wide = file.master_weights is not False
    each = (4 if wide else 2) + moment_bytes(file.optimizer or "adamw", wide)
    each += 2 if language and wide else 0
    frozen = 2 * max(shape.params - trainable, 0.0) if shape.family in TRANSFORMERS else 0.0
    counted = trainable if frozen else shape.params  # tables of recommenders are saved as well
    return derived.pick("checkpoint_bytes", file.checkpoint_bytes, each * counted + frozen)


def _data(file: DataFile, shape: _Shape, samples: float, derived: _Derived) -> DataSet:
    image = shape.family in ("cnn", "vit")
    each = (file.bytes_per_token or 4.0) * shape.tokens if shape.tokens > 1 else _IMAGE_BYTES
    if shape.tokens > 1 and file.bytes_per_token is not None:
        size = each if file.bytes_per_sample is None else file.bytes_per_sample
    else:
        size = derived.pick("data.bytes_per_sample", file.bytes_per_sample, each)
    small = min(size / _IMAGE_BYTES, 1.0)
    cpu = derived.pick(
        "data.cpu_s_per_sample", file.cpu_s_per_sample, small * _CPU_S_PER_IMAGE if image else 0.0
    )
    gib = file.gib or (file.at.gib if file.at else 0.0)
    gib = gib or (file.samples or samples) * size / 2**30
    return DataSet(file.at.at if file.at else "", gib, file.read or "stream", size, cpu)
