"""Groups the user's own machines that differ only by name into kinds, which are modelled once.

A list of quotes has a hundred thousand rows and a few dozen kinds of machines.
"""

from collections.abc import Collection, Hashable, Iterable
from operator import attrgetter

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import InstanceType
from recommender.job.job import Job
from recommender.plan.limits import Choice

_NAMES = ("instance_type", "family", "quota_family")
_HARDWARE = attrgetter(*(name for name in InstanceType.__slots__ if name not in _NAMES))


@dataclass(frozen=True, slots=True)
class HardwareKinds:
    """The kinds of machines among instance types, and the kind of each (provider, name)."""

    types: tuple[InstanceType, ...]  # the first of each kind
    of: dict[tuple[str, str], int]


def hardware_kinds(
    catalog: Catalog, keys: Iterable[tuple[str, str]], apart: Collection[str]
) -> HardwareKinds:
    """Number instance types by their hardware; every type of a cloud is a kind of its own.

    So are the user's own machines listed in `apart`.
    """
    types = catalog.instance_types
    kinds: dict[Hashable, int] = {}
    alike: dict[tuple[str, str], int] = {}  # by the machine that others are like
    firsts: list[InstanceType] = []
    of: dict[tuple[str, str], int] = {}
    for key in keys:
        own = key[0] == OWN and key[1] not in apart
        like = catalog.like(key) if own else key
        if own and like in alike:
            of[key] = alike[like]
            continue
        hardware = _HARDWARE(types[like]) if own else key
        if hardware not in kinds:
            kinds[hardware] = len(firsts)
            firsts.append(types[key])
        of[key] = kinds[hardware]
        if own:
            alike[like] = of[key]
    return HardwareKinds(tuple(firsts), of)


def named_machines(job: Job, choice: Choice) -> frozenset[str]:
    """Own machines that the job's timings or the user's traces refer to by name."""
    feeds = () if job.calibration is None else job.calibration.feeds
    timed = {t.instance_type for t in job.timings} | {feed.machine for feed in feeds}
    traced = {law.machine for law in choice.spot_laws if law.provider == OWN}
    return frozenset(name.removeprefix(f"{OWN}/") for name in timed | traced)
