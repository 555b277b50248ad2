"""Vocabulary that training tools share: precisions, optimisers, kinds of sharding."""

from recommender.inputs.training_configs.training_config import Keys, Sharding

_OPTIMIZERS = (("adafactor", "adafactor"), ("lamb", "lamb"), ("sgd", "sgd"), ("adam", "adamw"))
# transformers; Megatron-LM and NeMo; llm-foundry; LLaMA-Factory, which then asks for eager
_NOT_FUSED = ("eager", "unfused", "local", "torch", "disabled")
NO_OFFLOAD = "planned without: all states on the GPUs"


def recomputation(every_layer: bool) -> str:
    """Return the recomputation of a tool that computes every layer again, or as it needs."""
    return "full" if every_layer else ""


def without_recomputation(keys: Keys, path: str) -> None:
    """Record as unread that a file switches recomputation off."""
    word = keys.text(path) or "none"  # which `Keys` reads as not stated
    keys.unread.append(f"{path}: {word} (planned with it where that is faster)")


def attention(word: str) -> str:
    """Return "plain" for the tools' names of attention that is not fused: scores go to memory."""
    return "plain" if word.lower() in _NOT_FUSED else ""


def optimizer(word: str, keys: Keys, path: str) -> str:
    """Return the optimiser whose states need as much memory; record an unknown one as unread."""
    if not word:
        return ""
    for part, name in _OPTIMIZERS:
        if part in word.lower():
            if "8bit" in word.lower():
                keys.unread.append(f"{path}: {word} is planned with states of full size ({name})")
            return name
    keys.unread.append(f"{path}: {word} (planned with the states of adamw)")
    return ""


def precision(word: str, keys: Keys, path: str) -> str:
    """Return the precision of a word such as `bf16-mixed`, `16`, `amp_bf16`, `32-true`."""
    bare = word.lower().replace("_", "-")
    if not bare:
        return ""
    if "fp4" in bare:
        return "nvfp4"
    if "fp8" in bare or "float8" in bare:  # transformer-engine's words, torchao's
        return "mxfp8" if "mx" in bare else "fp8"
    if bare in ("bf16-true", "bfloat16", "fp16-true", "16-true"):
        return "bf16" if bare.startswith("b") else "fp16"
    if "bf16" in bare or "fp16" in bare or bare in ("16", "16-mixed", "float16"):
        return "mixed"
    if "tf32" in bare:
        return "tf32"
    if "32" in bare:
        return "fp32"
    keys.unread.append(f"{path}: {word}")
    return ""


def switched(bf16: bool, fp16: bool, tf32: bool, fp8: bool = False) -> str:
    """Return the precision if a tool has a switch for each."""
    return "fp8" if fp8 else "mixed" if bf16 or fp16 else "tf32" if tf32 else ""


def zero_stage(stage: int, keys: Keys) -> Sharding:
    """Return the sharding of a ZeRO stage: 3 shards like FSDP."""
    if stage == 3:
        return "fsdp"
    if stage in (1, 2):
        keys.unread.append(f"ZeRO stage {stage}: the best of DDP, HSDP and FSDP is planned instead")
    return ""


def offload(keys: Keys, inside: str) -> None:
    """Record as unread what ZeRO moves to the host or to disks."""
    for kind in ("offload_optimizer", "offload_param"):
        keys.without(f"{inside}zero_optimization.{kind}.device", NO_OFFLOAD)


def deepspeed_file(word: str, keys: Keys) -> Sharding:
    """Return the sharding in the name of a DeepSpeed file, such as zero3_bf16.json."""
    name = word.rpartition("/")[2].lower().replace("-", "").replace("_", "").replace("stage", "")
    for stage in (3, 2, 1):
        if f"zero{stage}" in name:
            return zero_stage(stage, keys)
    if word:
        keys.unread.append(f"deepspeed: {word} (another file; read it with --from as well)")
    return ""


def fsdp_strategy(word: str) -> Sharding:
    """Return the sharding of PyTorch's names FULL_SHARD, HYBRID_SHARD, NO_SHARD."""
    upper = word.upper()
    return "hsdp" if "HYBRID" in upper else "ddp" if "NO_SHARD" in upper else "fsdp"


def model_parallelism(tensor: int, pipeline: int, context: int) -> Sharding:
    """Return the sharding of a network with tensor or pipeline parallelism, "" without it."""
    if context > 1:
        return "context"
    return "pipeline" if pipeline > 1 else "tensor" if tensor > 1 else ""


def product(keys: Keys, *paths: str) -> int:
    """Multiply degrees of parallelism; one that is not set is 1."""
    found = 1
    for path in paths:
        found *= max(keys.whole(path), 1)
    return found


def wanted_optimizer(keys: Keys, *paths: str) -> str:
    """Read the optimiser at one of these paths."""
    return optimizer(keys.text(*paths), keys, paths[0])
