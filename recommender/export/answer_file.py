"""Reads an answer back that `recommend ... --json` has written."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from recommender.catalogs.files import parse_json
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.export.description import RunDescription, description_of
from recommender.inputs.files import read_text
from recommender.job.job import Job
from recommender.plan.answer import PriceDate
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Plan
from recommender.text import shown, shown_path

SCHEMA = "recommend.plan/v1"
_MAX_BYTES = 2**26
# They go into files and commands.
_NAMES = ("provider", "instance_type", "region", "zone", "launcher", "rented_as")
_NAME = re.compile(r"[\w.+:/@() -]*")
_HINT = "write it again with recommend ... --json > ANSWER.json"


@dataclass(frozen=True, slots=True)
class NamedPlan:
    """A plan of an answer, with the names by which it can be chosen."""

    plan: Plan
    rank: int  # its number in the table
    roles: tuple[str, ...] = ()  # "sensible", "cheapest", "fastest", "safest"


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """The question and the plans of an answer."""

    job: Job
    limits: Limits
    choice: Choice
    progress: Progress
    tool: str  # "recommend 0.1.0"
    catalog: str  # version
    prices: tuple[PriceDate, ...]
    plans: tuple[NamedPlan, ...]
    lead: int  # number of the plan that the answer leads with

    def named(self, word: str | None) -> NamedPlan:
        """The plan of a number or a role, or that leads; raises `UsageError` if there is none."""
        word = str(self.lead) if word is None else word
        for each in self.plans:
            if word in each.roles or word == str(each.rank):
                return each
        names = [str(each.rank) for each in self.plans]
        names += [role for each in self.plans for role in each.roles]
        if not names:
            raise UsageError("the answer has no plan, because none meets its limits; loosen one")
        raise UsageError(f"--plan {shown(word)}: the answer has plans {', '.join(names)}")

    def described(self, named: NamedPlan) -> RunDescription:
        """A plan of the answer as it is run."""
        return description_of(
            named.plan,
            f"plan {named.rank}",
            self.job,
            self.limits,
            tool=self.tool,
            catalog=self.catalog,
        )


def read_answer(path: Path) -> AnswerFile:
    """Read an answer; raises `UsageError` that says which value cannot be read."""
    name = shown_path(path)
    try:
        made = parse_json(read_text(path, _MAX_BYTES))
    except ValueError as error:
        why = "" if isinstance(error, json.JSONDecodeError) else f" ({error})"
        raise UsageError(f"{name}: is not JSON{why}; {_HINT}") from None
    if not isinstance(made, dict) or made.get("schema") != SCHEMA:
        schema = made.get("schema") if isinstance(made, dict) else None
        other = "it names no schema" if schema is None else f"its schema is {shown(schema)}"
        raise UsageError(f"{name}: {other}, not {SCHEMA}; {_HINT}")
    return answer_of(made, name)


def answer_of(made: Mapping[str, Any], name: str = "the answer") -> AnswerFile:
    """The parsed document of an answer as plain data."""
    try:
        inputs, provenance = made["inputs"], made["provenance"]
        return AnswerFile(
            job=_read(Job, inputs["job"], "inputs.job"),
            limits=_read(Limits, inputs["limits"], "inputs.limits"),
            choice=_read(Choice, inputs["choice"], "inputs.choice"),
            progress=_read(Progress, inputs["progress"], "inputs.progress"),
            tool=_read(str, provenance["tool"], "provenance.tool"),
            catalog=_read(str, provenance["catalog"], "provenance.catalog"),
            prices=_read(tuple[PriceDate, ...], provenance["prices"], "provenance.prices"),
            plans=_named_plans(made),
            lead=_read(int, made.get("lead") or 1, "lead"),
        )
    except KeyError as error:
        raise UsageError(f"{name}: has no {shown(error.args[0])}; {_HINT}") from None
    except (_Unreadable, TypeError, AttributeError) as error:
        raise UsageError(f"{name}: {shown(error)}; {_HINT}") from None


def _named_plans(made: Mapping[str, Any]) -> tuple[NamedPlan, ...]:
    trio = made["trio"] or []
    roles: dict[int, tuple[str, ...]] = {}
    for pick in trio:
        roles[pick["rank"]] = (*roles.get(pick["rank"], ()), pick["role"])
    plans = [
        NamedPlan(_read(Plan, each, f"plans[{at}]"), at + 1, roles.get(at + 1, ()))
        for at, each in enumerate(made["plans"])
    ]
    for each in plans:
        fallback = each.plan.fallback
        held = (each.plan.machines, (None,) if fallback is None else fallback.machines)
        _checked(all(held), [], f"plans[{each.rank - 1}].machines or those of its fallback")
    return tuple(plans)


class _Unreadable(Exception):
    """A value that is not what its field holds."""


def _read(kind: Any, value: Any, where: str) -> Any:
    """A value of JSON as the type of its field; unknown numbers are null there."""
    origin = get_origin(kind)
    if is_dataclass(kind):
        return _object(kind, value, where)
    if origin in (Union, UnionType):
        inner = [each for each in get_args(kind) if each is not NoneType]
        return None if value is None else _read(inner[0], value, where)
    if origin is tuple:
        return _tuple(get_args(kind), value, where)
    if origin is Literal:
        return _checked(value in get_args(kind), value, where)
    if kind is float:
        if value is None:
            return math.nan
        return float(_checked(_is_number(value) and abs(value) < math.inf, value, where))
    if kind is int:
        whole = _is_number(value) and abs(value) < math.inf and value == int(value)
        return _checked(whole, value, where)
    if kind is str:
        named = where.rpartition(".")[2] in _NAMES  # others are cleaned where they are shown
        good = isinstance(value, str) and (not named or _NAME.fullmatch(value) is not None)
        return _checked(good, value, where)
    if kind is bool:
        return _checked(isinstance(value, bool), value, where)
    return value


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) < math.inf


def _checked(good: bool, value: Any, where: str) -> Any:
    if not good:
        raise _Unreadable(f"{where} cannot be {shown(value)}")
    return value


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    _checked(isinstance(value, list), value, where)
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(value)
    _checked(len(value) == len(kinds), value, where)
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(_read(kind, each, f"{where}[{at}]") for at, (kind, each) in pairs)


def _object(kind: Any, value: Any, where: str) -> Any:
    _checked(isinstance(value, dict), value, where)
    hints = get_type_hints(kind)
    made = {}
    for each in fields(kind):
        name = each.metadata.get("json", each.name)
        if name in value:  # what is missing has its default, or is refused below
            made[each.name] = _read(hints[each.name], value[name], f"{where}.{name}")
    try:
        return kind(**made)
    except TypeError:
        raise _Unreadable(f"{where} lacks fields of a {kind.__name__}") from None
