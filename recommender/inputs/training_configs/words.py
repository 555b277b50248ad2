"""How values in training tools' files are read: the readers that `tools.csv` names.

A reader gets the file's keys and the paths of its row, and returns "", 0, () or False where they
say nothing. What is stated and cannot be planned is recorded as unread, with what is planned.
"""

import re
from collections.abc import Callable, Sequence
from math import inf, prod
from typing import Any

from recommender.inputs.training_configs.training_config import OFF, Keys, shortened

Reader = Callable[[Keys, Sequence[str]], Any]

_OPTIMIZERS = (  # parts of the tools' names, the most specific first
    ("adafactor", "adafactor"), ("adam_mini", "adam_mini"), ("galore", "galore"),
    ("apollo", "apollo"),
    ("muon", "muon"), ("lion", "lion"), ("lamb", "lamb"), ("sgd", "sgd"), ("adam", "adamw"),
    ("mcore_distributed_optim", "adamw"),  # NeMo's, of Megatron Core
)  # fmt: skip
_EIGHT_BITS = re.compile(r"[84][-_]?bit|bnb_8|fp8")  # of four bits: as small beside the rest
_STAGES = {1: "zero1", 2: "zero2", 3: "zero3"}  # of ZeRO
_NOT_FUSED = ("eager", "unfused", "local", "torch", "disabled")
_PAIRS = ("dpo", "ipo", "orpo", "simpo", "cpo")  # of preferences
_OF_SFT = ("nll", "dft", "chunked_nll")  # losses of SFTConfig
_GENERATING = ("grpo", "rloo", "gspo", "dapo", "gdpo", "reinforce", "reinforce_plus_plus", "remax")
_TITAN = {  # model.name, with or without model.flavor: the model of the hub with that shape
    "llama3": "meta-llama/Llama-3.1-{}", "qwen3": "Qwen/Qwen3-{}", "gpt_oss": "openai/gpt-oss-{}",
    "deepseek_v3 16B": "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek_v3 236B": "deepseek-ai/DeepSeek-V2", "deepseek_v3 671B": "deepseek-ai/DeepSeek-V3",
    "llama4 17bx16e": "meta-llama/Llama-4-Scout-17B-16E",
    "llama4 17bx128e": "meta-llama/Llama-4-Maverick-17B-128E",
}  # fmt: skip


def optimizer(keys: Keys, paths: Sequence[str]) -> str:
    """The optimiser whose states need as much memory; an unknown one is recorded as unread."""
    word = keys.text(*paths).lower()
    for part, name in _OPTIMIZERS if word else ():
        if part in word.replace("-", "_"):
            eight = _EIGHT_BITS.search(word) and name in ("adamw", "lion")
            return f"{name}_8bit" if eight else name
    if word:
        keys.unread.append(f"{paths[0]}: {word} (planned with the states of adamw)")
    return ""


def precision(keys: Keys, paths: Sequence[str]) -> str:
    """The precision of a word such as `bf16-mixed`, `16`, `amp_bf16`, `32-true`."""
    bare = keys.text(*paths).lower().replace("_", "-")
    if bare in ("", "no"):
        return ""
    if "fp4" in bare:
        return "nvfp4"
    if "fp8" in bare or "float8" in bare:  # transformer-engine's words, torchao's
        return "mxfp8" if "mx" in bare else "fp8"
    if bare in ("bf16-true", "bfloat16", "fp16-true", "16-true"):
        return "bf16" if bare.startswith("b") else "fp16"
    if "bf16" in bare or "fp16" in bare or bare in ("16", "16-mixed", "float16"):
        return "mixed"
    if "32" in bare:
        return "tf32" if "tf32" in bare else "fp32"
    keys.unread.append(f"{paths[0]}: {bare}")
    return ""


def switched_attention(keys: Keys, paths: Sequence[str]) -> str:
    """axolotl's switches; without any, transformers takes sdpa where the network has it."""
    eager, flash, *fused = paths
    named = keys.has("attn_implementation")
    if keys.flag(eager) and not named:
        return "plain"
    switched_off = keys.has(flash) and not keys.flag(flash)
    if switched_off and not keys.flag(*fused) and not named:
        keys.unread.append(
            f"{flash}: false (planned with fused attention: PyTorch's, sdpa, is used then)"
        )
    return ""


