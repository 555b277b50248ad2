"""Merges the layers of a job as plain text: a preset, a job file and the flags.

A job is three layers of plain text, merged before anything is parsed: the preset named by `like`,
the file, the flags. A layer that changes the network drops what lower layers stated about the old
one, so that `derive` computes it again: `--params 13B` over a preset of 8 B also replaces its
width, FLOP, activations and checkpoint. Timings stay with another precision and then state theirs,
but for fp32, which other units multiply. A fourth layer, below the one that names a `model:`, has
the figures of that published architecture.
"""

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.inputs.training_software import software
from recommender.job.derive import TOKEN_FAMILIES
from recommender.job.job import AMOUNTS
from recommender.job.preset_files import preset_tree, presets
from recommender.job.timings import in_precision
from recommender.text import unknown

if TYPE_CHECKING:  # most jobs name no architecture
    from recommender.networks.find import FoundNetwork

FILE = "recommend.yaml"  # the usual name of a job file
Raw = dict[str, Any]  # the text of a job file, checked later by its schema

_FLOP = ("flop_per_sample", "title")
_ACTIVATIONS = ("activation_bytes_per_sample", "recomputed_activation_bytes_per_sample")
_NETWORK = (
    "active_params", "lookup_params", "trainable_params", "hidden", "layers", "gradient_tensors",
    "checkpoint_bytes", "memory_gib_at_batch", "measured", "calibration", "attention_width",
    "windowed_width", "window",
    "heads", "kv_width", "sdpa", "adapted_width", "expert_width", "expert_groups", "gated",
    *_FLOP, *_ACTIVATIONS,
)  # fmt: skip
# What a layer below stated about a field that the layer above changes is no longer true.
_STALE: dict[str, tuple[str, ...]] = {
    **{key: (*AMOUNTS, "title") for key in AMOUNTS},
    "family": (*_NETWORK, "params", "vocab", "seq_len", "max_seq_len", "sample_unit"),
    "params": _NETWORK,
    "batch": ("batch_per_gpu", "max_global_batch"),
    "batch_per_gpu": ("batch",),
    "lora_rank": ("trainable_params", "checkpoint_bytes", "title"),
    "active_params": _FLOP,
    "hidden": (*_FLOP, *_ACTIVATIONS, "heads"),
    "layers": (*_FLOP, *_ACTIVATIONS, "gradient_tensors"),
    "image_size": (*_FLOP, *_ACTIVATIONS, "measured"),
    "patch_size": (*_FLOP, *_ACTIVATIONS, "measured"),
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
    "post_training": ("measured", "calibration", "title"),
    "precision": ("measured", "calibration"),
    "stack": ("calibration",),
    "setup": ("image",),
}
# What a field is where nothing is said: to say so is no change. As `Job` has them.
_DEFAULTS = {"stack": "typical", "precision": "auto", "method": "full"}
_CUDA_CORES = "fp32"  # the precision whose timings say nothing of the others
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
    "tokens_per_example": "seq_len",
    "patch": "patch_size",
}
_DECIDING = ("model", "image_size", "patch_size")  # what decides the figures
_CONTAINERS = ("cold", "prebuilt")  # what `image` may be besides the side of a picture


def merged(lower: Raw, upper: Raw) -> Raw:
    """Lay one layer over another, dropping values that the upper one invalidates."""
    stale = {name for names in _stale(lower, upper).values() for name in names}
    kept = {key: value for key, value in lower.items() if key not in stale}
    if _precision(upper) != _precision(lower) and "precision" in upper:
        kept = _stating(kept, _precision(lower))
    both = {**kept, **upper}
    if isinstance(kept.get("data"), dict) and isinstance(upper.get("data"), dict):
        both["data"] = {**_still_true(kept["data"], upper["data"]), **upper["data"]}
    if isinstance(kept.get("assumed"), list) and isinstance(upper.get("assumed", []), list):
        still = [name for name in kept["assumed"] if not _restated(str(name), upper)]
        both["assumed"] = [*still, *upper.get("assumed", [])]
    return both


def _precision(layer: Raw) -> str:
    """The precision of a layer in the word that timings use: "mixed" where each GPU decides."""
    word = _meant("precision", layer.get("precision", _DEFAULTS["precision"]), layer)
    return "mixed" if word == "auto" else str(word)


