"""What a layer mixes positions with: attention, low-rank attention, scans, short convolutions.

Attention has h·(q + k + v) + v'·h parameters with q = heads × head size, k and v of the key-value
heads. DeepSeek's goes through low ranks (arXiv 2405.04434, section 2.1).

Mamba (Gu and Dao, arXiv 2312.00752), width h, inner width i, state n, rank r of the step sizes:
h·2i in, a convolution over each channel, i·(r + 2n), r·i, the states' decay i·n, i·h out. The
scan's own 9·i·n FLOP a token, forward, are under 1 % of them and left out.

Mamba-2 (Dao and Gu, arXiv 2405.21060), with g groups of states and k heads: h·(2i + 2gn + k) in,
the convolution over i + 2gn channels, three numbers a head, a norm of width i, i·h out. Its scan is
made of matrix products inside of chunks of c = 256 tokens: c·(g·n + i) + 4·i·n FLOP a token,
forward, 3 % of a layer of 7 B parameters, 16 % of 130 M; left out as well.

Gated delta networks (Yang et al., arXiv 2412.06464) have keys and values of widths K and V:
h·(2K + 2V) in with output gates, two numbers a value head, a convolution over 2K + V channels, V·h
out. Kimi's (arXiv 2510.26692) gates each channel through two ranks of one head's width instead.
"""

from recommender.catalogs.frozen import dataclass
from recommender.networks import config as names
from recommender.networks.config import Config, Convention, stated
from recommender.networks.network import Count, linear, norm, vector