def megatron_attention(keys: Keys, paths: Sequence[str]) -> str:
    """Megatron-LM's back end; its own layers (`local`) fuse attention only if told so."""
    implementation, flash, backend = paths
    fused, word = keys.flag(flash), keys.text(backend)
    own = keys.text(implementation) == "local" and not fused
    return "plain" if own or word.lower() in _NOT_FUSED else ""


def nemo_attention(keys: Keys, paths: Sequence[str]) -> str:
    """NeMo's switch, which does nothing with Transformer Engine, whose attention is fused."""
    engine = keys.flag(paths[1])
    return "plain" if keys.has(paths[0]) and not keys.flag(paths[0]) and not engine else ""


def recomputation(keys: Keys, paths: Sequence[str]) -> str:
    """Full if every layer is computed again; that it is switched off is recorded."""
    path = next((each for each in paths if keys.has(each)), paths[0])
    word = keys.text(path).lower()
    if word == "offload":
        keys.unread.append(f"{path}: {word} (planned with all inputs on the GPUs)")
    if word in ("offload", "full", "unsloth") or keys.flag(path):
        return "full"
    if keys.has(path) and word in (*OFF, "selective") and word != "selective":
        keys.unread.append(f"{path}: {word or 'none'} (planned with it where that is faster)")
    return ""


def megatron_recomputation(keys: Keys, paths: Sequence[str]) -> str:
    """Whether every layer is recomputed: with the method `block`, only a stated number is."""
    whole, block = keys.text(paths[0]) == "full", keys.text(paths[1]) == "block"
    return "full" if whole and not block else ""


def zero_file(keys: Keys, paths: Sequence[str]) -> str:
    """The sharding in the name of a DeepSpeed file, such as zero3_bf16.json."""
    word = keys.text(*paths)
    name = re.sub(r"[-_]|stage", "", word.rpartition("/")[2].lower())
    found = re.search(r"z(?:ero)?([0123])", name)
    if found:
        return _STAGES.get(int(found[1]), "")
    if word and word.lower() not in OFF:
        keys.unread.append(f"{paths[0]}: {word} (another file; read it with --from as well)")
    return ""


def zero_file_offload(keys: Keys, paths: Sequence[str]) -> str:
    """What the name of a DeepSpeed file says is moved to the host."""
    word = keys.text(*paths).rpartition("/")[2].lower()
    if "offload" not in word:
        return ""
    return "parameters" if "param" in word or "all" in word else "optimizer"


def zero_offload(keys: Keys, paths: Sequence[str]) -> str:
    """What ZeRO moves to the host or to disks: states of the optimiser, or weights as well."""
    states, weights = (keys.text(path).lower() not in OFF for path in paths)
    return "parameters" if weights else "optimizer" if states else ""


def fsdp(keys: Keys, paths: Sequence[str]) -> str:
    """PyTorch's FULL_SHARD, HYBRID_SHARD, NO_SHARD, by transformers' words and axolotl's."""
    stated = [each for each in paths if keys.has(each)]
    if not stated:
        return ""
    config = keys.at(stated[0])
    inner = config if isinstance(config, dict) else {}
    names = ("sharding_strategy", "fsdp_sharding_strategy", "reshard_after_forward")
    words = [str(inner[each]) for each in names if each in inner]
    for each in names:
        keys.at(f"{stated[0]}.{each}")
    words += [str(one) for path in stated for one in keys.items(path) if not isinstance(one, dict)]
    word = " ".join(words).upper()
    if not inner and not word.strip():
        return ""
    if not isinstance(config, dict) and not re.search(r"SHARD|FSDP|AUTO_WRAP|[12]$", word):
        return ""
    kinds = (("HYBRID", "hsdp"), ("NO_SHARD", "ddp"), ("GRAD_OP", "zero2"), ("", "fsdp"))
    return next(kind for part, kind in kinds if part in word)


def fsdp_offload(keys: Keys, paths: Sequence[str]) -> str:
    """FSDP moves weights, gradients and states."""
    *switches, flat = paths
    words = " ".join(str(each) for each in keys.items(flat)).lower()
    return "parameters" if keys.flag(*switches) or "offload" in words else ""


