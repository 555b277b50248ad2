"""Instance types by name; those of a user's own machines are created on demand.

A list of a hundred thousand own machines describes a few dozen kinds of hardware.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from recommender.catalogs.registry import OWN
from recommender.catalogs.schema import InstanceType, OwnMachine

Key = tuple[str, str]  # (provider, name)


class InstanceTypes(Mapping[Key, InstanceType]):
    """Instance types of a catalog, and own machines that refer to one with the same hardware."""

    def __init__(self, listed: Mapping[Key, InstanceType], own: Mapping[str, OwnMachine]) -> None:
        self._listed = listed
        self._own = own
        self._named: dict[str, OwnMachine] = {}

    def __getitem__(self, key: Key) -> InstanceType:
        provider, name = key
        if provider != OWN or name not in self._own:
            return self._listed[key]
        if name not in self._named:
            machine = self._own[name]
            if machine.instance_type != name:
                machine = replace(machine, instance_type=name, family=name, quota_family=name)
            self._named[name] = machine
        return self._named[name]

    def __iter__(self) -> Iterator[Key]:
        yield from (key for key in self._listed if key[0] != OWN or key[1] not in self._own)
        yield from ((OWN, name) for name in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def like(self, key: Key) -> Key:
        """The representative machine with the same hardware; own machines may share one."""
        own = self._own.get(key[1]) if key[0] == OWN else None
        return key if own is None else (OWN, own.instance_type)
