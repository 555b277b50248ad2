"""Properties of architectures that `config.json` does not state: biases, norms, tied weights.

There is one row per `model_type`, from the modelling files of Hugging Face transformers (read
2026-11). Each is tested against the exact published parameter count of a model of that type.
"""

import csv
from functools import cache
from importlib.resources import files

from recommender.catalogs.frozen import dataclass
from recommender.networks.config import Config


@dataclass(frozen=True, slots=True)
class Convention:
    """How the layers of one `model_type` are built."""

    family: str
    gated: bool  # the feed-forward layer has a third matrix
    qkv_bias: str  # 0, 1, or the field of the config that says so
    out_bias: str
    mlp_bias: str
    norms: int  # per layer
    norm_bias: bool
    positions: bool  # learned
    embedding_norm: bool
    final_norm: bool
    tied: bool  # output and input embedding, where the config does not say
    head_bias: bool
    qk_norm: str  # "head": keys and queries by head; "hidden": over the whole width
    pooler: bool
    sdpa: bool  # `_supports_sdpa` of its class: attention is fused by default (transformers 5.24)


@cache
def conventions() -> dict[str, Convention]:
    """Return the convention of each `model_type`."""
    with files(__package__).joinpath("conventions.csv").open("r", encoding="utf-8") as file:
        return {row["model_type"]: _read(row) for row in csv.DictReader(file)}


def _read(row: dict[str, str]) -> Convention:
    return Convention(
        family=row["family"],
        gated=row["gated"] == "1",
        qkv_bias=row["qkv_bias"],
        out_bias=row["out_bias"],
        mlp_bias=row["mlp_bias"],
        norms=int(row["norms"]),
        norm_bias=row["norm_bias"] == "1",
        positions=row["positions"] == "1",
        embedding_norm=row["embedding_norm"] == "1",
        final_norm=row["final_norm"] == "1",
        tied=row["tied"] == "1",
        head_bias=row["head_bias"] == "1",
        qk_norm=row["qk_norm"],
        pooler=row["pooler"] == "1",
        sdpa=row["sdpa"] == "1",
    )


def stated(word: str, config: Config) -> bool:
    """Whether there is a bias: always, never, or as a field of the config says."""
    return config.flag(word) if word not in ("0", "1") else word == "1"
