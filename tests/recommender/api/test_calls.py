"""The calls for Python say what the command line says."""

import json
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from recommender import Answer, Choice, GpuFilter, Limits, UsageError, backtest, recommend, simulate
from recommender.api import agent_tools
from recommender.cli import main
from recommender.report.json_output import schema_text
from recommender.traces.read import chosen
from recommender.traces.sample import trace_path
from tests.shipped import every_cloud, snapshot

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
A10G = Choice(providers=("aws",), gpus=(GpuFilter("A10G"),))


@pytest.fixture(scope="module")
def answer() -> Answer:
    return recommend(
        "resnet50-imagenet",
        choice=A10G,
        deadline="48h",
        catalog=every_cloud(),
        now=NOW,
        worth=True,
    )


def test_the_document_is_that_of_the_command_line(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("RECOMMEND_NOW", NOW.isoformat())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    words = ("resnet50-imagenet", "--deadline", "48h", "--gpu", "A10G", "--provider", "aws")
    assert main([*words, "--json"]) == 0
    typed = json.loads(capsys.readouterr().out)
    made = json.loads(json.dumps(answer.to_dict()))  # type: ignore[attr-defined]
    assert made == typed
    jsonschema.validate(answer.to_dict(), json.loads(schema_text()))  # type: ignore[attr-defined]


def test_an_answer_prints_as_the_command_line_does(answer: Answer) -> None:
    printed = f"{answer}"
    assert len(printed) < 3000
    assert answer.sensible is not None
    assert answer.sensible.machines[0].instance_type in printed
    assert "First" in printed
    assert "<table>" in answer._repr_html_()  # type: ignore[attr-defined]


def test_an_agent_gets_what_it_can_read_and_a_name_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RECOMMEND_NOW", NOW.isoformat())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    short = agent_tools.recommend_plan(
        "resnet50-imagenet", deadline="48h", gpus=["A10G"], providers=["aws"]
    )
    assert len(json.dumps(short)) <= 2048
    whole = agent_tools.answer_document(short["id"])
    assert whole["lead"] == short["plans"][0]["plan"]
    files = agent_tools.export_plan(short["id"], to="torchrun")["files"]
    assert any("resnet50-imagenet" in text for text in files.values())
    with pytest.raises(UsageError, match="none of the last 64 answers"):
        agent_tools.export_plan("unknown")


def test_plans_are_rows_of_a_table(answer: Answer) -> None:
    pytest.importorskip("pandas")
    table = answer.to_pandas()  # type: ignore[attr-defined]
    assert list(table.index) == list(range(1, len(answer.plans) + 1))
    assert table.loc[1, "cost_usd"] == answer.plans[0].estimate.cost.mean
    assert table["time_s_p50"].tolist() == [plan.estimate.time.p50 for plan in answer.plans]


def test_typed_limits_win_over_those_given_and_are_refused_like_flags() -> None:
    found = recommend(
        "resnet50-imagenet", Limits(deadline_s=1.0, budget_usd=1.0), A10G,
        deadline="2d", budget=900, catalog=snapshot(), now=NOW, top=1,
    )  # fmt: skip
    assert found.request is not None
    assert (found.request.limits.deadline_s, found.request.limits.budget_usd) == (172_800.0, 900.0)
    with pytest.raises(UsageError, match="deadline"):
        recommend("resnet50-imagenet", deadline="soonish")
    with pytest.raises(UsageError, match="did you mean resnet50-imagenet"):
        recommend("resnet50-imagenett", deadline="24h")


def test_machines_are_simulated_by_the_words_of_the_command_line() -> None:
    words = "4x g5.12xlarge spot us-east-1"
    found = simulate("resnet50-imagenet", machines=words, runs=256, catalog=snapshot(), now=NOW)
    assert found.runs == 256
    assert found.plan.machines[0].count == 4
    with pytest.raises(UsageError, match="no plan meets the limits: "):
        simulate("resnet50-imagenet", choice=A10G, deadline="1m", catalog=snapshot(), now=NOW)


def test_the_sample_is_tried_in_one_line() -> None:
    rows = {row.policy: row for row in backtest(jobs=("24h/36h/6m",), every="48h")}
    assert set(rows) == {"on-demand", "greedy", "uniform progress", "cost-optimal"}
    hours = -(-24.1 * 3600 // 195) * 195 / 3600  # work and a changeover, in whole probes
    assert rows["on-demand"].mean_usd == pytest.approx(3.06 * hours)
    optimum = rows["greedy"].optimum_usd
    assert optimum < rows["cost-optimal"].mean_usd < rows["on-demand"].mean_usd


def test_the_sample_is_up_as_often_as_its_authors_recorded() -> None:
    """Availabilities of the 2023 series, as in /spot/traces.csv: 0.167, 0.759, 0.891."""
    traces = chosen([trace_path("sample")])
    shares = [float(trace.up(1, 195.0).mean()) for trace in traces]
    assert shares == pytest.approx([0.1667, 0.7593, 0.8913], abs=1e-3)
    assert {trace.source.rpartition(", ")[2] for trace in traces} == {"Apache-2.0"}


def test_a_file_called_sample_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert trace_path("sample").name == "sample.csv"
    (tmp_path / "sample").touch()
    assert trace_path("sample") == Path("sample")
