"""The denoising UNet of Stable Diffusion, by the fields of diffusers' `UNet2DConditionModel`.

Residual blocks of two 3 × 3 convolutions, transformer blocks (self-attention, cross-attention to
the text, gated feed-forward) at the resolutions that have them, skips from down to up.
"""

from dataclasses import field

from recommender.catalogs.frozen import dataclass
from recommender.networks.config import Config
from recommender.networks.count import Count, convolution, linear, norm, plain
from recommender.networks.network import Network, flop

_WORDS = 77  # tokens of the text encoder (CLIP)


@dataclass(slots=True)
class _Tally:
    """Parameters and multiply-adds so far."""

    count: Count = field(default_factory=Count)
    work: float = 0.0

    def add(self, part: Count, times_applied: float, bias: int = 0) -> None:
        """Add a part whose weights, without the bias, are applied so often."""
        self.count += part
        self.work += (part.parameters - bias) * times_applied


@dataclass(frozen=True, slots=True)
class _Shape:
    """What all blocks of a UNet share."""

    steps: int  # width of the time embedding
    text: int  # width of the text's embedding
    linear: bool  # projection around the transformer blocks: linear, or 1 × 1 convolutions


def unet(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a UNet conditioned on text; `image` is the picture's side, eight times the latent's."""
    widths = config.wholes("block_out_channels")
    depths = _per_level(config, "layers_per_block", 2, len(widths))
    blocks = _per_level(config, "transformer_layers_per_block", 1, len(widths))
    down = config.words("down_block_types")
    seeing = tuple(kind.startswith("CrossAttn") for kind in down)
    side = image // 8 if image else config.whole(("sample_size",), 64)
    shape = _Shape(
        4 * widths[0], config.whole(("cross_attention_dim",)), config.flag("use_linear_projection")
    )
    tally = _Tally()
    _ends(tally, config, widths[0], shape.steps, side)
    skips, side = _down(tally, shape, widths, depths, blocks, seeing, side)
    _middle(tally, shape, widths[-1], blocks[-1], side)
    _up(tally, shape, widths, depths, blocks, seeing, side, skips)
    return Network(
        family="diffusion",
        count=tally.count,
        flop_per_sample=flop(tally.work),
        sample_unit="image",
        note="pictures come as latents; text encoder and autoencoder are not trained",
    )


def _per_level(config: Config, name: str, default: int, levels: int) -> tuple[int, ...]:
    stated = config.depths(name, (default,))
    return stated if len(stated) == levels else stated[:1] * levels


def _ends(tally: _Tally, config: Config, width: int, steps: int, side: int) -> None:
    channels = config.whole(("in_channels",), 4)
    outputs = config.whole(("out_channels",), 4)
    tally.add(convolution(channels, width, 3, bias=True), side**2, width)
    tally.add(norm(width, bias=True), 0)
    tally.add(convolution(width, outputs, 3, bias=True), side**2, outputs)
    tally.add(plain(width, steps, bias=True) + plain(steps, steps, bias=True), 1)
    added = config.whole(("projection_class_embeddings_input_dim",), 0)
    if added:  # SD-XL: sizes, crops and the pooled text
        tally.add(plain(added, steps, bias=True) + plain(steps, steps, bias=True), 1)


def _down(
    tally: _Tally,
    shape: _Shape,
    widths: tuple[int, ...],
    depths: tuple[int, ...],
    blocks: tuple[int, ...],
    seeing: tuple[bool, ...],
    side: int,
) -> tuple[list[int], int]:
    """Go down; gives the widths of the skips and the side at the bottom."""
    skips, width = [widths[0]], widths[0]
    for level, outputs in enumerate(widths):
        for _ in range(depths[level]):
            _residual(tally, shape, width, outputs, side)
            width = outputs
            if seeing[level]:
                _attention(tally, shape, width, blocks[level], side)
            skips.append(width)
        if level < len(widths) - 1:
            side //= 2
            tally.add(convolution(width, width, 3, bias=True), side**2, width)
            skips.append(width)
    return skips, side


def _middle(tally: _Tally, shape: _Shape, width: int, blocks: int, side: int) -> None:
    _residual(tally, shape, width, width, side)
    _attention(tally, shape, width, blocks, side)
    _residual(tally, shape, width, width, side)


def _up(
    tally: _Tally,
    shape: _Shape,
    widths: tuple[int, ...],
    depths: tuple[int, ...],
    blocks: tuple[int, ...],
    seeing: tuple[bool, ...],
    side: int,
    skips: list[int],
) -> None:
    width = widths[-1]
    for level in reversed(range(len(widths))):
        for _ in range(depths[level] + 1):
            _residual(tally, shape, width + skips.pop(), widths[level], side)
            width = widths[level]
            if seeing[level]:
                _attention(tally, shape, width, blocks[level], side)
        if level:
            side *= 2
            tally.add(convolution(width, width, 3, bias=True), side**2, width)


def _residual(tally: _Tally, shape: _Shape, inputs: int, outputs: int, side: int) -> None:
    tally.add(norm(inputs, bias=True) + norm(outputs, bias=True), 0)
    tally.add(convolution(inputs, outputs, 3, bias=True), side**2, outputs)
    tally.add(convolution(outputs, outputs, 3, bias=True), side**2, outputs)
    tally.add(plain(shape.steps, outputs, bias=True), 1)
    if inputs != outputs:
        tally.add(convolution(inputs, outputs, 1, bias=True), side**2, outputs)


def _attention(tally: _Tally, shape: _Shape, width: int, blocks: int, side: int) -> None:
    seen = side**2
    project = linear if shape.linear else plain
    tally.add(norm(width, bias=True), 0)
    tally.add(project(width, width, bias=True).times(2), seen, 2 * width)
    for _ in range(blocks):
        tally.add(norm(width, bias=True).times(3), 0)
        tally.add(linear(width, width).times(3), seen)
        tally.add(linear(width, width, bias=True), seen, width)
        tally.add(linear(width, width), seen)
        tally.add(linear(shape.text, width).times(2), _WORDS)
        tally.add(linear(width, width, bias=True), seen, width)
        tally.add(linear(width, 8 * width, bias=True), seen, 8 * width)  # GEGLU
        tally.add(linear(4 * width, width, bias=True), seen, width)
        tally.work += 2.0 * width * seen * (seen + _WORDS)
