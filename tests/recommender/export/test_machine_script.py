"""What a machine does from its first boot to its end, with a folder as the bucket."""

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.export.description import RunDescription
from recommender.export.targets import export_files
from tests.recommender.export.runs import AWS, GCP

PRICE = AWS.plan.usd_per_hour
RUN = replace(AWS, limits=replace(AWS.limits, budget_usd=10 * PRICE))
TOOLS = {
    "aws": """
path() { case "$1" in s3://ours/*) echo "$BUCKET/${1#s3://ours/}" ;; *) echo "$1" ;; esac }
words=()
for each in "${@:3}"; do case "$each" in --*) ;; *) words+=("$(path "$each")") ;; esac; done
case "$2 ${words[1]:-}" in
  " ") [ "$1" != --version ] || echo aws-cli/2.30 ;;
  "cp -") cat "${words[0]}" ;;
  cp*) mkdir -p "$(dirname "${words[1]}")"; cp "${words[0]}" "${words[1]}" ;;
  sync*) mkdir -p "${words[1]}"; cp -r "${words[0]}/." "${words[1]}/" ;;
  rm*) rm -rf "${words[0]}" ;;
esac""",
    "curl": 'case "$*" in *ami-launch-index) echo 0 ;; *) echo word ;; esac',
    "nvidia-smi": "echo 'GPU 0'",
    "mountpoint": "exit 1",
    "shutdown": 'touch "$HERE/shut-down"',
    # Given up, it trains until it is asked to end; then it saves.
    "torchrun": """env > "$HERE/environment"; echo >> "$HERE/starts"
if [ -n "$STEP" ]; then
  trap 'new="$CHECKPOINT_DIR/checkpoint-7"; mkdir "$new"; echo 7 > "$new/trainer_state.json"
    touch -d "-1 hour" "$new/trainer_state.json" "$new"; exit 143' TERM
  echo asked > "$BUCKET/$(basename "$CHECKPOINT_DIR")/end-$RUN_TAG"
  for ((step = 0; step < 600; step++)); do /bin/sleep 0.1; done
fi
exit "$ENDS" """,
    # Minutes pass at once; the hours until the machine's own end do not, and of the 13 for an
    # upload there are three seconds.
    "sleep": """if [ "$1" -gt 1000 ]; then exec /bin/sleep "$1"; fi
if [ "$1" = 777 ]; then exec /bin/sleep 3; fi
exec /bin/sleep 0.02""",
}


def booted(
    folder: Path, run: RunDescription, ends: int, paid: str = "", ago_s: float = 0.0,
    given_up: bool = False,
) -> str:  # fmt: skip
    """How the run has ended by what the machine notes in the bucket; nothing where it does not."""
    bucket = folder / "bucket" / run.name
    (bucket / "code").mkdir(parents=True)
    (bucket / "code" / "train.py").write_text("", encoding="utf-8")
    (bucket / "secrets").write_text("export HF_TOKEN=hf\\ token\n", encoding="utf-8")
    (bucket / "paid_minutes").write_text(paid, encoding="utf-8")
    for name, text in TOOLS.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    script = export_files(run, "aws-cli", "")[1].text
    script = script.replace("/checkpoints", f"{folder}/disk").replace("/tmp/", f"{folder}/")
    script = script.replace('PATH="/opt', f'PATH="{folder}:/opt')
    began = int(time.time() - ago_s)
    given = {
        "PATH": os.environ["PATH"], "HERE": str(folder), "BUCKET": str(folder / "bucket"),
        "ENDS": f"{ends}", "RUN_ID": f"{began}", "LEFT_S": "90000", "NNODES": "1",
        "CHECKPOINT_BUCKET": "ours", "RUN_TAG": "job-plan", "STEP": "1" if given_up else "",
    }  # fmt: skip
    with (folder / "log").open("w", encoding="utf-8") as log:
        machine = subprocess.Popen(
            ["bash", "-c", script], env=given, stdout=log, stderr=log, start_new_session=True
        )
        try:
            machine.wait(timeout=60)
        finally:
            os.killpg(machine.pid, signal.SIGKILL)
    assert (folder / "shut-down").exists(), (folder / "log").read_text("utf-8")
    ended = bucket / f"ended-{began}"
    return ended.read_text("utf-8").strip() if ended.exists() else ""


@pytest.mark.parametrize(
    ("ends", "starts", "told"), [(0, 1, "done"), (124, 1, "stopped"), (3, 4, "failed")]
)
def test_a_machine_ends_as_its_training_does(
    tmp_path: Path, ends: int, starts: int, told: str
) -> None:
    assert booted(tmp_path, RUN, ends) == told
    assert len((tmp_path / "starts").read_text("utf-8").splitlines()) == starts
    environment = (tmp_path / "environment").read_text("utf-8").splitlines()
    assert "HF_TOKEN=hf token" in environment
    assert "hf" not in (tmp_path / "log").read_text("utf-8")
    assert not [path for path in (tmp_path / "disk").rglob("*") if path.name == "secrets"]


def test_what_machines_before_it_have_cost_counts(tmp_path: Path) -> None:
    minutes = f"{PRICE:.4g}\n" * 60 * 11
    assert booted(tmp_path, RUN, 0, minutes) == "stopped"
    assert not (tmp_path / "starts").exists()
    assert "stopped for good by a cap" in (tmp_path / "log").read_text("utf-8")


@pytest.mark.parametrize(("lag_s", "told"), [(400.0, "done"), (900.0, "stopped")])
def test_training_leaves_the_last_upload_its_time(tmp_path: Path, lag_s: float, told: str) -> None:
    """Ten minutes before the cap it is over, if an upload takes longer."""
    saving = replace(AWS.plan.checkpointing, lag_s=lag_s, path="object_store")
    run = replace(AWS, plan=replace(AWS.plan, checkpointing=saving))
    assert booted(tmp_path, run, 0, ago_s=run.longest_s - 600.0) == told


def test_a_machine_that_is_given_up_saves_uploads_and_ends_while_the_job_goes_on(
    tmp_path: Path,
) -> None:
    assert GCP.plan.fallback is not None
    later = replace(AWS.machines, market="on_demand")
    fallback = replace(GCP.plan.fallback, machines=(later,))
    saving = replace(AWS.plan.checkpointing, lag_s=777.0, path="object_store")
    run = replace(RUN, plan=replace(RUN.plan, fallback=fallback, checkpointing=saving))
    assert booted(tmp_path, run, 0, given_up=True) == ""
    bucket = tmp_path / "bucket" / run.name
    assert (bucket / "saved").read_text("utf-8") == "checkpoint-7\n"
    assert (bucket / "checkpoint-7" / "trainer_state.json").exists()
    assert len((tmp_path / "starts").read_text("utf-8").splitlines()) == 1
