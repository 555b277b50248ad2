"""Networks of pictures and words: an eye, a projector and a decoder, added up.

A token of text passes the decoder alone, so the eye and the projector are no part of what is active
for it. Eyes are vision transformers: depth × (4·w² + 2·w·f, or 3·w·f if gated), patches, positions;
what one class has besides (class tokens, biases of norms) is under 0.1 % of the whole.
"""

from collections.abc import Callable

from recommender.networks.config import Config, Convention, conventions
from recommender.networks.network import Count, Network, block, convolution, linear, norm, vector

_TEXT = ("text_config", "llm_config", "language_config")
_EYE = ("vision_config", "vit_config", "visual_config", "audio_config")
_WIDTH = ("embed_dim", "hidden_size", "vt_hidden_size", "width", "d_model")
_DEPTH = ("depth", "num_hidden_layers", "vt_num_hidden_layers", "layers", "encoder_layers")
_INNER = ("intermediate_size", "vt_intermediate_size", "mlp_dim", "encoder_ffn_dim")


def composite(
    config: Config, convention: Convention, decoder_of: Callable[[Config, str], Network]
) -> Network:
    """Count a network of pictures and words; `decoder_of` counts the part that writes."""
    text = _decoder(config)
    decoder = decoder_of(text, convention.text)
    part = next((found for each in _EYE if (found := config.inside(each))), None)
    stated = conventions().get(part.word("model_type")) if part else None
    own = stated if stated and stated.family == "eye" else conventions()[convention.eye]
    eye = (part or Config({}, config.where)).with_defaults(own.defaults)
    projector = _projector(config, eye, convention.projector, decoder.hidden)
    seen = _eye(eye, own) + projector
    # Adapters go to the language model unless they are told otherwise.
    seen = Count(seen.parameters, 0, 0, seen.tensors, 0)
    share = seen.parameters / (seen.parameters + decoder.count.parameters)
    note = f"{share:.0%} of its parameters see or hear: work on text alone is planned"
    return decoder.with_part(seen, projector.parameters, note)


def _decoder(config: Config) -> Config:
    """The fields of the part that writes: nested, or at the top in older files."""
    part = next((found for each in _TEXT if (found := config.inside(each))), None)
    outer = {name: value for name, value in config.fields.items() if name != "model_type"}
    if part is None:
        return Config(outer, config.where)
    tied = {key: outer[key] for key in ("tie_word_embeddings",) if key in outer}
    return Config({**tied, **part.fields}, part.where)


def _eye(eye: Config, convention: Convention) -> Count:
    width = eye.whole(_WIDTH)
    depth = eye.whole(_DEPTH) + eye.whole(("num_global_layers",), 0)  # Llama 3.2's, after the rest
    ratio = eye.fields.get("mlp_ratio")
    inner = eye.whole(_INNER, int(ratio * width) if isinstance(ratio, (int, float)) else 4 * width)
    bias = convention.qkv_bias == "1"
    layer = block(width, inner, bias, int(convention.norms), convention.gated)
    channels = eye.whole(("num_channels", "in_channels", "in_chans"), 3)
    edge, frames = eye.whole(("patch_size",), 14), eye.whole(("temporal_patch_size",), 1)
    places = vector(_positions(eye, convention, edge) * width)
    patches = convolution(channels * frames, width, edge, bias)
    return layer.times(depth) + patches + places + norm(width)


def _positions(eye: Config, convention: Convention, edge: int) -> int:
    if not convention.positions:
        return 0
    side = eye.whole(("image_size",), 0) // max(edge, 1)
    return eye.whole(("num_position_embeddings", "position_embedding_size", "num_patches"), side**2)


def _projector(config: Config, eye: Config, kind: str, hidden: int) -> Count:
    """What turns the eye's outputs into tokens of the decoder."""
    width = eye.whole(_WIDTH)
    side = eye.whole(("spatial_merge_size",), config.whole(("spatial_merge_size",), 2))
    merged = side**2 * width
    if kind == "merger":  # neighbours joined, two matrices; again for each level that is shown
        levels = 1 + len(eye.wholes("deepstack_visual_indexes"))
        return (linear(merged, merged, bias=True) + linear(merged, hidden, bias=True)).times(levels)
    if kind == "patch_merger":  # Mistral: neighbours joined into one of the same width
        return linear(merged, width) + linear(width, hidden) + linear(hidden, hidden)
    if kind == "shuffle":  # InternVL: neighbours joined
        return linear(4 * width, hidden, bias=True) + linear(hidden, hidden, bias=True)
    if kind == "pixels":  # Idefics 3 and SmolVLM: squares of neighbours joined
        return linear(config.whole(("scale_factor",), 2) ** 2 * width, hidden)
    if kind == "two":
        return linear(width, hidden, bias=True) + linear(hidden, hidden, bias=True)
    return linear(width, hidden, bias=True)
