"""Transformers of one stack of layers: decoders, encoders, mixtures of experts.

Per layer: attention h·(q + 2·kv) + q·h with q = heads × head size and kv = key-value heads × head
size; feed-forward 2·h·f or, gated, 3·h·f; experts that often, and a router h·E. DeepSeek's
attention goes through low ranks (arXiv 2405.04434, section 2.1).
"""

from recommender.catalogs.frozen import dataclass
from recommender.networks import config as names
from recommender.networks.config import Config
from recommender.networks.conventions import Convention, stated
from recommender.networks.count import Count, embedding, linear, norm, plain, total, vector
from recommender.networks.network import Network

_OPT_OFFSET = 2  # rows of position embeddings in front of the first; modeling_opt.py


@dataclass(frozen=True, slots=True)
class _Heads:
    """Attention of one layer, in widths."""

    queries: int  # heads × head size
    keys: int  # key-value heads × head size
    size: int
    number: int


def transformer(config: Config, convention: Convention) -> Network:
    """Count a decoder, an encoder or a mixture of experts."""
    hidden, layers = config.whole(names.HIDDEN), config.whole(names.LAYERS)
    heads = _heads(config, hidden)
    dense = min(_dense_layers(config, layers, convention), layers)
    attention = _attention(config, convention, hidden, heads)
    norms = _norms(config, convention, hidden)
    inner = config.whole(("intermediate_size_mlp",), _inner(config, hidden))
    first = attention + norms + _feed_forward(config, convention, hidden, inner)
    count = first.times(dense) + _ends(config, convention, hidden)
    if layers > dense:
        expert = attention + norms + _experts(config, convention, hidden)
        count += expert.times(layers - dense)
    return Network(
        family=convention.family,
        count=count,
        hidden=hidden,
        layers=layers,
        vocabulary=config.whole(("vocab_size",)),
        attention_width=_attention_width(config, heads),
        heads=heads.number,
        sdpa=convention.sdpa,
        expert_width=_expert_width(config) if layers > dense else 0,
        expert_groups=_expert_groups(config) if layers > dense else 0,
        gated=None if convention.family == "encoder" else convention.gated,
    )


def _heads(config: Config, hidden: int) -> _Heads:
    number = max(config.whole(names.HEADS), 1)
    size = config.whole(names.HEAD_SIZE, hidden // number)
    shared = config.flag("multi_query") and not config.flag("new_decoder_architecture")
    keys = 1 if shared else config.whole(names.KEY_VALUE_HEADS, number)
    return _Heads(number * size, keys * size, size, number)


def _inner(config: Config, hidden: int) -> int:
    return config.whole(names.INNER, 4 * hidden)


def _dense_layers(config: Config, layers: int, convention: Convention) -> int:
    """Layers without experts."""
    if convention.family != "moe":
        return layers
    every = config.whole(("interleave_moe_layer_step",), 1)  # Llama 4
    return max(config.whole(("first_k_dense_replace",), 0), layers - layers // max(every, 1))


def _attention_width(config: Config, heads: _Heads) -> int:
    if not config.has("kv_lora_rank"):
        return heads.queries
    keys = config.whole(("qk_nope_head_dim",)) + config.whole(("qk_rope_head_dim",))
    return heads.number * (keys + config.whole(("v_head_dim",))) // 2


def _attention(config: Config, convention: Convention, hidden: int, heads: _Heads) -> Count:
    if config.has("kv_lora_rank"):
        return _low_rank_attention(config, hidden, heads.number)
    bias, out = stated(convention.qkv_bias, config), stated(convention.out_bias, config)
    found = (
        linear(hidden, heads.queries, bias)
        + linear(hidden, heads.keys, bias).times(2)
        + linear(heads.queries, hidden, out)
    )
    if convention.qk_norm == "head":
        found += norm(heads.size).times(2)
    if convention.qk_norm == "hidden":
        found += norm(heads.queries) + norm(heads.keys)
    if config.word("model_type") == "gpt_oss":
        found += vector(heads.number)  # a learned sink for each head
    return found


def _low_rank_attention(config: Config, hidden: int, heads: int) -> Count:
    """DeepSeek's multi-head latent attention."""
    plain_size, rotary = (config.whole((f"qk_{kind}_head_dim",)) for kind in ("nope", "rope"))
    values, rank = config.whole(("v_head_dim",)), config.whole(("kv_lora_rank",))
    queries, query_rank = heads * (plain_size + rotary), config.whole(("q_lora_rank",), 0)
    found = linear(hidden, queries)
    if query_rank:
        found = linear(hidden, query_rank) + norm(query_rank) + linear(query_rank, queries)
    found += linear(hidden, rank + rotary) + norm(rank)
    return found + linear(rank, heads * (plain_size + values)) + linear(heads * values, hidden)


def _feed_forward(config: Config, convention: Convention, hidden: int, inner: int) -> Count:
    bias = stated(convention.mlp_bias, config)
    into = linear(hidden, inner, bias).times(2 if convention.gated else 1)
    return into + linear(inner, hidden, bias)


def _experts(config: Config, convention: Convention, hidden: int) -> Count:
    """All experts of a layer, those that every token passes, and the router."""
    number, used = config.whole(names.EXPERTS), config.whole(names.EXPERTS_PER_TOKEN)
    inner = _expert_width(config)
    each = _feed_forward(config, convention, hidden, inner)
    found = each.times(number, min(used, number))
    found += plain(hidden, number, bias=config.word("model_type") == "gpt_oss")
    if config.word("model_type") == "deepseek_v3":
        found += vector(number)  # e_score_correction_bias
    always = 1 if config.word("model_type") == "llama4_text" else 0
    found += each.times(config.whole(("n_shared_experts",), always))
    shared = config.whole(("shared_expert_intermediate_size",), 0)
    if shared:
        found += _feed_forward(config, convention, hidden, shared) + plain(hidden, 1)
    return found


def _expert_width(config: Config) -> int:
    return config.whole(("moe_intermediate_size", *names.INNER))


def _expert_groups(config: Config) -> int:
    """Groups of experts that a token may be routed to; 0 if the experts have no groups."""
    return config.whole(("topk_group",), 0) if config.whole(("n_group",), 0) > 1 else 0


def _norms(config: Config, convention: Convention, hidden: int) -> Count:
    number = convention.norms
    if config.word("model_type") == "falcon" and not config.flag("new_decoder_architecture"):
        number = 1 if config.flag("parallel_attn", True) else 2
    return norm(hidden, convention.norm_bias).times(number)


def _ends(config: Config, convention: Convention, hidden: int) -> Count:
    """Embeddings, norms outside of the layers, the output head."""
    vocabulary = config.whole(("vocab_size",))
    width = config.whole(("embedding_size", "word_embed_proj_dim"), hidden)
    parts = [embedding(vocabulary, width), *_position_tables(config, convention, width)]
    if convention.embedding_norm:
        parts.append(norm(width, convention.norm_bias))
    if convention.final_norm:
        parts.append(norm(hidden, convention.norm_bias))
    if width != hidden:
        parts.append(plain(width, hidden, bias=config.word("model_type") == "electra"))
    if convention.pooler:
        parts.append(plain(hidden, hidden, bias=True))
    ends = total(parts) + _oddities(config, convention, hidden, width)
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
