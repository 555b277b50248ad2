"""Exported files, loaded by SkyPilot and dstack themselves, and read by ShellCheck.

RECOMMEND_SKYPILOT, RECOMMEND_DSTACK, RECOMMEND_SHELLCHECK, RECOMMEND_GCLOUD and RECOMMEND_AZ name a
Python that has skypilot (0.14), one that has dstack (0.22), and the programs; without them these
tests are skipped.
"""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from recommender.export.description import RunDescription
from recommender.export.start import TARGETS
from recommender.export.targets import export_files, target_of
from tests.export_tools import sky_catalog
from tests.recommender import answers
from tests.recommender.export.runs import AZURE, GCP, described
from tests.recommender.export.test_cloud_scripts import START, played

HERE = Path(__file__).parent
GPU_CLOUDS = {
    "lambda": ("gpu_8x_h100_sxm5", "anywhere"),
    "nebius": ("gpu-h100-sxm_8gpu-128vcpu-1600gb", "eu-north1"),
    "runpod": ("8x_H100_SECURE", "anywhere"),
}


def gpu_cloud(name: str, machine: str, region: str) -> RunDescription:
    """An on-demand plan there, with checkpoints that take large disks."""
    first = answers.machines(machine, "H100", f"{name}:{region}", "on_demand", zone="")
    run = described(replace(answers.ON_DEMAND, machines=(first,)))
    return replace(run, job=replace(run.job, checkpoint_bytes=4e11))


RUNS = {
    "gcp": GCP,
    "on-demand": described(answers.ON_DEMAND),
    "aws": described(answers.AWS_H100),
    "azure": AZURE,
    **{name: gpu_cloud(name, *place) for name, place in GPU_CLOUDS.items()},
}


def tool(variable: str) -> str:
    """The program that a variable names."""
    if variable not in os.environ:
        pytest.skip(f"{variable} names no program")
    return os.environ[variable]


def written(folder: Path, target: str) -> list[Path]:
    """All files of all runs."""
    paths = []
    for name, run in RUNS.items():
        if target_of(target).why_not(run):
            continue
        for each in export_files(run, target, ""):
            paths.append(folder / f"{name}-{each.name}")
            # The made-up zones of the answers made by hand are none of the clouds'.
            paths[-1].write_text(
                each.text.replace("-north1-a", "-north1-b").replace("eastus2/eastus2-a", "eastus2"),
                encoding="utf-8",
            )
    return paths


