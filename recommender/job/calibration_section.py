"""Reads and writes the section `calibration:` of a job file."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast, get_args

from recommender.errors import UsageError, first_problems
from recommender.inputs.units import parse_count, parse_whole
from recommender.job.job import Calibration, Fitted, InputRates, Precision
from recommender.text import shown, unknown

FACTORS = ("compute", "tensor", "latency", "network", "links")
SERVED = ("service", "worker")  # with parameter servers
_SIGMAS = ("noise", "sigma", "sigma_several", "sigma_other")
OPTIONAL_FACTORS = ("penalty", *SERVED)
_KEYS = (
    "as_of", "rows", "constants", *FACTORS, *OPTIONAL_FACTORS, "overlap", *_SIGMAS, "sigma_larger",
    "network_kind", "precision", "gpus", "feeds",
)  # fmt: skip
# The first ones are younger than the others.
_OPTIONAL = (
    *OPTIONAL_FACTORS, "sigma_several", "sigma_larger", "network_kind", "precision", "gpus",
    "feeds",
)  # fmt: skip
_KINDS = ("tcp", "rdma")

_NUMBER = {"type": ["number", "string"]}
_FITTED = {
    "type": "object",
    "properties": {"factor": _NUMBER, "sd": _NUMBER},
    "required": ["factor", "sd"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "required": [key for key in _KEYS if key not in _OPTIONAL],
    "properties": {
        "as_of": {"type": "string"},
        "rows": {"type": ["integer", "string"]},
        "constants": {"type": "string"},
        **dict.fromkeys((*FACTORS, *OPTIONAL_FACTORS), _FITTED),
        "overlap": {
            "type": "object",
            "properties": {"share": _NUMBER, "sd": _NUMBER},
            "required": ["share", "sd"],
            "additionalProperties": False,
        },
        **dict.fromkeys(_SIGMAS, _NUMBER),
        "sigma_larger": {"type": "object", "additionalProperties": _NUMBER},
        "network_kind": {"enum": list(_KINDS)},
        "precision": {"enum": list(get_args(Precision))},
        "gpus": {"type": "object", "additionalProperties": _FITTED},
        "feeds": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"prepare_per_s": _NUMBER, "fetch_per_s": _NUMBER},
                "additionalProperties": False,
            },
        },
    },
}


def section(own: Calibration) -> dict[str, Any]:
    """Convert a calibration to the section of a job file, with four digits."""
    found: dict[str, Any] = {"as_of": own.as_of, "rows": own.rows, "constants": own.constants}
    found |= {name: _fitted(getattr(own, name)) for name in FACTORS}
    optional = {name: getattr(own, name) for name in OPTIONAL_FACTORS}
    found |= {name: _fitted(value) for name, value in optional.items() if value}
    found["overlap"] = {"share": _share(own.overlap), "sd": _four(own.overlap_sd)}
    found |= {name: _four(getattr(own, name)) for name in _SIGMAS}
    if own.sigma_larger:
        found["sigma_larger"] = {n: _four(sigma) for n, sigma in own.sigma_larger}
    if own.network_kind:
        found["network_kind"] = own.network_kind
    if own.precision:
        found["precision"] = own.precision
    if own.gpus:
        found["gpus"] = {gpu: _fitted(value) for gpu, value in own.gpus}
    if own.feeds:
        found["feeds"] = {rates.machine: _input_rates(rates) for rates in own.feeds}
    return found


def calibration_text(own: Calibration) -> str:
    """Write a calibration as the section of a job file."""
    lines = ["calibration:  # by recommend calibrate; docs/models.md says what each constant is"]
    for key, value in section(own).items():
        if key in ("gpus", "feeds"):
            lines += [
                f"  {key}:",
                *(f"    {name}: {_flow(inner)}" for name, inner in value.items()),
            ]
        else:
            lines.append(f"  {key}: {_flow(value) if isinstance(value, dict) else value}")
    return "\n".join(lines) + "\n"


def read_calibration(value: Any, name: str) -> Calibration:
    """Read the section; every error names its key."""
    if not isinstance(value, dict):
        raise UsageError(f"{name} must be the section that recommend calibrate writes")
    absent = [key for key in _KEYS if key not in value and key not in _OPTIONAL]
    wrong = (f"{name} {unknown('key', str(key), _KEYS)}" for key in value if key not in _KEYS)
    problems = first_problems(wrong)
    problems += [f"{name} {key}: is missing; run recommend calibrate again" for key in absent]
    if problems:
        raise UsageError(*problems)
    overlap, overlap_sd = _pair(value["overlap"], "share", f"{name} overlap:")
    if overlap > 1:
        raise UsageError(f"{name} overlap: {overlap:g} is more than all; write a share below 1")
    fitted = {
        key: Fitted(*_pair(value[key], "factor", f"{name} {key}:"))
        for key in (*FACTORS, *OPTIONAL_FACTORS)
        if key in value
    }
    sigmas = {key: _number(value[key], f"{name} {key}:") for key in _SIGMAS if key in value}
    return Calibration(
        as_of=_word(value["as_of"], f"{name} as_of:"),
        rows=parse_whole(_word(value["rows"], f"{name} rows:"), f"{name} rows:"),
        constants=_word(value["constants"], f"{name} constants:"),
        compute=fitted["compute"],
        tensor=fitted["tensor"],
        latency=fitted["latency"],
        network=fitted["network"],
        links=fitted["links"],
        overlap=overlap,
        overlap_sd=overlap_sd,
        noise=sigmas["noise"],
        sigma=sigmas["sigma"],
        sigma_several=sigmas.get("sigma_several", sigmas["sigma"]),
        sigma_other=sigmas["sigma_other"],
        gpus=_each(
            value, "gpus", name, lambda gpu, raw, at: (gpu, Fitted(*_pair(raw, "factor", at)))
        ),
        feeds=_each(value, "feeds", name, _read_input_rates),
        service=fitted.get("service"),
        worker=fitted.get("worker"),
        penalty=fitted.get("penalty"),
        sigma_larger=tuple(sorted(_each(value, "sigma_larger", name, _read_larger))),
        network_kind=_kind(value.get("network_kind"), f"{name} network_kind:"),
        precision=_precision(value.get("precision"), f"{name} precision:"),
    )


def _four(value: float) -> float:
    return float(f"{value:.4g}")


def _share(overlap: float) -> float:
    """The overlap as it is written: next to nothing is nothing."""
    return _four(overlap) if overlap > 1e-6 else 0.0


def _fitted(value: Fitted) -> dict[str, float]:
    return {"factor": _four(value.factor), "sd": _four(value.sd)}


def _input_rates(rates: InputRates) -> dict[str, float]:
    figures = {"prepare_per_s": rates.prepare_per_s, "fetch_per_s": rates.fetch_per_s}
    return {key: _four(figure) for key, figure in figures.items() if math.isfinite(figure)}


def _flow(value: Mapping[str, float]) -> str:
    return f"{{{', '.join(f'{key}: {number:g}' for key, number in value.items())}}}"


def _read_input_rates(machine: str, raw: Any, at: str) -> InputRates:
    given = _mapping(raw, at, ("prepare_per_s", "fetch_per_s"))
    rates = {key: _number(text, f"{at} {key}:") for key, text in given.items()}
    return InputRates(
        machine, rates.get("prepare_per_s", math.inf), rates.get("fetch_per_s", math.inf)
    )


def _kind(value: Any, name: str) -> Literal["", "tcp", "rdma"]:
    if value not in (None, *_KINDS):
        raise UsageError(f"{name} {unknown('value', shown(value), _KINDS)}")
    return cast(Literal["", "tcp", "rdma"], value or "")


def _precision(value: Any, name: str) -> Precision | Literal[""]:
    known: tuple[Precision, ...] = get_args(Precision)
    found = next((each for each in known if each == value), None)
    if value is not None and found is None:
        raise UsageError(f"{name} {unknown('value', shown(value), known)}")
    return found or ""


def _read_larger(machines: str, raw: Any, at: str) -> tuple[int, float]:
    return parse_whole(machines, at), _number(raw, at)


def _each(
    value: dict[str, Any], key: str, name: str, read: Callable[[str, Any, str], Any]
) -> tuple[Any, ...]:
    inner = _mapping(value.get(key) or {}, f"{name} {key}:", ())
    return tuple(read(str(k), raw, f"{name} {key}.{k}:") for k, raw in inner.items())


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


def _mapping(value: Any, name: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{name} {shown(value)} cannot be used; write {{key: value}}")
    if keys and set(value) - set(keys):
        raise UsageError(f"{name} {unknown('key', str(min(set(value) - set(keys))), keys)}")
    return value


def _number(value: Any, name: str) -> float:
    return parse_count(_word(value, name), name)


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be one value")
    return value
