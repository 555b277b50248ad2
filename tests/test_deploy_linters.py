"""What the linters of others say of the files in deploy/; all of them run without a network."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.test_deploy import DEPLOY, cronjob

WORKFLOW = (DEPLOY / "github" / "refresh-catalog.yml").read_text("utf-8")
# The part of Kubernetes' own schema that a CronJob needs; unknown fields are refused.
CRONJOB = Path(__file__).parent / "cronjob-1.37.json.gz"


def lint(text: str, folder: Path, *words: str) -> tuple[bool, str]:
    """Whether a linter accepts a workflow, and what it says."""
    path = folder / "workflow.yml"
    path.write_text(text)
    done = subprocess.run([*words, str(path)], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def schema(text: str, folder: Path) -> tuple[bool, str]:
    """GitHub's own form of a workflow."""
    pytest.importorskip("check_jsonschema")
    words = ("-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows")
    return lint(text, folder, sys.executable, *words)


def audit(text: str, folder: Path) -> tuple[bool, str]:
    """Unpinned actions, text pasted into a shell, rights that are too wide."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    zizmor = shutil.which("zizmor", path=here)
    if not zizmor:
        pytest.skip("zizmor is not installed here")
    return lint(text, folder, zizmor, "--offline", "--no-progress", "--quiet")


@pytest.mark.parametrize("tool", [schema, audit])
@pytest.mark.parametrize("name", ["refresh-catalog.yml", "publish-catalog.yml"])
def test_the_workflows_are_clean(tool: Any, name: str, tmp_path: Path) -> None:
    good, said = tool((DEPLOY / "github" / name).read_text("utf-8"), tmp_path)
    assert good, said


@pytest.mark.parametrize(
    ("tool", "before", "after"),
    [
        (schema, "cancel-in-progress", "cancel_in_progress"),
        (schema, "timeout-minutes: 30", "timeout-minutes: soon"),
        (audit, re.search("@[0-9a-f]{40} # v4.2.2", WORKFLOW)[0], "@v4"),  # type: ignore[index]
        (
            audit,
            "no-build-isolation .",
            "no-build-isolation ${{ github.event.head_commit.message }}",
        ),
        (audit, "persist-credentials: false", "fetch-depth: 1"),
    ],
)
def test_what_is_wrong_in_a_workflow_is_seen(
    tool: Any, before: str, after: str, tmp_path: Path
) -> None:
    assert before in WORKFLOW
    assert not tool(WORKFLOW.replace(before, after), tmp_path)[0]


def kubernetes(job: Any) -> list[str]:
    """What Kubernetes would refuse."""
    validator = jsonschema.Draft7Validator(json.loads(gzip.decompress(CRONJOB.read_bytes())))
    return [error.message for error in validator.iter_errors(job)]


def test_kubernetes_takes_the_job() -> None:
    assert kubernetes(cronjob()) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("timeZone", "timezone"),
        ("backoffLimit: 1", "backoffLimit: one"),
        ("drop: [ALL]", "drop: ALL"),
    ],
)
def test_kubernetes_would_refuse_a_mistake(before: str, after: str) -> None:
    text = (DEPLOY / "kubernetes" / "cronjob.yaml").read_text("utf-8")
    assert before in text
    assert kubernetes(yaml.safe_load(text.replace(before, after)))


def verified(folder: Path, before: str = "", after: str = "") -> str:
    """What systemd says of the units, with a program that is there in place of ours."""
    for path in (DEPLOY / "systemd").iterdir():
        text = path.read_text("utf-8").replace("/usr/local/bin/recommend ", "/bin/true ")
        (folder / path.name).write_text(text.replace(before, after) if before else text)
    names = sorted(str(path) for path in folder.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", *names], capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed here")
def test_systemd_accepts_the_units_and_reports_a_mistake(tmp_path: Path) -> None:
    assert verified(tmp_path) == ""
    assert "Unknown key" in verified(tmp_path, "UMask=", "Umask=")
    assert "Failed to parse calendar" in verified(tmp_path, "*-*-* 02:17:00 UTC", "nightly")
