"""Mamba: layers that scan a sequence instead of attending to it (Gu and Dao, arXiv 2312.00752).

Per layer of width h and inner width i = 2·h, with state n and rank r of the step sizes: h·2i in, a
convolution of 4 over each channel, i·(r + 2n), r·i, the states' decay i·n, i·h out. The scan's own
9·i·n FLOP a token, forward, are under 1 % of them and left out.
"""

from recommender.networks import config as names
from recommender.networks.config import Config
from recommender.networks.count import Count, embedding, linear, norm, vector
from recommender.networks.network import Network


def mamba(config: Config) -> Network:
    """Count a Mamba of the first kind, whose output head is its embedding."""
    hidden, layers = config.whole(names.HIDDEN), config.whole(names.LAYERS)
    vocabulary = config.whole(("vocab_size",))
    count = _layer(config, hidden).times(layers) + norm(hidden)
    rows = embedding(vocabulary, hidden)
    count += Count(rows.parameters, rows.active, 0, rows.tensors)  # the output's matrix as well
    return Network(
        family="decoder",
        count=count,
        hidden=hidden,
        layers=layers,
        vocabulary=vocabulary,
        attention_width=1,  # none; 0 would stand for one that nobody said
        note="planned as a decoder without attention: scans run slower than matrices",
    )


def _layer(config: Config, hidden: int) -> Count:
    inner = config.whole(("intermediate_size", "d_inner"), config.whole(("expand",), 2) * hidden)
    state, kernel = config.whole(("state_size",), 16), config.whole(("conv_kernel",), 4)
    rank = -(-hidden // 16)  # what "auto" stands for
    if not config.word("time_step_rank"):
        rank = config.whole(("time_step_rank",), rank)
    bias = config.flag("use_bias")
    found = linear(hidden, 2 * inner, bias) + vector(inner * kernel) + vector(inner)
    found += linear(inner, rank + 2 * state) + linear(rank, inner, bias=True)
    found += vector(inner * state) + vector(inner)
    return found + linear(inner, hidden, bias) + norm(hidden)
