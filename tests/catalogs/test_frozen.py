"""Frozen dataclasses behave as those of the standard library."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, field, replace
from dataclasses import dataclass as standard

import pytest

from recommender.catalogs.frozen import dataclass


def point(make):
    @make(frozen=True, slots=True)
    class Point:
        """A place."""

        x: int
        name: str = "here"
        notes: list[str] = field(default_factory=list, compare=False)
        source: str = field(default="", repr=False)

    return Point


def near(make):
    @make(frozen=True)
    class Base:
        """With a default."""

        x: int = 1

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("below 0")

    @make(frozen=True, kw_only=True)
    class Near(Base):
        """With a field that is named."""

        y: int
        z: int = 3

    return Near


PAIRS = [(make(dataclass), make(standard)) for make in (point, near)]
CALLS = (
    ((1,), {}), ((1, "there"), {}), ((), {"x": 2, "name": "n"}), ((1,), {"notes": ["a"]}),
    ((5,), {"y": 2}), ((), {"y": 2}), ((), {"y": 2, "z": 9}), ((-1,), {"y": 2}), ((), {}),
    ((1, 2, 3, 4, 5), {}), ((1,), {"unknown": 1}), ((1,), {"x": 2}),
)  # fmt: skip


def said(cls, args, kwargs):
    """What a call gives: the printed instance and its fields, or the refusal."""
    try:
        made = cls(*args, **kwargs)
    except (TypeError, ValueError) as error:
        return str(error)
    return repr(made), asdict(made), made == cls(*args, **kwargs), made != replace(made, x=77)


@pytest.mark.parametrize(("args", "kwargs"), CALLS)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_a_call_gives_or_refuses_what_the_standard_one_does(ours, theirs, args, kwargs):
    assert said(ours, args, kwargs) == said(theirs, args, kwargs)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_equal_instances_hash_alike_and_other_classes_differ(ours, theirs):
    kwargs = {"y": 2} if "y" in ours.__dataclass_fields__ else {}
    assert hash(ours(1, **kwargs)) == hash(ours(1, **kwargs)) == hash(theirs(1, **kwargs))
    assert ours(1, **kwargs) != theirs(1, **kwargs)


def test_fields_that_are_not_compared_do_not_count():
    cls = point(dataclass)
    assert cls(1, notes=["a"]) == cls(1)
    assert hash(cls(1, notes=["a"])) == hash(cls(1))


def test_every_instance_has_a_list_of_its_own():
    cls = point(dataclass)
    assert cls(1).notes is not cls(1).notes


@pytest.mark.parametrize("name", ["x", "unknown"])
def test_nothing_of_an_instance_can_be_set_or_deleted(name):
    one = near(dataclass)(1, y=2)
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(one, name, 3)
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(one, name)


def test_own_methods_stay_and_switched_off_ones_are_not_made():
    @dataclass(frozen=True, eq=False, repr=False)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "mine"

    assert repr(Own(1)) == "mine"
    assert Own(1) != Own(1)


@dataclass(frozen=True, slots=True)
class Sent:
    """What travels between processes."""

    x: int
    y: tuple[int, ...] = ()


def test_instances_travel():
    one = Sent(1, (2, 3))
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    assert Sent.__slots__ == ("x", "y")


def test_what_is_not_frozen_is_the_standard_one():
    @dataclass(slots=True)
    class Open:
        x: int

    one = Open(1)
    one.x = 2
    assert one == Open(2)
