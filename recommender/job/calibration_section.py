"""Reads and writes the section `calibration:` of a job file, by one table of its keys."""

import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError, first_problems
from recommender.inputs.units import parse_count, parse_whole
from recommender.job.job import Calibration, Fitted, InputRates, Precision
from recommender.text import shown, unknown

_NUMBER = {"type": ["number", "string"]}
_FEEDS = ("prepare_per_s", "fetch_per_s")


@dataclass(frozen=True, slots=True)
class _Form:
    """What a key of the section holds: as JSON Schema, from a file, and to a file."""

    schema: dict[str, Any]
    read: Callable[[Any, str], Any]
    write: Callable[[Any], Any]
    optional: bool = False  # younger than the others, or not of every job


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be one value")
    return value


def _number(value: Any, name: str) -> float:
    return parse_count(_word(value, name), name)


def _four(value: float) -> float:
    return float(f"{value:.4g}")


def _mapping(value: Any, name: str, keys: tuple[str, ...] = ()) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{name} {shown(value)} cannot be used; write {{key: value}}")
    if keys and set(value) - set(keys):
        raise UsageError(f"{name} {unknown('key', str(min(set(value) - set(keys))), keys)}")
    return value


def _pair(value: Any, first: str, name: str) -> tuple[float, float]:
    given = _mapping(value, name, (first, "sd"))
    absent = [key for key in (first, "sd") if key not in given]
    if absent:
        raise UsageError(f"{name} {absent[0]}: is missing")
    sd = _number(given["sd"], f"{name} sd:")
    # An overlap of zero is usual: nothing was seen to be hidden.
    if first == "share" and given[first] in ("0", "0.0"):
        return 0.0, sd
    return _number(given[first], f"{name} {first}:"), sd


def _overlap(value: Any, name: str) -> tuple[float, float]:
    share, sd = _pair(value, "share", name)
    if share > 1:
        raise UsageError(f"{name} {share:g} is more than all; write a share below 1")
    return share, sd


def _written_overlap(value: tuple[float, float]) -> dict[str, float]:
    share, sd = value  # next to nothing is nothing
    return {"share": _four(share) if share > 1e-6 else 0.0, "sd": _four(sd)}


def _object(*keys: str, needed: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(keys, _NUMBER)}
    required = {"required": list(keys)} if needed else {}
    return found | required | {"additionalProperties": False}


def _rates(value: Any, name: str) -> dict[str, float]:
    given = _mapping(value, name, _FEEDS)
    return {key: _number(text, f"{name} {key}:") for key, text in given.items()}


def _table(inner: _Form, key: Callable[[str, str], Any] = lambda word, _: word) -> _Form:
    """A form under each of several names: pairs of name and value."""

    def read(value: Any, name: str) -> tuple[Any, ...]:
        rows = [(str(k), v, f"{name.removesuffix(':')}.{k}:")
                for k, v in _mapping(value or {}, name).items()]  # fmt: skip
        return tuple((key(k, at), inner.read(v, at)) for k, v, at in rows)

    schema = {"type": "object", "additionalProperties": inner.schema}
    return _Form(schema, read, lambda rows: {k: inner.write(v) for k, v in rows}, optional=True)


def _choice(known: tuple[str, ...]) -> _Form:
    def read(value: Any, name: str) -> str:
        if value not in (None, *known):
            raise UsageError(f"{name} {unknown('value', shown(value), known)}")
        return value or ""

    return _Form({"enum": list(known)}, read, str, optional=True)


_FITTED = _Form(
    _object("factor", "sd"),
    lambda value, name: Fitted(*_pair(value, "factor", name)),
    lambda value: {"factor": _four(value.factor), "sd": _four(value.sd)},
)
_SD = _Form(_NUMBER, _number, _four)
_TEXT = _Form({"type": "string"}, _word, str)
_FORMS: dict[str, _Form] = {
    "as_of": _TEXT,
    "rows": _Form(
        {"type": ["integer", "string"]},
        lambda value, name: parse_whole(_word(value, name), name),
        int,
    ),
    "constants": _TEXT,
    **dict.fromkeys(("compute", "tensor", "latency", "network", "links"), _FITTED),
    **dict.fromkeys(
        ("penalty", "service", "worker"),
        _Form(_FITTED.schema, _FITTED.read, _FITTED.write, optional=True),
    ),
    "overlap": _Form(_object("share", "sd"), _overlap, _written_overlap),
    "noise": _SD,
    "sigma": _SD,
    "sigma_several": _Form(_NUMBER, _number, _four, optional=True),
    "sigma_other": _SD,
    "sigma_larger": _table(_SD, parse_whole),
    "network_kind": _choice(("tcp", "rdma")),
    "precision": _choice(get_args(Precision)),
    "gpus": _table(_FITTED),
    "feeds": _table(
        _Form(
            _object(*_FEEDS, needed=False),
            _rates,
            lambda rates: {key: _four(each) for key, each in rates.items() if math.isfinite(each)},
        )
    ),
}
SCHEMA: dict[str, Any] = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "required": [key for key, form in _FORMS.items() if not form.optional],
    "properties": {key: form.schema for key, form in _FORMS.items()},
}


def section(own: Calibration) -> dict[str, Any]:
    """Convert a calibration to the section of a job file, with four digits."""
    values = {key: getattr(own, key) for key in _FORMS}
    values["overlap"] = own.overlap, own.overlap_sd
    values["feeds"] = tuple((r.machine, {k: getattr(r, k) for k in _FEEDS}) for r in own.feeds)
    stated = {key: value for key, value in values.items() if value not in (None, "", ())}
    return {key: _FORMS[key].write(value) for key, value in stated.items()}


def calibration_text(own: Calibration) -> str:
    """Write a calibration as the section of a job file."""
    lines = ["calibration:  # by recommend calibrate; docs/models.md says what each constant is"]
    for key, value in section(own).items():
        if key in ("gpus", "feeds"):
            rows = (f"    {name}: {_flow(inner)}" for name, inner in value.items())
            lines += [f"  {key}:", *rows]
        else:
            lines.append(f"  {key}: {_flow(value) if isinstance(value, dict) else value}")
    return "\n".join(lines) + "\n"


def _flow(value: Mapping[str, float]) -> str:
    return f"{{{', '.join(f'{key}: {number:g}' for key, number in value.items())}}}"


def read_calibration(value: Any, name: str) -> Calibration:
    """Read the section; every error names its key."""
    if not isinstance(value, dict):
        raise UsageError(f"{name} must be the section that recommend calibrate writes")
    wrong = (f"{name} {unknown('key', str(key), _FORMS)}" for key in value if key not in _FORMS)
    absent = [key for key in SCHEMA["required"] if key not in value]
    problems = first_problems(wrong)
    problems += [f"{name} {key}: is missing; run recommend calibrate again" for key in absent]
    if problems:
        raise UsageError(*problems)
    found: dict[str, Any] = {
        key: form.read(value[key], f"{name} {key}:") for key, form in _FORMS.items() if key in value
    }
    found["overlap"], found["overlap_sd"] = found["overlap"]
    found.setdefault("sigma_several", found["sigma"])
    found["sigma_larger"] = tuple(sorted(found.get("sigma_larger", ())))
    usual = dict.fromkeys(_FEEDS, math.inf)
    feeds = found.pop("feeds", ())
    found["feeds"] = tuple(InputRates(machine, **usual | rates) for machine, rates in feeds)
    return Calibration(**found)