def _stating(lower: Raw, precision: str) -> Raw:
    """A layer whose timings and calibration state the precision that they were taken in."""
    own, fitted = lower.get("measured"), lower.get("calibration")
    rows = [own] if isinstance(own, str) else own
    if isinstance(rows, list) and all(isinstance(row, str) for row in rows):
        lower = {**lower, "measured": [in_precision(row, precision) for row in rows]}
    if isinstance(fitted, dict):
        lower = {**lower, "calibration": {"precision": precision, **fitted}}
    return lower


def _still_true(lower: Raw, upper: Raw) -> Raw:
    """What a layer below said of the data set, as far as one of another size has it too."""
    other = upper.get("samples", lower.get("samples")) != lower.get("samples")
    return {key: value for key, value in lower.items() if not (other and key == "gib")}


def invalidated(lower: Raw, upper: Raw) -> dict[str, str]:
    """List the user's figures that the upper layer invalidates, each with its cause."""
    return {
        name: key
        for key, names in _stale(lower, upper).items()
        for name in names
        if name in OWN_FIGURES and name in lower and name not in upper
    }


def _stale(lower: Raw, upper: Raw) -> dict[str, tuple[str, ...]]:
    """The fields that each changed one makes untrue in the layers below."""
    both = {**lower, **upper}
    changed = [
        key
        for key, value in upper.items()
        if _meant(key, value, both) != _meant(key, lower.get(key, _DEFAULTS.get(key)), both)
    ]
    stale = {key: _STALE.get(key, ()) for key in changed}
    if "precision" in stale and _CUDA_CORES not in (_precision(lower), _precision(upper)):
        del stale["precision"]
    if "method" in stale and upper["method"] == "full":
        stale["method"] += ("lora_rank",)
    for key in stale.keys() & {"batch", "batch_per_gpu"}:
        if _PER_STEP.search(str(lower.get("measured", ""))):
            stale[key] += ("measured",)  # of other steps
    if _examples(upper) not in (None, _examples(lower)):
        stale["data"] = ("tokens", "samples", "steps", "title")  # epochs are of any data set
    return stale


def _meant(key: str, value: Any, job: Raw) -> Any:
    """What a value says of a job, whichever of its words it is."""
    word = str(value).strip().lower()
    if key == "precision" and word == "mixed":
        return "auto"
    if key == "stack" and word in software():
        scores = job.get("family") in (None, *TOKEN_FAMILIES)
        fused = software()[word].is_fused(sdpa=False if job.get("sdpa") == "no" else None)
        return software()[word].stack, fused or not scores
    return word if key in ("precision", "stack") else value


def _examples(raw: Raw) -> Any:
    data = raw.get("data")
    return data.get("samples") if isinstance(data, dict) else None


def _restated(assumed: str, upper: Raw) -> bool:
    outer, _, inner = SYNONYMS.get(assumed, assumed).partition(".")
    value = upper.get(outer, upper.get("batch_per_gpu") if outer == "batch" else None)
    return value is not None and (not inner or (isinstance(value, dict) and inner in value))


@dataclass(frozen=True, slots=True)
class JobFlags:
    """The job flags of the command line, as typed; None if not given."""

    tokens: str | None = None
    samples: str | None = None
    epochs: str | None = None
    steps: str | None = None
    examples: str | None = None
    model: str | None = None
    image_size: str | None = None
    batch: str | None = None
    batch_per_gpu: str | None = None
    max_global_batch: str | None = None
    params: str | None = None
    seq_len: str | None = None
    precision: str | None = None
    method: str | None = None
    lora_rank: str | None = None
    optimizer: str | None = None
    sharding: str | None = None
    stack: str | None = None
    sync: str | None = None
    machines: str | None = None
    elastic: bool | None = None
    image: str | None = None
    setup: str | None = None
    measured: tuple[str, ...] = ()
    data_at: str | None = None

    def raw(self) -> Raw:
        """Return the flags as the upper layer of a job."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        raw: Raw = {key: value for key, value in given.items() if value not in (None, ())}
        if "measured" in raw:
            raw["measured"] = list(self.measured)
        if "elastic" in raw:
            raw["elastic"] = "yes" if self.elastic else "no"
        inside = {"data_at": "at", "examples": "samples"}
        data = {inside[key]: raw.pop(key) for key in inside if key in raw}
        return {**raw, "data": data} if data else raw


def own_layer(tree: Any, where: str) -> Raw:
    """Return what a file states, each key under its canonical name."""
    if not isinstance(tree, dict):
        raise UsageError(f"{where}: not a job file; begin with the line schema: recommend.job/v1")
    raw: Raw = {}
    for typed, value in tree.items():
        key = _one_name(str(typed), value)
        if key in raw:
            raise UsageError(f"{where}: {key}: is given twice under two names; keep one")
        if value is not None:
            raw[key] = value
    return _with_examples(raw, where)


def _one_name(typed: str, value: Any) -> str:
    """A key's one name: `image: 384` is the side of a picture, `image: cold` a container."""
    sized = typed == "image" and isinstance(value, str)
    if sized and value.strip().lower() not in _CONTAINERS and value.strip()[:1].isdigit():
        return "image_size"
    return SYNONYMS.get(typed, typed)