def lightning(keys: Keys, paths: Sequence[str]) -> str:
    """Lightning's strategies, by name or class."""
    word = keys.text(*paths[:2]).lower()
    hybrid, stage = "HYBRID" in keys.text(paths[2]).upper(), keys.whole(paths[3])
    if "fsdp" in word:
        return "hsdp" if hybrid else "fsdp"
    if "deepspeed" in word:
        last = int(word[-1]) if word[-1:].isdecimal() else 0  # deepspeed_stage_2
        return _STAGES.get(stage or last, "")
    return "ddp" if "ddp" in word else ""


def adapter(keys: Keys, paths: Sequence[str]) -> str:
    """axolotl's adapters."""
    word, quantised = keys.text(paths[0]).lower(), keys.flag(*paths[1:])
    if word in ("lora", "qlora"):
        return "qlora" if quantised else word
    if word:
        keys.unread.append(f"{paths[0]}: {word} (planned with all weights trained)")
    return "full"


def factory_method(keys: Keys, paths: Sequence[str]) -> str:
    """LLaMA-Factory's kinds of fine-tuning: by default adapters, in files of its v1 all weights."""
    usual = "lora" if keys.has(paths[2]) else "full"
    word, bits = keys.text(paths[0], paths[3]).lower() or usual, keys.whole(paths[1])
    if word == "oft":
        keys.unread.append(f"{paths[0]}: oft (planned as lora: adapters on every linear layer)")
    if bits not in (0, 4):
        keys.unread.append(f"{paths[1]}: {bits} (planned with weights of 16 bits)")
    return "full" if word in ("full", "freeze") else "qlora" if bits == 4 else "lora"


def peft_flags(keys: Keys, paths: Sequence[str]) -> str:
    """TRL's: adapters if one of their fields is there."""
    switch, rank, modules, four = paths
    adapted = keys.flag(switch) or keys.has(rank, modules)
    quantised = keys.flag(four)
    return "qlora" if adapted and quantised else "lora" if adapted else "full"


def peft(keys: Keys, paths: Sequence[str]) -> str:
    """NeMo's schemes: adapters, or all weights where they are another or none."""
    word = keys.text(*paths).lower()
    if word not in ("", "lora", "qlora", "none"):
        keys.unread.append(f"{paths[0]}: {word} (planned as lora)")
    return "full" if word in ("", "none") else "qlora" if word == "qlora" else "lora"


def kind(keys: Keys, paths: Sequence[str]) -> str:
    """Post-training as our job files name it."""
    word = keys.text(*paths).rpartition(".")[2].lower().removesuffix("loss").removesuffix("trainer")
    word = word.strip("_")
    if word in ("orpo", "simpo", "cpo"):
        keys.unread.append(f"{paths[0]}: {word} is planned as dpo, whose reference it does without")
    found = {**dict.fromkeys(_PAIRS, "dpo"), **dict.fromkeys(_GENERATING, "grpo"), "ppo": "ppo",
             "kto": "kto", "reward": "reward", "rm": "reward"}  # fmt: skip
    known = ("", "pt", "sft", "linearcrossentropy", "cewithchunkedoutput", "crossentropy")
    if word not in found and word not in known and not word.startswith("ce"):
        keys.unread.append(f"{paths[0]}: {word} (planned as plain training)")
    return found.get(word, "")


def factory_kind(keys: Keys, paths: Sequence[str]) -> str:
    """LLaMA-Factory's stages; a preference loss may be one without a reference."""
    loss = keys.text(paths[1]).lower()
    without = keys.text(paths[0]).lower() == "dpo" and loss in ("orpo", "simpo")
    return kind(keys, [paths[1] if without else paths[0]])


def trl_kind(keys: Keys, paths: Sequence[str]) -> str:
    """TRL's files do not name their trainer; these fields belong to one each, or to a few."""
    named = kind(keys, paths)
    if named or keys.text(*paths):
        return named
    if keys.has("num_generations", "max_completion_length", "reward_weights", "use_vllm"):
        return "grpo"
    if keys.has("num_ppo_epochs", "cliprange", "kl_coef"):
        return "ppo"
    if keys.has("desirable_weight", "undesirable_weight"):
        return "kto"
    if keys.has("center_rewards_coefficient"):
        return "reward"
    if keys.text("loss_type").lower() in _OF_SFT or not keys.has("beta", "dpo_beta", "loss_type"):
        return ""
    if keys.has("beta") and not keys.has("loss_type"):
        keys.unread.append("beta: of DPO, ORPO, KTO and others; planned as dpo, with a reference")
    return "dpo"


