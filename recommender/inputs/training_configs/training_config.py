"""The training that a tool's configuration file describes, and access to the file's keys."""

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.inputs.training_software import Software, software

_MAX = 1e18
_ENGINES = ("Lightning", "DeepSpeed", "accelerate")  # run networks and kernels of others
OFF = ("", "false", "no", "off", "none", "null", "0", "1", "disabled")  # 1: a degree of parallelism
# Keys that change the network, the trained part or the work: never "123 more" that are not used.
_LOUD = re.compile(
    r"expert|moe|vision|patch|image|freez|frozen|reward|kto|packing|offload|quant|adapter|mamba|"
    r"teacher|distill|^kd_|of_depths|llama_pro|trainable|video|audio|relora|galore|lisa|spectrum|ref_model|use_(?!kl)\w*loss|vlm|gptq|awq"
)
_QUIET = re.compile(
    r"token|save|log|wandb|path|dir|aux_loss|column|field|template|timeout|seed|dropout|eval|scal|"
    r"revision|router|_fusion|grouped|z_loss"
)


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """A training as its tool's file states it; 0, "" and () for what it does not state."""

    tool: str
    model: str = ""
    network: dict[str, Any] | None = None  # as a config.json would have it
    tokenizer: str = ""  # of a model whose vocabulary a described network has
    tokens: int = 0  # in the longest sequence, or in every one where they are packed
    packed: bool = False
    image_size: int = 0
    micro_batch: int = 0  # samples of one GPU at once
    accumulation: int = 0  # micro-batches per step
    batch: int = 0  # samples per step, all GPUs together
    gpus: int = 0
    replica_gpus: int = 1  # GPUs that share one replica: tensor × pipeline × context parallelism
    epochs: float = 0.0
    steps: int = 0
    samples: int = 0
    most_examples: int = 0  # in one epoch, where the tool takes no more of each data set
    total_tokens: int = 0
    ratio: float = 0.0  # tokens per parameter, where the tool counts its work so
    precision: str = ""
    master_weights: str = ""  # "no": weights, gradients and states all in 16 bits
    method: str = ""
    lora_rank: int = 0
    targets: tuple[str, ...] = ()  # matrices with adapters; (): those of every linear layer
    whole_modules: tuple[str, ...] = ()  # trained in full beside adapters
    trained: tuple[str, ...] = ()  # what is trained or frozen of the network, as the file says it
    optimizer: str = ""
    optimizer_in_backward: str = ""  # "yes": updates each layer, and frees its gradient
    offload: str = ""  # "optimizer", "parameters" (both): held by the host
    recomputation: str = ""
    attention: str = ""  # "plain" if scores go through memory
    sharding: str = ""
    kind: str = ""  # dpo, kto, reward, grpo, ppo, distillation
    teacher: str = ""  # the model to learn from
    generations: int = 0  # completions of one prompt
    completion: int = 0  # tokens of one
    unread: tuple[str, ...] = ()  # what is stated and could not be read, and why
    unused: tuple[str, ...] = ()  # keys that say nothing of time or memory, or that are not known

    @property
    def software(self) -> Software | None:
        """The tool as training software; None where others decide speed and attention."""
        return None if self.tool in _ENGINES else software().get(self.tool.lower())


