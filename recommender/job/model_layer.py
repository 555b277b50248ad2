"""The job layer of `model:`, a published architecture: its figures as text."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender.job.merge_layers import Raw, merged

if TYPE_CHECKING:  # most jobs name no architecture
    from recommender.networks.find import FoundNetwork

_DECIDING = ("model", "image_size", "patch_size")  # what decides the figures


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
