"""Round figures for the axes of pictures and of plots in characters."""

import math

MIN_TICKS = 3  # on an axis


def ticks(low: float, high: float) -> list[float]:
    """Round figures of a logarithmic axis: 1, 2 and 5 of each decade; evenly over a short span.

    The script of a report does the same for axes that move.
    """
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [float(f"{step}e{ten}") for ten in tens for step in (1, 2, 5)]
    found = [value for value in found if low <= value <= high]
    return found if len(found) >= MIN_TICKS else _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    """The widest steps of 1, 2 or 5 that fit `MIN_TICKS` times into a span."""
    widest = (high - low) / MIN_TICKS
    ten = math.floor(math.log10(widest))
    step = next(float(f"{n}e{ten}") for n in (5, 2, 1) if float(f"{n}e{ten}") <= widest)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{count * step:.6g}") for count in range(first, last + 1)]
