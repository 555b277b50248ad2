"""The script that keeps a plan running, run with made-up tools and a made-up clock."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.export.description import RunDescription
from recommender.export.targets import export_files
from tests.recommender.export.runs import GCP_LONG as GCP
from tests.recommender.export.runs import HOUR, LIMITS, described

# A tool that notes its calls and answers from files of the folder.
SKY = """#!/usr/bin/env bash
here=${0%/*}
echo "sky $*" >> "$here/calls"
case "$1 $2" in
  "jobs launch") name="" ; while [ $# -gt 0 ]; do [ "$1" = --name ] && name="$2"; shift; done
    echo "$name" >> "$here/jobs" ;;
  "jobs queue") clock=$(<"$here/clock"); id=0; comma=""; printf "["
    [ -f "$here/jobs" ] && while read -r name; do
      state=RECOVERING
      while read -r kind ended at; do
        [ "$kind" = "${name##*-}" ] && [ "$clock" -ge "$at" ] && state=$ended
      done < "$here/ends"
      printf '%s{"job_name": "%s", "job_id": %s, "status": "%s"}' "$comma" "$name" "$id" "$state"
      id=$((id + 1)); comma=", "
    done < "$here/jobs"
    printf "]" ;;
esac
"""
DATE = """#!/bin/sh
read -r now < "${0%/*}/clock"
echo "$now"
"""
SLEEP = """#!/bin/sh
read -r now < "${0%/*}/clock"
echo $(( now + 3600 )) > "${0%/*}/clock"
"""
GCLOUD = """#!/usr/bin/env bash
here=${0%/*}
[ -f "$here/progress" ] && cat "$here/progress"
"""
START = 1_000_000


def played(
    folder: Path, run: RunDescription, ends: str, progress: str | None = None
) -> tuple[subprocess.CompletedProcess[str], list[str], int]:
    """Run the script; what it printed, the calls of the tool, and the hours that passed."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, text in (("sky", SKY), ("date", DATE), ("sleep", SLEEP), ("gcloud", GCLOUD)):
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(0o755)
    if not (tools / "python3").exists():
        (tools / "python3").symlink_to(sys.executable)
    (tools / "clock").write_text(str(START), encoding="utf-8")
    (tools / "ends").write_text(ends, encoding="utf-8")
    if progress is not None:
        (tools / "progress").write_text(progress, encoding="utf-8")
    for each in export_files(run, "skypilot", ""):
        (folder / each.name).write_text(each.text, encoding="utf-8")
    done = subprocess.run(
        ["bash", "launch.sh"],
        cwd=folder,
        env={"PATH": f"{tools}:{os.environ['PATH']}", "CHECKPOINT_BUCKET": "ours"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    calls = (tools / "calls").read_text("utf-8").splitlines()
    reported = [" ".join(call.split()[1:3]) + " " + call.split()[-1] for call in calls]
    reported = [call for call in reported if not call.startswith("jobs queue")]
    return done, reported, int((tools / "clock").read_text("utf-8")) - START


def test_a_job_that_ends_in_time_is_started_once(tmp_path: Path):
    done, reported, _ = played(tmp_path, GCP, f"plan SUCCEEDED {START + 5 * 3600}\n")
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout
    assert [call.split()[1] for call in reported] == ["launch", "cancel", "cancel"]
    assert reported[0].endswith("train.yaml")


def test_on_demand_takes_over_when_the_time_left_is_the_work_left(tmp_path: Path):
    ends = f"fallback SUCCEEDED {START + 23 * 3600}\n"
    done, reported, _ = played(tmp_path, GCP, ends, progress="0.5\n")
    assert done.returncode == 0, done.stderr
    assert [call.split()[1] for call in reported] == [
        "launch", "cancel", "launch", "cancel", "cancel",
    ]  # fmt: skip
    assert reported[2].endswith("on-demand.yaml")
    assert "on-demand machines take over" in done.stdout


def switched_at(folder: Path, progress: str | None) -> float:
    """Hours until the switch, of a job that never ends on spot."""
    folder.mkdir()
    ends = f"fallback SUCCEEDED {START}\n"  # ends as soon as it is looked at
    done, _, seconds = played(folder, GCP, ends, progress)
    assert done.returncode == 0, done.stderr
    return seconds / HOUR


@pytest.mark.slow
def test_the_moment_of_the_switch_is_the_plan_s(tmp_path: Path):
    assert GCP.fallback is not None
    whole_h = GCP.work_s / GCP.fallback.speed / HOUR
    reserve_h = GCP.fallback.reserve_s / HOUR
    for share in (0.3, 0.8):
        due_h = 24.0 - (1.0 - share) * whole_h - reserve_h
        found = switched_at(tmp_path / f"at-{share}", f"{share}")
        assert (
            due_h - 0.01 <= found <= due_h + 2.01
        )  # looked at once an hour, then the fallback's end


@pytest.mark.slow
@pytest.mark.parametrize("progress", [None, "what"])
def test_without_a_word_on_progress_the_switch_is_early(tmp_path: Path, progress: str | None):
    assert switched_at(tmp_path / "a", progress) == switched_at(tmp_path / "b", "0")


@pytest.mark.slow
def test_a_run_is_stopped_for_good(tmp_path: Path):
    done, reported, seconds = played(tmp_path, GCP, "")
    assert done.returncode == 124
    assert reported[-1].split()[1] == "cancel"
    assert seconds == pytest.approx(GCP.longest_s, abs=3600)


@pytest.mark.parametrize(("state", "hours"), [("RUNNING", 20.0), ("RECOVERING", 24.0)])
def test_usd_are_counted_while_machines_run(tmp_path: Path, state: str, hours: float) -> None:
    """Money for twenty hours, and a deadline of a day: waiting for spot costs nothing."""
    limits = replace(LIMITS, budget_usd=20 * GCP.plan.usd_per_hour)
    run = described(GCP.plan, limits)
    done, reported, seconds = played(tmp_path, run, f"plan {state} 0\n", progress="0.99\n")
    assert done.returncode == 124
    assert reported[-1].split()[1] == "cancel"
    assert seconds / HOUR == pytest.approx(hours, abs=1)


def test_a_fallback_counts_at_its_own_price_on_top_of_what_the_plan_has_cost(tmp_path: Path):
    """Of 1,000 USD 800 were spent: on demand at 97 USD an hour the rest lasts two hours."""
    assert GCP.on_fallback is not None
    price = GCP.on_fallback.plan.usd_per_hour
    run = described(GCP.plan, replace(LIMITS, budget_usd=1000.0))
    state = tmp_path / f".{GCP.name}.state"
    state.write_text(f"{START - 3600} fallback 800 {START}\n", encoding="utf-8")
    done, reported, seconds = played(tmp_path, run, "fallback RUNNING 0\n")
    assert done.returncode == 124
    assert seconds / HOUR == pytest.approx(200 / price, abs=1.01)
    again, later, _ = played(tmp_path, run, "fallback RUNNING 0\n")
    assert again.returncode == 124  # a supervisor that starts it again rents nothing
    assert later[len(reported) :] == ["jobs cancel " + call.split()[-1] for call in reported[-2:]]


def test_a_full_disk_ends_no_watch_and_loses_no_state(tmp_path: Path) -> None:
    """Without the script nobody would stop the machines at a cap, or let others take over."""
    state = tmp_path / f".{GCP.name}.state"
    state.write_text(before := f"{START - 3600} plan 5 {START}\n", encoding="utf-8")
    state.with_name(f"{state.name}.new").symlink_to("/dev/full")
    done, reported, seconds = played(tmp_path, GCP, "")
    assert done.returncode == 124
    assert reported[-1].split()[1] == "cancel"
    assert seconds == pytest.approx(GCP.longest_s - HOUR, abs=HOUR)
    assert state.read_text(encoding="utf-8") == before
    assert f"{state.name} was not written" in done.stderr


def test_the_p99_is_a_warning_and_not_the_cap(tmp_path: Path) -> None:
    time = replace(GCP.plan.estimate.time, p99=3 * HOUR)
    run = described(replace(GCP.plan, estimate=replace(GCP.plan.estimate, time=time)))
    ends = f"plan SUCCEEDED {START + 6 * 3600}\n"
    done, _, seconds = played(tmp_path, run, ends, progress="0.9\n")
    assert done.returncode == 0
    assert seconds == 6 * HOUR
    assert done.stderr.count("99 runs in 100 were expected") == 1


def test_a_job_that_failed_ends_the_script(tmp_path: Path):
    done, reported, seconds = played(tmp_path, GCP, f"plan FAILED {START + 3600}\n")
    assert done.returncode == 1
    assert seconds <= 2 * 3600


def test_the_script_goes_on_where_it_was_killed(tmp_path: Path):
    state = tmp_path / f".{GCP.name}.state"
    state.write_text(f"{START - 10 * 3600} fallback\n", encoding="utf-8")
    ends = f"fallback SUCCEEDED {START + 3600}\n"
    done, reported, _ = played(tmp_path, GCP, ends)
    assert done.returncode == 0, done.stderr
    assert reported[0].endswith("on-demand.yaml")
    assert not state.exists()


def test_two_plans_of_one_name_do_not_meet(tmp_path: Path):
    later = described(replace(GCP.plan), LIMITS)
    played(tmp_path, later, f"plan SUCCEEDED {START + 3600}\n")
    calls = (tmp_path / "tools" / "calls").read_text("utf-8")
    assert f"--name {GCP.name}-{START}-plan" in calls
