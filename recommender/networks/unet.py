"""The denoising UNet of Stable Diffusion, by the fields of diffusers' `UNet2DConditionModel`.

Residual blocks of two 3 × 3 convolutions, transformer blocks (self-attention, cross-attention to
the text, gated feed-forward) at the resolutions that have them, skips from down to up.
"""

from dataclasses import field

from recommender.catalogs.frozen import dataclass
from recommender.networks.config import Config
from recommender.networks.network import Count, Network, convolution, flop, linear, norm, plain

_WORDS = 77  # tokens of the text encoder (CLIP)


@dataclass(slots=True)
class _Tally:
    """Parameters and multiply-adds so far, and what all blocks share."""

    steps: int  # width of the time embedding
    text: int  # width of the text's embedding
    linear: bool  # projection around the transformer blocks: linear, or 1 × 1 convolutions
    count: Count = field(default_factory=Count)
    work: float = 0.0

    def add(self, part: Count, times_applied: float, bias: int = 0) -> None:
        """Add a part whose weights, without the bias, are applied so often."""
        self.count += part
        self.work += (part.parameters - bias) * times_applied

    def convolve(self, inputs: int, outputs: int, kernel: int, side: int) -> None:
        """Add a convolution of a picture."""
        self.add(convolution(inputs, outputs, kernel, bias=True), side**2, outputs)

    def block(self, inputs: int, outputs: int, transformers: int, side: int) -> None:
        """Add a residual block and the transformer blocks after it."""
        self.add(norm(inputs, bias=True) + norm(outputs, bias=True), 0)
        self.convolve(inputs, outputs, 3, side)
        self.convolve(outputs, outputs, 3, side)
        self.add(plain(self.steps, outputs, bias=True), 1)
        if inputs != outputs:
            self.convolve(inputs, outputs, 1, side)
        if transformers:
            project = linear if self.linear else plain
            self.add(norm(outputs, bias=True), 0)
            self.add(project(outputs, outputs, bias=True).times(2), side**2, 2 * outputs)
        for _ in range(transformers):
            self._transformer(outputs, side**2)

    def _transformer(self, width: int, seen: int) -> None:
        self.add(norm(width, bias=True).times(3), 0)
        self.add(linear(width, width).times(4), seen)
        self.add(linear(self.text, width).times(2), _WORDS)
        self.add(linear(width, width, bias=True).times(2), seen, 2 * width)
        self.add(linear(width, 8 * width, bias=True), seen, 8 * width)  # GEGLU
        self.add(linear(4 * width, width, bias=True), seen, width)
        self.work += 2.0 * width * seen * (seen + _WORDS)


def unet(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a UNet conditioned on text; `image` is the picture's side, eight times the latent's."""
    widths = config.wholes("block_out_channels")
    depths = _per_level(config, "layers_per_block", 2, len(widths))
    seeing = (kind.startswith("CrossAttn") for kind in config.words("down_block_types"))
    blocks = _per_level(config, "transformer_layers_per_block", 1, len(widths))
    levels = list(zip(widths, depths, [n * s for n, s in zip(blocks, seeing, strict=True)],
                      strict=True))  # fmt: skip
    side = image // 8 if image else config.whole(("sample_size",), 64)
    tally = _Tally(
        4 * widths[0], config.whole(("cross_attention_dim",)), config.flag("use_linear_projection")
    )
    _ends(tally, config, widths[0], side)
    width, skips = widths[0], [widths[0]]
    for level, (outputs, depth, transformers) in enumerate(levels):
        if level:
            side //= 2
            tally.convolve(width, width, 3, side)
            skips.append(width)
        for _ in range(depth):
            tally.block(width, outputs, transformers, side)
            width = outputs
            skips.append(width)
    tally.block(width, width, blocks[-1], side)
    tally.block(width, width, 0, side)
    for level, (outputs, depth, transformers) in reversed(list(enumerate(levels))):
        for _ in range(depth + 1):
            tally.block(width + skips.pop(), outputs, transformers, side)
            width = outputs
        if level:
            side *= 2
            tally.convolve(width, width, 3, side)
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


def _ends(tally: _Tally, config: Config, width: int, side: int) -> None:
    tally.convolve(config.whole(("in_channels",), 4), width, 3, side)
    tally.add(norm(width, bias=True), 0)
    tally.convolve(width, config.whole(("out_channels",), 4), 3, side)
    steps = tally.steps
    tally.add(plain(width, steps, bias=True) + plain(steps, steps, bias=True), 1)
    added = config.whole(("projection_class_embeddings_input_dim",), 0)
    if added:  # SD-XL: sizes, crops and the pooled text
        tally.add(plain(added, steps, bias=True) + plain(steps, steps, bias=True), 1)
