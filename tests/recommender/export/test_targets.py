"""Scripts and tasks of the other targets: well-formed, and run with a made-up torchrun."""

import os
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from recommender.errors import UsageError
from recommender.export.description import RunDescription
from recommender.export.start import TARGETS, start_line, usual_target
from recommender.export.targets import export_files, target_of
from recommender.export.templates import TRAINING as SCRIPT
from recommender.export.train_command import variables
from recommender.plan.as_run import IN_BUCKET, NO_SWITCH
from recommender.plan.plan import AsRun, StepSplit
from tests.recommender import golden
from tests.recommender.export.runs import ALL, AWS, AZURE, GCP, HOUR, MIXED, ON_DEMAND, TWO_MACHINES

TORCHRUN = """#!/usr/bin/env bash
printf '%s\\n' "$@" > "$(dirname "$0")/arguments"
env > "$(dirname "$0")/environment"
"""


@pytest.mark.parametrize("target", TARGETS)
def test_the_main_file_of_every_target_is_as_it_was(target: str):
    made = export_files({"aws-cli": AWS, "azure-cli": AZURE}.get(target, GCP), target, "run")[0]
    golden.check(f"{target}-{made.name}", made.text)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("run", [*ALL.values(), MIXED], ids=[*ALL, "mixed"])
def test_every_target_runs_a_plan_or_says_why_not(target: str, run: RunDescription):
    if target_of(target).why_not(run):
        with pytest.raises(UsageError, match=f"--to {target}: "):
            export_files(run, target, "run")
        return
    files = export_files(run, target, "run")
    started = start_line(run.plan, target, "run")
    names = {f"run/{each.name}" for each in files}
    assert names & set(started.split()) or "-chdir=run" in started
    for each in files:
        assert "Stopped for good" in files[0].text
        if each.name.endswith((".sh", ".sbatch")):
            subprocess.run(["bash", "-n"], input=each.text, text=True, check=True)
        elif each.name.endswith(".tf"):
            assert each.text.count("{") == each.text.count("}")
        else:
            assert yaml.safe_load(each.text)["name"].startswith(run.name)


BOOKED = {
    "gcloud": ("gcp", "a3-highgpu-8g", "flex_start", "--provisioning-model=FLEX_START"),
    "aws-cli": ("aws", "p5.48xlarge", "reserved_block", '"MarketType":"capacity-block"'),
    "torchrun": ("gcp", "a3-highgpu-8g", "reserved_block", ""),
}


@pytest.mark.parametrize("usual", BOOKED)
def test_booked_machines_are_started_by_their_clouds_own_tool(usual: str):
    provider, name, market, words = BOOKED[usual]
    plan = ON_DEMAND.plan
    booked = replace(plan.machines[0], provider=provider, instance_type=name, market=market)
    run = replace(ON_DEMAND, plan=replace(plan, machines=(booked,)))
    assert usual_target(run.plan) == usual
    assert words in export_files(run, usual, "run")[0].text
    for target in ("skypilot", "dstack", "terraform", "azure-cli"):
        with pytest.raises(UsageError, match=f"--to {target}: .*{usual}"):
            export_files(run, target, "run")


def test_the_usual_target_can_run_the_plan():
    for run in (*ALL.values(), MIXED):
        assert target_of(usual_target(run.plan)).why_not(run) == ""
    assert usual_target(GCP.plan) == "skypilot"
    assert usual_target(MIXED.plan) == "torchrun"


def test_an_unknown_target_is_refused():
    with pytest.raises(UsageError, match="did you mean skypilot"):
        target_of("skypilots")


