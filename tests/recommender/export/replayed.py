"""Runs an exported launch.sh on one drawn path of the market, under a made-up clock.

The script is the real one. `date`, `sleep` and the cloud's tool are functions of bash that ask this
process: it knows when spot is there on the path, lets the job train, save, be interrupted and end
as docs/method.md says, and counts the bill.
"""

import json
import math
import os
import select
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from recommender.export.description import RunDescription
from recommender.export.targets import export_files

START = 1_000_000
STEPS = 1_000_000  # of the training
TOOLS = ("aws", "gcloud", "az", "sky")
NAMED = {
    "CHECKPOINT_BUCKET": "ours", "INSTANCE_PROFILE": "trainer", "RESOURCE_GROUP": "group",
    "AZURE_STORAGE_ACCOUNT": "account", "IDENTITY": "/subscriptions/s/identity",
}  # fmt: skip
# Sourced by every bash that is started: nothing but awk and the like is a process of its own.
PRELUDE = """
exec 8<> "$HERE/requests" 9<> "$HERE/replies"
: "${CLOCK:=1000000}"
ask() {
  local status text words="$*"
  printf '%s\\n' "${words//$'\\n'/ }" >&8
  IFS='|' read -r status text <&9
  if [ -n "$text" ]; then printf '%b\\n' "$text"; fi
  return "$status"
}
date() { echo "$CLOCK"; }
sleep() { CLOCK=$(ask "sleep $1"); }
xargs() { local each all=(); while read -r each; do all+=("$each"); done; "$@" "${all[@]}"; }
find() { :; }
tar() { :; }
"""


@dataclass(frozen=True)
class Market:
    """When spot is there on one path, and the job's true work on it."""

    waits: list[float]
    lengths: list[float]
    notified: list[bool]
    work_s: float
    queue_s: float = 0.0  # for on-demand machines
    moved: list[bool] | None = None  # a run is in another region than the last; None: in any


# Between two rounds without machines: SkyPilot 0.14.1 (sky/utils/common_utils.py, Backoff, from
# RETRY_INIT_GAP_SECONDS of sky/jobs/recovery_strategy.py on; read 2026-11). Its jitter is left out.
BACKOFF_S = (60.0, 96.0, 153.6, 245.8, 300.0)


def found_s(since: float, opens: float) -> float:
    """When SkyPilot, which asks for machines since a moment, gets those that are there later."""
    at, gaps = since, list(BACKOFF_S)
    while at < opens:
        at += gaps.pop(0) if len(gaps) > 1 else gaps[0]
    return at


