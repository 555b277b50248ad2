"""How many bytes a second a machine moves through memory.

A copy reads and writes each byte once, and both count. Arrays that fit into a cache would measure
the cache: the size here is several times the largest one of today's server processors.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.record import Result, timed

MIB = 2**20
SIZES_MIB = (256, 1024)
QUICK_SIZES_MIB = (64,)
WARM_UP, REPEATS = 2, 10


def memory(quick: bool = False) -> Iterator[Result]:
    """Measure a copy of each size, in one thread."""
    for mib in QUICK_SIZES_MIB if quick else SIZES_MIB:
        source = np.arange(mib * MIB // 8, dtype=np.int64)
        target = np.zeros_like(source)  # written once, so that its pages exist
        seconds = timed(partial(np.copyto, target, source), WARM_UP, REPEATS)
        if not np.array_equal(source, target):
            raise ArithmeticError(f"a copy of {mib} MiB differs from its source")
        yield Result("memory", f"copy {mib} MiB", "GB/s", 2e-9 * source.nbytes, seconds, 0.0)