def started(
    folder: Path, run: RunDescription, *, fake: bool = True, **given: str
) -> subprocess.CompletedProcess[str]:
    """Run the script of one machine, with a made-up torchrun unless there is one."""
    if fake:
        (folder / "torchrun").write_text(TORCHRUN, encoding="utf-8")
        (folder / "torchrun").chmod(0o755)
    text = export_files(run, "torchrun", "")[0].text
    text = text.replace(f"/mnt/checkpoints/{run.name}", str(folder / "saved"))
    return subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "GPUS_PER_NODE": "8", **given},
        capture_output=True,
        text=True,
        timeout=60,
    )


def saved(folder: Path, step: int, *names: str) -> Path:
    """A checkpoint of these files."""
    made = folder / "saved" / f"checkpoint-{step}"
    made.mkdir(parents=True)
    for name in names:
        (made / name).write_text("x", encoding="utf-8")
    return made


@pytest.mark.parametrize("last", ["trainer_state.json", "random_states_0.pkl", "complete.json"])
def test_a_checkpoint_that_was_not_written_to_its_end_is_not_resumed_from(
    tmp_path: Path, last: str
):
    saved(tmp_path, 900, last)
    whole = saved(tmp_path, 1000, "model.safetensors", last)
    saved(tmp_path, 1100, "model.safetensors", "optimizer.pt")
    (saved(tmp_path, 1200) / last).touch()  # cut off before its first byte
    assert started(tmp_path, GCP).returncode == 0
    words = (tmp_path / "arguments").read_text("utf-8").split()
    assert words[-2:] == ["--resume_from_checkpoint", str(whole)]


def test_torchrun_gets_the_cluster_and_the_newest_checkpoint(tmp_path: Path):
    for step in (900, 1000, 99):
        saved(tmp_path, step, "trainer_state.json")
    done = started(tmp_path, GCP, NODE_RANK="1", MASTER_ADDR="10.0.0.1")
    assert done.returncode == 0, done.stderr
    words = (tmp_path / "arguments").read_text("utf-8").split()
    assert words == [
        "--nnodes", "1", "--nproc-per-node", "8", "--node-rank", "1",
        "--master-addr", "10.0.0.1", "--master-port", "29500", "train.py",
        "--resume_from_checkpoint", str(tmp_path / "saved" / "checkpoint-1000"),
    ]  # fmt: skip
    environment = (tmp_path / "environment").read_text("utf-8")
    assert "GLOBAL_BATCH=64\n" in environment
    assert "CHECKPOINT_INTERVAL_S=900\n" in environment


def test_the_first_start_resumes_from_nothing(tmp_path: Path):
    assert started(tmp_path, GCP).returncode == 0
    assert "--resume_from_checkpoint" not in (tmp_path / "arguments").read_text("utf-8")
    assert (tmp_path / "saved" / "began").exists()


def test_a_run_beyond_its_cap_is_not_started_again(tmp_path: Path):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "began").write_text("1000\n", encoding="utf-8")
    done = started(tmp_path, GCP)
    assert done.returncode == 124
    assert "stopped for good" in done.stderr
    assert not (tmp_path / "arguments").exists()


def test_a_plan_that_counts_on_no_checkpoints_saves_and_resumes_nevertheless(tmp_path: Path):
    """Its machines go with the trained weights on them, and a crash would begin again."""
    run = ON_DEMAND
    assert run.plan.checkpointing.path == "none"
    whole = saved(tmp_path, 1000, "trainer_state.json")
    assert started(tmp_path, run).returncode == 0
    words = (tmp_path / "arguments").read_text("utf-8").split()
    assert words[-2:] == ["--resume_from_checkpoint", str(whole)]
    reported = {each.name: each for each in variables(run, "")}
    assert float(reported["CHECKPOINT_INTERVAL_S"].value) <= run.work_s / 2
    assert "counts on no checkpoints" in reported["CHECKPOINT_INTERVAL_S"].meaning
    assert reported["USD_PER_HOUR"].value == "21.96"
    (tmp_path / "saved" / "began").write_text("1000\n", encoding="utf-8")
    assert started(tmp_path, run).returncode == 124