def test_skypilot_loads_every_job_as_it_was_meant(tmp_path: Path):
    python = tool("RECOMMEND_SKYPILOT")
    sky_catalog.write(tmp_path)
    paths = [path for path in written(tmp_path, "skypilot") if path.suffix == ".yaml"]
    reported = subprocess.run(
        [python, str(HERE / "load_skypilot.py"), *map(str, paths)],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert reported.returncode == 0, reported.stderr[-2000:]
    jobs = {
        path.name: job
        for path, job in zip(paths, json.loads(reported.stdout.splitlines()[-1]), strict=True)
    }
    assert [place[:2] for place in jobs["aws-train.yaml"]["places"]] == [
        ["aws", site.region] for site in answers.AWS_H100.sites
    ]
    assert all(job["ordered"] or len(job["places"]) == 1 for job in jobs.values())
    assert jobs["gcp-on-demand.yaml"]["places"][0][-1] is False
    assert jobs["gcp-train.yaml"]["mounts"] == []  # checkpoints are uploaded


def test_dstack_loads_every_task(tmp_path: Path):
    python = tool("RECOMMEND_DSTACK")
    paths = written(tmp_path, "dstack")
    load = (
        "import sys, yaml\n"
        "from dstack._internal.core.models.configurations import parse_apply_configuration\n"
        "for path in sys.argv[1:]:\n"
        "    found = parse_apply_configuration(yaml.safe_load(open(path)))\n"
        "    if found.type == 'task':\n"
        "        print(found.nodes, *found.instance_types, found.max_duration)\n"
        "    else:\n"
        "        print(found.type, found.region, found.size)\n"
    )
    reported = subprocess.run(
        [python, "-c", load, *map(str, paths)], capture_output=True, text=True
    )
    assert reported.returncode == 0, reported.stderr[-2000:]
    task, volume = reported.stdout.splitlines()[:2]
    assert task == f"1 a3-highgpu-8g {24 * 3600}"
    assert volume.split()[:2] == ["volume", "europe-north1"]


def test_skypilot_rents_nothing_more_for_a_job_that_failed_or_is_at_its_cap(tmp_path: Path):
    """What its controller asks when a job has ended with a status on a cluster that is there."""
    python = tool("RECOMMEND_SKYPILOT")
    asks = (
        "import json, sys\n"
        "from sky.jobs.recovery_strategy import StrategyExecutor\n"
        "recovery = json.loads(sys.argv[1])\n"
        "executor = object.__new__(StrategyExecutor)\n"
        "executor.restart_cnt_on_failure = 0\n"
        "executor.max_restarts_on_errors = recovery.get('max_restarts_on_errors', 0)\n"
        "executor.recover_on_exit_codes = recovery.get('recover_on_exit_codes', [])\n"
        "print([executor.should_restart_on_failure([status]) for status in (1, 124, 137)])\n"
    )
    for path in written(tmp_path, "skypilot"):
        if path.suffix != ".yaml":
            continue
        recovery = yaml.safe_load(path.read_text("utf-8"))["resources"]["job_recovery"]
        reported = subprocess.run(
            [python, "-c", asks, json.dumps(recovery)],
            env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True,
        )  # fmt: skip
        assert reported.stdout.splitlines()[-1] == "[False, False, False]", reported.stderr[-900:]


@pytest.mark.parametrize("target", [each for each in TARGETS if each != "dstack"])
def test_shellcheck_finds_nothing(tmp_path: Path, target: str):
    program = tool("RECOMMEND_SHELLCHECK")
    scripts = [path for path in written(tmp_path, target) if path.suffix in (".sh", ".sbatch")]
    reported = subprocess.run([program, *map(str, scripts)], capture_output=True, text=True)
    assert reported.returncode == 0, reported.stdout


def test_gcloud_reads_every_call(tmp_path: Path):
    program = tool("RECOMMEND_GCLOUD")
    _, calls = played(tmp_path, "gcloud", GCP, ends=f"{START + 3600}")
    kinds = {tuple(call[1:4]): call for call in calls if "storage" not in call or "cat" not in call}
    assert len(kinds) >= 4
    for call in kinds.values():
        reported = subprocess.run(
            [program, *call[1:], *(["--project=ours"] if "compute" in call else [])],
            env={**os.environ, "CLOUDSDK_CONFIG": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        # Read to the end, and then stopped for want of credentials.
        assert "do not currently have an active account" in reported.stderr, reported.stderr


def machine_calls(folder: Path) -> list[list[str]]:
    """What the functions of Azure's machine.sh ask of `az`, by a made-up one."""
    text = export_files(AZURE, "azure-cli", "")[1].text
    names = ("get_folder", "put_folder", "put_file", "drop_folder", "show")
    bodies = [re.search(rf"^{name}\(\) {{\n(?:  .*\n)*}}", text, re.MULTILINE) for name in names]
    (folder / "az").write_text('#!/bin/sh\nprintf "%s\\037" "$@"; echo\n', encoding="utf-8")
    (folder / "az").chmod(0o755)
    script = "\n".join([*(found[0] for found in bodies if found), *(f"{n} key" for n in names)])
    reported = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "CHECKPOINT_BUCKET": "ours"},
    )  # fmt: skip
    return [["az", *line.split("\x1f")[:-1]] for line in reported.stdout.splitlines()]


def test_azure_reads_every_call(tmp_path: Path):
    program = tool("RECOMMEND_AZ")
    _, calls = played(tmp_path, "azure-cli", AZURE, ends=f"{START + 3600}")
    (tmp_path / "made-up").mkdir()
    kinds = {tuple(call[1:4]): call for call in [*calls, *machine_calls(tmp_path / "made-up")]}
    assert len(kinds) >= 8
    machine = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m"
    for made_up in kinds.values():
        call = [machine if word.startswith("i-") else word for word in made_up]
        reported = subprocess.run(
            [program, *call[1:]],
            env={**os.environ, "AZURE_CONFIG_DIR": str(tmp_path), "AZURE_STORAGE_ACCOUNT": "ours",
                 "AZURE_STORAGE_AUTH_MODE": "login"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        # Read to the end, and then stopped for want of credentials or of the file to send.
        assert re.search("az login|No such file|existing directory", reported.stderr), (
            call, reported.stderr,
        )  # fmt: skip
