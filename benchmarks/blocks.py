"""The two blocks that training spends its time in besides plain products: convolution, attention.

Forward and backward. Operations are those of the arithmetic: 2·k²·c_in·c_out per output pixel,
three times for forward and backward; 4·tokens²·width per head and sequence. Needs torch.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from .errors import Skipped, WrongResult
from .subject import Bench, Case, Trial

_PASSES = 3  # forward once, backward for the input and for the weights
# images, channels, pixels per side of a middle layer of ResNet-50; sequences, heads, tokens, width
_CONVOLUTION = {"cpu": (4, 64, 28), "cuda": (256, 256, 28)}
_ATTENTION = {"cpu": (1, 4, 256, 64), "cuda": (8, 32, 2048, 128)}
_KERNEL = 3


def blocks(bench: Bench) -> Iterator[Case | Skipped]:
    """A 3x3 convolution and an attention block, in the precision of training."""
    if bench.torch is None:
        yield Skipped("convolution and attention: torch is not installed")
        return
    precision = bench.precision
    images, channels, side = _CONVOLUTION[bench.device]
    flop = _PASSES * 2.0 * images * side**2 * channels**2 * _KERNEL**2
    setup = partial(_convolution, bench, (images, channels, side))
    yield _case("convolution", precision, flop, setup)
    sequences, heads, tokens, width = _ATTENTION[bench.device]
    # Backward of attention computes the scores again: 2.5 times the forward (FlashAttention-2).
    flop = 3.5 * 4.0 * sequences * heads * tokens**2 * width
    yield _case("attention", precision, flop, partial(_attention, bench))


def _case(name: str, precision: str, flop: float, setup: "partial[Trial]") -> Case:
    facts: dict[str, object] = {"precision": precision}
    return Case("blocks", f"{name} {precision}", "TFLOP/s", flop * 1e-12, setup, None, facts)


def _convolution(bench: Bench, sizes: tuple[int, int, int]) -> Trial:
    torch, kind, (images, channels, side) = bench.torch, bench.training_type, sizes
    layer = torch.nn.Conv2d(channels, channels, _KERNEL, padding=1, bias=False)
    # Channels last, as trainings on tensor cores store pictures.
    layer = layer.to(bench.device, kind, memory_format=torch.channels_last)
    shape = images, channels, side, side
    picture, back = (torch.randn(*shape, device=bench.device) for _ in range(2))
    picture, back = (each.to(kind, memory_format=torch.channels_last) for each in (picture, back))
    picture.requires_grad_()

    def run() -> None:
        layer.weight.grad = picture.grad = None
        layer(picture).backward(back)

    def check() -> float:
        exact = layer.double()(picture[:1].detach().double())
        layer.to(kind)
        return _error(torch, layer(picture[:1].detach()), exact)

    return Trial(run, check)


def _attention(bench: Bench) -> Trial:
    torch, kind, shape = bench.torch, bench.training_type, _ATTENTION[bench.device]
    q, k, v, back = (torch.randn(*shape, device=bench.device).to(kind) for _ in range(4))
    attend = torch.nn.functional.scaled_dot_product_attention
    for each in (q, k, v):
        each.requires_grad_()

    def run() -> None:
        q.grad = k.grad = v.grad = None
        attend(q, k, v).backward(back)

    def check() -> float:
        one = [each[:1, :1].detach() for each in (q, k, v)]
        return _error(torch, attend(*one), attend(*(each.double() for each in one)))

    return Trial(run, check)


def _error(torch: Any, found: Any, exact: Any) -> float:
    found, exact = found.detach(), exact.detach()
    error = float((found.double() - exact).abs().max() / exact.abs().max())
    allowed = 8.0 * float(torch.finfo(found.dtype).eps) * (64 if found.dtype.itemsize == 4 else 1)
    if not error <= allowed:
        raise WrongResult(f"a block is off by {error:.1e}; {allowed:.1e} is allowed")
    return error
