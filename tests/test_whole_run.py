"""examples/whole_run: from a model to a training that was interrupted, replanned and ended."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / "examples" / "whole_run"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fake provider reads /proc")


def ended(folder: Path, *words: str, **own: str) -> str:
    """What a program of the example printed, with this environment's Python and `recommend`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path, **own}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_run_is_planned_exported_interrupted_replanned_and_ends_as_if_undisturbed(
    tmp_path: Path,
):
    said = ended(tmp_path, "bash", str(RUN / "run.sh"))
    assert "aws: terminate 2026-11-23T08:22:00Z; saving" in said
    assert "ended with status 137" in said
    (done, _) = re.findall(r", ([\d.]+) % done after .*: (stay|move)\.", said)[0]
    ((steps, total, weights),) = re.findall(r"(\d+) of (\d+) steps here, weights (.*)", said)
    left = (1 - float(done) / 100) * int(total)
    assert int(steps) == pytest.approx(left, abs=int(total) / 100)
    assert 0 < int(steps) < int(total)
    progress = json.loads((tmp_path / "checkpoints" / "progress.json").read_text("utf-8"))
    assert (progress["done_share"], progress["interruptions"]) == (1.0, 1)
    script = (tmp_path / "run" / "train.sh").read_text("utf-8")
    (usd_per_hour,) = re.findall(r"^export USD_PER_HOUR=(.*)$", script, re.MULTILINE)
    spent_usd = float(usd_per_hour) * progress["uptime_s"] / 3600
    answer = json.loads((tmp_path / "answer.json").read_text("utf-8"))
    (machine,) = answer["plans"][answer["trio"][0]["rank"] - 1]["machines"]
    assert (machine["count"], machine["gpus"], machine["market"]) == (1, 1, "spot")
    assert machine["gpu"] in {"H100", "H100-NVL"}  # ties by value
    assert float(usd_per_hour) == pytest.approx(machine["usd_per_hour"], abs=5e-4)
    assert 1 < float(usd_per_hour) < 3
    assert progress["spent_usd"] == pytest.approx(spent_usd, abs=1e-6)
    undisturbed = ended(
        tmp_path, "python", str(RUN / "train.py"), CHECKPOINT_DIR=str(tmp_path / "undisturbed")
    )
    assert undisturbed == f"{total} of {total} steps here, weights {weights}\n"
