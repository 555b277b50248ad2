"""New machine types: their price must fit their GPUs.

The price of a machine per GPU is, among the machines with one GPU type at one provider, a constant
plus a share for the vCPUs per GPU. Measured on the snapshot of 2026, leaving each machine out in
turn: for 76 machines with siblings of two kinds of host, the ratio of the price to the predicted
one is 0.71 to 1.27. A wrong GPU count (8 as 1, 8 as 16) or half of the real price is farther off.
If another count would fit as well, or there are no siblings, a person must look first (`--accept`).
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from recommender.catalogs.providers.contract import Fetched, Quarantined
from recommender.catalogs.refresh.reference import Reference
from recommender.catalogs.schema import InstanceType
from recommender.catalogs.validation import type_problems

_FITS = (0.7, 1.3)
_OTHER_COUNTS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)  # times that which is said
_SAME_HOST = 1.3  # factor of vCPUs per GPU


def described(
    fetched: Fetched, reference: Reference
) -> tuple[dict[str, InstanceType], list[Quarantined]]:
    """The new machines that are described well, and what is wrong with the others."""
    good: dict[str, InstanceType] = {}
    refused = []
    for machine in fetched.types:
        problems = list(type_problems(machine, reference.gpus))
        if machine.provider != reference.provider or machine.instance_type in good:
            problems.append("described twice, or of another provider")
        if problems:
            what = f"instance type {machine.instance_type}"
            refused.append(Quarantined(reference.provider, what, "; ".join(problems), "type"))
        elif machine.instance_type not in reference.types:
            good[machine.instance_type] = machine
    return good, refused


def doubts(
    new: Mapping[str, InstanceType], typical: Mapping[str, float], reference: Reference
) -> Iterator[tuple[str, str]]:
    """New machines that are not believed at their typical on-demand price, and why."""
    for name, machine in sorted(new.items()):
        if machine.gpu and (reason := _doubt(machine, typical.get(name), reference)):
            yield name, reason


def _doubt(machine: InstanceType, usd: float | None, reference: Reference) -> str:
    if usd is None:
        return "it has no on-demand price to check its GPUs against"
    siblings = _siblings(machine, reference)
    if not len(siblings):
        return f"no other machine with {machine.gpu} to compare it with"
    share = _over_siblings(machine.gpus, machine.vcpus, usd, siblings)
    if share is None:
        return f"no machine with {machine.gpu} has a host like its"
    if not _FITS[0] <= share <= _FITS[1]:
        return f"x{share:.2f} of what others with {machine.gpu} cost per GPU"
    for gpus in (machine.gpus * factor for factor in _OTHER_COUNTS):
        other = _over_siblings(gpus, machine.vcpus, usd, siblings) if gpus >= 1 else None
        if other is not None and _FITS[0] <= other <= _FITS[1]:
            return f"its price would fit {gpus:g} GPUs as well as {machine.gpus}"
    return ""


def _siblings(machine: InstanceType, reference: Reference) -> pd.DataFrame:
    """vCPUs and USD per GPU of the other machines with its GPU."""
    types = reference.types
    rows = [
        (o.instance_type, o.usd_per_hour / types[o.instance_type].gpus)
        for o in reference.last
        if o.market == "on_demand" and o.instance_type != machine.instance_type
        and o.instance_type in types and types[o.instance_type].gpu == machine.gpu
    ]  # fmt: skip
    usd = pd.DataFrame(rows, columns=["name", "usd"]).groupby("name")["usd"].median()
    hosts = [types[name].vcpus / types[name].gpus for name in usd.index]
    return pd.DataFrame({"host": hosts, "usd": usd.to_numpy()})


def _over_siblings(gpus: float, vcpus: int, usd: float, siblings: pd.DataFrame) -> float | None:
    """USD per GPU over what the siblings say for such a host; None where they cannot say."""
    host, per_gpu = vcpus / gpus, usd / gpus
    x, y = siblings["host"].to_numpy(), siblings["usd"].to_numpy()
    if x.max() > _SAME_HOST * x.min():
        slope, start = np.polyfit(x, y, 1, w=1 / y)  # the line of least relative errors
        expected = start + slope * host
        return float(per_gpu / expected) if expected > 0 else None
    alike = y[np.maximum(x / host, host / x) <= _SAME_HOST]
    return float(per_gpu / np.median(alike)) if len(alike) else None
