"""The commands besides the plan."""

import json

import jsonschema
import pytest

from recommender.job.jobfile import job_from_text
from recommender.job.preset_files import presets
from tests.recommender.cli.conftest import Run
from tests.research.accuracy.studies import STUDIES

COMMANDS = [
    ["jobs", "list"],
    ["jobs", "show", "llama3-8b-lora"],
    ["catalog", "status"],
    ["catalog", "show", "H100"],
    ["config", "show"],
    ["sources"],
    ["accuracy", "cmdare-step"],
    ["doctor"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("columns", ["40", "80", "140"])
def test_a_page_fits_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = run(*words)
    assert (result.code, result.err) == (0, "")
    long = [line for line in result.out.splitlines() if len(line) > int(columns)]
    assert not [line for line in long if " " in line.strip().replace(" · ", "")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_page_is_json_as_well(run: Run, words: list[str]) -> None:
    result = run(*words, "-o", "json")
    assert result.code == 0
    assert json.loads(result.out)


def test_every_job_is_listed(run: Run) -> None:
    out = run("jobs", "list").out
    assert [name for name in presets() if name not in out] == []


def test_a_new_job_file_can_be_read(run: Run) -> None:
    text = run("jobs", "new", "--like", "llama3-8b-lora").out
    assert job_from_text(text).method == "lora"
    assert run("jobs", "new", "--like", "nothing").code == 2


def test_the_job_schema_is_a_schema(run: Run) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(run("jobs", "schema").out))


def test_catalog_status_shows_age_and_what_is_left_out(run: Run) -> None:
    out = run("catalog", "status").out
    assert "Catalog: shipped snapshot" in out
    assert "left out of default answers" in out
    assert "2026-10-10" in out
    assert "41 d" in out


def test_catalog_show_filters(run: Run) -> None:
    words = ["catalog", "show", "A100", "--provider", "aws", "--market", "spot", "--json"]
    found = json.loads(run(*words, "--top", "7").out)
    assert len(found) == 7
    assert {(o["provider"], o["market"]) for o in found} == {("aws", "spot")}
    assert [o["usd_per_hour"] for o in found] == sorted(o["usd_per_hour"] for o in found)


def test_a_setting_is_kept_and_shown_with_its_origin(run: Run) -> None:
    assert run("config", "set", "providers", "aws", "gcp").code == 0
    shown = json.loads(run("config", "show", "--json").out)
    assert shown["providers"]["value"] == ["aws", "gcp"]
    assert shown["providers"]["origin"].endswith("config.toml")
    assert run("config", "set", "provider", "aws").code == 2


def test_doctor_shows_where_credentials_are_but_not_their_values(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACANARY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    out = run("doctor").out
    assert "credentials in AWS_ACCESS_KEY_ID" in out
    assert "CANARY" not in out.upper().replace("AWS_ACCESS_KEY_ID", "")


@pytest.mark.parametrize("group", ["jobs", "catalog", "config"])
def test_a_group_alone_shows_its_help(run: Run, group: str) -> None:
    result = run(group)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: recommend {group}")


def test_accuracy_shows_error_split_target_and_source(run: Run) -> None:
    out = run("accuracy", "cmdare-step").out
    assert "step time of an unseen CNN" in out
    said = " ".join(out.split())
    assert "leave one network out · target mean 3.8 %: met · published 11.1 %" in said
    assert "arXiv" in out


def test_accuracy_is_a_screen_with_every_group_of_studies(run: Run) -> None:
    lines = run("accuracy").out.splitlines()
    assert len(lines) <= 28
    named = {line.partition(":")[0] for line in lines}
    assert {study.key.partition("-")[0] for study in STUDIES} <= named
    # By hand: 6 points each, of 2.26, 4.07 and 2.69 %, all in their spans.
    row = next(line for line in lines if line.startswith("deepvm:"))
    assert row.split()[-9:] == ["3", "18", "3", "%", "100", "%", "0", "of", "3"]


def test_accuracy_names_each_study_and_calls_no_target_met_that_was_not_set(run: Run) -> None:
    key = "cmdare-cluster-p100"
    assert f"  {key} · leave one network out" in run("accuracy", key).out
    found = json.loads(run("accuracy", key, "--json").out)["studies"][0]
    assert (found["asked"], found["score"]["met"]) == ("", None)


def test_accuracy_needs_no_large_tables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOMMEND_REFERENCE_DATA", raising=False)
    found = json.loads(run("accuracy", "-o", "json").out)
    assert found["reference"] is None
    assert [study["key"] for study in found["studies"]] == [study.key for study in STUDIES]
    assert all(study["score"]["points"] for study in found["studies"])
    assert {study["skipped"] for study in found["studies"]} == {None}


def test_accuracy_lists_published_runs_one_by_one(run: Run) -> None:
    out = " ".join(run("accuracy", "runs").out.split())
    assert "Llama 3 8B 1,024 H100 1.3 M" in out
    assert "BLOOM 176B: arXiv 2211.02001" in out
    assert "spot" not in out  # of `runs-v100`, runs of spot capacity
    found = json.loads(run("accuracy", "Runs", "-o", "json").out)
    assert found["studies"] == []
    for each in found["runs"]:
        ratio = each["predicted_gpu_hours"] / each["published_gpu_hours"]
        assert each["ratio"] == pytest.approx(ratio)
        low, high = each["span_gpu_hours"]
        assert each["in_span"] == (low <= each["published_gpu_hours"] <= high)
    keys = [
        each["key"] for each in json.loads(run("accuracy", "runs-", "-o", "json").out)["studies"]
    ]
    assert keys == [study.key for study in STUDIES if study.key.startswith("runs-")]
    both = json.loads(run("accuracy", "runs", "cmdare-step", "-o", "json").out)
    assert len(both["runs"]) == len(found["runs"])
    assert len(both["studies"]) == 3


def test_every_line_of_accuracy_says_by_itself_what_is_predicted() -> None:
    """Lines are requested one at a time too: `recommend accuracy scaling-fsdp`."""
    subjects = [study.subject for study in STUDIES]
    assert [subject for subject in subjects if subject.startswith("the same")] == []
    assert len(set(subjects)) == len(subjects)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resnet"], "unknown study 'resnet'"),
        (["--reference", "/nowhere"], "unknown flag --reference"),
    ],
)
def test_accuracy_refuses_what_it_does_not_know(run: Run, words: list[str], said: str) -> None:
    result = run("accuracy", *words)
    assert result.code == 2
    assert said in result.err
    assert result.out == ""
