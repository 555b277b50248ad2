"""Vision and diffusion transformers, which process an image as patches.

FLOP of an image with s positions: 6·(s·parameters of the layers) + 12·L·h·s² + patches and head.
"""

from recommender.errors import UsageError
from recommender.networks import config as names
from recommender.networks.config import Config
from recommender.networks.count import Count, convolution, embedding, linear, norm, plain, vector
from recommender.networks.network import Network, flop

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
    layer = linear(hidden, hidden, bias=True).times(4) + norm(hidden, bias=True).times(2)
    layer += linear(hidden, inner, bias=True) + linear(inner, hidden, bias=True)
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
        block = linear(width, width, bias=True).times(4) + norm(width, bias=True).times(2)
        block += linear(width, 4 * width, bias=True) + linear(4 * width, width, bias=True)
        count += (block + vector((2 * window - 1) ** 2 * each)).times(depth)
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


def dit(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a diffusion transformer as published (Peebles and Xie, arXiv 2212.09748).

    Its image is the latent one: 32 for images of 256, 64 for 512.
    """
    heads = config.whole(("num_attention_heads",))
    hidden, layers = heads * config.whole(("attention_head_dim",)), config.whole(names.LAYERS)
    edge, channels = patch or config.whole(("patch_size",), 2), config.whole(("in_channels",), 4)
    side = image // 8 if image else config.whole(("sample_size",))
    seen = patches(side, edge, config.where)
    modulation = linear(hidden, 6 * hidden, bias=True)
    layer = linear(hidden, hidden, bias=True).times(4) + modulation
    layer += linear(hidden, 4 * hidden, bias=True) + linear(4 * hidden, hidden, bias=True)
    outputs = config.whole(("out_channels",), 2 * channels)
    eye = convolution(channels, hidden, edge, bias=True)
    last = plain(hidden, edge * edge * outputs, bias=True) + plain(hidden, 2 * hidden, bias=True)
    labels = embedding(config.whole(("num_embeds_ada_norm",), 1000) + 1, hidden)
    step = plain(_STEP_FEATURES, hidden, bias=True) + plain(hidden, hidden, bias=True)
    count = layer.times(layers) + eye + vector(seen * hidden) + labels + step + last
    work = seen * (_matrix(layers, hidden, 4 * hidden) + eye.parameters)
    work += seen * hidden * edge * edge * outputs + layers * 6 * hidden**2 + step.parameters
    return Network(
        family="diffusion",
        count=count,
        hidden=hidden,
        layers=layers,
        attention_width=hidden,
        flop_per_sample=flop(work + 2 * layers * hidden * seen**2),
        sample_unit="image",
        note="images come as latents; the encoder that makes them is not trained",
    )
