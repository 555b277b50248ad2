"""The JSON Schema of the output of `--json`, built from the types; the package ships its file."""

import json
import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from recommender.job.calibration_section import SCHEMA as CALIBRATION_SECTION
from recommender.job.job import Job, TimedRun
from recommender.plan.answer import Check, Faster, PriceDate, ProgramFacts, Proof, Role
from recommender.plan.frontier import Frontier
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Plan
from recommender.plan.replan import Replan
from recommender.plan.simulation import Simulation
from recommender.plan.standing import MachineStanding
from recommender.report.json_output import (
    CALIBRATION_SCHEMA,
    ERROR_SCHEMA,
    FRONTIER_SCHEMA,
    PLAN_SCHEMA,
    REPLAN_SCHEMA,
    SIMULATION_SCHEMA,
    STANDING_SCHEMA,
    json_name,
)

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},  # null where a figure is unknown
    bool: {"type": "boolean"},
    object: {},
}


def build() -> str:
    """The schema of the current types."""
    definitions: dict[str, Any] = {}
    plan = _of(Plan, definitions)
    definitions["Plan"]["properties"]["launch"] = {"type": ["string", "null"]}
    definitions["Plan"]["required"].append("launch")
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What recommend -o json writes: an answer on standard output, or an error on "
        "standard error. Seconds, bytes, USD; six significant digits.",
        "oneOf": [
            _answer(plan, definitions),
            _simulation(definitions),
            _about("replan", REPLAN_SCHEMA, Replan, definitions),
            _about("frontier", FRONTIER_SCHEMA, Frontier, definitions),
            _about("machine", STANDING_SCHEMA, MachineStanding, definitions),
            _calibration(definitions),
            _error(),
        ],
        "$defs": definitions,
    }
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


def _simulation(definitions: dict[str, Any]) -> dict[str, Any]:
    """What `recommend simulate` writes."""
    return _object(
        {
            "schema": {"const": SIMULATION_SCHEMA},
            "provenance": _object(
                {"tool": _PLAIN[str], "catalog": _PLAIN[str], "seed": _PLAIN[int]}
            ),
            "inputs": _inputs(definitions),
            "simulation": _of(Simulation, definitions),
        }
    )


def _about(name: str, schema: str, kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """What `replan`, `explain` and `frontier` write: one finding about a question."""
    return _object(
        {
            "schema": {"const": schema},
            "provenance": _object({"tool": _PLAIN[str], "catalog": _PLAIN[str]}),
            "inputs": _inputs(definitions),
            name: _of(kind, definitions),
        }
    )


def _calibration(definitions: dict[str, Any]) -> dict[str, Any]:
    """What `recommend calibrate` writes: the section of the job file, and every run."""
    _of(TimedRun, definitions)
    run = _object({**definitions.pop("TimedRun")["properties"], "predicted_s": _PLAIN[float]})
    return _object(
        {
            "schema": {"const": CALIBRATION_SCHEMA},
            "calibration": CALIBRATION_SECTION,
            "runs": _list(run),
            "written": _PLAIN[str],
        }
    )


def _answer(plan: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    texts = {"type": "array", "items": {"type": "string"}}
    step = _object({"change": _PLAIN[str], "effect": _PLAIN[str], "plan": _nullable(plan)})
    ranked = {**plan, "required": ["rank"]}
    number = {"type": "integer", "minimum": 1}
    why = _object(
        {
            "binding": texts,
            "nearest": _list(step),
            "fastest": _nullable(plan),
            "cheapest": _nullable(plan),
            "unexplored": _nullable(_PLAIN[str]),
        }
    )
    # A plan in the list carries its rank next to its own fields.
    definitions["Plan"]["properties"]["rank"] = {"type": "integer", "minimum": 1}
    made = _object(
        {
            "schema": {"const": PLAN_SCHEMA},
            "status": {"enum": ["ok", "infeasible", "unknown"]},
            "goal": {"enum": ["cost", "time", "frontier"]},
            "lead": _nullable(number),
            "best": _nullable(number),
            "order": {"enum": ["cost", "time", "value", None]},
            "provenance": _object(
                {
                    "tool": _PLAIN[str],
                    "catalog": _PLAIN[str],
                    "prices": _list(_of(PriceDate, definitions)),
                    "seed": _PLAIN[int],
                }
            ),
            "inputs": _inputs(definitions),
            "proof": _of(Proof, definitions),
            "program": _nullable(_of(ProgramFacts, definitions)),
            "lower_bound": _object({"usd": _PLAIN[float], "s": _PLAIN[float]}),
            "plans": _list(ranked),
            "trio": _nullable(_list(_pick(definitions))),
            "baselines": _list(plan),
            "compared": _nullable(plan),
            "sensitivity": _list(step),
            "infeasible": _nullable(why),
            "more": _object({"plans": _PLAIN[int], "regions": _PLAIN[int]}),
            "assumptions": texts,
            "warnings": texts,
        }
    )
    # Only with --verify.
    made["properties"]["checks"] = _list(_of(Check, definitions))
    return made


def _pick(definitions: dict[str, Any]) -> dict[str, Any]:
    """One of the plans that an answer leads with, by its number."""
    return _object(
        {
            "role": {"enum": list(get_args(Role))},
            "rank": {"type": "integer", "minimum": 1},
            "reasons": {"type": "array", "items": {"type": "string"}},
            "effort_h": _PLAIN[float],
            "faster": _nullable(_of(Faster, definitions)),
            "ties": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        }
    )


def _inputs(definitions: dict[str, Any]) -> dict[str, Any]:
    kinds = {"job": Job, "limits": Limits, "choice": Choice, "progress": Progress}
    return {
        "type": "object",
        "properties": {name: _of(kind, definitions) for name, kind in kinds.items()},
        "required": list(kinds),
    }


def _error() -> dict[str, Any]:
    return _object(
        {
            "schema": {"const": ERROR_SCHEMA},
            "code": {
                "enum": [
                    *("USAGE", "CATALOG", "SOLVER", "RECORD", "IO", "INTERNAL"),
                    *("BUSY", "TIMEOUT"),  # of the server
                ]
            },
            "exit_code": _PLAIN[int],
            "message": _PLAIN[str],
            "problems": {"type": "array", "items": {"type": "string"}},
        }
    )


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; dataclasses become named definitions."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, definitions)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(each, definitions) for each in inner]}
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return _list(_of(inner[0], definitions))
    if origin is tuple:
        items = [_of(each, definitions) for each in inner]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    if kind is type(None):
        return {"type": "null"}
    raise TypeError(f"no schema for {kind}")


def _dataclass(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}
        hints = get_type_hints(kind)
        made = _object({json_name(f): _of(hints[f.name], definitions) for f in fields(kind)})
        made["description"] = (kind.__doc__ or "").partition("\n")[0]
        definitions[name] = made
    return {"$ref": f"#/$defs/{name}"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _nullable(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}
