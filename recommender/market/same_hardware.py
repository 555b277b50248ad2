"""Machines of the user's own that differ by name only: a kind, which is modelled once.

A list of quotes has a hundred thousand rows and a few dozen kinds of machines.
"""

from collections.abc import Collection, Hashable, Iterable
from operator import attrgetter

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import InstanceType
from recommender.job.job import Job
from recommender.plan.limits import Choice

_NAMES = ("instance_type", "family", "quota_family")
_HARDWARE = attrgetter(*(name for name in InstanceType.__slots__ if name not in _NAMES))


@dataclass(frozen=True, slots=True)
class HardwareKinds:
    """The kinds of machines among instance types, and the kind of each by (provider, name)."""

    types: tuple[InstanceType, ...]  # the first of each kind
    of: dict[tuple[str, str], int]


def hardware_kinds(types: Iterable[InstanceType], apart: Collection[str]) -> HardwareKinds:
    """Number instance types by their hardware; a cloud's are each a kind of their own.

    So are the user's own that are named in `apart`.
    """
    kinds: dict[Hashable, int] = {}
    firsts: list[InstanceType] = []
    of: dict[tuple[str, str], int] = {}
    for t in types:
        key = (t.provider, t.instance_type)
        alike = t.provider == OWN and t.instance_type not in apart
        hardware = _HARDWARE(t) if alike else key
        if hardware not in kinds:
            kinds[hardware] = len(firsts)
            firsts.append(t)
        of[key] = kinds[hardware]
    return HardwareKinds(tuple(firsts), of)


def named_machines(job: Job, choice: Choice) -> frozenset[str]:
    """Own machines that a job's timings or a trace of the user's tell apart from their like."""
    feeds = () if job.calibration is None else job.calibration.feeds
    timed = {t.instance_type for t in job.timings} | {feed.machine for feed in feeds}
    traced = {law.machine for law in choice.spot_laws if law.provider == OWN}
    return frozenset(name.removeprefix(f"{OWN}/") for name in timed | traced)
