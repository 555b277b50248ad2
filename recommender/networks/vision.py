"""Vision and diffusion transformers, which process an image as patches.

FLOP of an image with s positions: 6·(s·parameters of the layers) + 12·L·h·s² + patches and head.
"""

from dataclasses import replace

from recommender.errors import UsageError
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
    vector,
)

_STEP_FEATURES = 256  # of the sinusoid that a DiT embeds its time step from (2212.09748, code)


def patches(image: int, patch: int, where: str) -> int:
    """Count the patches of a square image.

    Raises:
        UsageError: no whole patch fits.
    """
    if patch < 1 or image < patch:
        raise UsageError(f"{where}: image_size {image} holds no patch of {patch} × {patch}")
    return (image // patch) ** 2


def image_sizes(config: Config, image: int | None, patch: int | None) -> tuple[int, int]:
    """The side of an image and of a patch; the job's values override the config's."""
    side = image or config.whole(("image_size",), 224)
    return side, patch or config.whole(("patch_size",))


def vit(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count ViT, DeiT or DINOv2, with a class head if the config has labels."""
    hidden, layers = config.whole(names.HIDDEN), config.whole(names.LAYERS)
    side, edge = image_sizes(config, image, patch)
    seen = patches(side, edge, config.where)
    inner = config.whole(names.INNER, config.whole(("mlp_ratio",), 4) * hidden)
    extra = 2 if config.word("model_type") == "deit" else 1  # class token, distillation token
    layer = block(hidden, inner)
    if config.has("layerscale_value"):  # DINOv2
        layer += vector(hidden).times(2)
    matrices = layer.times(layers)
    eye = convolution(config.whole(("num_channels",), 3), hidden, edge, bias=True)
    head = plain(hidden, classes(config), bias=True) if classes(config) else Count()
    count = matrices + eye + vector(hidden).times(extra) + vector((seen + extra) * hidden)
    count += norm(hidden, bias=True) + head
    if config.flag("use_mask_token", config.word("model_type") == "dinov2"):
        count += vector(hidden)
    positions = seen + extra
    work = positions * _matrix(layers, hidden, inner) + seen * eye.parameters + head.parameters
    return Network(
        family="vit",
        count=count,
        hidden=hidden,
        layers=layers,
        attention_width=hidden,
        flop_per_sample=flop(work + 2 * layers * hidden * positions**2),
        sample_unit="image",
    )


def swin(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a Swin transformer (Liu et al., arXiv 2103.14030), whose attention stays in windows.

    Multiply-adds of a block at s positions of width c with windows of w × w: 12·s·c² + 2·s·w²·c.
    """
    side, edge = image_sizes(config, image, patch)
    width, window = config.whole(("embed_dim",)), config.whole(("window_size",), 7)
    depths, heads = config.depths("depths"), config.wholes("num_heads")
    seen, last = patches(side, edge, config.where), len(depths) - 1
    eye = convolution(config.whole(("num_channels",), 3), width, edge, bias=True)
    count, work = eye + norm(width, bias=True), float(seen * eye.parameters)
    for number, (depth, each) in enumerate(zip(depths, heads, strict=True)):
        layer = block(width, 4 * width) + vector((2 * window - 1) ** 2 * each)
        count += layer.times(depth)
        work += depth * seen * (12 * width**2 + 2 * window**2 * width)
        if number < last:  # four positions become one of twice the width
            count += linear(4 * width, 2 * width) + norm(4 * width, bias=True)
            work += 2 * seen * width**2
            seen, width = seen // 4, 2 * width
    head = plain(width, classes(config) or 1000, bias=True)
    return Network(
        family="vit",
        count=count + norm(width, bias=True) + head,
        hidden=width,
        layers=sum(depths),
        attention_width=width,
        flop_per_sample=flop(work + head.parameters),
        sample_unit="image",
    )


def _matrix(layers: int, hidden: int, inner: int) -> int:
    """Multiply-adds of a position in all layers, attention's products apart."""
    return layers * (4 * hidden**2 + 2 * hidden * inner)


def classes(config: Config) -> int:
    """The number of labels of a classifier; 0 without labels."""
    labels = config.inside("id2label")
    return len(labels.fields) if labels else config.whole(("num_labels", "num_classes"), 0)


# Of diffusers' classes: how image and text meet in a block ("joint": each has weights of its own;
# "cross": keys and values of the text; "": none), whether each block has its own modulation, and
# the tokens of text that its pipeline pads to (`max_sequence_length`, diffusers 0.42.1, 2026-11).
_BLOCKS = {
    "DiTTransformer2DModel": ("", True, 0), "FluxTransformer2DModel": ("joint", True, 512),
    "SD3Transformer2DModel": ("joint", True, 333),
    "QwenImageTransformer2DModel": ("joint", True, 512),
    "PixArtTransformer2DModel": ("cross", False, 300),
    "WanTransformer3DModel": ("cross", False, 512),
    "LTXVideoTransformer3DModel": ("cross", False, 256),
}  # fmt: skip


# Bytes that a layer keeps of each position over its width, and of its input alone, with fused
# attention (Korthikanti et al., arXiv 2205.05198, section 4.1)
_KEPT, _INPUT = 34.0, 2.0
# Their clips: latent frames of squares, 81 frames of 640 × 640 (arXiv 2503.20314) if not stated.
_VIDEO = ("WanTransformer3DModel", "LTXVideoTransformer3DModel")


def dit(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a diffusion transformer (Peebles and Xie, arXiv 2212.09748) and those after it.

    Its image is the latent one: 32 for images of 256, 64 for 512. FLUX packs four positions of the
    latent image into one, and has blocks of one stream after those of two (diffusers' classes).
    """
    name = config.word("_class_name") or "DiTTransformer2DModel"
    meets, modulated, words = _BLOCKS[name]
    heads = config.whole(("num_attention_heads",))
    hidden, layers = heads * config.whole(("attention_head_dim",)), config.whole(names.LAYERS)
    edge, channels = patch or config.whole(("patch_size",), 2), config.whole(("in_channels",), 4)
    packed = 2 if name == "FluxTransformer2DModel" else 1
    side = (image // 8 if image else config.whole(("sample_size",), 128)) // packed
    frames = config.whole(("sample_frames",), 21) if name in _VIDEO else 1
    seen = frames * patches(side, edge, config.where)
    inner = config.whole(("ffn_dim",), 4 * hidden)
    layer = block(hidden, inner, norms=0, times=2 if meets == "cross" else 1)
    layer += linear(hidden, 6 * hidden, bias=True) if modulated else vector(6 * hidden)
    layer = layer.times(2) if meets == "joint" else layer
    singles = config.whole(("num_single_layers",), 0)
    single = linear(hidden, 3 * hidden + inner, bias=True) + linear(
        hidden + inner, hidden, bias=True
    )
    single += linear(hidden, 3 * hidden, bias=True)
    count = layer.times(layers) + single.times(singles)
    if not modulated:  # one for all blocks
        count += plain(hidden, 6 * hidden, bias=True)
    if name.startswith("SD3"):  # the last block's text goes nowhere
        unused = 13 * hidden**2
        count += Count(-unused, -unused)
    ends, outer = _diffusion_ends(config, name, hidden, edge, channels, seen)
    once = 6 * hidden**2 * (layers if modulated else 1) + 3 * hidden**2 * singles
    work = (seen + words * (meets == "joint")) * layers * (4 * hidden**2 + 2 * hidden * inner)
    work += layers * (meets == "cross") * 2 * hidden**2 * (seen + words)
    work += (seen + words) * singles * (4 * hidden**2 + 2 * hidden * inner) + seen * outer + once
    pairs = (seen + words * (meets == "joint")) ** 2 + (meets == "cross") * seen * words
    held = (layers + singles) * (seen + words * (meets == "joint"))
    return Network(
        family="diffusion",
        count=count + ends,
        hidden=hidden,
        layers=layers + singles,
        attention_width=hidden,
        flop_per_sample=flop(work + 2 * (layers + singles) * hidden * pairs),
        activation_bytes=_KEPT * hidden * held,
        recomputed_bytes=_INPUT * hidden * held + _KEPT * hidden * held / (layers + singles),
        sample_unit="clip" if name in _VIDEO else "image",
        note=f"{'clips' if name in _VIDEO else 'images'} and words come encoded; what encodes them "
        f"is not trained{f'; clips of {seen:,} positions' if name in _VIDEO else ''}",
    )


def _diffusion_ends(
    config: Config, name: str, hidden: int, edge: int, channels: int, seen: int
) -> tuple[Count, int]:
    """What embeds image, text, time and labels, and what puts out; its multiply-adds a position."""
    outputs = config.whole(("out_channels",), 2 * channels if name.startswith("DiT") else channels)
    eye = convolution(channels, hidden, edge, bias=True)
    last = plain(hidden, edge * edge * outputs, bias=True) + plain(hidden, 2 * hidden, bias=True)
    step = plain(_STEP_FEATURES, hidden, bias=True) + plain(hidden, hidden, bias=True)
    if name.startswith("DiT"):
        labels = embedding(config.whole(("num_embeds_ada_norm",), 1000) + 1, hidden)
        ends = eye + vector(seen * hidden) + labels + step + last
    else:
        text = config.whole(("joint_attention_dim", "caption_channels", "text_dim"), hidden)
        pooled = config.whole(("pooled_projection_dim",), 0)
        ends = eye + step + last + plain(text, hidden, bias=True)
        if pooled:
            ends += plain(pooled, hidden, bias=True) + plain(hidden, hidden, bias=True)
        if config.flag("guidance_embeds"):
            ends += step
    return ends, eye.parameters + hidden * edge * edge * outputs


def two_towers(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count CLIP or SigLIP: an eye, a transformer for its captions, and what projects both."""
    seeing, reading = config.inside("vision_config"), config.inside("text_config")
    if seeing is None or reading is None:
        raise UsageError(f"{config.where}: vision_config or text_config is missing")
    fields = {"image_size": 224, "num_channels": 3, **seeing.fields, "model_type": "vit"}
    eye = vit(Config(fields, seeing.where), image, patch)
    hidden, layers = reading.whole(names.HIDDEN), reading.whole(names.LAYERS)
    inner, words = reading.whole(names.INNER, 4 * hidden), reading.whole(names.POSITIONS, 77)
    layer = block(hidden, inner)
    rows = embedding(reading.whole(("vocab_size",)), hidden) + vector(words * hidden)
    text = layer.times(layers) + rows + norm(hidden, bias=True)
    if config.word("model_type") == "siglip":  # the eye's outputs are gathered by a layer more
        text += plain(hidden, eye.hidden) + block(eye.hidden, seeing.whole(names.INNER), norms=1)
    else:
        shared = config.whole(("projection_dim",), 512)
        text += plain(hidden, shared) + plain(eye.hidden, shared)
    work = words * _matrix(layers, hidden, inner) + 2 * layers * hidden * words**2
    return replace(
        eye,
        count=eye.count + text,
        flop_per_sample=eye.flop_per_sample + flop(work),
        note="a sample is a picture with its caption",
    )
