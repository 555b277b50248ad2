"""Mamba: layers that scan a sequence instead of attending to it.

The first kind (Gu and Dao, arXiv 2312.00752), per layer of width h and inner width i = 2·h, with
state n and rank r of the step sizes: h·2i in, a convolution of 4 over each channel, i·(r + 2n),
r·i, the states' decay i·n, i·h out. The scan's own 9·i·n FLOP a token, forward, are under 1 % of
them and left out.

The second (Dao and Gu, arXiv 2405.21060), with g groups of states and k heads: h·(2i + 2gn + k) in,
the convolution over i + 2gn channels, three numbers a head, a norm of width i, i·h out. Its scan is
made of matrix products inside of chunks of c = 256 tokens: c·(g·n + i) + 4·i·n FLOP a token,
forward, 3 % of a layer of 7 B parameters in all, 5 % of 2.7 B, 16 % of 130 M; left out as well.
"""

from recommender.networks import config as names
from recommender.networks.config import Config
from recommender.networks.count import Count, embedding, linear, norm, plain, vector
from recommender.networks.network import Network


def mamba(config: Config) -> Network:
    """Count a Mamba of the first kind, whose output head is tied to its embedding."""
    return _network(config, _layer(config, config.whole(names.HIDDEN)), tied=True)


def mamba2(config: Config) -> Network:
    """Count a Mamba of the second kind."""
    layer = _second_layer(config, config.whole(names.HIDDEN))
    return _network(config, layer, config.flag("tie_word_embeddings"))


def _network(config: Config, layer: Count, tied: bool) -> Network:
    hidden, layers = config.whole(names.HIDDEN), config.whole(names.LAYERS)
    vocabulary = config.whole(("vocab_size",))
    rows = embedding(vocabulary, hidden)
    # A matrix that is tied is the output's as well, and multiplied.
    ends = Count(rows.parameters, rows.active, 0, rows.tensors)
    if not tied:
        ends = rows + plain(hidden, vocabulary)
    count = layer.times(layers) + norm(hidden) + ends
    return Network(
        family="decoder",
        count=count,
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary,
        attention_width=1,  # none; 0 would mean one that is not stated
        note="planned as a decoder without attention: scans run slower than matrices",
    )


def _layer(config: Config, hidden: int) -> Count:
    inner = config.whole(("intermediate_size", "d_inner"), config.whole(("expand",), 2) * hidden)
    state, kernel = config.whole(("state_size",), 16), config.whole(("conv_kernel",), 4)
    rank = -(-hidden // 16)  # the value of "auto"
    if not config.word("time_step_rank"):
        rank = config.whole(("time_step_rank",), rank)
    bias = config.flag("use_bias")
    found = linear(hidden, 2 * inner, bias) + vector(inner * kernel) + vector(inner)
    found += linear(inner, rank + 2 * state) + linear(rank, inner, bias=True)
    found += vector(inner * state) + vector(inner)
    return found + linear(inner, hidden, bias) + norm(hidden)


def _second_layer(config: Config, hidden: int) -> Count:
    inner = config.whole(("expand",), 2) * hidden
    heads = config.whole(("num_heads",), inner // config.whole(("head_dim",), 64))
    states = 2 * config.whole(("n_groups",), 1) * config.whole(("state_size",), 128)
    bias = config.flag("use_bias")
    mixed = inner + states
    found = linear(hidden, inner + mixed + heads, bias)
    found += vector(mixed * config.whole(("conv_kernel",), 4)) + vector(mixed)
    found += vector(heads).times(3) + norm(inner)
    return found + linear(inner, hidden, bias) + norm(hidden)
