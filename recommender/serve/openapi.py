"""What the server takes and gives, as OpenAPI 3.1: answers have the schema of the command line."""

import json
from typing import Any

from recommender.inputs.units import PROVIDERS
from recommender.plan.limits import MARKETS
from recommender.plan.version import __version__
from recommender.report.json_output import FRONTIER_SCHEMA, PLAN_SCHEMA, schema_text
from recommender.serve import question

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
        "components": {"schemas": {"Question": question.schema(), "Output": _moved(answers),
                                   **_moved(answers["$defs"])}},
    }  # fmt: skip


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
