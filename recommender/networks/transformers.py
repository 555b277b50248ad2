"""Stacks of layers: decoders, encoders, mixtures of experts, scans, and all of these mixed.

A layer is what it mixes positions with (`mixers.py`) and a feed-forward part: 2·h·f parameters or,
gated, 3·h·f; experts that often, and a router h·E. `layer_plan.py` says which layer has what.
"""

from collections import Counter

from recommender.networks import config as names
from recommender.networks.config import Config, Convention, stated
from recommender.networks.layer_plan import Layer, layer_plan
from recommender.networks.mixers import Place, heads_of, mixer
from recommender.networks.network import (
    Count,
    Network,
    embedding,
    linear,
    norm,
    plain,
    total,
    vector,
)

_OPT_OFFSET = 2  # rows of position embeddings in front of the first; modeling_opt.py
_SCANS = ("linear", "mamba", "mamba2", "both", "convolution")
_OF_EXPERTS = ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size")


def transformer(config: Config, convention: Convention) -> Network:
    """Count a decoder, an encoder, a mixture of experts or a hybrid."""
    hidden = config.whole(names.HIDDEN)
    plan = layer_plan(config, convention)
    places = Counter((layer, _place(config, number)) for number, layer in enumerate(plan))
    parts = (
        _layer(layer, config, convention, hidden, place).times(number)
        for (layer, place), number in places.items()
    )
    mixers = (
        mixer(layer.mixer, config, convention, hidden, place).times(number)
        for (layer, place), number in places.items()
    )
    count = total(parts) + _ends(config, convention, hidden, len(plan))
    sparse = any(layer.forward == "experts" for layer in plan)
    widths = _attention_widths(plan, config, hidden)
    scans = Counter(layer.mixer for layer in plan if layer.mixer in _SCANS)
    return Network(
        family=_family(convention, sparse),
        count=count,
        hidden=hidden,
        layers=len(plan),
        vocabulary=config.whole(("vocab_size",)),
        attention_width=max(sum(widths.values()) // len(plan), 1),  # 1: none; 0: not stated
        windowed_width=widths["sliding"] // len(plan),
        window=config.whole(names.WINDOW, 0) if widths["sliding"] else 0,
        heads=_number_of_heads(config, hidden),
        kv_width=_kept_width(plan, config, hidden),
        sdpa=not convention.eager,
        adapted_attention=total(mixers).adapted,
        expert_width=_expert_width(config) if sparse else 0,
        experts=config.whole(names.EXPERTS, 0) if sparse else 0,
        expert_groups=_expert_groups(config) if sparse else 0,
        gated=None if convention.family == "encoder" else convention.gated,
        note=_of_scans(scans.total(), len(plan)),
    )


def _family(convention: Convention, sparse: bool) -> str:
    if convention.family in ("decoder", "moe"):
        return "moe" if sparse else "decoder"
    return convention.family


def _of_scans(scans: int, layers: int) -> str:
    if not scans:
        return ""
    which = "its" if scans == layers else f"{scans} of its {layers}"
    return f"{which} layers scan or convolve: planned as matrices, which run faster than scans"


def _number_of_heads(config: Config, hidden: int) -> int:
    return heads_of(config, hidden).number if config.has(*names.HEADS) else 0


def _kept_width(plan: tuple[Layer, ...], config: Config, hidden: int) -> int:
    """Half of the keys and values kept for a position; of low ranks, what they are made from."""
    if config.has("kv_lora_rank"):
        return (config.whole(("kv_lora_rank",)) + config.whole(("qk_rope_head_dim",), 0)) // 2
    each = (heads_of(config, hidden, layer.mixer == "sliding") for layer in plan
            if layer.mixer in ("attention", "sliding", "both"))  # fmt: skip
    return sum(one.shared * (one.size + one.value) // 2 for one in each) // len(plan)


def _attention_widths(plan: tuple[Layer, ...], config: Config, hidden: int) -> Counter[str]:
    """The widths of attention added up over layers, of full and of sliding ones."""
    found: Counter[str] = Counter()
    for layer in plan:
        if layer.mixer in ("attention", "sliding", "both"):
            sliding = layer.mixer == "sliding"
            found["sliding" if sliding else "full"] += heads_of(config, hidden, sliding).width
    return found


def _place(config: Config, number: int) -> Place:
    shared = config.whole(("num_kv_shared_layers",), 0)
    kinds = config.words("indexer_types")
    return Place(
        late=shared > 0 and number >= config.whole(names.LAYERS) - shared,
        indexed=not (number < len(kinds) and kinds[number] == "shared"),
    )


def _layer(
    layer: Layer, config: Config, convention: Convention, hidden: int, place: Place
) -> Count:
    found = mixer(layer.mixer, config, convention, hidden, place)
    found += _norms(config, convention, hidden)
    if layer.forward == "experts":
        found += _experts(config, convention, hidden)
    if layer.forward == "dense" or (layer.forward and convention.beside):
        wide = 2 if place.late and config.flag("use_double_wide_mlp") else 1
        found += _feed_forward(config, convention, hidden, wide * _inner(config, hidden))
    beside = config.whole(("hidden_size_per_layer_input",), 0)  # Gemma's tables of every layer
    if beside:
        found += linear(hidden, beside) + linear(beside, hidden) + norm(hidden)
    return found


def _inner(config: Config, hidden: int) -> int:
    """The width of dense layers; LFM2 states two thirds more than it takes, rounded up."""
    inner = config.whole(("intermediate_size_mlp", *names.INNER), 4 * hidden)
    if not config.flag("block_auto_adjust_ff_dim"):
        return inner
    factor = config.fields.get("block_ffn_dim_multiplier")
    inner = int((factor if isinstance(factor, (int, float)) else 1.0) * int(2 * inner / 3))
    multiple = max(config.whole(("block_multiple_of",), 1), 1)
    return -(-inner // multiple) * multiple


def _feed_forward(config: Config, convention: Convention, hidden: int, inner: int) -> Count:
    bias = stated(convention.mlp_bias, config)
    into = linear(hidden, inner, bias).times(2 if convention.gated else 1)
    return into + linear(inner, hidden, bias)


def _experts(config: Config, convention: Convention, hidden: int) -> Count:
    """All experts of a layer, those that every token passes, and the router."""
    number, used = config.whole(names.EXPERTS), config.whole(names.EXPERTS_PER_TOKEN)
    inner = _expert_width(config)
    width = config.whole(("moe_latent_size",), hidden)
    found = _feed_forward(config, convention, width, inner).times(number, min(used, number))
    if width != hidden:
        found += linear(hidden, width) + linear(width, hidden)
    found += plain(hidden, number, bias=convention.router_bias)
    if convention.correction:
        found += vector(number)
    if convention.beside:  # Gemma's router and the norms of both ways
        found += norm(hidden) + vector(number) + norm(hidden).times(3)
    return found + _shared_experts(config, convention, hidden, inner)


def _shared_experts(config: Config, convention: Convention, hidden: int, inner: int) -> Count:
    """The experts that every token passes, by their number or by their width."""
    wide = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
            "shared_intermediate_size")  # fmt: skip
    number = config.whole(
        ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"), int(convention.shared)
    )
    width = config.whole(wide, number * inner)
    if not width:
        return Count()
    found = _feed_forward(config, convention, hidden, width)
    return found + plain(hidden, 1) if convention.shared_gate else found


def _expert_width(config: Config) -> int:
    return config.whole((*_OF_EXPERTS, *names.INNER))


def _expert_groups(config: Config) -> int:
    """Groups of experts that a token may be routed to; 0 if the experts have no groups."""
    return config.whole(("topk_group",), 0) if config.whole(("n_group",), 0) > 1 else 0


def _norms(config: Config, convention: Convention, hidden: int) -> Count:
    number = int(convention.norms)
    if config.word("model_type") == "falcon" and not config.flag("new_decoder_architecture"):
        number = 1 if config.flag("parallel_attn", True) else 2
    return norm(hidden, convention.norm_bias).times(number)


def _ends(config: Config, convention: Convention, hidden: int, layers: int) -> Count:
    """Embeddings, norms outside of the layers, the output head."""
    vocabulary = config.whole(("vocab_size",))
    width = config.whole(("embedding_size", "word_embed_proj_dim"), hidden)
    parts = [embedding(vocabulary, width), *_position_tables(config, convention, width)]
    if convention.embedding_norm:
        parts.append(norm(width, convention.norm_bias))
    if not convention.unnormed:
        parts.append(norm(hidden, convention.norm_bias))
    if width != hidden:
        parts.append(plain(width, hidden, bias=config.word("model_type") == "electra"))
    if convention.pooler:
        parts.append(plain(hidden, hidden, bias=True))
    ends = total(parts) + _oddities(config, convention, hidden, width)
    beside = config.whole(("hidden_size_per_layer_input",), 0) * layers
    if beside:
        rows = embedding(config.whole(("vocab_size_per_layer_input",)), beside)
        ends += rows + plain(hidden, beside) + norm(beside // layers)
    if convention.family == "encoder":
        return ends
    tied = config.flag("tie_word_embeddings", convention.tied)
    if not tied:
        return ends + plain(hidden, vocabulary, convention.head_bias)
    multiplied = vocabulary * width  # the same rows are the output's matrix
    return Count(ends.parameters, ends.active, ends.lookup - multiplied, ends.tensors, ends.adapted)


def _position_tables(config: Config, convention: Convention, width: int) -> list[Count]:
    found = []
    if convention.positions:
        offset = _OPT_OFFSET if config.word("model_type") == "opt" else 0
        wide = config.whole(names.HIDDEN) if offset else width
        found.append(embedding(config.whole(names.POSITIONS) + offset, wide))
    types = config.whole(("type_vocab_size",), 0)
    if convention.family == "encoder" and types:
        found.append(embedding(types, width))
    return found


def _oddities(config: Config, convention: Convention, hidden: int, width: int) -> Count:
    """What one architecture alone has."""
    kind = config.word("model_type")
    if kind == "deberta-v2" and config.flag("relative_attention"):
        buckets = config.whole(("position_buckets",), 256)
        return embedding(2 * buckets, hidden) + norm(hidden, bias=True)
    if kind == "modernbert":  # its first layer has no norm before attention
        return Count(-hidden, -hidden, 0, -1)
    if kind == "opt" and width != hidden:  # projected in and out, and no last norm
        return plain(hidden, width) + Count(-2 * hidden, -2 * hidden, 0, -2)
    return Count()
