"""The user's own tool is started, with the plan's batch and the newest checkpoint."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.export.helper import HELPER, helper_file
from recommender.export.launchers import launcher_of
from recommender.export.machine_script import MachineSteps, machine_script
from recommender.export.targets import export_files
from recommender.inputs.training_software import software
from tests.recommender.export.runs import GCP, TWO_MACHINES
from tests.recommender.export.test_targets import started

TOOL = """#!/usr/bin/env bash
here=$(dirname "$0")
{ basename "$0"; printf '%s\\n' "$@"; } > "$here/arguments"
env > "$here/environment"
"""
TOOLS = ("torchrun", "axolotl", "llamafactory-cli", "tune", "accelerate", "python")
RANKS = "--nnodes 1 --nproc-per-node 8 --node-rank 0 --master-addr localhost --master-port 29500"


def command(folder: Path, name: str, step: str = "") -> list[str]:
    """The words with which a tool is called on one of eight GPUs."""
    for each in TOOLS:
        (folder / each).write_text(TOOL, encoding="utf-8")
        (folder / each).chmod(0o755)
    if step:
        saved = folder / "saved" / step
        saved.mkdir(parents=True)
        (saved / "trainer_state.json").write_text("x", encoding="utf-8")
    run = replace(GCP, job=replace(GCP.job, software=name))
    done = started(folder, run, fake=False)
    assert done.returncode == 0, done.stderr
    return (folder / "arguments").read_text("utf-8").splitlines()


def test_axolotl_trains_its_configuration(tmp_path: Path) -> None:
    words = command(tmp_path, "axolotl", "checkpoint-7")
    assert words[:3] == ["axolotl", "train", "config.yaml"]
    own, ranks = words[: words.index("--")], words[words.index("--") + 1 :]
    assert " ".join(ranks) == RANKS
    assert own[own.index("--launcher") + 1] == "torchrun"
    assert own[own.index("--output-dir") + 1] == f"{tmp_path}/saved"
    assert own[own.index("--micro-batch-size") + 1] == f"{GCP.step.micro_batch}"
    assert own[own.index("--resume-from-checkpoint") + 1] == f"{tmp_path}/saved/checkpoint-7"


def test_llama_factory_is_told_its_ranks_in_the_environment(tmp_path: Path) -> None:
    words = command(tmp_path, "llama-factory")
    assert words[:3] == ["llamafactory-cli", "train", "config.yaml"]
    assert f"per_device_train_batch_size={GCP.step.micro_batch}" in words
    assert not any(word.startswith("resume") for word in words)
    environment = (tmp_path / "environment").read_text("utf-8").splitlines()
    assert {"FORCE_TORCHRUN=1", "NNODES=1", "NODE_RANK=0", "NPROC_PER_NODE=8"} <= {*environment}


def test_torchtune_runs_a_recipe(tmp_path: Path) -> None:
    words = command(tmp_path, "torchtune")
    assert words[:2] == ["tune", "run"]
    assert words[words.index("--rdzv-endpoint") + 1] == "localhost:29500"
    assert words[words.index("--config") + 1] == "config.yaml"
    assert "resume_from_checkpoint=True" not in words
    (tmp_path / "saved" / "recipe_state").mkdir()
    assert "resume_from_checkpoint=True" in command(tmp_path, "torchtune")


def test_accelerate_starts_a_process_on_each_gpu(tmp_path: Path) -> None:
    words = command(tmp_path, "accelerate", "checkpoint-7")
    assert words[:2] == ["accelerate", "launch"]
    assert words[words.index("--num_processes") + 1] == "8"
    script = words.index("train.py")
    assert words[script + 1 :] == ["--resume_from_checkpoint", f"{tmp_path}/saved/checkpoint-7"]


def test_torchtitan_saves_where_machines_look_for_checkpoints(tmp_path: Path) -> None:
    words = command(tmp_path, "torchtitan")
    assert " ".join(words[1:11]) == RANKS
    assert words[words.index("-m") + 1] == "torchtitan.train"
    folder = Path(words[words.index("--dump_folder") + 1])
    assert folder / words[words.index("--checkpoint.folder") + 1] == tmp_path / "saved"
    run = replace(TWO_MACHINES, job=replace(TWO_MACHINES.job, software="torchtitan"))
    machine = export_files(run, "gcloud", "")[1].text
    assert "-name .metadata" in machine
    assert "-name .metadata" not in export_files(TWO_MACHINES, "gcloud", "")[1].text


@pytest.mark.parametrize("name", ["nemo", "lightning", "megatron-lm", "timm"])
def test_scripts_of_others_get_no_flag_of_the_trainer(tmp_path: Path, name: str) -> None:
    words = command(tmp_path, name, "checkpoint-7")
    assert words[0] == "torchrun"
    assert words[-1] == "train.py"
    environment = (tmp_path / "environment").read_text("utf-8")
    assert f"RESUME_FROM={tmp_path}/saved/checkpoint-7\n" in environment


def test_every_software_is_started_and_names_what_the_user_sets() -> None:
    for name in ("", *software()):
        words = " ".join(launcher_of(name).words)
        for variable, _, _ in launcher_of(name).yours:
            assert f"${variable}" in words, name


def test_the_checkpoint_helper_lies_beside_the_job_and_needs_nothing_else(tmp_path: Path) -> None:
    """A Python without its site-packages trains with it, and a second start has nothing to do."""
    (tmp_path / HELPER).write_bytes(helper_file().content)
    assert helper_file().content == helper_file().content
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from recommender.train import Checkpointer, PickledState\n"
        "class Counter:\n"
        "    count = 0\n"
        "    def state_dict(self): return self.count\n"
        "    def load_state_dict(self, state): self.count = state\n"
        "counter = Counter()\n"
        "for step in Checkpointer(PickledState(counter=counter), 3, folder=sys.argv[2]).steps():\n"
        "    counter.count += 1\n"
        "print(counter.count)\n"
    )
    for _ in range(2):
        told = subprocess.run(
            [sys.executable, "-IS", "-c", script, str(tmp_path / HELPER), str(tmp_path / "saved")],
            capture_output=True, text=True,
        )  # fmt: skip
        assert told.stdout == "3\n", told.stderr


def test_a_script_finds_the_helper_in_the_folder_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / HELPER).write_bytes(helper_file().content)
    command(tmp_path, "")
    environment = (tmp_path / "environment").read_text("utf-8")
    assert f"PYTHONPATH={tmp_path}/run/{HELPER}\n" in environment
    assert 'find "$PWD"' in machine_script_of_google()


def machine_script_of_google() -> str:
    return machine_script(GCP, MachineSteps("gcp.sh"))
