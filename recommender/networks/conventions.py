"""Properties of architectures that `config.json` does not state: biases, norms, class defaults.

There is one row per `model_type`, from the modelling and configuration files of Hugging Face
transformers 5.24.0 (read 2026-11; tests/research/class_rows.py writes their defaults). Each is
tested against the parameters that the class itself allocates, or a published count.
"""

import csv
import json
from functools import cache
from importlib.resources import files
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.networks.config import Config


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
