"""A published `config.json`, and what it does not state of its class: biases, norms, defaults.

`conventions.csv` has one row per `model_type`, from the modelling and configuration files of
Hugging Face transformers 5.24.0 (read 2026-11; tests/research/class_rows.py writes their defaults).
Each is tested against the parameters that the class itself allocates, or a published count.
"""

import csv
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.text import shown

MAX_LAYERS = 10_000  # the deepest published ResNet has 1,202 (arXiv 1512.03385)
_MAX = 10**8  # a width, a number of layers or of words; more is a slip

# One thing has several names in the published files.
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads", "kv_n_heads", "num_query_groups")
HEAD_SIZE = ("head_dim", "d_kv", "attention_head_dim", "kv_channels")
INNER = ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "hidden_dim")
WINDOW = ("sliding_window", "sliding_window_size", "attention_chunk_size", "local_attention")
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")
EXPERTS = (
    "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts",
)  # fmt: skip
EXPERTS_PER_TOKEN = (
    "num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_k", "moe_top_k", "moe_topk",
    "moe_router_topk", "num_experts_per_token",
)  # fmt: skip
_ALIASES = (
    HIDDEN, LAYERS, HEADS, KEY_VALUE_HEADS, HEAD_SIZE, INNER, POSITIONS, EXPERTS, EXPERTS_PER_TOKEN,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Config:
    """The fields of one file, and its name in error messages."""

    fields: Mapping[str, Any]
    where: str

    def with_defaults(self, defaults: Mapping[str, Any]) -> "Config":
        """Fill in what the file leaves out, and does not state under another name or as null."""
        groups = [group for group in _ALIASES if any(name in self.fields for name in group)]
        stated = {name for group in groups for name in group}
        missing = {name: value for name, value in defaults.items() if name not in stated}
        return Config({**missing, **self.fields}, self.where) if missing else self

    def has(self, *names: str) -> bool:
        """Whether one of these fields is set."""
        return any(self.fields.get(name) is not None for name in names)

    def word(self, name: str, default: str = "") -> str:
        """Read a text field."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else default

    def flag(self, name: str, default: bool = False) -> bool:
        """Read a boolean field."""
        value = self.fields.get(name)
        return value if isinstance(value, bool) else default

    def whole(self, names: tuple[str, ...], default: int | None = None) -> int:
        """Read a whole number under the first of its names; without a default it is required.

        Raises:
            UsageError: the number is missing, or is not a number.
        """
        stated = [(name, self.fields[name]) for name in names if self.fields.get(name) is not None]
        if not stated:
            if default is None:
                raise UsageError(f"{self.where}: {names[0]} is missing; is it the whole file?")
            return default
        name, value = stated[0]
        if isinstance(value, list) and value and all(each == value[0] for each in value):
            value = value[0]  # one for each layer, all alike
        return self._counted(name, value)

    def wholes(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Read a list of whole numbers."""
        value = self.fields.get(name)
        if value is None:
            return default
        each = value if isinstance(value, list) else [value]
        return tuple(self._counted(name, one) for one in each)

    def depths(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Read a list of numbers of layers.

        Raises:
            UsageError: together they are more than any network has.
        """
        found = self.wholes(name, default)
        if sum(found) > MAX_LAYERS:
            raise UsageError(f"{self.where}: {name} are more than {MAX_LAYERS:,} layers")
        return found

    def words(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Read a list of words."""
        value = self.fields.get(name)
        return tuple(str(one) for one in value) if isinstance(value, list) else default

    def flattened(self, *parts: str) -> "Config":
        """Lift the fields of nested parts to the top (DBRX, MPT)."""
        found = [part.fields for each in parts if (part := self.inside(each)) is not None]
        inner = {name: value for fields in found for name, value in fields.items()}
        return Config({**inner, **self.fields}, self.where) if inner else self

    def inside(self, name: str) -> "Config | None":
        """Read a nested part with fields of its own."""
        value = self.fields.get(name)
        return Config(value, f"{self.where}: {name}") if isinstance(value, dict) else None

    def _counted(self, name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX:
            raise UsageError(
                f"{self.where}: {name} {shown(value)} is not a whole number up to {_MAX:,}"
            )
        return value


def parse_config(text: str, where: str) -> Config:
    """Read the text of a `config.json`.

    Raises:
        UsageError: the text is not a JSON object.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({shown(error)})") from None
    if not isinstance(fields, dict):
        raise UsageError(f"{where}: not a config.json; it must hold one JSON object")
    return Config(fields, where)


@dataclass(frozen=True, slots=True)
class Convention:
    """How the layers of one `model_type` are built."""

    family: str
    defaults: dict[str, Any]  # of its configuration class, for fields that a file leaves out
    gated: bool = False  # the feed-forward layer has a third matrix
    qkv_bias: str = "0"  # 0, 1, or the field of the config that says so
    out_bias: str = "0"
    mlp_bias: str = "0"
    norms: str = "2"  # per layer
    norm_bias: bool = False
    positions: bool = False  # learned
    embedding_norm: bool = False
    unnormed: bool = False  # without a norm after the last layer
    tied: bool = False  # output and input embedding, where the config does not say
    head_bias: bool = False
    qk_norm: str = ""  # "head": keys and queries by head; "hidden": over the whole width
    pooler: bool = False
    eager: bool = False  # no `_supports_sdpa` of its class: attention is not fused by default
    mixer: str = ""  # of every layer that no field gives another
    forward: str = ""  # of every layer: "none"
    correction: bool = False  # the router adds a learned number for each expert
    router_bias: bool = False
    sinks: str = ""  # a learned sink for each head: of every layer, or of "sliding" ones
    output_gate: bool = False  # attention gates its output
    shared: str = "0"  # experts that every token passes, where no field says how many
    shared_gate: bool = False  # the shared expert has a gate of its own
    beside: bool = False  # a dense feed-forward network beside the experts
    gated_norm: bool = False  # Mamba's inner norm
    inner_norms: bool = False  # Mamba's norms of step sizes and states (Jamba)
    eye: str = ""  # of networks of pictures and words: the type of the eye
    text: str = ""  # and of the decoder
    projector: str = ""


@cache
def conventions() -> dict[str, Convention]:
    """Return the convention of each `model_type`."""
    with files(__package__).joinpath("conventions.csv").open("r", encoding="utf-8") as file:
        return {row["model_type"]: _read(row) for row in csv.DictReader(file)}


def _read(row: dict[str, str]) -> Convention:
    words = (each.partition("=") for each in row["traits"].split())
    traits: dict[str, Any] = {name: value or True for name, _, value in words}
    return Convention(row["family"], json.loads(row["defaults"] or "{}"), **traits)


def stated(word: str, config: Config) -> bool:
    """Whether there is a bias: always, never, or as a field of the config says."""
    return config.flag(word) if word not in ("0", "1") else word == "1"
