"""Questions of callers are bounded, and every mistake is named."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.errors import UsageError
from recommender.job.preset_files import presets
from recommender.plan.limits import Choice, Limits, QuotaLimit
from recommender.report.json_output import schema_text
from recommender.serve import openapi
from recommender.serve.answers import made
from recommender.serve.question import (
    MAX_MACHINES,
    OfferFilter,
    Question,
    filter_of,
    question_of,
    question_of_form,
    schema,
    stated,
)
from tests.shipped import snapshot

JOB = "resnet50-imagenet"
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
OWN_JOBS = st.fixed_dictionaries(
    {"model": st.sampled_from(["Qwen/Qwen2.5-7B", "./config.json", "../x"]) | ANY_JSON},
    optional={
        "examples": st.floats() | st.integers() | ANY_JSON,
        "tokens": st.integers(0, 10**12),
        "method": st.sampled_from(["lora", "none"]),
        "like": st.just("resnet50-imagenet"),
    },
)
QUOTAS = st.fixed_dictionaries(
    {"provider": st.sampled_from(["aws", "nowhere"]), "family": st.sampled_from(["p", "", "a\n"])},
    optional={
        "amount": st.integers(-1, 10) | ANY_JSON,
        "region": st.sampled_from(["us-east-1", ""]) | ANY_JSON,
        "unit": st.sampled_from(["gpu", "kg"]),
    },
)
BODIES = st.fixed_dictionaries(
    {"job": st.sampled_from(presets()) | OWN_JOBS | ANY_JSON},
    optional={
        "measured": st.lists(st.sampled_from(["8xH100: 3.1 s/step", "H100", ""])) | ANY_JSON,
        "quotas": st.sampled_from(["default-new", "granted", "mine"]) | st.lists(QUOTAS) | ANY_JSON,
        "limits": ANY_JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "deadline_s": st.floats() | st.integers() | st.none(),
                "budget_usd": st.floats() | ANY_JSON,
                "confidence": st.floats(0, 1),
                "max_machines": st.integers() | ANY_JSON,
                "objective": st.sampled_from(["auto", "cost", "time"]) | ANY_JSON,
            },
        ),
        "machines": st.integers(-1, 70) | ANY_JSON,
        "choice": ANY_JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "providers": st.lists(st.sampled_from(["aws", "gcp", "nowhere"])),
                "regions": st.lists(st.text(max_size=70), max_size=25),
                "market": st.sampled_from(["any", "spot", "none"]),
            },
        ),
    },
)


def refusals(body: Any) -> tuple[str, ...]:
    with pytest.raises(UsageError) as raised:
        question_of(body)
    return raised.value.problems


def test_a_question_is_read():
    body = {
        "job": JOB,
        "limits": {"deadline_s": 86400, "budget_usd": None, "max_machines": 4},
        "choice": {"providers": ["aws", "aws"], "market": "spot", "deny": ["p5*"]},
    }
    choice = Choice(providers=("aws",), market="spot", deny=("p5*",))
    assert question_of(body) == Question(JOB, Limits(deadline_s=86400.0, max_machines=4), choice)
    assert question_of({"job": JOB}) == Question(JOB, Limits(), Choice())


def test_ones_own_job_its_timings_and_quotas_are_read():
    body = {
        "job": {"model": "Qwen/Qwen2.5-7B", "method": "lora", "examples": 50000},
        "measured": ["8xH100: 3.1 s/step"],
        "quotas": [{"provider": "gcp", "family": "H100", "amount": 8, "region": "us-central1"}],
    }
    found = question_of(body)
    assert found.own == (
        ("model", "Qwen/Qwen2.5-7B"), ("method", "lora"), ("examples", "50000"),
    )  # fmt: skip
    assert (found.job, found.measured) == ("", ("8xH100: 3.1 s/step",))
    assert found.choice.quotas == (QuotaLimit("gcp", "H100", "any", "us-central1", "gpu", 8.0),)
    assert found.choice.quotas_known
    assert question_of({"job": JOB, "quotas": "granted"}).account == "granted"
    form = {
        "model": "qwen2.5-7b", "method": "lora", "examples": "50k", "deadline": "",
        "measured": "8xH100: 3.1 s/step\n", "quotas": "gcp, H100, 8, us-central1\n",
    }  # fmt: skip
    assert question_of_form(form) == found
    assert question_of_form(stated(found)) == found  # as the page of its answer asks again
    assert stated(question_of({"job": JOB})) == {"job": JOB}


@pytest.mark.parametrize("model", ["./config.json", "/etc/passwd", "../known", "https://x/y"])
def test_a_model_is_no_file_and_no_address(model: str):
    said = refusals({"job": {"model": model, "examples": 10}})
    assert said[0].startswith(f"job.model: '{model}' is none of ")
    assert len(said[0]) < 1500


def test_a_job_of_ones_own_is_answered_with_its_own_figures():
    """The file that a folder holds is no caller's."""
    own = (("model", "Qwen/Qwen2.5-0.5B"), ("method", "lora"), ("examples", "1000"),
           ("epochs", "2"))  # fmt: skip
    limits = Limits(deadline_s=86_400.0)
    asked = Question("", limits, Choice(), own=own, account="granted")
    answer = json.loads(made("plan", asked, snapshot()))
    assert answer["inputs"]["job"]["samples"] == pytest.approx(2000)
    needs = [need for plan in answer["plans"] for need in plan["needs"]]
    assert needs
    assert all(need["yours"] is None or need["yours"] >= need["amount"] for need in needs)