class Cloud:
    """The machines, the job and the bill of one run; times since its start."""

    def __init__(self, plan: SimpleNamespace, market: Market, run: RunDescription) -> None:
        self.plan, self.market, self.name = plan, market, run.name
        self.runs = {"plan": run, "fallback": run.on_fallback or run}
        self.deadline_s, self.budget_usd = run.limits.deadline_s or math.inf, run.budget_usd
        self.listed_usd = 0.0  # at the prices that the script has
        self.now = self.done = self.spot_s = self.fallback_s = 0.0
        self.cycle, self.opens = 0, market.waits[0]
        self.closes = self.opens + market.lengths[0]
        self.up: dict[str, float] = {}  # since when the machines of a phase are there
        self.asked: float | None = None  # when on-demand machines were
        self.timed = ""  # the phase in which steps were timed last
        self.where: dict[str, str] = {}  # the region of the last machines of a phase
        self.moves = 0
        self.since = 0.0  # when SkyPilot began to look for machines
        self.obeys = True  # machines end when they are asked to
        self.ended_s: float | None = None
        self.switches: list[float] = []
        self.jobs: dict[str, str] = {}  # of SkyPilot: cancelled, or wanted

    # The market and the job ---------------------------------------------------------------

    def ready_s(self, phase: str) -> float:
        """From when on the machines of a phase train."""
        late = self.plan.changeover_s if phase == "plan" else self.plan.fallback_start_s
        return self.up[phase] + late

    def pace(self, phase: str) -> float:
        """Work per second, saves included."""
        p = self.plan
        saving = p.interval_s / (p.interval_s + p.stall_s)
        return saving if phase == "plan" else p.fallback_speed

    def saved(self, phase: str, at_s: float) -> float:
        """The work of a phase that no interruption takes, gained until a moment."""
        trained = max(at_s - self.ready_s(phase), 0.0)
        if phase == "fallback":
            return trained * self.pace(phase)
        p = self.plan
        return trained // (p.interval_s + p.stall_s) * p.interval_s

    def finish_s(self, phase: str) -> float:
        """When the job would end."""
        left = self.market.work_s - self.done
        if phase == "fallback":
            return self.ready_s(phase) + left / self.plan.fallback_speed
        intervals = max(left - 1e-3, 0.0) // self.plan.interval_s
        return self.ready_s(phase) + left + self.plan.stall_s * intervals

    def pass_time(self, until: float) -> None:
        """Whatever happens until a moment."""
        while self.ended_s is None:
            self.recover(until)
            phase = min(self.up, key=self.finish_s, default="")
            end = self.finish_s(phase) if phase else float("inf")
            if min(end, self.closes) > until:
                break
            if end <= self.closes or (phase == "fallback" and end <= until):
                self.note_speed(end)
                self.close(phase, end)
                self.ended_s = end
                return
            self.interrupt()
        self.note_speed(until)
        self.now = until

    def recover(self, until: float) -> None:
        """SkyPilot recovers a job itself."""
        if self.jobs.get("plan") == "wanted" and "plan" not in self.up:
            at = found_s(self.since, self.opens)
            if at < self.closes and at <= until:
                self.up["plan"] = at

    def note_speed(self, until: float) -> None:
        """Steps are timed from the first one on."""
        for phase in self.up:
            if until >= self.ready_s(phase):
                self.timed = phase

    def interrupt(self) -> None:
        """Spot goes; the next outage and run follow."""
        end, market = self.closes, self.market
        self.note_speed(end)
        self.since = end if "plan" in self.up else self.since
        if "plan" in self.up:
            place = self.cycle % len(market.lengths)
            kept = self.saved("plan", end)
            if market.notified[place]:
                kept = max(end - self.ready_s("plan"), 0.0) * self.pace("plan")
            self.done += kept
            self.close("plan", end, interrupted=True)
        self.cycle += 1
        place = self.cycle % len(market.lengths)
        self.opens = end + market.waits[place]
        self.closes = self.opens + market.lengths[place]

    def close(self, phase: str, end: float, interrupted: bool = False) -> None:
        """The machines of a phase are gone: their hours are paid."""
        p, up_s = self.plan, end - self.up.pop(phase)
        self.listed_usd += up_s * self.runs[phase].plan.usd_per_hour / 3600.0
        if phase == "fallback":
            self.fallback_s += up_s
        elif not (interrupted and up_s < p.free_s) and up_s > 0.0:
            self.spot_s += max(up_s, p.minimum_s)

    def quiet_s(self) -> float:
        """For how long no look can find anything new: the looks before that are left out.

        Slack falls by at most a second per second, and on demand only the need falls.
        """
        p, now = self.plan, self.now
        if self.ended_s is not None:
            return 0.0
        moments = [self.finish_s(phase) for phase in self.up]
        moments += [self.ready_s(phase) for phase in self.up if self.ready_s(phase) >= now]
        if "fallback" not in self.up or math.isfinite(p.back_above):
            moments += [each for each in (self.opens, self.closes) if each > now]
        if self.budget_usd is not None:
            moments += [now + self.paid_for_s(phase) for phase in self.up]
        if self.jobs.get("plan") == "wanted" and "plan" not in self.up:
            moments.append(max(found_s(self.since, self.opens), now))
        if not p.fallback_speed:
            return min(moments, default=math.inf) - now
        known = bool(self.timed)
        safe = self.done + sum(self.saved(phase, now) for phase in self.up)
        need = ((self.market.work_s if known else p.work_s) - safe) / p.fallback_speed
        careful = need * (1.0 if known else p.cautious_work_s / p.work_s)
        left = self.deadline_s - p.reserve_s - p.fallback_start_s - now
        if "fallback" in self.up:
            spare = left - need - p.changeover_s
            if 0.0 < spare <= p.back_above * need and math.isfinite(p.back_above):
                moments.append(now + need - spare / p.back_above)
        else:
            slack = left - need
            moments.append(now + slack)
            if "plan" not in self.up:
                moments.append(now + left - (1.0 + p.wait_above) * careful)
        return min(moments) - now

    def paid_for_s(self, phase: str) -> float:
        """How long the budget still pays for the machines of a phase."""
        assert self.budget_usd is not None
        hourly = self.runs[phase].plan.usd_per_hour
        return (self.budget_usd - self.listed_usd) / hourly * 3600.0 - self.now + self.up[phase]

    @property
    def cost_usd(self) -> float:
        """The bill at the expected price, moves left out."""
        p = self.plan
        hourly = self.spot_s * p.spot_usd_per_hour + self.fallback_s * p.fallback_usd_per_hour
        hourly += (self.ended_s or self.now) * p.base_usd_per_hour
        return float(p.fixed_usd + hourly / 3600.0)

    # What the tools are asked for -----------------------------------------------------------

    def reply(self, request: str) -> tuple[int, str]:
        """Status and output of a call."""
        if request.startswith("sleep "):
            poll_s = float(request.split()[1])
            self.pass_time(self.now + poll_s * max(1, math.ceil(self.quiet_s() / poll_s)))
            return 0, f"{START + self.now:.0f}"
        phase = "fallback" if "-fallback" in request else "plan"
        for words, answer in (
            (("run-instances", "instances create", "vm create"), self.start),
            (("terminate-instances", "instances delete", "vm delete", "jobs cancel"), self.stop),
            (("describe-instances", "instances list", "vm list"), self.listed),
            (("jobs launch",), self.launch),
            (("jobs queue",), self.queue),
        ):
            if any(word in request for word in words):
                return answer(phase, request)
        return self.file(request)

    def start(self, phase: str, request: str) -> tuple[int, str]:
        """Machines, where there are any."""
        if phase == "fallback":
            if self.asked is None:
                self.asked = self.now
                self.switches.append(self.now)
            if self.now < self.asked + self.market.queue_s:
                return 1, ""
            self.where[phase] = self.region_of(request)
        elif not self.opens <= self.now < self.closes or not self.is_in(request):
            return 1, ""
        self.up[phase] = self.now
        return 0, f"{phase}-0"

    def region_of(self, request: str) -> str:
        """The region that a request names; of names that contain each other the longer one."""
        regions = {each.region for run in self.runs.values() for each in run.locations}
        return max((each for each in regions if each in request), key=len, default="")

    def is_in(self, request: str) -> bool:
        """Whether the spot machines that are there are in the region that is asked."""
        asked, last, moved = self.region_of(request), self.where.get("plan", ""), self.market.moved
        here = not last or moved is None or (asked != last) == moved[self.cycle % len(moved)]
        if here:
            self.moves += bool(last) and asked != last
            self.where["plan"] = asked
        return here

    def stop(self, phase: str, request: str) -> tuple[int, str]:
        """They save, then end."""
        self.jobs[phase] = "CANCELLED" if phase in self.jobs else "NONE"
        if phase in self.up:
            trained = max(self.now - self.ready_s(phase), 0.0) * self.pace(phase)
            self.done = min(self.done + trained, self.market.work_s)
            self.close(phase, self.now)
        if phase == "fallback":
            self.asked = None
        return 0, ""

    def listed(self, phase: str, request: str) -> tuple[int, str]:
        """The machines of a phase that are there; of AWS, in one region."""
        elsewhere = "describe-instances" in request and (
            self.region_of(request) != self.where.get(phase)
        )
        if elsewhere or phase not in self.up:
            return 0, ""
        return 0, "\\n".join(f"x-{phase}-{rank}" for rank in range(self.runs[phase].nodes))

    def launch(self, phase: str, request: str) -> tuple[int, str]:
        """A managed job, which looks for machines itself."""
        if phase == "fallback":
            found = self.start(phase, request)
            self.jobs |= {} if found[0] else {phase: "wanted"}
            return found
        self.jobs[phase], self.since = "wanted", self.now
        self.recover(self.now)
        return 0, ""

    def queue(self, phase: str, request: str) -> tuple[int, str]:
        """The managed jobs."""
        names = {"wanted": "RECOVERING"}
        jobs = [
            {
                "job_name": f"{self.name}-{START}-{each}",
                "job_id": number,
                "status": "RUNNING" if each in self.up else names.get(state, state),
            }
            for number, (each, state) in enumerate(self.jobs.items())
            if state != "NONE"
        ]
        if self.ended_s is not None:
            for job in jobs:
                job["status"] = "SUCCEEDED"
        return 0, json.dumps(jobs)

    def file(self, request: str) -> tuple[int, str]:
        """A file of the bucket."""
        if "/end-" in request and self.obeys and not {"rm", "delete"} & set(request.split()):
            return self.stop("fallback" if "-fallback" in request else "plan", request)
        if "/ended-" in request and self.ended_s is not None:
            return 0, "done"
        if "describe-instance-types" in request:  # EFA interfaces and network cards
            return 0, "None 1"
        if "/progress.json" not in request:
            return (1 if "/progress" in request or "/ended-" in request else 0), "word"
        safe = self.done + sum(self.saved(phase, self.now) for phase in self.up)
        noted: dict[str, object] = {
            "step": int(safe / self.market.work_s * STEPS), "total_steps": STEPS,
            "step_s": None, "planned_work_s": None,
        }  # fmt: skip
        if self.timed:
            faster = 1.0 if self.timed == "plan" else self.plan.fallback_speed
            noted["step_s"] = self.market.work_s / faster / STEPS
            noted["planned_work_s"] = self.runs[self.timed].work_s
        return 0, json.dumps(noted, indent=1).replace("\n", "\\n")