_KERNEL = ("conv_kernel", "mamba_d_conv", "conv_kernel_size")
_STATE = ("ssm_state_size", "mamba_d_state", "state_size")
_GROUPS = ("n_groups", "mamba_n_groups", "mamba_ngroups")
_SSM_HEADS = ("mamba_num_heads", "mamba_n_heads", "num_heads")
_SSM_HEAD = ("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
_EXPAND = ("expand", "mamba_expand")


@dataclass(frozen=True, slots=True)
class Place:
    """What a layer has or lacks because of where it stands."""

    late: bool = False  # takes keys and values of an earlier layer
    indexed: bool = True  # has the indexer of sparse attention, or takes another layer's


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention of one layer, in widths; the values' head size may be another."""

    number: int
    size: int
    shared: int  # heads of keys and values
    value: int

    @property
    def queries(self) -> int:
        """Heads × head size."""
        return self.number * self.size

    @property
    def width(self) -> int:
        """Multiply-adds of a pair of positions, over two."""
        return self.number * (self.size + self.value) // 2


def heads_of(config: Config, hidden: int, sliding: bool = False) -> Heads:
    """Read the heads of a layer; sliding and full layers may have their own."""
    prefix = "swa_" if sliding else "global_"

    def own(field: str) -> str:
        return f"{prefix}{field}"

    number = max(config.whole((own("num_attention_heads"), *names.HEADS)), 1)
    size = config.whole((own("head_dim"), *names.HEAD_SIZE), hidden // number)
    if config.has("kv_lora_rank"):
        keys = [config.whole((f"qk_{kind}_head_dim",), 0) for kind in ("nope", "rope")]
        return Heads(number, sum(keys), number, config.whole(("v_head_dim",), size))
    one = config.flag("multi_query") and not config.flag("new_decoder_architecture")
    fields: tuple[str, ...] = (own("num_key_value_heads"), *names.KEY_VALUE_HEADS)
    if not sliding and config.flag("attention_k_eq_v"):
        fields = ("num_global_key_value_heads", *fields)
    shared = 1 if one else config.whole(fields, number)
    return Heads(number, size, shared, config.whole((own("v_head_dim"), "v_head_dim"), size))


def mixer(kind: str, config: Config, convention: Convention, hidden: int, place: Place) -> Count:
    """Count what a layer of a kind mixes positions with."""
    if kind in ("attention", "sliding"):
        return _attention(kind, config, convention, hidden, place)
    if kind == "both":  # side by side (Falcon-H1)
        return mixer("attention", config, convention, hidden, place) + _mamba2(
            config, convention, hidden
        )
    if kind == "mamba" and convention.mixer != "mamba" and config.has(*_SSM_HEADS):
        return _mamba2(config, convention, hidden)
    if kind in ("mamba", "mamba2"):
        layer = _mamba2 if kind == "mamba2" else _mamba
        return layer(config, convention, hidden)
    if kind == "linear":
        return _linear_attention(config, hidden)
    if kind == "convolution":
        bias = config.flag("conv_bias")
        kernel = config.whole(("conv_L_cache",), 3)
        return (
            linear(hidden, 3 * hidden, bias)
            + vector(hidden * kernel)
            + linear(hidden, hidden, bias)
        )
    return Count()


def _attention(
    kind: str, config: Config, convention: Convention, hidden: int, place: Place
) -> Count:
    heads = heads_of(config, hidden, kind == "sliding")
    if config.has("kv_lora_rank"):
        return _low_rank_attention(config, hidden, heads, place)
    bias, out = stated(convention.qkv_bias, config), stated(convention.out_bias, config)
    keys, values = heads.shared * heads.size, heads.shared * heads.value
    own = not place.late
    queries = heads.queries * (
        2 if convention.output_gate or config.flag("attn_output_gate") else 1
    )
    found = linear(hidden, queries, bias) + linear(heads.number * heads.value, hidden, out)
    if own:
        found += linear(hidden, keys, bias)
    if own and not (kind == "attention" and config.flag("attention_k_eq_v")):
        found += linear(hidden, values, bias)
    if convention.qk_norm and config.flag("use_qk_norm", True):
        by_head = convention.qk_norm == "head"
        found += norm(heads.size if by_head else heads.queries)
        found += norm(heads.size if by_head else keys) if own else Count()
    if convention.sinks and convention.sinks in ("attention", kind):
        found += vector(heads.number)
    return found


def _low_rank_attention(config: Config, hidden: int, heads: Heads, place: Place) -> Count:
    """DeepSeek's multi-head latent attention, and the indexer of its sparse kind."""
    plain_size, rotary = (config.whole((f"qk_{kind}_head_dim",), 0) for kind in ("nope", "rope"))
    rank, query_rank = config.whole(("kv_lora_rank",)), config.whole(("q_lora_rank",), 0)
    found = linear(hidden, heads.queries)
    if query_rank:
        found = linear(hidden, query_rank) + norm(query_rank) + linear(query_rank, heads.queries)
    found += linear(hidden, rank + rotary) + norm(rank)
    found += linear(rank, heads.number * (plain_size + heads.value))
    found += linear(heads.number * heads.value, hidden)
    if place.indexed and config.has("index_n_heads"):
        number, size = config.whole(("index_n_heads",)), config.whole(("index_head_dim",))
        found += linear(query_rank, number * size) + linear(hidden, size)
        found += norm(size, bias=True) + linear(hidden, number)
    return found


def _mamba(config: Config, convention: Convention, hidden: int) -> Count:
    expanded = config.whole(_EXPAND, 2) * hidden
    inner = (
        expanded
        if convention.inner_norms
        else config.whole(("intermediate_size", "d_inner"), expanded)
    )
    state, kernel = config.whole(_STATE, 16), config.whole(_KERNEL, 4)
    rank = -(-hidden // 16)  # the value of "auto"
    if not config.word("time_step_rank") and not config.word("mamba_dt_rank"):
        rank = config.whole(("time_step_rank", "mamba_dt_rank"), rank)
    bias = config.flag("use_bias") or config.flag("mamba_proj_bias")
    found = linear(hidden, 2 * inner, bias) + vector(inner * kernel) + vector(inner)
    found += linear(inner, rank + 2 * state) + linear(rank, inner, bias=True)
    found += vector(inner * state) + vector(inner)
    if convention.inner_norms:
        found += norm(rank) + norm(state).times(2)
    return found + linear(inner, hidden, bias)


def _mamba2(config: Config, convention: Convention, hidden: int) -> Count:
    expanded = config.whole(_EXPAND, 2) * hidden
    size = 0 if config.word("mamba_d_head") else config.whole(_SSM_HEAD, 64)  # "auto"
    heads = config.whole(_SSM_HEADS, expanded // (size or 64))
    inner = config.whole(("mamba_d_ssm",), heads * size or expanded)
    states = 2 * config.whole(_GROUPS, 1) * config.whole(_STATE, 128)
    bias = config.flag("use_bias") or config.flag("mamba_proj_bias")
    mixed = inner + states
    found = linear(hidden, inner + mixed + heads, bias)
    found += vector(mixed * config.whole(_KERNEL, 4)) + vector(mixed)
    found += vector(heads).times(3) + linear(inner, hidden, bias)
    if convention.gated_norm or config.flag("mamba_rms_norm"):
        found += norm(inner)
    return found


def _linear_attention(config: Config, hidden: int) -> Count:
    part = config.inside("linear_attn_config")
    if part is not None:
        heads, size = part.whole(("num_heads",)), part.whole(("head_dim",))
        width, kernel = heads * size, part.whole(("short_conv_kernel_size",), 4)
        gates = (linear(hidden, size) + linear(size, width)).times(2)
        found = linear(hidden, width).times(3) + vector(3 * width * kernel) + gates
        found += vector(width) + vector(heads) + linear(hidden, heads) + norm(size)
        return found + linear(width, hidden)
    sizes = [config.whole((f"linear_{kind}_head_dim",)) for kind in ("key", "value")]
    numbers = [config.whole((f"linear_num_{kind}_heads",)) for kind in ("key", "value")]
    keys, values = (number * size for number, size in zip(numbers, sizes, strict=True))
    kernel = config.whole(("linear_conv_kernel_dim",), 4)
    found = linear(hidden, 2 * keys + 2 * values) + linear(hidden, 2 * numbers[1])
    found += vector((2 * keys + values) * kernel) + vector(numbers[1]).times(2)
    return found + norm(sizes[1]) + linear(values, hidden)