def test_a_cut_network_is_reported_in_words_that_can_be_compared():
    """64 samples of which 7 fit: pipelines know one size, too, and 16 passes of 4 make it."""
    step = replace(GCP.plan.estimate.step, sharding="TP 8 × PP 2", micro_batch=7, accumulation=10)
    two = replace(GCP.plan, machines=(replace(GCP.plan.machines[0], count=2),))
    reported = {each.name: each for each in variables(with_step(replace(GCP, plan=two), step), "")}
    assert reported["SHARDING"].value == "tp8-pp2"
    assert (reported["MICRO_BATCH"].value, reported["ACCUMULATION"].value) == ("4", "16")
    assert "copy of the network" in reported["MICRO_BATCH"].meaning
    assert reported["USD_PER_HOUR"].value == f"{GCP.plan.usd_per_hour:.4g}"
    shared = replace(step, sharding="FSDP 16, CP 8")
    reported = {each.name: each for each in variables(with_step(GCP, shared), "")}
    assert reported["SHARDING"].value == "fsdp16-cp8"


def with_step(run: RunDescription, step: StepSplit) -> RunDescription:
    return replace(run, plan=replace(run.plan, estimate=replace(run.plan.estimate, step=step)))


def test_disks_hold_the_checkpoints_of_large_networks():
    large = replace(TWO_MACHINES, job=replace(TWO_MACHINES.job, checkpoint_bytes=500e9))
    small = replace(TWO_MACHINES, job=replace(TWO_MACHINES.job, checkpoint_bytes=1e9))
    assert small.disk_gb == 256
    assert large.disk_gb == 100 + 500 + 2 * 250
    job = yaml.safe_load(export_files(large, "skypilot", "run")[0].text)
    assert job["resources"]["disk_size"] == large.disk_gb


def test_the_command_of_a_header_is_a_line_that_can_be_copied():
    head = export_files(AWS, "aws-cli", "where my runs are")[0].text
    assert "#   " + start_line(AWS.plan, "aws-cli", "where my runs are") in head.splitlines()
    assert start_line(AWS.plan, "torchrun", "my runs") == "bash 'my runs/train.sh'"
    assert start_line(AWS.plan, "dstack", "my runs") == (
        "cp 'my runs/train.dstack.yml' 'my runs/volume.dstack.yml' . && "
        "HF_TOKEN=$HF_TOKEN WANDB_API_KEY=$WANDB_API_KEY dstack apply -f train.dstack.yml"
    )


def test_dstack_keeps_checkpoints_on_a_volume_where_one_machine_can_have_it():
    task, volume = (yaml.safe_load(each.text) for each in export_files(AWS, "dstack", "run"))
    assert (volume["name"], volume["region"]) == (task["volumes"][0]["name"], task["regions"][0])
    assert volume["type"] == "volume"
    for run in (TWO_MACHINES, AZURE):
        assert "export --to skypilot" in target_of("dstack").why_not(run)


@pytest.mark.parametrize("target", ["dstack", "skypilot"])
@pytest.mark.parametrize(("ends", "starts"), [(3, 4), (124, 1), (0, 1)])
def test_a_script_that_crashes_is_started_four_times_and_nothing_is_rented_for_it(
    tmp_path: Path, target: str, ends: int, starts: int
):
    """Retried by the tool, one that cannot run would be rented for again, at the cap as well."""
    made = yaml.safe_load(export_files(AWS, target, "run")[0].text)
    if target == "dstack":
        assert "error" not in made["retry"]["on_events"]
        given = dict(each.split("=", 1) for each in made["env"] if "=" in each)
        commands, ranks = made["commands"][0], "DSTACK_%s"
    else:
        assert made["resources"]["job_recovery"]["max_restarts_on_errors"] == 0
        given = {name: value for name, value in made["envs"].items() if value}
        given["CHECKPOINT_BUCKET"] = "ours"
        commands, ranks = made["run"].replace("/checkpoints", f"{tmp_path}/disk"), "SKYPILOT_%s"
    tools = {"torchrun": f"echo >> starts; exit {ends}", "sleep": "exit 0"}
    tools |= {"aws": "[ $1 != --version ] || echo aws-cli/2.30", "mountpoint": "exit 1"}
    for name, text in tools.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    for each in ("NODES_NUM", "NODE_RANK", "MASTER_NODE_IP", "GPUS_PER_NODE"):
        given[ranks % each] = "1"
    for each in ("NUM_NODES", "NODE_IPS", "NUM_GPUS_PER_NODE"):
        given[ranks % each] = "1"
    given |= {"CHECKPOINT_DIR": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    commands = commands.replace(SCRIPT, str(tmp_path / "train.sh"))
    shell = "sh" if target == "dstack" else "bash"
    done = subprocess.run([shell, "-c", commands], env=given, cwd=tmp_path, capture_output=True)
    assert done.returncode == ends, done.stderr
    assert len((tmp_path / "starts").read_text("utf-8").splitlines()) == starts


def budgeted(usd: float) -> RunDescription:
    return replace(GCP, limits=replace(GCP.limits, budget_usd=usd))


def test_what_was_paid_for_before_counts_at_the_next_start(tmp_path: Path) -> None:
    price = GCP.plan.usd_per_hour
    (tmp_path / "saved").mkdir()
    paid = tmp_path / "saved" / "paid_minutes"
    paid.write_text(f"{price:.4g}\n" * 120 + f"{10 * price:.4g}\n" * 60, encoding="utf-8")
    (tmp_path / "timeout").write_text('#!/bin/sh\necho "$2" > "$CHECKPOINT_DIR/left"\n', "utf-8")
    (tmp_path / "timeout").chmod(0o755)
    assert started(tmp_path, budgeted(15 * price)).returncode == 0
    left_s = int((tmp_path / "saved" / "left").read_text("utf-8"))
    assert left_s == pytest.approx(3 * 3600, rel=0.01)  # of 15 h two and ten times one are gone
    (tmp_path / "saved" / "left").unlink()
    done = started(tmp_path, budgeted(12 * price * 0.999))
    assert done.returncode == 124
    assert "stopped for good" in done.stderr
    assert not (tmp_path / "saved" / "left").exists()


def test_each_minute_is_written_down_and_a_late_run_is_warned_of(tmp_path: Path) -> None:
    """The clock of the test is a minute a look: sleep returns at once."""
    (tmp_path / "sleep").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "timeout").write_text(
        '#!/bin/sh\ncd "$CHECKPOINT_DIR" && : >> paid_minutes\n'
        'until [ "$(wc -l < paid_minutes)" -ge 3 ]; do :; done\n',
        encoding="utf-8",
    )
    for name in ("sleep", "timeout"):
        (tmp_path / name).chmod(0o755)
    run = replace(GCP, limits=replace(GCP.limits, deadline_s=1e9))
    (tmp_path / "saved").mkdir()
    began = tmp_path / "saved" / "began"
    began.write_text(f"{int(time.time() - run.usual_s) - 5}\n", encoding="utf-8")
    done = started(tmp_path, run)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "saved" / "paid_minutes").read_text("utf-8").split()
    assert set(lines) == {f"{run.plan.usd_per_hour:.4g}"}
    assert "99 runs in 100 were expected" in done.stderr


def test_minutes_are_counted_again_after_a_disk_that_failed(tmp_path: Path) -> None:
    """While nothing can be written a training is not ended, and what follows counts again."""
    (tmp_path / "sleep").write_text('#!/bin/sh\necho x >> "$CHECKPOINT_DIR/slept"\n', "utf-8")
    (tmp_path / "timeout").write_text(
        '#!/bin/sh\ncd "$CHECKPOINT_DIR"\n'
        "until rm -f paid_minutes && mkdir paid_minutes; do :; done\n"
        ": > slept\n"
        'for n in $(seq 3000); do [ "$(wc -l < slept)" -ge 3 ] && break; done\n'
        "rmdir paid_minutes && : >> paid_minutes\n"
        'for n in $(seq 3000); do [ "$(wc -l < paid_minutes)" -ge 3 ] && break; done\n',
        encoding="utf-8",
    )
    for name in ("sleep", "timeout"):
        (tmp_path / name).chmod(0o755)
    done = started(tmp_path, GCP)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "saved" / "paid_minutes").read_text("utf-8").split()) >= 3
    assert "paid_minutes was not written" in done.stderr


def test_secrets_are_passed_on_by_name_and_empty_ones_are_not(tmp_path: Path) -> None:
    assert started(tmp_path, GCP, HF_TOKEN="hf", WANDB_API_KEY="").returncode == 0
    environment = (tmp_path / "environment").read_text("utf-8").splitlines()
    assert "HF_TOKEN=hf" in environment
    assert not any(line.startswith("WANDB_API_KEY") for line in environment)
    job = yaml.safe_load(export_files(GCP, "skypilot", "")[0].text)
    assert job["secrets"] == {"HF_TOKEN": "", "WANDB_API_KEY": ""}
    task = yaml.safe_load(export_files(AWS, "dstack", "")[0].text)
    assert task["env"][-2:] == ["HF_TOKEN", "WANDB_API_KEY"]


def test_dstack_takes_the_folder_along_that_its_file_is_copied_to():
    """Paths of `files` begin where the file lies, and `repos` takes git repositories only."""
    made = yaml.safe_load(export_files(AWS, "dstack", "run")[0].text)
    assert "repos" not in made
    assert made["files"] == [f".:{made['working_dir']}"]


def test_large_checkpoints_get_fast_disks():
    large = replace(AWS, job=replace(AWS.job, checkpoint_bytes=500e9))
    small = replace(AWS, job=replace(AWS.job, checkpoint_bytes=1e9))
    fast, usual = (export_files(run, "aws-cli", "run")[0].text for run in (large, small))
    assert '"Throughput":1000' in fast
    assert '"Throughput"' not in usual
    fast, usual = (export_files(run, "terraform", "run")[0].text for run in (large, small))
    assert "fast_disk     = true" in fast
    assert "fast_disk     = false" in usual
    made = [yaml.safe_load(export_files(run, "skypilot", "run")[0].text) for run in (large, small)]
    assert [each["resources"].get("disk_tier") for each in made] == ["high", None]


def test_a_folder_for_checkpoints_may_be_named_where_the_machines_are_ones_own(tmp_path: Path):
    assert started(tmp_path, GCP, CHECKPOINT_DIR=str(tmp_path / "mine")).returncode == 0
    assert (tmp_path / "mine" / "began").exists()


def test_a_plan_that_saves_to_its_own_machines_says_where_the_file_saves():
    anchored = replace(GCP.plan.checkpointing, path="anchor", interval_s=300.0)
    stored = replace(GCP.plan.checkpointing, interval_s=1200.0)
    comes_to = tuple(
        AsRun(lacks, 81.0, 11 * HOUR, 0.93, 0.2) for lacks in ((IN_BUCKET,), (NO_SWITCH, IN_BUCKET))
    )
    receiver = replace(GCP.plan.machines[0], usd_per_hour=2.2)
    anchored = replace(anchored, machines=(receiver,))
    plan = replace(GCP.plan, checkpointing=anchored, in_bucket=stored, as_run=comes_to)
    for target in ("torchrun", "skypilot", "slurm", "terraform", "gcloud"):
        text = " ".join(export_files(replace(GCP, plan=plan), target, "run")[0].text.split())
        text = text.replace(" # ", " ")
        assert "The plan saves every 5 min to the disk of an on-demand machine" in text
        assert "81 USD on average, 11 h, limits met with 93 % chance" in text
        assert f"List price {GCP.plan.usd_per_hour - 2.2:g} USD/h" in text
        assert "CHECKPOINT_INTERVAL_S=1200" in text.replace(": '", "=") or target in (
            "gcloud", "terraform",
        )  # fmt: skip
    with pytest.raises(UsageError, match="how the plan saves to a bucket"):
        export_files(replace(GCP, plan=replace(plan, in_bucket=None)), "gcloud", "run")


def test_a_mix_whose_training_can_shrink_says_how_it_goes_on_without_spot():
    words = "with their number as NNODES"
    for elastic, said in ((True, True), (False, False)):
        run = replace(MIXED, job=replace(MIXED.job, elastic=elastic))
        assert (words in export_files(run, "torchrun", "run")[0].text) is said
    assert words not in export_files(GCP, "torchrun", "run")[0].text


def test_dstack_stays_where_the_checkpoints_lie():
    made = yaml.safe_load(export_files(AWS, "dstack", "run")[0].text)
    assert made["regions"] == ["us-east-2"]
    assert made["spot_policy"] == "spot"
    assert made["nodes"] == 1


def test_an_interval_for_saves_in_the_background_says_so():
    large = replace(GCP.plan.checkpointing, interval_s=60.0, stall_s=0.3, transfer_s=22.0)
    alone = replace(large, as_good_s=(60.0, 60.0))
    run = replace(GCP, plan=replace(GCP.plan, checkpointing=alone))
    told = {each.name: each.meaning for each in variables(run, "")}["CHECKPOINT_INTERVAL_S"]
    assert "60 to 60" not in told
    assert "background" in told


@pytest.mark.parametrize(("count", "told"), [(1, ""), (3, "; 72 where each has as many")])
def test_a_batch_that_does_not_divide_among_the_gpus_says_so(count: int, told: str):
    """64 samples on 24 GPUs are three on each, or an uneven batch that few trainers know."""
    several = replace(GCP.plan, machines=(replace(GCP.plan.machines[0], count=count),))
    known = {each.name: each for each in variables(replace(GCP, plan=several), "")}["GLOBAL_BATCH"]
    assert known.value == "64"
    assert known.meaning.startswith(f"samples per optimiser step, on all GPUs{told}")
    assert known.meaning.endswith("GPUs") == (not told)


def test_machines_of_ones_own_are_in_no_region() -> None:
    own = replace(ON_DEMAND.plan.machines[0], provider="own", instance_type="lab", region="own")
    run = replace(ON_DEMAND, plan=replace(ON_DEMAND.plan, machines=(own,)))
    (file,) = export_files(run, "torchrun", "run")
    assert f"# {run.name}: 1x lab, your own.\n" in file.text


@pytest.mark.parametrize(
    ("target", "caps", "holders"),
    [
        ("skypilot", "LONGEST_RUN_S in all three files", "train.yaml on-demand.yaml launch.sh"),
        ("dstack", "LONGEST_RUN_S and max_duration", "train.dstack.yml"),
        ("slurm", "LONGEST_RUN_S and --time", "train.sbatch"),
        ("torchrun", "LONGEST_RUN_S", "train.sh"),
        ("terraform", "longest_run_s here and LONGEST_RUN_S in machine.sh", "main.tf machine.sh"),
        ("gcloud", "LONGEST_RUN_S in launch.sh and machine.sh", "launch.sh machine.sh"),
    ],
)
def test_all_that_stops_a_late_run_is_named(target: str, caps: str, holders: str) -> None:
    files = {each.name: each.text for each in export_files(GCP, target, "run")}
    first = next(iter(files.values()))
    head = " ".join(first.replace("\n#", "").split())
    assert f"(raise {caps} to let a late run end)" in head
    cap = re.compile(r"longest_run_s( =|=|: ')[ ]?86400", re.IGNORECASE)
    assert [name for name in files if cap.search(files[name])] == holders.split()
