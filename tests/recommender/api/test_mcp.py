"""The MCP server, asked by the SDK's own client as agents ask it."""

import asyncio
import json
import os
import sys
from typing import Any

import jsonschema
import pytest

pytest.importorskip("mcp", reason="the MCP SDK (extra mcp) is not installed")

from mcp import Client, StdioServerParameters

from recommender.api.mcp_server import server
from recommender.report.json_output import schema_text

SCHEMA = json.loads(schema_text())


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def asked(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """What the tools answer, by one client of one server."""

    async def ask() -> list[Any]:
        async with Client(server()) as client:
            return [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(ask())


def test_an_agent_sees_six_tools_that_say_what_they_take() -> None:
    async def listed() -> Any:
        async with Client(server()) as client:
            assert "Nothing is ever rented" in (client.instructions or "")
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in asyncio.run(listed())}
    assert set(tools) == {
        "recommend_plan", "answer_document", "explain_machine", "init_job", "export_plan",
        "catalog_status",
    }  # fmt: skip
    assert tools["recommend_plan"].input_schema["required"] == ["job"]
    assert all(len(tool.description) > 60 for tool in tools.values())


def test_from_a_model_to_files_that_run_a_plan() -> None:
    (drafted,) = asked(("init_job", {
        "model": "Qwen/Qwen2.5-7B", "method": "lora", "examples": "50k",
        "tokens_per_example": "600", "epochs": "3",
    }))  # fmt: skip
    assert "90M tokens" in drafted.structured_content["work"]
    ask = {"job": drafted.structured_content["text"], "deadline": "24h", "providers": ["gcp"],
           "gpus": ["L4"], "machines": 2}  # fmt: skip
    (planned,) = asked(("recommend_plan", ask))
    short = planned.structured_content
    assert len(json.dumps(short)) <= 2048
    assert short["status"] == "ok"
    named = {"id": short["id"]}
    whole, exported, status = asked(
        ("answer_document", named),
        ("export_plan", {**named, "to": "gcloud"}),
        ("catalog_status", {}),
    )
    answer = whole.structured_content
    jsonschema.validate(answer, SCHEMA)
    assert answer["lead"] == short["plans"][0]["plan"]
    assert answer["inputs"]["limits"]["deadline_s"] == 86_400
    assert {sum(m["count"] for m in plan["machines"]) for plan in answer["plans"]} == {2}
    files = exported.structured_content["files"]
    assert set(files) == {"launch.sh", "machine.sh"}
    assert answer["plans"][answer["lead"] - 1]["machines"][0]["instance_type"] in files["launch.sh"]
    assert {each["provider"] for each in status.structured_content["prices"]} >= {"aws", "gcp"}


def test_a_machine_is_explained() -> None:
    ask = {"machine": "g4dn.xlarge", "job": "llama3-8b-sft", "deadline": "24h"}
    (found,) = asked(("explain_machine", ask))
    jsonschema.validate(found.structured_content, SCHEMA)
    assert found.structured_content["machine"]["standing"] == "cannot train"


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("recommend_plan", {"job": "resnet50-imagenett"}, "did you mean resnet50-imagenet"),
        ("recommend_plan", {"job": "/etc/passwd"}, "unknown job"),
        ("recommend_plan", {"job": "gpt2-xl", "deadline": "soonish"}, "deadline"),
        ("recommend_plan", {"job": "gpt2-xl", "machines": 0}, "none of 1 to 4096"),
        ("export_plan", {"id": "none", "to": "skypilot"}, "none of the last 64 answers"),
        ("init_job", {"model": "/etc/passwd", "examples": "5k"}, "passwd"),
        ("init_job", {"model": "gpt2", "examples": "5k", "stack": "trl\nbatch: 1"}, "--stack"),
    ],
)
def test_an_agent_is_shown_what_is_wrong(tool: str, given: dict[str, Any], said: str) -> None:
    (found,) = asked((tool, given))
    assert found.is_error
    assert said in found.content[0].text


def test_the_command_serves_over_standard_streams() -> None:
    async def ask() -> Any:
        words = ["-P", "-c", "from recommender.cli import run; run()", "mcp"]
        async with Client(
            StdioServerParameters(command=sys.executable, args=words, env={**os.environ})
        ) as client:
            return await client.call_tool("catalog_status", {})

    assert asyncio.run(ask()).structured_content["version"]
