"""`recommend explain`: its page, its JSON, and that a region binds the machine alone."""

import json
from typing import Any

import jsonschema
import pytest

from recommender.cli import main
from recommender.report.json_output import schema_text

ASK = ("--gpu", "A10G", "--gpu", "L4", "--provider", "aws", "--deadline", "48h")


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")


def test_a_machine_is_set_next_to_the_best_of_the_same_runs_and_its_price_is_sought(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def asked(*words: str) -> dict[str, Any]:
        assert main([*words, "resnet50-imagenet", *ASK, "--json"]) == 0
        made: dict[str, Any] = json.loads(capsys.readouterr().out)
        return made

    made = asked("explain", "g5.12xlarge", "--region", "us-west-2", "--seed", "5")
    jsonschema.validate(made, json.loads(schema_text()))
    assert made["schema"] == "recommend.standing/v1"
    found = made["machine"]
    assert found["standing"] == "behind"
    assert found["plan"]["machines"][0]["region"] == "us-west-2"
    assert found["best"]["machines"][0]["region"] != "us-west-2"
    assert found["price"]["factor"] < 1.0
    same, other = (asked("--seed", seed)["plans"][0]["estimate"] for seed in "56")
    assert found["best"]["estimate"] == same != other


def test_what_is_not_allowed_is_reported_with_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "a3-highgpu-8g", "resnet50-imagenet", "--provider", "aws"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out == "a3-highgpu-8g may not be rented. --provider aws leaves it out."


def test_a_retired_machine_is_reported_with_its_own_offers_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "p3.16xlarge", "resnet50-imagenet"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("p3.16xlarge may not be rented. ")
    assert out.endswith(" offers of it left out: retired.")
    assert out.count("left out") == 1


def test_a_machine_misspelt_and_a_wrong_flag_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "p5.48xlarg", "resnet50-imagenet"]) == 2
    assert "did you mean p5.48xlarge?" in capsys.readouterr().err
    assert main(["explain", "p5.48xlarge", "resnet50-imagenet", "--deadlin", "4h"]) == 2
    assert "did you mean --deadline?" in capsys.readouterr().err