def openrlhf(keys: Keys, paths: Sequence[str]) -> str:
    """OpenRLHF's modules: train_sft, train_dpo, train_rm, train_kto, train_ppo_ray."""
    module, estimator = keys.text(paths[0]).lower(), keys.text(*paths[1:]).lower()
    if "ppo" in module or "ray" in module:
        return "ppo" if estimator in ("", "gae") else "grpo"
    found = {"dpo": "dpo", "rm": "reward", "kto": "kto", "kd": "distillation"}
    return next((name for part, name in found.items() if f"train_{part}" in module), "")


def engine(keys: Keys, paths: Sequence[str]) -> str:
    """The memory of vLLM next to the training: by TRL's defaults (1.16) 0.3 of each GPU."""
    used, mode, share = paths
    word = keys.text(used).lower()
    if not word or word in OFF[:6]:
        keys.has(mode, share)
        return ""
    taken = "its GPUs are needed in addition to those of the plan"
    part = keys.number(share) or 0.3
    if keys.text(mode) != "server":
        taken = f"its {part:.0%} of each GPU's memory are not counted"
    keys.unread.append(f"{used}: {taken}")
    return ""


def titan(keys: Keys, paths: Sequence[str]) -> str:
    """torchtitan's names and flavours, or a name of the hub."""
    name, flavor = keys.text(paths[0]), keys.text(paths[1])
    if "/" in name:
        return name
    word = _TITAN.get(f"{name} {flavor}", _TITAN.get(name, "")).format(flavor)
    if word and flavor[:1].isdecimal():  # others are for debugging
        return word
    keys.unread.append(f"model: {name} {flavor} is not known")
    return ""


def torchtune(keys: Keys, paths: Sequence[str]) -> str:
    """torchtune's builders: torchtune.models.qwen2_5.lora_qwen2_5_7b_instruct."""
    component, *places = paths
    folder = next((word for each in places if (word := keys.text(each))), "")
    found = re.search(r"/tmp/([\w.-]+)", folder)  # where its documentation downloads to
    name = keys.text(component).rpartition(".")[2]
    name = re.sub(r"^(q?lora|dora)_|_(base|instruct)$", "", name)
    return found[1] if found and not found[1].endswith(".model") else name


def data(keys: Keys, paths: Sequence[str]) -> tuple[str, ...]:
    """The data sets, whose size no such file holds."""
    found: list[str] = []
    for path in paths:
        for each in keys.items(path):
            if isinstance(each, dict) and path.endswith("mixer"):
                found += [f"{name} (share {share})" for name, share in each.items()]
            elif isinstance(each, dict):
                found.append(str(each.get("path", each.get("id", ""))))
            else:
                found += [word.strip() for word in str(each).split(",")]
    named = dict.fromkeys(name for name in found if name.lower() not in (*OFF, "none"))
    return tuple(f"size of the data set {shortened(name)}" for name in named)


def max_samples(keys: Keys, paths: Sequence[str]) -> int:
    """What is taken of each data set."""
    sets = [each for each in keys.text(paths[1]).split(",") if each.strip()]
    return keys.whole(paths[0]) * max(len(sets), 1)


def classes(keys: Keys, paths: Sequence[str]) -> tuple[str, ...]:
    """Classes of the user's own: what they do is not in the file."""
    named = {path.partition(".")[0]: keys.text(path) for path in paths}
    return tuple(f"{part}: {name} (a class)" for part, name in named.items() if name)


def items(keys: Keys, paths: Sequence[str]) -> tuple[str, ...]:
    """Words of a list, or of one text with commas."""
    found = (word for path in paths for each in keys.items(path) for word in str(each).split(","))
    return tuple(word.strip() for word in found if word.strip().lower() not in OFF)


def targets(keys: Keys, paths: Sequence[str]) -> tuple[str, ...]:
    """The matrices with adapters: words of a list, or names of switches that are on."""
    named = [path.rpartition(".")[2] for path in paths if keys.flag(path)]
    words = items(keys, paths)
    return (*named, *(each for each in words if each.lower() not in ("true", "false")))


def frozen(keys: Keys, paths: Sequence[str]) -> tuple[str, ...]:
    """Parts that switches freeze."""
    return tuple(f"{path}: true" for path in paths if keys.flag(path))


