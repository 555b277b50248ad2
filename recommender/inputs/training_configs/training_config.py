"""The training that a tool's configuration file describes, and access to the file's keys."""

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal

from recommender.catalogs.frozen import dataclass
from recommender.inputs.training_software import Software, software

Sharding = Literal["", "ddp", "hsdp", "fsdp", "tensor", "pipeline", "context"]
_MAX = 1e18
_ENGINES = ("Lightning", "DeepSpeed")  # run networks and kernels of others
_OFF = ("false", "no", "off", "none", "null", "0", "1")  # 1: a degree of parallelism


@dataclass(frozen=True, slots=True)
class Architecture:
    """A network that the file itself describes; 0 for what it does not state."""

    hidden: int = 0
    layers: int = 0
    heads: int = 0
    key_value_heads: int = 0
    head: int = 0  # the width of one, where it is not hidden / heads
    inner: int = 0
    vocabulary: int = 0
    gated: bool = False
    tied: bool = False  # one table looks up and puts out
    tokenizer: str = ""  # of a model whose vocabulary it is


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """A training as its tool's file states it; 0 and "" for what it does not state."""

    tool: str
    model: str = ""
    architecture: Architecture | None = None
    tokens: int = 0  # in the longest sequence, or in every one where they are packed
    packed: bool = False
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
    precision: str = ""
    method: str = ""
    lora_rank: int = 0
    optimizer: str = ""
    recomputation: str = ""
    attention: str = ""  # "plain" if scores go through memory
    sharding: Sharding = ""
    post_training: str = ""
    generations: int = 0  # completions of one prompt
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
            value = self._at(path)
            if value is not None and not isinstance(value, (dict, list)):
                return self._resolved(path, str(value).strip())
        return ""

    def flag(self, *paths: str) -> bool:
        """Whether a switch is on; `auto` counts as on."""
        return self.text(*paths).lower() in ("true", "yes", "on", "1", "auto")

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
        named = next(path for path in paths if self._at(path) is not None)
        self.unread.append(f"{named}: {word}")
        return 0.0

    def whole(self, *paths: str) -> int:
        """Return a whole number; 0 without any."""
        return round(self.number(*paths))

    def items(self, path: str) -> list[Any]:
        """Return a list; a single value is a list of one."""
        value = self._at(path)
        return value if isinstance(value, list) else [] if value is None else [value]

    def without(self, path: str, plan: str) -> None:
        """Record a switched-on setting as unread; `plan` says what is planned instead."""
        words = [str(each) for each in self.items(path) if not isinstance(each, (dict, list))]
        word = ", ".join(words)
        if word and word.lower() not in _OFF:
            self.unread.append(f"{path}: {word} ({plan})")

    def has(self, *paths: str) -> bool:
        """Whether one of these keys is set."""
        return any(self._at(path) is not None for path in paths)

    def unused(self) -> tuple[str, ...]:
        """List the keys that were not read."""
        named = _leaves(self.tree, "")
        return tuple(
            key for key in named if not any(_within(key, path) for path in self.known_keys)
        )

    def _at(self, path: str) -> Any:
        self.known_keys.add(path)
        value = self.tree
        for part in path.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(part)
        return value

    def _resolved(self, path: str, word: str) -> str:
        """Follow `${other.key}`, as OmegaConf does; anything cleverer is kept as unread."""
        for _ in range(5):
            found = re.fullmatch(r"\$\{([\w.]+)\}", word)
            if found is None:
                break
            inner = found[1]
            target = path.rpartition(".")[0] + inner if inner.startswith(".") else inner
            value = self._at(target.lstrip("."))
            if value is None or isinstance(value, (dict, list)):
                break
            word = str(value).strip()
        if "${" in word:
            self.unread.append(f"{path}: {word}")
            return ""
        return "" if word.lower() in ("null", "none") else word


def _leaves(tree: Any, path: str) -> Iterator[str]:
    if not isinstance(tree, dict):
        yield path
        return
    for key, value in tree.items():
        if value is not None:
            yield from _leaves(value, f"{path}.{key}" if path else str(key))


def _within(key: str, path: str) -> bool:
    return key == path or key.startswith(f"{path}.")
