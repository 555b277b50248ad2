"""How a GPU's fitted factor changes where the user measured its matrix speed."""

import math

from catalogs.schema import Achieved

_Z90 = 1.645  # a published range is taken to hold nine of ten figures
# Sd of ln speed between machines and library versions of one GPU. Stated, not fitted: boards of
# one H100 fleet differ by 3 % at 95 % (2025), cuBLAS releases by a few per cent.
BETWEEN_MACHINES = 0.05


def adapted(factor: float, ratio: float, shipped: Achieved) -> tuple[float, float]:
    """The factor beside a rate of the user's, and the sd of its ln.

    The factor was fitted on trainings beside the shipped speed: it holds what that speed has
    wrong, which the user's own speed sets right already. Of ln ratio (rate by the user's figures
    over rate by the shipped ones) the share w is the shipped figure's error and leaves the
    factor, 1 - w is the user's machine and stays in the rate:

        factor' = factor · ratio^-w,    w = e² / (e² + u²)

    e is the sd of the shipped ln speed by its range, u that between machines of one GPU. Which of
    both it was is not known: sd = |ln ratio| · sqrt(w · (1 - w)), that of a coin that falls on
    the shipped figure with w.
    """
    error = math.log(shipped.high_tflops / shipped.low_tflops) / (2.0 * _Z90)
    share = error**2 / (error**2 + BETWEEN_MACHINES**2)
    apart = math.log(ratio)
    return factor * math.exp(-share * apart), abs(apart) * math.sqrt(share * (1.0 - share))
