"""Encoder-decoder transformers: T5, BART, Whisper."""

from recommender.networks import config as names
from recommender.networks.config import Config
from recommender.networks.network import (
    Count,
    Network,
    block,
    convolution,
    embedding,
    flop,
    linear,
    norm,
    plain,
)

_T5_BUCKETS = 32  # relative_attention_num_buckets where the file does not say
_BART_OFFSET = 2  # rows of position embeddings in front of the first
_CLIP_POSITIONS = 1500  # of 30 s, after the second convolution (Radford et al. 2022, 2212.04356)
_CLIP_WORDS = 128  # tokens of text a clip; assumed


def t5(config: Config) -> Network:
    """Count T5, its version 1.1, mT5 or Flan-T5."""
    hidden, inner = config.whole(names.HIDDEN), config.whole(names.INNER)
    heads = config.whole(names.HEADS)
    width = heads * config.whole(("d_kv",))
    encoders = config.whole(("num_layers",))
    decoders = config.whole(("num_decoder_layers",), encoders)
    gated = config.word("feed_forward_proj", "relu").startswith("gated")
    attention = linear(hidden, width).times(3) + linear(width, hidden) + norm(hidden)
    forward = linear(hidden, inner).times(2 if gated else 1) + linear(inner, hidden) + norm(hidden)
    vocabulary = config.whole(("vocab_size",))
    buckets = config.whole(("relative_attention_num_buckets",), _T5_BUCKETS)
    count = (attention + forward).times(encoders) + (attention.times(2) + forward).times(decoders)
    count += embedding(buckets, heads).times(2) + norm(hidden).times(2)
    count += _words(vocabulary, hidden, config.flag("tie_word_embeddings", True))
    return _pair(config, count, hidden, encoders + decoders, width)


def bart(config: Config) -> Network:
    """Count BART, mBART or another network of the same shape."""
    hidden = config.whole(names.HIDDEN)
    count = _biased_layers(config, hidden)
    positions = config.whole(names.POSITIONS) + _BART_OFFSET
    count += embedding(positions, hidden).times(2) + norm(hidden, bias=True).times(2)
    count += _words(config.whole(("vocab_size",)), hidden, tied=True)
    return _pair(config, count, hidden, _both(config), hidden)


def whisper(config: Config) -> Network:
    """Count Whisper; a sample is a clip of 30 s with its text."""
    hidden, mel = config.whole(names.HIDDEN), config.whole(("num_mel_bins",), 80)
    layers = _biased_layers(config, hidden)
    without = Count(-hidden, -hidden, 0, -1)  # keys have no bias
    encoders, decoders = config.whole(("encoder_layers",)), config.whole(("decoder_layers",))
    layers += without.times(encoders + 2 * decoders)
    heard = config.whole(("max_source_positions",), _CLIP_POSITIONS)
    written = config.whole(("max_target_positions",), 448)
    ears = _one_dimensional(mel, hidden) + _one_dimensional(hidden, hidden)
    vocabulary = config.whole(("vocab_size",))
    count = layers + ears + embedding(heard, hidden) + embedding(written, hidden)
    count += norm(hidden, bias=True).times(2) + _words(vocabulary, hidden, tied=True)
    forward = _whisper_multiply_adds(config, hidden, heard, mel)
    return Network(
        family="encdec",
        count=count,
        hidden=hidden,
        layers=encoders + decoders,
        vocabulary=vocabulary,
        attention_width=hidden,
        flop_per_sample=flop(forward),
        sample_unit="clip",
        note=f"a clip of 30 s is assumed to have {_CLIP_WORDS} tokens of text",
    )


def _whisper_multiply_adds(config: Config, hidden: int, heard: int, mel: int) -> float:
    inner, words = config.whole(("encoder_ffn_dim",)), _CLIP_WORDS
    layer = 4 * hidden**2 + 2 * hidden * inner
    encoder = heard * (layer + 2 * heard * hidden) * config.whole(("encoder_layers",))
    ears = 3 * hidden * (2 * heard * mel + heard * hidden)
    own = words * (layer + words * hidden)  # causal: half of the pairs
    across = words * 2 * hidden**2 + heard * 2 * hidden**2 + 2 * words * heard * hidden
    decoder = (own + across) * config.whole(("decoder_layers",))
    return encoder + ears + decoder + words * hidden * config.whole(("vocab_size",))


def _one_dimensional(inputs: int, outputs: int) -> Count:
    kernel = convolution(inputs, outputs, 1).times(3)
    return Count(kernel.parameters + outputs, kernel.active + outputs, 0, 2)


def _biased_layers(config: Config, hidden: int) -> Count:
    """Encoder and decoder layers whose matrices all have a bias, norms included."""
    found = Count()
    for side, times in (("encoder", 1), ("decoder", 2)):
        layer = block(hidden, config.whole((f"{side}_ffn_dim",)), norms=1 + times, times=times)
        found += layer.times(config.whole((f"{side}_layers",)))
    return found


def _both(config: Config) -> int:
    return config.whole(("encoder_layers",)) + config.whole(("decoder_layers",))


def _words(vocabulary: int, hidden: int, tied: bool) -> Count:
    """The embedding that encoder and decoder share, and the output head."""
    rows = embedding(vocabulary, hidden)
    if tied:
        return Count(rows.parameters, rows.active, 0, 1)
    return rows + plain(hidden, vocabulary)


def _pair(config: Config, count: Count, hidden: int, layers: int, width: int) -> Network:
    return Network(
        family="encdec",
        count=count,
        hidden=hidden,
        layers=layers,
        vocabulary=config.whole(("vocab_size",)),
        attention_width=width,
        heads=config.whole((*names.HEADS, "encoder_attention_heads"), 0),
    )
