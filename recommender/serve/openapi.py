"""What the server takes and gives, as OpenAPI 3.1: answers have the schema of the command line."""

import json
from typing import Any

from recommender.inputs.units import PROVIDERS
from recommender.job.preset_files import presets
from recommender.plan.limits import ACCOUNTS, MARKETS
from recommender.plan.version import __version__
from recommender.report.json_output import FRONTIER_SCHEMA, PLAN_SCHEMA, schema_text
from recommender.serve.question import (
    AMOUNTS,
    FAMILY,
    MAX_MACHINES,
    MAX_NAMES,
    NAME,
    NAMES,
    NUMBERS,
    OBJECTIVES,
    QUOTA,
    SETTINGS,
    TIMING,
    WORDS,
)

Schema = dict[str, Any]
_TEXT = {"type": "string"}
_REFUSALS = {
    "400": "the question is wrong: every mistake is listed",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "503": "too many questions are being planned; ask again later",
    "504": "planning took too long, and was ended",
}


def document() -> Schema:
    """The whole description: paths, questions, answers."""
    answers = json.loads(schema_text())
    return {
        "openapi": "3.1.0",
        "info": {"title": "recommend", "version": __version__,
                 "description": "Which cloud GPUs to rent for a training job, and the chance "
                 "that it ends in time."},
        "paths": {
            "/api/plan": {"post": _question_path("Ranked plans.", PLAN_SCHEMA)},
            "/api/frontier": {
                "post": _question_path("The curve of cost and time.", FRONTIER_SCHEMA)
            },
            "/api/jobs": {"get": _read_path("Jobs that come with the tool.", _jobs())},
            "/api/catalog": {"get": {**_read_path("Offers, the cheapest first.", _offers()),
                                     "parameters": _filters()}},
            "/healthz": {"get": _read_path("Whether the server answers.", _object(status=_TEXT))},
        },
        "components": {"schemas": {"Question": question(), "Output": _moved(answers),
                                   **_moved(answers["$defs"])}},
    }  # fmt: skip


def question() -> Schema:
    """The body of a question."""
    numbers = {
        name: {"type": ["number", "null"], "minimum": least, "maximum": most}
        for name, (least, most) in NUMBERS.items()
    }
    machines = {"type": "integer", "minimum": 1, "maximum": MAX_MACHINES}
    names = {
        "type": "array",
        "maxItems": MAX_NAMES,
        "items": {"type": "string", "pattern": f"^{NAME.pattern}$"},
    }
    providers = {**names, "items": {"enum": list(PROVIDERS)}}
    limits = _closed(**numbers, max_machines=machines, objective={"enum": list(OBJECTIVES)})
    choice = _closed(
        providers=providers,
        **{name: {"enum": list(known)} for name, known in WORDS.items()},
        **dict.fromkeys(NAMES, names),
    )
    stated = {**machines, "type": ["integer", "null"]}
    job = {"anyOf": [{"enum": list(presets())}, _own_job()]}
    timings = {**names, "items": {"type": "string", "pattern": f"^{TIMING.pattern}$"}}
    quotas = {"anyOf": [{"enum": list(ACCOUNTS.values())}, {**names, "items": _quota()}]}
    body = _closed(job=job, limits=limits, choice=choice, machines=stated, measured=timings,
                   quotas=quotas)  # fmt: skip
    return {**body, "required": ["job"]}


def _own_job() -> Schema:
    """A known model, and how much of what is trained on."""
    numbers = {
        name: {"type": "number", "minimum": least, "maximum": most}
        for name, (least, most) in AMOUNTS.items()
    }
    words = {name: {"enum": list(known)} for name, known in SETTINGS.items()}
    needed = [{"required": ["examples"]}, {"required": ["tokens"]}]
    return {**_closed(**words, **numbers), "required": ["model"], "anyOf": needed}


def _quota() -> Schema:
    """How much of a family an account may run; without a region in every one."""
    fields: Schema = {name: {"enum": list(known)} for name, known in QUOTA.items()}
    fields["family"] = {"type": "string", "pattern": f"^{FAMILY.pattern}$"}
    fields["region"] = {"type": "string", "pattern": f"^{NAME.pattern}$"}
    fields["amount"] = {"type": "number", "minimum": 0.0, "maximum": 1e7}
    return {**_closed(**fields), "required": ["provider", "family", "amount"]}


def _closed(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _question_path(summary: str, schema: str) -> Schema:
    """A question and its answer."""
    body = {"$ref": "#/components/schemas/Question"}
    answer = {
        "allOf": [
            {"$ref": "#/components/schemas/Output"},
            {"properties": {"schema": {"const": schema}}},
        ]
    }
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _content("the answer", answer), **_refusals()},
    }


def _read_path(summary: str, schema: Schema) -> Schema:
    refusals = {code: description for code, description in _refusals().items() if code == "400"}
    return {"summary": summary, "responses": {"200": _content(summary, schema), **refusals}}


def _refusals() -> Schema:
    error = {"$ref": "#/components/schemas/Output"}
    return {code: _content(description, error) for code, description in _REFUSALS.items()}


def _content(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _jobs() -> Schema:
    return _object(jobs={"type": "array", "items": _object(name=_TEXT, title=_TEXT)})


def _offers() -> Schema:
    return _object(offers={"type": "array", "items": {"type": "object"}})


def _filters() -> list[Schema]:
    known = {
        "name": {"type": "string", "maxLength": 64},
        "provider": {"enum": list(PROVIDERS)},
        "region": {"type": "string", "maxLength": 64},
        "market": {"enum": sorted(MARKETS["any"])},
        "top": {"type": "integer", "minimum": 1, "maximum": 1000},
    }
    return [{"name": name, "in": "query", "schema": schema} for name, schema in known.items()]


def _moved(tree: Any) -> Any:
    """A schema with its definitions where OpenAPI has them."""
    if isinstance(tree, dict):
        return {
            key: value.replace("#/$defs/", "#/components/schemas/")
            if key == "$ref"
            else _moved(value)
            for key, value in tree.items()
            if key not in ("$defs", "$schema")
        }
    return [_moved(each) for each in tree] if isinstance(tree, list) else tree