def script_of(run: RunDescription, target: str, folder: Path) -> None:
    """Write the files of a target, without a cap: the simulation has none."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in export_files(run, target, ""):
        if each.name == "launch.sh":
            text = each.text.replace("LONGEST_RUN_S=", "LONGEST_RUN_S=9")
            (folder / each.name).write_text(text, encoding="utf-8")
        elif each.name.endswith((".sh", ".yaml")):
            (folder / each.name).write_text(each.text, encoding="utf-8")
    tools = "".join(f'{name}() {{ ask "{name} $*"; }}\n' for name in TOOLS)
    (folder / "prelude").write_text(PRELUDE + tools, encoding="utf-8")
    for name in ("requests", "replies"):
        os.mkfifo(folder / name)


def replayed(folder: Path, cloud: Cloud, poll_s: int) -> Cloud:
    """Run the script on a path to its end."""
    environment = {
        "PATH": os.environ["PATH"], "HERE": str(folder), "BASH_ENV": str(folder / "prelude"),
        "POLL_S": f"{poll_s}", **NAMED,
    }  # fmt: skip
    cloud.pass_time(0.0)
    for left in folder.glob(".*.state*"):  # of a run that was stopped at a cap
        left.unlink()
    with (folder / "log").open("w", encoding="utf-8") as log:
        script = subprocess.Popen(
            ["bash", "launch.sh"], cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            served(script, cloud.reply, folder)
        finally:
            script.kill()
            script.wait()
    return cloud


def served(
    script: subprocess.Popen[bytes],
    reply: Callable[[str], tuple[int, str]],
    folder: Path,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Answer what a script asks, until it ends or is interrupted."""
    requests, replies = (os.open(folder / each, os.O_RDWR) for each in ("requests", "replies"))
    held = b""
    try:
        while script.poll() is None and not is_over():
            if not select.select([requests], [], [], 0.01)[0]:
                continue
            held += os.read(requests, 65_536)
            *lines, held = held.split(b"\n")
            for line in lines:
                status, text = reply(line.decode())
                if is_over():
                    break
                os.write(replies, f"{status}|{text}\n".encode())
    finally:
        os.close(requests)
        os.close(replies)
