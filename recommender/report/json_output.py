"""Answers and errors as JSON, and the names of their schemas."""

import json
import math
from collections.abc import Sequence
from dataclasses import Field, fields, is_dataclass
from importlib import resources
from typing import Any

from recommender.plan.answer import Answer
from recommender.plan.plan import Plan
from recommender.plan.version import __version__
from recommender.report.answer_frame import PlanRequest

PLAN_SCHEMA = "recommend.plan/v1"
ERROR_SCHEMA = "recommend.error/v1"
SIMULATION_SCHEMA = "recommend.simulation/v1"
FRONTIER_SCHEMA = "recommend.frontier/v1"
REPLAN_SCHEMA = "recommend.replan/v1"
STANDING_SCHEMA = "recommend.standing/v1"
CALIBRATION_SCHEMA = "recommend.calibration/v1"


_DIGITS = 6
SCHEMA_FILE = "recommend.plan.v1.json"  # a test builds it from the types


def schema_text() -> str:
    """The JSON Schema of answers and errors."""
    return (resources.files("recommender.report") / "schema" / SCHEMA_FILE).read_text("utf-8")


def document(answer: Answer, request: PlanRequest) -> dict[str, Any]:
    """The whole answer: seconds, USD, dates, six significant digits, nothing relative to now."""
    return {
        "schema": PLAN_SCHEMA,
        "status": answer.status,
        "goal": answer.goal,
        "lead": answer.lead if answer.plans else None,
        "best": answer.best if answer.plans else None,
        "order": order_of(answer) if answer.plans else None,
        "provenance": {
            "tool": f"recommend {__version__}",
            "catalog": request.catalog,
            "prices": plain(answer.prices),
            "seed": answer.seed,
        },
        "inputs": {**plain(answer.inputs), **inputs_of(request)},
        "proof": plain(answer.proof),
        "program": plain(answer.program),
        "lower_bound": {"usd": plain(answer.lower_bound_usd), "s": plain(answer.lower_bound_s)},
        "plans": [{"rank": i, **plan_object(plan, i)} for i, plan in enumerate(answer.plans, 1)],
        "trio": _trio(answer.trio),
        "baselines": plain(answer.baselines),
        "compared": plain(answer.compared),
        "sensitivity": _steps(answer.sensitivity),
        "infeasible": _infeasible(answer),
        "more": {"plans": answer.more_plans, "regions": answer.more_regions},
        "assumptions": list(answer.assumptions),
        "warnings": list(answer.warnings),
        **({"checks": plain(answer.checks)} if answer.checks else {}),
    }


def inputs_of(request: PlanRequest) -> dict[str, Any]:
    """The question."""
    return plain(picked(request, "job", "limits", "choice", "progress"))  # type: ignore[no-any-return]


def finding(schema: str, name: str, found: Any, request: PlanRequest) -> dict[str, Any]:
    """One finding about a question, under its name."""
    return {
        "schema": schema,
        "provenance": {"tool": f"recommend {__version__}", "catalog": request.catalog},
        "inputs": inputs_of(request),
        name: plain(found),
    }


def error_document(code: str, exit_code: int, problems: Sequence[str]) -> dict[str, Any]:
    """An error, for programs."""
    return {
        "schema": ERROR_SCHEMA,
        "code": code,
        "exit_code": exit_code,
        "message": problems[0] if problems else code,
        "problems": list(problems),
    }


def dumps(made: Any) -> str:
    """JSON text with an indent of two, without NaN or infinity, ending in a newline."""
    return json.dumps(made, indent=2, allow_nan=False, ensure_ascii=True) + "\n"


def plan_object(plan: Plan, number: int | None = None) -> dict[str, Any]:
    """A plan with its launch line, by its number in the table (without one, a null line).

    What costs more than on demand has no saving.
    """
    saving = plan.saving if (plan.saving or 0.0) >= 0.0 else None
    from recommender.report.launch import launch_line  # it needs the models of checkpoints

    return {**_fields(plan), "saving": plain(saving), "launch": launch_line(plan, number)}


def _trio(trio: Any) -> Any:
    """Roles with their reasons, the leading one first; plans are given by number."""
    if trio is None:
        return None
    return [
        plain(picked(pick, "role", "rank", "reasons", "effort_h", "faster", "ties"))
        for pick in trio.picks
    ]


def order_of(answer: Answer) -> str:
    """The order of the plans: "cost", "time", "value" (cost plus a person's time)."""
    if answer.by_value:
        return "value"
    return "time" if answer.goal == "time" else "cost"


def _steps(steps: Any) -> list[Any]:
    return [plain(picked(step, "change", "effect", "plan")) for step in steps]


def _infeasible(answer: Answer) -> Any:
    why = answer.infeasible
    if why is None:
        return None
    return {
        "binding": list(why.binding),
        "nearest": _steps(why.relaxed),
        **plain(picked(why, "fastest", "cheapest")),
        "unexplored": why.unexplored or None,
    }


def plain(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, floats rounded; unknown is null, never NaN."""
    if isinstance(value, Plan):
        return plan_object(value)
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return _rounded(float(value)) if hasattr(value, "__float__") else str(value)


def _fields(value: Any) -> dict[str, Any]:
    return {json_name(each): plain(getattr(value, each.name)) for each in fields(value)}


def picked(thing: Any, *names: str) -> dict[str, Any]:
    """Some attributes of a thing by their names."""
    return {name: getattr(thing, name) for name in names}


def json_name(each: Field[Any]) -> str:
    """The name of a field in JSON: its own, unless stated otherwise."""
    name: str = each.metadata.get("json", each.name)
    return name


def _rounded(x: float) -> float | int | None:
    if not math.isfinite(x):
        return None
    rounded = float(f"{x:.{_DIGITS}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
