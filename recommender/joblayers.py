"""How the layers of a job lie over one another: preset, file, flags.

A layer that changes the network drops what the layers below it stated about the old one, so
that `derive` computes it anew: `--params 13B` over a preset of 8 B also replaces its width,
FLOP, activations and checkpoint.
"""

import re
from typing import Any

Raw = dict[str, Any]  # the text of a job file, checked later by its schema

AMOUNTS = ("tokens", "samples", "epochs", "steps")
_FLOP = ("flop_per_sample", "title")
_ACTIVATIONS = ("activation_bytes_per_sample", "recomputed_activation_bytes_per_sample")
_NETWORK = (
    "active_params", "lookup_params", "trainable_params", "hidden", "layers", "gradient_tensors",
    "checkpoint_bytes", "memory_gib_at_batch", "measured", "calibration",
    *_FLOP, *_ACTIVATIONS,
)  # fmt: skip
# What a layer below stated about a field that the layer above changes is no longer true.
_STALE: dict[str, tuple[str, ...]] = {
    **{key: (*AMOUNTS, "title") for key in AMOUNTS},
    "family": (*_NETWORK, "params", "vocab", "seq_len", "max_seq_len", "sample_unit"),
    "params": _NETWORK,
    "lora_rank": ("trainable_params", "checkpoint_bytes", "title"),
    "active_params": _FLOP,
    "hidden": (*_FLOP, *_ACTIVATIONS),
    "layers": (*_FLOP, *_ACTIVATIONS, "gradient_tensors"),
    "seq_len": ("max_seq_len", "measured", *_FLOP, *_ACTIVATIONS),
    "max_seq_len": _ACTIVATIONS,
    "method": (
        "checkpoint_bytes",
        "gradient_tensors",
        "trainable_params",
        "measured",
        "calibration",
        "title",
    ),
    "optimizer": ("checkpoint_bytes",),
    "precision": ("measured", "calibration"),
    "stack": ("calibration",),
    "setup": ("image",),
}
# What a field is where nothing is said: to say so is no change. As `Job` has them.
_DEFAULTS = {"stack": "typical", "precision": "mixed", "method": "full"}
_PER_STEP = re.compile(r"/\s*(step|it\b|iteration)|\b(steps?|it|iterations?)\s*/")
OWN_FIGURES = ("measured", "calibration")  # of the user's; they do not go without a word
SYNONYMS = {
    "parameters": "params",
    "active_parameters": "active_params",
    "trainable_parameters": "trainable_params",
    "global_batch": "batch",
    "vocabulary": "vocab",
    "timings": "measured",
    "tokens_per_sample": "seq_len",
}


def merged(lower: Raw, upper: Raw) -> Raw:
    """Lay one layer over another; what the upper one makes untrue is dropped."""
    stale = {name for names in _stale(lower, upper).values() for name in names}
    kept = {key: value for key, value in lower.items() if key not in stale}
    both = {**kept, **upper}
    if isinstance(kept.get("data"), dict) and isinstance(upper.get("data"), dict):
        both["data"] = {**kept["data"], **upper["data"]}
    if isinstance(kept.get("assumed"), list) and isinstance(upper.get("assumed", []), list):
        still = [name for name in kept["assumed"] if not _restated(name, upper)]
        both["assumed"] = [*still, *upper.get("assumed", [])]
    return both


def set_aside(lower: Raw, upper: Raw) -> dict[str, str]:
    """Own figures of the lower layer that the upper one makes untrue: each, and because of what."""
    return {
        name: key
        for key, names in _stale(lower, upper).items()
        for name in names
        if name in OWN_FIGURES and name in lower and name not in upper
    }


def _stale(lower: Raw, upper: Raw) -> dict[str, tuple[str, ...]]:
    """The fields that each changed one makes untrue in the layers below."""
    changed = [key for key, value in upper.items() if value != lower.get(key, _DEFAULTS.get(key))]
    stale = {key: _STALE.get(key, ()) for key in changed}
    if "method" in stale and upper["method"] == "full":
        stale["method"] += ("lora_rank",)
    if "batch" in stale and _PER_STEP.search(str(lower.get("measured", ""))):
        stale["batch"] = ("measured",)  # of other steps
    return stale


def _restated(assumed: str, upper: Raw) -> bool:
    outer, _, inner = SYNONYMS.get(assumed, assumed).partition(".")
    value = upper.get(outer)
    return value is not None and (not inner or (isinstance(value, dict) and inner in value))