def freeze(keys: Keys, paths: Sequence[str]) -> tuple[str, ...]:
    """LLaMA-Factory's freeze: so many layers are trained, two by default."""
    switched = keys.text(*paths[:2]).lower() == "freeze"
    keys.has(*paths[4:])
    return (f"the last {keys.whole(*paths[2:4]) or 2} layers",) if switched else ()


def duration(keys: Keys, paths: Sequence[str], unit: str) -> float:
    """Composer's time: 3ep, 4800ba, 1e9tok, 100_000sp."""
    word = keys.text(*paths)
    found = re.fullmatch(r"([0-9.eE_]+)\s*(ep|ba|sp|tok)", word)
    if word and found is None and unit == "ep":
        keys.unread.append(f"max_duration: {word}")
    return float(found[1].replace("_", "")) if found and found[2] == unit else 0


def names(keys: Keys, paths: Sequence[str], wanted: str) -> str:
    """A value if one of some words is in the text: "lora:lora dora"."""
    value, _, parts = wanted.partition(":")
    text = " ".join(str(each) for path in paths for each in keys.items(path)).lower()
    return value if any(part in text for part in parts.split()) else ""


def mapped(keys: Keys, paths: Sequence[str], wanted: str) -> str:
    """A value for each of some words, * for any other: "1:zero1|2:zero2|*:fsdp"."""
    pairs = dict(each.split(":") for each in wanted.split("|"))
    text = keys.text(*paths).lower().rpartition(".")[2]
    return pairs.get(text, pairs.get("*", "") if text else "")


def usual(keys: Keys, paths: Sequence[str], value: str) -> float:
    """The default of a tool, which is named."""
    if any(keys.number(path) for path in paths):
        return 0.0
    keys.unread.append(f"{paths[0]}: not there, the default {value}")
    return float(value)


def is_on(keys: Keys, paths: Sequence[str], value: str) -> str:
    """A value if a switch is on, or has a word that switches nothing off."""
    stated = [keys.text(path).lower() for path in paths]
    return value if any(each not in OFF[:6] and each != "0" for each in stated) else ""


def _copies(keys: Keys, paths: Sequence[str]) -> list[int]:
    """Degrees and numbers; one that is not set is 1."""
    return [max(keys.whole(path), 1) for path in paths]


READERS: dict[str, Reader] = {
    "text": lambda keys, paths: keys.text(*paths), "flag": lambda keys, paths: keys.flag(*paths),
    "number": lambda keys, paths: keys.number(*paths),
    "whole": lambda keys, paths: keys.whole(*paths),
    "sum": lambda keys, paths: sum(map(keys.whole, paths)),
    "product": lambda keys, paths: prod(_copies(keys, paths)),
    "count": lambda keys, paths: prod(_copies(keys, paths)) if keys.whole(paths[0]) else 0,
    "ratio": lambda keys, paths: keys.number(paths[0]) / (keys.number(paths[1]) or inf),
    "lacks": lambda keys, paths: not keys.has(*paths),
    **{each.__name__: each for each in (
        optimizer, precision, switched_attention, megatron_attention, nemo_attention,
        recomputation, megatron_recomputation, zero_file, zero_file_offload, zero_offload, fsdp,
        fsdp_offload, lightning, adapter, factory_method, peft_flags, peft, kind, factory_kind,
        trl_kind, openrlhf, engine, titan, torchtune, data, max_samples, classes, items, frozen,
        targets, freeze,
    )},
}  # fmt: skip
WITH_A_WORD: dict[str, Callable[[Keys, Sequence[str], str], Any]] = {
    "duration": duration, "names": names, "usual": usual, "is": is_on, "map": mapped,
    "within": lambda keys, paths, folder: keys.text(*paths).removeprefix(folder),
    "both": lambda keys, paths, value: value if keys.flag(paths[1]) & keys.has(paths[0]) else "",
    "over": lambda keys, paths, value: value if keys.whole(*paths) > 1 else "",
    "unless": lambda keys, paths, value: "" if keys.flag(*paths) else value,
    "has": lambda keys, paths, value: value if keys.has(*paths) else "",
    "above": lambda keys, paths, value: value if keys.whole(*paths) > 0 else "",
}  # fmt: skip
