"""Price proportions between the sizes of a family, which reveal a misread size.

A cloud prices the sizes of one family (g5.xlarge to g5.48xlarge) in the same proportion in every
region. Measured on the prices of 2026 that ship, as the ratio of two sizes over its median over
regions: on-demand AWS 2,138 ratios within 0.1 %, Azure 611 within 0.2 %, GCP 855 within 3 %; spot
Azure 587 within 0.2 %, GCP 969 within 3 %. Spot prices of AWS keep no proportion (22 % of the
ratios are within 5 %). A size that leaves it by itself is misread, or of another product.

USD per GPU of the cheapest size of each number of GPUs differ within a family by 3.27 times at
most (g5g, whose one-GPU size has a quarter of the host; all others 2.1 or less).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

from recommender.catalogs.refresh.reference import Place
from recommender.catalogs.schema import InstanceType

MOVED = 0.001  # what is at the last good price is no news, however odd
OFF = 0.05
_REGIONS = 3  # in which a proportion must be known
_PER_GPU = 3.5

Prices = Mapping[Place, float]


class FamilyProportions:
    """Prices of one market by machine and region: today's, and the last good ones.

    Proportions come from the last good prices if these have them, so a size that is wrong in every
    region is detected too.
    """

    def __init__(self, machines: Mapping[str, InstanceType], now: Prices, last: Prices) -> None:
        self._machines = machines
        self._here: Prices = {**last, **now}
        self._usual: dict[str, dict[str, float]] = defaultdict(dict)
        for (name, region), usd in {**now, **last}.items():
            if machines[name].gpu:
                self._usual[name][region] = usd
        self._sizes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name in sorted(self._usual):
            self._sizes[machines[name].family, machines[name].gpu].append(name)
        self._known: dict[tuple[str, str], float | None] = {}

    def out_of_proportion(self, place: Place, usd: float, most: float = OFF) -> str:
        """The price expected from most other sizes; empty if it fits."""
        ratios = [
            usd / (price * usual)
            for name, price in self._siblings(place)
            if (usual := self._proportion(place[0], name)) is not None
        ]
        off = [ratio for ratio in ratios if abs(ratio - 1) > most]
        if 2 * len(off) <= len(ratios):
            return ""
        return f"{median(ratios) - 1:+.0%} next to {len(off)} of {len(ratios)} sizes of its family"

    def odd_per_gpu(self, place: Place, usd: float) -> str:
        """The ratio of USD per GPU between these sizes; empty if usual."""
        gpus = self._machines[place[0]].gpus
        cheapest: dict[int, float] = {gpus: usd / gpus} if gpus else {}
        for name, price in self._siblings(place):
            count = self._machines[name].gpus
            cheapest[count] = min(price / count, cheapest.get(count, price / count))
        low, high = min(cheapest.values(), default=0.0), max(cheapest.values(), default=0.0)
        if high <= _PER_GPU * low:
            return ""
        return f"{low:.4g} to {high:.4g} USD per GPU in one family; usual is a factor of 3.3"

    def _siblings(self, place: Place) -> Iterator[tuple[str, float]]:
        name, region = place
        machine = self._machines[name]
        for other in self._sizes.get((machine.family, machine.gpu), ()):
            usd = self._here.get((other, region))
            if other != name and usd is not None:
                yield other, usd

    def _proportion(self, name: str, other: str) -> float | None:
        """The median over regions of one size's price over another's."""
        key = (name, other)
        if key not in self._known:
            mine, its = self._usual[name], self._usual[other]
            ratios = [mine[region] / its[region] for region in mine.keys() & its.keys()]
            self._known[key] = median(ratios) if len(ratios) >= _REGIONS else None
        return self._known[key]