def _with_examples(raw: Raw, where: str) -> Raw:
    """Put `examples`, the size of the data set, where the schema has it: `data.samples`."""
    data = raw.get("data")
    if isinstance(data, dict) and "examples" in data:
        data = {("samples" if key == "examples" else key): data[key] for key in data}
        raw = {**raw, "data": data}
    if "examples" not in raw:
        return raw
    if isinstance(data, dict) and data.get("samples") is not None:
        raise UsageError(f"{where}: examples: is given twice, also as data.samples; keep one")
    rest = {key: value for key, value in raw.items() if key != "examples"}
    return {
        **rest,
        "data": {**(data if isinstance(data, dict) else {}), "samples": raw["examples"]},
    }


def preset_layer(name: str, seen: tuple[str, ...] = ()) -> Raw:
    """Return a preset laid over those it is like; `seen` are those laid over it."""
    if name not in presets():
        raise UsageError(unknown("job", name, presets()))
    raw = own_layer(preset_tree(name), name)
    return merged(*with_preset(raw, (*seen, name)))


def with_preset(raw: Raw, seen: tuple[str, ...] = ()) -> tuple[Raw, Raw]:
    """Return the preset that a job is like (or an empty one), and what the job itself states."""
    own = {key: value for key, value in raw.items() if key != "like"}
    like = raw.get("like")
    if like is None:
        return {}, own
    if not isinstance(like, str) or like not in presets() or like in seen:
        raise UsageError(f"like: {unknown('job', str(like), presets())}")
    return preset_layer(like, seen), own


def over(lower: Raw, upper: Raw, folder: Path) -> Raw:
    """Lay one layer over another, with the figures of its `model:` in between."""
    model = upper.get("model", lower.get("model"))
    if not isinstance(model, str) or not any(key in upper for key in _DECIDING):
        return merged(lower, upper)
    from recommender.networks.find import find_network  # most jobs name no model

    same = model == lower.get("model")
    stated = {**lower, **upper} if same else upper
    image, patch = (_side(stated.get(key), key) for key in _DECIDING[1:])
    found = find_network(model, folder, image, patch)
    method = upper.get("method", lower.get("method", "full"))
    counted = figures(found, adapters=method != "full")
    sizes = {key: stated[key] for key in _DECIDING[1:] if key in stated}  # already counted with
    return merged(merged(lower, {**counted, **sizes}), upper)


def _side(value: Any, key: str) -> int | None:
    from recommender.job.schema import side  # the schema reads every field of a job

    return None if value is None else side(str(value), f"{key}:")


def figures(found: "FoundNetwork", adapters: bool) -> Raw:
    """The figures of a network as the text of a job file."""
    network = found.network
    counted = {
        "family": network.family,
        "params": network.count.parameters,
        "active_params": network.count.active if network.family == "moe" or network.beside else 0,
        "lookup_params": network.count.lookup,
        "hidden": network.hidden,
        "layers": network.layers,
        "vocab": network.vocabulary,
        "attention_width": network.attention_width,
        "windowed_width": network.windowed_width,
        "window": network.window,
        "heads": network.heads,
        "kv_width": network.kv_width,
        "sdpa": "" if network.sdpa else "no",
        "adapted_width": network.count.adapted,
        "expert_width": network.expert_width if network.family == "moe" else 0,
        "expert_groups": network.expert_groups if network.family == "moe" else 0,
        "gated": "" if network.gated is None else str(network.gated).lower(),
        "gradient_tensors": 0 if adapters else network.count.tensors,
        "flop_per_sample": _exactly(network.flop_per_sample),
        "activation_bytes_per_sample": _exactly(network.activation_bytes),
        "recomputed_activation_bytes_per_sample": _exactly(network.recomputed_bytes),
        "sample_unit": network.sample_unit,
    }
    text: Raw = {key: str(value) for key, value in counted.items() if value}
    return {**text, "assumed": ["hidden", "layers"]} if found.sized else text


def _exactly(value: float) -> str:
    return repr(value) if value else ""
