"""Exported files, loaded by SkyPilot and dstack themselves, and read by ShellCheck.

RECOMMEND_SKYPILOT, RECOMMEND_DSTACK and RECOMMEND_SHELLCHECK name a Python that has skypilot
(0.14), one that has dstack (0.22), and the program; without them these tests are skipped.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from recommender.export.targets import export_files
from tests.export_tools import sky_catalog
from tests.recommender import answers
from tests.recommender.export.runs import GCP, described

HERE = Path(__file__).parent
RUNS = {"gcp": GCP, "on-demand": described(answers.ON_DEMAND), "aws": described(answers.AWS_H100)}


def tool(variable: str) -> str:
    """The program that a variable names."""
    if variable not in os.environ:
        pytest.skip(f"{variable} names no program")
    return os.environ[variable]


def written(folder: Path, target: str) -> list[Path]:
    """All files of all runs."""
    paths = []
    for name, run in RUNS.items():
        for each in export_files(run, target, ""):
            paths.append(folder / f"{name}-{each.name}")
            # The made-up zone of the answers made by hand is none of Google's.
            paths[-1].write_text(each.text.replace("-north1-a", "-north1-b"), encoding="utf-8")
    return paths


def test_skypilot_loads_every_job_as_it_was_meant(tmp_path: Path):
    python = tool("RECOMMEND_SKYPILOT")
    sky_catalog.write(tmp_path)
    paths = [path for path in written(tmp_path, "skypilot") if path.suffix == ".yaml"]
    told = subprocess.run(
        [python, str(HERE / "load_skypilot.py"), *map(str, paths)],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    jobs = {
        path.name: job
        for path, job in zip(paths, json.loads(told.stdout.splitlines()[-1]), strict=True)
    }
    assert [place[:2] for place in jobs["aws-train.yaml"]["places"]] == [
        ["aws", site.region] for site in answers.AWS_H100.sites
    ]
    assert all(job["ordered"] or len(job["places"]) == 1 for job in jobs.values())
    assert jobs["gcp-on-demand.yaml"]["places"][0][-1] is False
    assert jobs["gcp-train.yaml"]["mounts"] == ["/checkpoints"]


def test_dstack_loads_every_task(tmp_path: Path):
    python = tool("RECOMMEND_DSTACK")
    paths = written(tmp_path, "dstack")
    load = (
        "import sys, yaml\n"
        "from dstack._internal.core.models.configurations import parse_apply_configuration\n"
        "for path in sys.argv[1:]:\n"
        "    found = parse_apply_configuration(yaml.safe_load(open(path)))\n"
        "    print(found.nodes, *found.instance_types, found.max_duration)\n"
    )
    told = subprocess.run([python, "-c", load, *map(str, paths)], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[-2000:]
    assert told.stdout.splitlines()[0] == f"1 a3-highgpu-8g {24 * 3600}"


@pytest.mark.parametrize("target", ["skypilot", "slurm", "torchrun"])
def test_shellcheck_finds_nothing(tmp_path: Path, target: str):
    program = tool("RECOMMEND_SHELLCHECK")
    scripts = [path for path in written(tmp_path, target) if path.suffix in (".sh", ".sbatch")]
    told = subprocess.run([program, *map(str, scripts)], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout
