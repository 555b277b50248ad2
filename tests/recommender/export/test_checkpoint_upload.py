"""What files do with checkpoints is what their plans count with, by arithmetic of its own."""

import itertools
import math
import os
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from recommender.api.calls import recommend
from recommender.catalogs.load import load_snapshot
from recommender.export.checkpoint_upload import bucket_template, training_lines
from recommender.export.description import RunDescription
from recommender.export.launchers import RankVariables
from recommender.export.start import TARGETS
from recommender.export.targets import export_files, target_of
from recommender.export.templates import part, shell_function
from recommender.inputs.training_software import software
from recommender.job.jobfile import job_from_text
from recommender.job.preset_files import preset_text, presets
from recommender.performance.checkpoint import transfer_of
from recommender.plan.limits import Choice
from recommender.report.launch import run_of
from tests.recommender.export.runs import ALL, GCP, TWO_MACHINES
from tests.recommender.optimize.samples import thinned

TOOL = {"aws": ("aws s3", 587e6), "gcp": ("gcloud storage", 298e6), "azure": ("azcopy", 300e6)}
DISK = {"gcloud": r"DISK_GB=(\d+)", "aws-cli": r"DISK_GB=(\d+)", "azure-cli": r"DISK_GB=(\d+)",
        "terraform": r"disk_gb += (\d+)", "skypilot": r"disk_size: (\d+)",
        "dstack": r"size: (\d+)GB"}  # fmt: skip


def upload_s(run: RunDescription) -> float:
    """A checkpoint of the machines, by the slowest of tool, network and disk."""
    rates = []
    for each in run.plan.machines:
        found = load_snapshot().instance_types[each.provider, each.instance_type]
        network = 0.6 * (found.network_gbit_per_s or 10) * 1e9 / 8
        disk = found.local_disk_mb_per_s * 1e6 or 125e6
        rates.append(min(TOOL[each.provider][1], network, disk))
    writers = 1 if run.job.writer == "chief" else run.nodes
    return run.job.checkpoint_bytes / min(writers * max(rates), 25e9)


def intervals(text: str) -> list[float]:
    """Every interval of a file: the plan's, and the fallback's."""
    return [float(each) for each in re.findall(r"CHECKPOINT_INTERVAL_S\W{1,30}?(\d+)", text)]


def made(run: RunDescription, target: str) -> str:
    return "\n".join(each.text for each in export_files(run, target, ""))


QUESTIONS = list(itertools.product(presets(), TOOL))


@pytest.mark.parametrize("question", thinned(QUESTIONS, 16), ids=lambda each: "-".join(each))
def test_every_file_can_keep_its_interval_on_its_disk(question: tuple[str, str]):
    """Of every preset on every cloud, in the words of every target that can run its plans."""
    name, cloud = question
    choice = Choice(market="spot", providers=(cloud,))
    found = recommend(name, choice=choice, deadline="240h", top=2)
    assert found.request is not None
    for plan, target in itertools.product(found.plans, TARGETS):
        run = run_of(plan, found.request)
        if target_of(target).why_not(run):
            continue
        text = made(run, target)
        assert intervals(text)
        assert min(intervals(text)) >= upload_s(run) * 0.999
        if target in DISK:
            held = run.job.checkpoint_bytes * (1 + 2 / run.nodes)
            assert float(re.findall(DISK[target], text)[0]) * 1e9 >= held
        if target not in ("dstack", "slurm", "torchrun"):
            assert f"by {TOOL[cloud][0]}" in re.sub(r"\n\s*# ", " ", text)


@pytest.mark.parametrize(
    ("name", "size", "cloud"),
    [("llama3-8b-sft", 112e9, "aws"), ("llama3-70b-sft", 988e9, "gcp")],
)
def test_full_fine_tuning_is_planned_and_exported_at_the_same_rate(
    name: str, size: float, cloud: str
):
    """The cases of 112 GB every minute and of 988 GB every two minutes."""
    choice = Choice(market="spot", providers=(cloud,))
    found = recommend(name, choice=choice, deadline="240h", top=1)
    assert found.request is not None
    plan = found.plans[0]
    run = run_of(plan, found.request)
    saving, nodes = plan.checkpointing, run.nodes
    assert run.job.checkpoint_bytes == pytest.approx(size, rel=0.01)
    rate = TOOL[cloud][1]
    assert saving.lag_s == pytest.approx(40 + run.job.checkpoint_bytes / (nodes * rate), rel=0.01)
    assert saving.restore_s >= run.job.checkpoint_bytes / (580e6 if cloud == "aws" else 300e6)
    job = yaml.safe_load(export_files(run, "skypilot", "")[0].text)
    assert float(job["envs"]["CHECKPOINT_INTERVAL_S"]) == saving.interval_s >= saving.lag_s
    assert job["resources"]["disk_size"] >= 100 + run.job.checkpoint_bytes / 1e9 * (1 + 2 / nodes)


def test_a_plan_that_saves_elsewhere_is_exported_with_an_interval_that_a_bucket_keeps():
    found = recommend(
        "gpt2-xl", choice=Choice(providers=("aws",), checkpoint_to="memory_tier", mix="no"),
        deadline="24h", top=1,
    )  # fmt: skip
    assert found.request is not None
    run = run_of(found.plans[0], found.request)
    assert run.plan.checkpointing.path == "memory_tier"
    for target in ("skypilot", "aws-cli"):
        assert min(intervals(made(run, target))) >= upload_s(run)


def test_a_volume_of_dstack_is_no_faster_than_it_writes():
    saving = replace(GCP.plan.checkpointing, interval_s=600.0)
    run = replace(GCP, plan=replace(GCP.plan, checkpointing=saving))
    assert max(intervals(made(run, "skypilot"))[:1]) == 600
    assert intervals(made(run, "dstack")) == [900]  # 112 GB at 125 MB/s: 896 s


@pytest.mark.parametrize("name", sorted(software()))
def test_trainers_that_stop_for_their_saves_are_planned_so(name: str):
    stops = {"transformers", "trl", "axolotl", "llama-factory", "accelerate", "typical"}
    behind = {"torchtitan", "nemo", "megatron-lm", "tuned"}
    text = preset_text("llama3-8b-sft") + f"stack: {name}\n"
    job = job_from_text(text)
    assert not (name in stops and job.asynchronous_save)
    assert not (name in behind and not job.asynchronous_save)
    assert job_from_text(f"{text}asynchronous_save: yes\n").asynchronous_save
    assert not job_from_text(f"{text}asynchronous_save: no\n").asynchronous_save


class Machine:
    """One machine: a folder for its disk, one for the bucket, and the shell's functions."""

    def __init__(self, folder: Path, rank: int = 0, nodes: int = 1) -> None:
        self.bucket, self.disk = folder / "bucket", folder / f"disk-{rank}"
        self.rank, self.nodes, self.own = rank, nodes, self.disk / "job"
        self.own.mkdir(parents=True)
        self.bucket.mkdir(exist_ok=True)

    def run(self, *lines: str, cut: str = "", restored: str = "") -> str:
        """Restore (or have `restored`), and then lines; an upload whose key has `cut` fails."""
        copy = 'mkdir -p "$(dirname "{0}/$1")" && cp -r "{1}/$1" "{0}/$(dirname "$1")"'
        functions = {
            "get_folder": (copy.format(self.disk, self.bucket),),
            "put_folder": (
                f'[ -z "{cut}" ] || [[ "$1" != *"{cut}"* ]] || return 1',
                copy.format(self.bucket, self.disk),
            ),
            "put_file": (copy.format(self.bucket, self.disk),),
            "drop_folder": (f'rm -rf "{self.bucket}/$1"',),
            "show": (f'cat "{self.bucket}/$1" 2> /dev/null',),
            "restore_again": part("checkpoints.sh", "restore_again"),
            "start_saving": (":",),
            "kill": (":",),
            "sleep": (":",),
        }
        body = [each for name, text in functions.items() for each in shell_function(name, text)]
        saving = training_lines(GCP, RankVariables("1", "0", "localhost", "8"))
        begin = saving.index("restore")
        defined = saving[:begin]
        first = [f"last={restored} safe={restored}"] if restored else ["restore"]
        script = [
            "set -euo pipefail",
            f"NAME=job NODE_RANK={self.rank} NNODES={self.nodes}",
            f"CHECKPOINT_DIR={self.own} saving=0",
            *defined,
            *body,
            *first,
            *lines,
        ]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)], capture_output=True, text=True, timeout=20
        )
        return done.stdout if done.returncode == 0 else f"failed: {done.stderr}"

    def train(self, name: str, *, ago_s: float = 3600.0, whole: bool = True, cut: str = "") -> None:
        """Write a checkpoint to the disk, and let it be uploaded."""
        (self.own / name).mkdir()
        for each in (f"__{self.rank}_0.distcp", *(["trainer_state.json"] if whole else [])):
            (self.own / name / each).write_text(f"{name} {self.rank}")
        moment = time.time() - ago_s
        for path in (*(self.own / name).iterdir(), self.own / name):
            os.utime(path, (moment, moment))
        note = self.own / f"saved-{self.rank}"
        restored = note.read_text().strip() if note.exists() else "0"
        safe = self.own / "saved"
        lines = (f"safe={safe.read_text().strip() if safe.exists() else 0}", "save_new || true")
        assert self.run(*lines, cut=cut, restored=restored) == ""

    @property
    def held(self) -> list[str]:
        return sorted(each.name for each in self.own.iterdir() if each.is_dir())


def test_what_is_uploaded_whole_is_resumed_from_and_the_disk_holds_no_older_one(tmp_path: Path):
    first = Machine(tmp_path)
    for step in (9, 10, 11):
        first.train(f"checkpoint-{step}")
    first.train("checkpoint-12", whole=False)
    assert first.held == ["checkpoint-11", "checkpoint-12"]
    assert sorted(each.name for each in (tmp_path / "bucket/job").glob("c*")) == ["checkpoint-11"]
    assert first.run('echo "$last"') == "checkpoint-11\n"
    assert first.held == ["checkpoint-11"]
    assert Machine(tmp_path / "other").run('echo "$last"') == "0\n"


def test_an_upload_that_is_cut_off_leaves_the_one_before(tmp_path: Path):
    first = Machine(tmp_path)
    first.train("checkpoint-9")
    first.train("checkpoint-10", cut="checkpoint-10")
    first.own.rename(tmp_path / "gone")  # the machine is lost
    first.own.mkdir()
    assert first.run('echo "$last"') == "checkpoint-9\n"
    assert first.held == ["checkpoint-9"]


def test_a_checkpoint_that_is_being_written_waits(tmp_path: Path):
    first = Machine(tmp_path)
    first.train("checkpoint-9", ago_s=5.0)
    assert not (tmp_path / "bucket/job/saved").exists()


def test_all_machines_resume_from_what_the_slowest_has_uploaded(tmp_path: Path):
    machines = first, second = [Machine(tmp_path, rank, 2) for rank in range(2)]
    assert {each.run('echo "$last"') for each in machines} == {"0\n"}
    first.train("checkpoint-9")
    assert not (tmp_path / "bucket/job/saved").exists()  # the second has its part still
    second.train("checkpoint-9", whole=False)
    first.train("checkpoint-10")
    assert {each.run("restore_again", 'echo "$last"') for each in machines} == {"checkpoint-9\n"}
    assert [each.held for each in machines] == [["checkpoint-9"]] * 2
    assert (tmp_path / "bucket/job/saved-0").read_text() == "checkpoint-9\n"


def test_every_machine_fetches_as_much_as_a_restart_is_planned_with(tmp_path: Path):
    """A process reads more than it wrote: what all hold alike is in the file of one of them."""
    machines = first, second = [Machine(tmp_path, rank, 2) for rank in range(2)]
    second.train("checkpoint-9", whole=False)
    first.train("checkpoint-9")
    first.train("checkpoint-10", whole=False)
    tool, endless = transfer_of("gcp"), np.array(1e12)
    stored = sum(each.stat().st_size for each in (tmp_path / "bucket/job/checkpoint-9").iterdir())
    for each in machines:
        each.own.rename(each.own.with_name("gone"))
        each.own.mkdir()
        assert each.run('echo "$last"') == "checkpoint-9\n"
        fetched = sorted((each.own / "checkpoint-9").iterdir())
        assert [path.name for path in fetched] == [
            "__0_0.distcp", "__1_0.distcp", "trainer_state.json",
        ]  # fmt: skip
        taken_s = sum(path.stat().st_size for path in fetched) / tool.restore_bytes_per_s
        two = np.array(2.0)
        assert tool.restore_s(stored, two, two, endless, endless) == pytest.approx(taken_s)


def test_the_disk_has_room_for_a_fallback_of_fewer_machines():
    assert GCP.fallback is not None
    fallback = replace(GCP.fallback, machines=(replace(GCP.fallback.machines[0], count=1),))
    one = replace(TWO_MACHINES, plan=replace(TWO_MACHINES.plan, fallback=fallback))
    assert TWO_MACHINES.checkpoints_gb == math.ceil(2 * 112)
    assert one.checkpoints_gb == 3 * 112


@pytest.mark.parametrize("run", ALL.values(), ids=ALL)
def test_no_target_mounts_what_the_plan_uploads_in_parallel(run: RunDescription):
    *_, upload = part(bucket_template(run.machines), "bucket_put_folder")
    text = made(run, "skypilot")
    jobs: list[dict[str, Any]] = [
        yaml.safe_load(each.text)
        for each in export_files(run, "skypilot", "")
        if each.name.endswith("yaml")
    ]
    assert all("file_mounts" not in each for each in jobs)
    assert text.count(upload) == len(jobs)