def test_every_mistake_is_named_at_once():
    found = refusals({"job": "../etc/passwd", "limits": {"deadline_s": "1", "x": 1}, "q": 2})
    named = [each.partition(":")[0] for each in found]
    assert sorted(named) == ["deadline_s", "job", "limits", "the body"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0, -1, True, "3", 1e300, [1]])
def test_numbers_that_are_none_or_out_of_bounds_are_refused(value: Any):
    (said,) = refusals({"job": JOB, "limits": {"budget_usd": value}})
    assert said.startswith("budget_usd: write a number from ")


@pytest.mark.parametrize("value", [0, MAX_MACHINES + 1, 2.5, True, "4", None])
def test_so_many_machines_are_refused(value: Any):
    assert refusals({"job": JOB, "limits": {"max_machines": value}})


@given(BODIES | ANY_JSON)
def test_what_is_accepted_is_what_the_description_accepts(body: Any):
    """As JSON carries it: NaN and infinity are no JSON, and 2.0 is an integer."""
    try:
        text = json.dumps(body, allow_nan=False)
    except ValueError:
        return
    sent = json.loads(text)
    valid = jsonschema.Draft202012Validator(schema()).is_valid(sent)
    try:
        question_of(sent)
        accepted = True
    except UsageError:
        accepted = False
    assert accepted == valid


@pytest.mark.parametrize(
    "asked",
    [[("provider", "null")], [("market", "spot"), ("market", "spot")], [("top", "0")], [("x", "1")],
     [("top", "1001")], [("region", "r" * 65)]],
)  # fmt: skip
def test_filters_that_mean_nothing_are_refused(asked: list[tuple[str, str]]):
    with pytest.raises(UsageError):
        filter_of(asked)


def test_filters_are_read():
    assert filter_of([("market", "spot"), ("top", "1000")]) == OfferFilter("", "", "", "spot", 1000)


def test_a_form_takes_the_words_of_the_command_line():
    form = {"job": JOB, "deadline": "24h", "budget": "$1.5k", "confidence": "90%"}
    limits = Limits(deadline_s=86400.0, budget_usd=1500.0, confidence=0.9)
    assert question_of_form(form) == Question(JOB, limits, Choice())
    assert question_of_form({"job": JOB, "deadline": " "}) == Question(JOB, Limits(), Choice())
    with pytest.raises(UsageError, match="deadline"):
        question_of_form({"job": JOB, "deadline": "soon"})


def test_the_description_is_plain_json_whose_references_lead_somewhere():
    reported = json.loads(json.dumps(openapi.document(), allow_nan=False))
    known = reported["components"]["schemas"]
    names = {
        each.removeprefix("#/components/schemas/")
        for each in references(reported)
        if each.startswith("#/components/schemas/")
    }
    assert set(references(reported)) == {f"#/components/schemas/{name}" for name in names}
    assert names <= set(known)


def test_answers_have_the_schema_of_the_command_line():
    """All of it, under the names where OpenAPI keeps definitions."""
    described = openapi.document()["components"]["schemas"]
    schema = json.loads(schema_text())
    definitions = schema.pop("$defs")
    del schema["$schema"]
    here, there = json.dumps(described), json.dumps({"Output": schema, **definitions})
    assert json.loads(here.replace("#/components/schemas/", "#/$defs/")) == {
        "Question": json.loads(here.replace("#/components/schemas/", "#/$defs/"))["Question"],
        **json.loads(there),
    }


def test_bounds_are_reported_in_digits():
    """They were 3.1536e+08."""
    said = "deadline_s: write a number from 60 to 315,360,000"
    assert refusals({"job": JOB, "limits": {"deadline_s": 1e10}}) == (said,)


def references(tree: Any) -> list[str]:
    if isinstance(tree, dict):
        own = [tree["$ref"]] if "$ref" in tree else []
        return own + [each for value in tree.values() for each in references(value)]
    return [each for value in tree for each in references(value)] if isinstance(tree, list) else []


def test_a_number_of_machines_may_be_stated():
    assert question_of({"job": JOB, "machines": 8.0}).machines == 8
    assert question_of({"job": JOB, "machines": None}).machines == 0
    assert question_of({"job": JOB}).machines == 0
    for wrong in (0, 65, 2.5, True, "8"):
        said = "machines: write a whole number from 1 to 64"
        assert refusals({"job": JOB, "machines": wrong}) == (said,)
