"""DeepVM's speed-up curves, and the ones its figure 5 measured."""

import math
from collections.abc import Callable
from functools import cache

from tests.research.deepvm.figures import FIG5_IMAGES, FIG5_S, SIZES, GpuVm

SpeedUp = Callable[[GpuVm, int], float]  # of n machines over the score of one


def sigmoid(vm: GpuVm, n: int) -> float:
    """S(n) = c/(1 + e^(-a(n - b)))."""
    return vm.c / (1.0 + math.exp(-vm.a * (n - vm.b)))


def tangent(vm: GpuVm, n: int) -> float:
    """L(n) = c·a/4·(n - b) + c/2, the tangent of the sigmoid at its inflection."""
    return vm.c * vm.a / 4.0 * (n - vm.b) + vm.c / 2.0


@cache
def curve(vm: GpuVm, n: int) -> float:
    """The speed-up of figure 5 and of the simulation: the tangent up to b, then the sigmoid."""
    return tangent(vm, n) if n <= vm.b else sigmoid(vm, n)


@cache
def released(vm: GpuVm, n: int) -> float:
    """K(n)·n of the released code: the sigmoid over its tangent counts as an efficiency."""
    return n * (1.0 if n <= vm.b else sigmoid(vm, n) / tangent(vm, n))


def none(vm: GpuVm, n: int) -> float:
    """NoScale: n machines are n times as fast."""
    return float(n)


def throughput(vm: GpuVm, n: int) -> float:
    """Score x speed-up of the simulation, n counted once."""
    return vm.score * curve(vm, n)


def images_per_s(name: str) -> dict[int, float]:
    """Figure 5 as images/s by number of machines."""
    return {n: FIG5_IMAGES / s for n, s in zip(SIZES, FIG5_S[name], strict=True)}
