"""Convolutional networks for images: ResNet (arXiv 1512.03385) and ConvNeXt (2201.03545)."""

from recommender.networks.config import Config
from recommender.networks.network import (
    Count,
    Network,
    convolution,
    flop,
    linear,
    norm,
    plain,
    vector,
)
from recommender.networks.vision import classes

_SIDE = 224  # of an image where the job does not say: ImageNet's usual crop


def resnet(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a ResNet with basic or bottleneck blocks."""
    widths, depths = config.wholes("hidden_sizes"), config.depths("depths")
    stem = config.whole(("embedding_size",), 64)
    deep = config.word("layer_type", "bottleneck") == "bottleneck"
    count = _normed(config.whole(("num_channels",), 3), stem, 7)
    side = -(-(image or _SIDE) // 2)
    work, kept = float((count.parameters - 2 * stem) * side**2), stem * side**2
    side, width = -(-side // 2), stem  # max pooling
    for number, (outputs, depth) in enumerate(zip(widths, depths, strict=True)):
        half = number > 0 or config.flag("downsample_in_first_stage")
        for block in range(depth):
            stride = 2 if half and block == 0 else 1
            part, spent, made = _residual(width, outputs, side, stride, deep)
            count, work, kept = count + part, work + spent, kept + made
            side, width = -(-side // stride), outputs
    head = plain(width, classes(config) or 1000, bias=True)
    return _images(count + head, work + head.parameters, kept)


def _residual(
    inputs: int, outputs: int, side: int, stride: int, deep: bool
) -> tuple[Count, float, int]:
    """One block, its multiply-adds and outputs; torchvision's stride is in the 3 × 3 one."""
    after = -(-side // stride)
    inner = outputs // 4 if deep else outputs
    layers = [(inputs, outputs, 3, after), (outputs, outputs, 3, after)]
    if deep:
        layers = [(inputs, inner, 1, side), (inner, inner, 3, after), (inner, outputs, 1, after)]
    if inputs != outputs or stride > 1:
        layers.append((inputs, outputs, 1, after))
    count, work, made = Count(), 0.0, 0
    for into, out, kernel, at in layers:
        count += _normed(into, out, kernel)
        work += into * out * kernel**2 * at**2
        made += out * at**2
    return count, work, made


def _normed(inputs: int, outputs: int, kernel: int) -> Count:
    return convolution(inputs, outputs, kernel) + norm(outputs, bias=True)


def convnext(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """Count a ConvNeXt."""
    widths, depths = config.wholes("hidden_sizes"), config.depths("depths")
    edge = patch or config.whole(("patch_size",), 4)
    side = (image or _SIDE) // edge
    count = convolution(config.whole(("num_channels",), 3), widths[0], edge, bias=True)
    work, kept = float(count.parameters * side**2), widths[0] * side**2
    count += norm(widths[0], bias=True)
    for number, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if number:
            down = convolution(widths[number - 1], width, 2, bias=True)
            side //= 2
            count += down + norm(widths[number - 1], bias=True)
            work += down.parameters * side**2
            kept += width * side**2
        count += _depthwise(width).times(depth)
        work += depth * side**2 * (49 * width + 8 * width**2)
        kept += depth * side**2 * 6 * width
    head = plain(widths[-1], classes(config) or 1000, bias=True)
    count += norm(widths[-1], bias=True) + head
    return _images(count, work + head.parameters, kept)


def _depthwise(width: int) -> Count:
    """A block: 7 × 7 of each channel, norm, widen fourfold, narrow, scale."""
    spatial = convolution(1, width, 7, bias=True)
    wide = linear(width, 4 * width, bias=True) + linear(4 * width, width, bias=True)
    return spatial + norm(width, bias=True) + wide + vector(width)


def published(config: Config, image: int | None = None, patch: int | None = None) -> Network:
    """A network whose parameters are published, with its multiply-adds at a side of its own.

    Where those are not, it is a transformer that all of its positions pass.
    """
    number, side = int(config.fields["parameters"]), config.whole(("image_size",), _SIDE)
    hidden, layers = config.whole(("hidden_size",), 0), config.whole(("num_hidden_layers",), 0)
    seen = config.whole(("positions",), 0)
    passed = seen * number + 2 * layers * hidden * seen**2
    work = (config.fields.get("multiply_adds") or passed) * ((image or side) / side) ** 2
    family, unit = config.word("family", "cnn"), config.word("sample_unit", "image")
    note = (
        f"{'an' if unit == 'image' else 'a'} {unit} of {seen:,} positions is assumed"
        if seen
        else ""
    )
    if family == "cnn":
        note = "as fast as ordinary convolutions is planned; depthwise ones are slower"
    return Network(
        family=family,
        count=Count(number, number, 0, 161),
        hidden=hidden,
        layers=layers,
        attention_width=hidden,
        flop_per_sample=flop(work),
        activation_bytes=4.0 * config.fields.get("outputs", 0),
        sample_unit=unit,
        note=config.word("note") or note,
    )


def _images(count: Count, work: float, outputs: int) -> Network:
    """The network; `outputs` of its convolutions are kept, and as many normalised or bent ones."""
    return Network(
        family="cnn",
        count=count,
        flop_per_sample=flop(work),
        activation_bytes=4.0 * outputs,
        sample_unit="image",
    )
