"""Checks new machine types: their price must fit their GPUs.

The price of a machine per GPU is, among the machines with one GPU type at one provider, a constant
plus a share for the vCPUs per GPU. Measured on the snapshot of 2026, leaving each machine out in
turn: for 76 machines with siblings of two kinds of host, the ratio of the price to the predicted
one is 0.71 to 1.27. A wrong GPU count (8 as 1, 8 as 16) or half of the real price is farther off.
If another count would fit as well, or there are no siblings, a person must look first (`--accept`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from recommender.catalogs.refresh.reference import Reference, Verdicts
from recommender.catalogs.schema import InstanceType, Offer

_FITS = (0.7, 1.3)
_OTHER_COUNTS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)  # times that which is said
_SAME_HOST = 1.3  # factor of vCPUs per GPU


def with_doubted_types(
    offers: Sequence[Offer],
    listed: Sequence[Offer],
    new: Mapping[str, InstanceType],
    verdicts: Verdicts,
) -> list[Offer]:
    """Drop the offers of new machines that wait for a person, and report each."""
    if verdicts.reference.accept or not new:
        return list(offers)
    prices = _medians(listed)
    reasons = {}
    for name, machine in sorted(new.items()):
        if machine.gpu and (reason := doubt(machine, prices.get(name), verdicts.reference)):
            reasons[name] = reason
    named = {offer.instance_type for offer in offers}
    for name in sorted(named & new.keys() - reasons.keys()):
        hardware = f"{new[name].gpus} {new[name].gpu}" if new[name].gpu else "no GPU"
        verdicts.alerts.append(f"new machine {name} ({hardware}) is taken")
    for name in sorted(reasons.keys() & named):
        verdicts.alerts.append(f"new machine {name} waits: {reasons[name]}; --accept takes it")
    for offer in offers:
        if offer.instance_type in reasons:
            verdicts.quarantine(offer, "new_type", reasons[offer.instance_type])
    return [offer for offer in offers if offer.instance_type not in reasons]


def doubt(machine: InstanceType, usd: float | None, reference: Reference) -> str:
    """Why a new machine is not accepted at its typical on-demand price; empty if it is."""
    if usd is None:
        return "it has no on-demand price to check its GPUs against"
    siblings = _siblings(machine, reference)
    if not siblings:
        return f"no other machine with {machine.gpu} to compare it with"
    share = _over_siblings(machine.gpus, machine.vcpus, usd, siblings)
    if share is None:
        return f"no machine with {machine.gpu} has a host like its"
    if not _FITS[0] <= share <= _FITS[1]:
        return f"x{share:.2f} of what others with {machine.gpu} cost per GPU"
    for factor in _OTHER_COUNTS:
        gpus = machine.gpus * factor
        other = _over_siblings(gpus, machine.vcpus, usd, siblings) if gpus >= 1 else None
        if other is not None and _FITS[0] <= other <= _FITS[1]:
            return f"its price would fit {gpus:g} GPUs as well as {machine.gpus}"
    return ""


_Point = tuple[float, float]  # vCPUs per GPU, USD per GPU


def _siblings(machine: InstanceType, reference: Reference) -> list[_Point]:
    prices = _medians([o for o in reference.last if o.market == "on_demand"])
    return [
        (other.vcpus / other.gpus, prices[name] / other.gpus)
        for name, other in reference.types.items()
        if name in prices and other.gpu == machine.gpu and name != machine.instance_type
    ]


def _over_siblings(gpus: float, vcpus: int, usd: float, siblings: Sequence[_Point]) -> float | None:
    """USD per GPU over what the siblings say for such a host; None where they cannot say."""
    host, per_gpu = vcpus / gpus, usd / gpus
    if max(x for x, _ in siblings) > _SAME_HOST * min(x for x, _ in siblings):
        expected = _line_at(host, siblings)
        return per_gpu / expected if expected > 0 else None
    alike = [y for x, y in siblings if max(x / host, host / x) <= _SAME_HOST]
    return per_gpu / median(alike) if alike else None


def _line_at(x: float, points: Sequence[_Point]) -> float:
    """The straight line of least relative errors through some points."""
    weights = [1.0 / y**2 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * p[0] for w, p in zip(weights, points, strict=True)) / total
    mean_y = sum(w * p[1] for w, p in zip(weights, points, strict=True)) / total
    rows = list(zip(weights, points, strict=True))
    spread = sum(w * (p[0] - mean_x) ** 2 for w, p in rows)
    slope = sum(w * (p[0] - mean_x) * (p[1] - mean_y) for w, p in rows) / spread
    return mean_y + slope * (x - mean_x)


def _medians(offers: Sequence[Offer]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for offer in offers:
        found[offer.instance_type].append(offer.usd_per_hour)
    return {name: median(prices) for name, prices in found.items()}
