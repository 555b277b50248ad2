"""How many floating-point operations a second a machine reaches in matrix multiplication.

Training is mostly matrix multiplication, so this bounds its speed from above. An n x n product
takes 2·n³ operations on 3·n² numbers: small n measures overhead, large n the arithmetic.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.record import Result, timed

PRECISIONS = {"fp32": np.float32, "fp64": np.float64}
SIZES = (512, 1024, 2048)
QUICK_SIZES = (256, 512)
WARM_UP, REPEATS = 2, 10
SEED = 1  # for the same matrices every time
CHECKED = 16  # rows compared with the reference: a wrong kernel is wrong everywhere
# Rounding errors of a sum of n terms grow like sqrt(n); 8 leaves room for the order of the sum.
SLACK = 8.0


def matmul(quick: bool = False) -> Iterator[Result]:
    """Measure every precision at every size."""
    rng = np.random.default_rng(SEED)
    for size in QUICK_SIZES if quick else SIZES:
        left, right = rng.standard_normal((2, size, size))
        for name, kind in PRECISIONS.items():
            a, b = left.astype(kind), right.astype(kind)
            out = np.empty_like(a)
            seconds = timed(partial(np.matmul, a, b, out), WARM_UP, REPEATS)
            error = _error(a, b, out)
            yield Result("matmul", f"{name} {size}", "GFLOP/s", 2e-9 * size**3, seconds, error)


def _error(a: NDArray[np.floating], b: NDArray[np.floating], out: NDArray[np.floating]) -> float:
    """Largest deviation of the first rows from a product summed in float64, in another order."""
    wide = np.einsum("ik,kj->ij", a[:CHECKED].astype(np.float64), b.astype(np.float64))
    error = float(np.abs(out[:CHECKED] - wide).max() / np.abs(wide).max())
    allowed = SLACK * float(np.finfo(a.dtype).eps) * len(b) ** 0.5
    if not error <= allowed:
        raise ArithmeticError(
            f"matmul of {a.dtype} is off by {error:.1e}; {allowed:.1e} is allowed"
        )
    return error
