"""DeepVM's selection rules: what it would rent for an hourly price.

Single anchor: n - 1 spot machines and one on-demand of the same type. Tiering: n spot machines
and m on-demand CPU machines ("remote nodes") that take the checkpoints. The loops are those of
`solution/run.py`, the last machine of a quota never tried included.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.research.deepvm.figures import (
    QUOTA_CPU,
    QUOTA_GPU,
    REAL,
    REMOTE,
    SATURATION,
    VCPUS,
    CpuVm,
    GpuVm,
)
from tests.research.deepvm.scaling import SpeedUp, none

MOST = 256  # machines per cluster where there are no quotas: `MAX_LIMIT` of the simulation
EDGE = 1e-9  # a cluster that costs exactly the price is affordable


@dataclass(frozen=True)
class Market:
    """What is on offer, and below how many machines a cluster stays."""

    gpus: Sequence[GpuVm]
    remotes: Sequence[CpuVm]
    most_gpu: int
    most_remote: int
    needed_gib: float = 1.0  # checkpoint size x buffers; never binds (deepvm.md 4.G)


AWS = Market(REAL, REMOTE, QUOTA_GPU["spot"] // VCPUS, QUOTA_CPU // VCPUS)


@dataclass(frozen=True)
class Pick:
    """A cluster that DeepVM may choose: n GPU machines, m remote nodes."""

    vm: GpuVm
    n: int
    remote: CpuVm | None
    m: int
    usd_per_hour: float

    @property
    def spot(self) -> int:
        """Spot machines among the n."""
        return self.n if self.remote else self.n - 1


def anchored(market: Market, willing: float) -> Iterator[Pick]:
    """Single-anchor clusters within the hourly price."""
    for vm in market.gpus:
        for n in range(2, market.most_gpu):
            usd = vm.spot * (n - 1) + vm.on_demand
            if usd > willing + EDGE:
                break
            yield Pick(vm, n, None, 0, usd)


def tiered(market: Market, willing: float) -> Iterator[Pick]:
    """Tiering clusters within the hourly price, in the order of the files.

    With the fewest remote nodes that take n trainers: DeepVM tries more as well, but Z ignores
    them, and they come later among its ties.
    """
    for vm in market.gpus:
        for remote in market.remotes:
            if remote.memory_gib < market.needed_gib:
                continue
            each = SATURATION[min(vm.network_gbps, remote.network_gbps)]
            for n in range(1, market.most_gpu):
                m = n // each + 1  # n/m < each
                usd = vm.spot * n + remote.on_demand * m
                if usd > willing + EDGE or m >= market.most_remote:
                    break
                yield Pick(vm, n, remote, m, usd)


def affordable(market: Market, willing: float) -> list[Pick]:
    """Every cluster of both architectures within the hourly price."""
    return [*anchored(market, willing), *tiered(market, willing)]


def value(pick: Pick, speed_up: SpeedUp) -> float:
    """DeepVM's objective Z: score per USD times what it takes for the number of machines."""
    return pick.vm.score / pick.vm.spot * speed_up(pick.vm, pick.n)


def ranked(picks: Sequence[Pick], speed_up: SpeedUp) -> list[Pick]:
    """DeepVM's ranking. Z ignores remote nodes, so ties stay in the order of the files."""
    return sorted(picks, key=lambda pick: -value(pick, speed_up))


def no_scale(picks: Sequence[Pick]) -> Pick:
    """DeepVM without its scaling factor."""
    return ranked(picks, none)[0]


def cost_first(market: Market, willing: float) -> Pick:
    """The cheapest type that is affordable, as many machines as the price allows."""
    picks = list(anchored(market, willing))
    return min(picks, key=lambda pick: (pick.vm.spot, -pick.n))


def performance_first(market: Market, willing: float) -> Pick:
    """The type with the highest score that is affordable, as many machines as possible."""
    picks = list(anchored(market, willing))
    return min(picks, key=lambda pick: (-pick.vm.score, -pick.n))