@dataclass(slots=True)
class Keys:
    """The keys of a file: which were read, and which could not be read."""

    tree: Any
    known_keys: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)

    def text(self, *paths: str) -> str:
        """Return the value at the first of these paths that is set; "" without any."""
        for path in paths:
            value = self.at(path)
            if value is not None and not isinstance(value, (dict, list)):
                return self._resolved(path, str(value).strip())
        return ""

    def flag(self, *paths: str) -> bool:
        """Whether one of these switches is on; `auto` counts as on."""
        words = [self.text(path).lower() for path in paths]  # all of them count as read
        return any(word in ("true", "yes", "on", "1", "auto") for word in words)

    def number(self, *paths: str) -> float:
        """Return a number; 0 without any; a value that is not a number is recorded as unread."""
        word = self.text(*paths).replace("_", "")
        if not word:
            return 0.0
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        if abs(value) <= _MAX:
            return max(value, 0.0)
        named = next(path for path in paths if self.at(path) is not None)
        self.unread.append(f"{named}: {self.text(*paths)}")
        return 0.0

    def whole(self, *paths: str) -> int:
        """Return a whole number; 0 without any."""
        return round(self.number(*paths))

    def items(self, path: str) -> list[Any]:
        """Return a list; a single value is a list of one."""
        value = self.at(path)
        return value if isinstance(value, list) else [] if value is None else [value]

    def without(self, path: str, plan: str, on: bool = True) -> None:
        """Record a setting that is on, or off, as unread; `plan` says what is planned instead."""
        words = [str(each) for each in self.items(path) if not isinstance(each, (dict, list))]
        word = ", ".join(words)
        if word and (word.lower() not in OFF) == on:
            self.unread.append(f"{path}: {word} ({plan})")

    def has(self, *paths: str) -> bool:
        """Whether one of these keys is set."""
        return any([self.at(path) is not None for path in paths])

    def unused(self) -> tuple[str, ...]:
        """List the keys that were not read."""
        named = _leaves(self.tree, "")
        return tuple(
            key for key in named if not any(_within(key, path) for path in self.known_keys)
        )

    def loud(self) -> tuple[str, ...]:
        """Keys that are switched on, were not read, and may change network, part or work."""
        found = []
        for key in self.unused():
            name = key.rpartition(".")[2].lower()
            word = shortened(_value(self.tree, key))
            said = _LOUD.search(name) or key.startswith("qat.")
            if said and not _QUIET.search(name) and word.lower() not in OFF:
                found.append(f"{key}: {word} (not known: the plan is without it)")
        return tuple(found)

    def at(self, path: str) -> Any:
        """Return the raw value at a path, which counts as read; None without one."""
        self.known_keys.add(path)
        return _value(self.tree, path)

    def _resolved(self, path: str, word: str) -> str:
        """Follow `${other.key}` and `${multiply:4, ${.key}}`, as OmegaConf does."""
        for _ in range(9):
            found = re.search(r"\$\{([\w.]+)\}", word)
            if found is None:
                break
            value = self._of_reference(path, found[1])
            if value is None or isinstance(value, (dict, list)):
                break
            word = word.replace(found[0], str(value).strip())
        word = re.sub(r"\$\{(\w+):\s*([\d.]+),\s*([\d.]+)\s*\}", _computed, word)
        if "${" in word or re.fullmatch(r"\$\w+", word):
            self.unread.append(f"{path}: {word}")
            return ""
        return "" if word.lower() in ("null", "none") else word

    def _of_reference(self, path: str, inner: str) -> Any:
        target = path.rpartition(".")[0] + inner if inner.startswith(".") else inner
        target = target.lstrip(".")
        value = self.at(target)
        # A launcher nests the file under a name of its own: ${training.trainer.precision}
        near = (f"{path.partition('.')[0]}.{target}", target.partition(".")[2])
        others = (self.at(each) for each in near if value is None)
        return next((each for each in others if each is not None), value)


def _computed(found: re.Match[str]) -> str:
    one, other = float(found[2]), float(found[3])
    values = {"multiply": one * other, "add": one + other}
    if other:
        values |= {
            "divide": one / other,
            "divide_floor": one // other,
            "divide_ceil": -(-one // other),
        }
    return f"{values[found[1]]:g}" if found[1] in values else found[0]


def _value(tree: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(tree, dict):
            return None
        tree = tree.get(part)
    return tree


def shortened(value: Any) -> str:
    """A value for a line of text."""
    word = " ".join(str(value).split())
    return word if len(word) <= 60 else f"{word[:57]}..."


def _leaves(tree: Any, path: str) -> Iterator[str]:
    if not isinstance(tree, dict):
        yield path
        return
    for key, value in tree.items():
        if value is not None:
            yield from _leaves(value, f"{path}.{key}" if path else str(key))


def _within(key: str, path: str) -> bool:
    return key == path or key.startswith(f"{path}.")
