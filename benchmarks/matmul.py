"""How many floating-point operations a second a machine reaches in matrix multiplication.

Training is mostly matrix multiplication, so this bounds its speed from above. An m x k by k x n
product takes 2·m·k·n operations on m·k + k·n + m·n numbers: small sizes measure overhead, large
ones the arithmetic. Squares are swept for the best rate; `typical` shapes are the four products
of a transformer layer, tokens by width, which seldom reach it.
"""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import ceilings
from .errors import Skipped, WrongResult
from .subject import Bench, Case, Trial

Shape = tuple[int, int, int]  # m, k, n

SEED = 1  # for the same matrices every time
CHECKED = 8  # rows compared with the reference: a wrong kernel is wrong everywhere
# Rounding errors of a sum of k terms grow like sqrt(k); 8 leaves room for the order of the sum.
SLACK = 8.0
_TERA = 1e-12
_EPS = {"fp64": 2**-52, "fp32": 2**-23, "tf32": 2**-10, "fp16": 2**-10, "bf16": 2**-7,
        "fp8": 2**-3, "int8": 0.0}  # fmt: skip
_SQUARES = {
    ("cpu", "quick"): (256, 512, 1024),
    ("cpu", "full"): (256, 512, 1024, 2048, 4096),
    ("cuda", "quick"): (1024, 4096, 8192),
    ("cuda", "full"): (1024, 2048, 4096, 8192, 12288, 16384),
}
_WIDTH = {"cpu": (256, 512), "cuda": (4096, 4096)}  # tokens, width of the typical layer
_SINCE = {"tf32": (8, 0), "bf16": (8, 0), "fp16": (7, 0), "fp8": (8, 9), "int8": (7, 5)}


def matmul(bench: Bench) -> Iterator[Case | Skipped]:
    """Every precision of the device at every shape."""
    for precision in precisions(bench):
        for kind, shape in shapes(bench):
            yield _case(bench, precision, kind, shape)
    if bench.gpu:
        lacking = [p for p, least in _SINCE.items() if bench.gpu.capability < least]
        yield from (Skipped(f"matmul {p}: {bench.gpu.name} has no units for it") for p in lacking)


def precisions(bench: Bench) -> tuple[str, ...]:
    """The precisions that device and software have."""
    if bench.torch is None:
        return ("fp32", "fp64")
    if bench.gpu is None:
        return ("fp32", "fp64", "bf16")
    return ("fp32", *(p for p, least in _SINCE.items() if bench.gpu.capability >= least))


def shapes(bench: Bench) -> Iterator[tuple[str, Shape]]:
    """Squares for the best rate, then the products of one transformer layer."""
    for n in _SQUARES[bench.device, bench.suite]:
        yield "square", (n, n, n)
    tokens, width = _WIDTH[bench.device]
    for k, n in ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)):
        yield "typical", (tokens, k, n)


def cpus() -> int:
    """Processors that this program may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _case(bench: Bench, precision: str, kind: str, shape: Shape) -> Case:
    m, k, n = shape
    setup = partial(_numpy_trial, precision, shape)
    if bench.torch is not None:
        setup = partial(_torch_trial, bench, precision, shape)
    on_gpu = bench.device == "cuda"
    ceiling = ceilings.gpu_flops(bench.gpu, precision) if on_gpu else None
    if not on_gpu:
        ceiling = ceilings.cpu_flops(precision, cpus())
    facts: dict[str, object] = {"precision": precision, "kind": kind, "m": m, "k": k, "n": n}
    name = f"{precision} {m}x{k}x{n}"
    return Case("matmul", name, "TFLOP/s", 2 * _TERA * m * k * n, setup, ceiling, facts)


def _numpy_trial(precision: str, shape: Shape) -> Trial:
    m, k, n = shape
    kind = np.float32 if precision == "fp32" else np.float64
    rng = np.random.default_rng(SEED)
    a, b = rng.standard_normal((m, k)).astype(kind), rng.standard_normal((k, n)).astype(kind)
    out = np.empty((m, n), kind)
    return Trial(partial(np.matmul, a, b, out), lambda: error_of(precision, a, b, out))


def _torch_trial(bench: Bench, precision: str, shape: Shape) -> Trial:
    torch, (m, k, n) = bench.torch, shape
    if precision in ("fp8", "int8"):
        return _narrow_trial(bench, precision, shape)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    kinds = {"fp32": "float32", "tf32": "float32", "fp64": "float64", "fp16": "float16"}
    kind = getattr(torch, kinds.get(precision, "bfloat16"))
    torch.manual_seed(SEED)
    a = torch.randn(m, k, device=bench.device).to(kind)
    b = torch.randn(k, n, device=bench.device).to(kind)
    out = torch.empty(m, n, device=bench.device, dtype=kind)
    check = partial(_torch_error, precision, a, b, out)
    return Trial(lambda: torch.mm(a, b, out=out), check)


def _narrow_trial(bench: Bench, precision: str, shape: Shape) -> Trial:
    """8-bit products, which torch offers under names of their own; sums are wider."""
    torch, (m, k, n), device = bench.torch, shape, bench.device
    torch.manual_seed(SEED)
    if precision == "int8":
        a = torch.randint(-128, 128, (m, k), device=device, dtype=torch.int8)
        b = torch.randint(-128, 128, (n, k), device=device, dtype=torch.int8).t()
        out = torch._int_mm(a, b)
        return Trial(lambda: torch._int_mm(a, b), partial(_torch_error, precision, a, b, out))
    a = torch.randn(m, k, device=device).to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device=device).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device=device)
    # Fast accumulation, as forward passes in fp8 use it (NVIDIA Transformer Engine's recipes).
    run = partial(torch._scaled_mm, a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    # The factors are exact in 8 bits; what is rounded is the sum, to bf16.
    return Trial(run, lambda: _torch_error("bf16", a, b, run()))


def _torch_error(precision: str, a: Any, b: Any, out: Any) -> float:
    wide = [each.cpu().double().numpy() for each in (a[:CHECKED], b, out[:CHECKED])]
    return error_of(precision, *wide)


def error_of(
    precision: str,
    a: NDArray[Any],
    b: NDArray[Any],
    out: NDArray[Any],
) -> float:
    """Largest deviation of the first rows from a product summed in float64, in another order.

    Raises WrongResult where rounding at this precision cannot explain it.
    """
    wide = np.einsum("ik,kj->ij", a[:CHECKED].astype(np.float64), b.astype(np.float64))
    error = float(np.abs(out[:CHECKED] - wide).max() / np.abs(wide).max())
    allowed = SLACK * _EPS[precision] * (len(b) ** 0.5 if precision in ("fp64", "fp32") else 1)
    if not error <= allowed:
        raise WrongResult(f"matmul of {precision} is off by {error:.1e}; {allowed:.1e} is allowed")
    return error
