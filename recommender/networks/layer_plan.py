"""What each layer of a network is made of: how it mixes positions, and its feed-forward part.

Published files say it in a dozen ways: a list of words or numbers, a string of letters, a period
and an offset, the first or the last layers. Each becomes one `Layer` per layer.
"""

from collections.abc import Iterator

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.networks import config as names
from recommender.networks.config import Config, Convention

_LETTERS = {"M": ("mamba", ""), "*": ("attention", ""), "-": ("", "dense"), "E": ("", "experts")}
_WORDS = (  # parts of the words of `layer_types` and `layers_block_type`
    ("sliding", "sliding"), ("chunked", "sliding"), ("linear", "linear"), ("conv", "convolution"),
    ("mamba", "mamba"), ("hybrid", "both"), ("attention", "attention"),
)  # fmt: skip
_BLOCKS = {"mlp": ("", "dense"), "moe": ("", "experts")}  # layers that mix nothing


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: "attention", "sliding", "linear", "mamba", "convolution", "both" or nothing, then
    "dense", "experts" or nothing.
    """

    mixer: str
    forward: str


def layer_plan(config: Config, convention: Convention) -> tuple[Layer, ...]:
    """List the layers of a network, first to last.

    Raises:
        UsageError: a list has fewer entries than there are layers, or unknown ones.
    """
    pattern = config.word("hybrid_override_pattern")
    blocks = config.words("layers_block_type")
    if pattern:
        return tuple(Layer(*_of_letter(config, each)) for each in pattern)
    if any(each in _BLOCKS for each in blocks):
        mixers = [("", each) if each in _BLOCKS else (each, "") for each in blocks]
        return tuple(
            Layer(_word(config, mixer), "") if mixer else Layer(*_BLOCKS[block])
            for mixer, block in mixers
        )
    count = config.whole(names.LAYERS)
    if count > names.MAX_LAYERS:
        raise UsageError(f"{config.where}: {count:,} are more than {names.MAX_LAYERS:,} layers")
    mixer, forward = _mixers(config, convention, count), _forwards(config, convention, count)
    return tuple(map(Layer, mixer, forward))


def _of_letter(config: Config, letter: str) -> tuple[str, str]:
    if letter not in _LETTERS:
        raise UsageError(
            f"{config.where}: hybrid_override_pattern has '{letter}': not M, *, - or E"
        )
    return _LETTERS[letter]


def _word(config: Config, word: str) -> str:
    for part, mixer in _WORDS:
        if part in word:
            return mixer
    raise UsageError(f"{config.where}: layer type '{word[:40]}' is not known")


def _mixers(config: Config, convention: Convention, count: int) -> list[str]:
    words = config.words("layer_types") or config.words("layers_block_type")
    if words:
        if len(words) < count:
            raise UsageError(f"{config.where}: {len(words)} layer types for {count} layers")
        return [_word(config, each) for each in words[:count]]
    usual = convention.mixer or "attention"
    period = config.whole(("full_attention_interval",), 0)
    if period:
        return _every(count, period, period - 1, "attention", "linear")
    if config.has("attn_layer_period"):
        period, offset = config.whole(("attn_layer_period",)), config.whole(("attn_layer_offset",))
        return _every(count, period, offset, "attention", "mamba")
    for field, other in (("attn_layer_indices", usual), ("full_attn_idxs", "convolution")):
        if config.has(field):
            full = config.wholes(field)
            return ["attention" if each in full else other for each in range(count)]
    if config.has("hybrid_layer_pattern"):
        full = config.wholes("hybrid_layer_pattern")
        return ["sliding" if each else "attention" for each in full[:count]]
    linear = config.inside("linear_attn_config")
    if linear is not None:
        full = linear.wholes("full_attn_layers")  # counted from 1
        return ["attention" if each + 1 in full else "linear" for each in range(count)]
    period = config.whole(("sliding_window_pattern",), 0)
    if period and config.has("sliding_window"):
        return _every(count, period, period - 1, "attention", "sliding")
    return [usual] * count


def _every(count: int, period: int, offset: int, one: str, others: str) -> list[str]:
    return [one if each % period == offset else others for each in range(count)]


def _forwards(config: Config, convention: Convention, count: int) -> list[str]:
    if convention.forward:
        return ["" if convention.forward == "none" else convention.forward] * count
    if not config.whole(names.EXPERTS, 0):
        return ["dense"] * count
    return list(_sparse(config, count))


def _sparse(config: Config, count: int) -> Iterator[str]:
    """Which layers of a mixture have experts."""
    words = config.words("mlp_layer_types")
    listed = config.fields.get("moe_layer_freq")
    each_layer = config.wholes("moe_layer_freq") if isinstance(listed, list) else ()
    period = 1 if each_layer else config.whole(("moe_layer_freq",), 1)
    first = config.whole(("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"), 0)
    end = config.fields.get("moe_layer_end_index")  # -1: the last
    last = end if isinstance(end, int) and end >= 0 else count
    step = config.whole(
        ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"), 1
    )
    dense = config.wholes("mlp_only_layers")
    offset = config.whole(("expert_layer_offset",), 0)
    mixed = config.whole(("expert_layer_period",), 1)
    for layer in range(count):
        sparse = first <= layer <= last and layer % max(period, 1) == 0
        sparse &= (layer + 1) % max(step, 1) == 0 and layer not in dense
        sparse &= layer % max(mixed, 1) == offset % max(mixed, 1)
        if layer < len(words):
            sparse = words[layer] == "sparse"
        if layer < len(each_layer):
            sparse = bool(each_layer[layer])
        yield "experts" if sparse else "dense"
