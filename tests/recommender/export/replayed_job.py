"""Runs the exported commands of a job on one drawn path, under a made-up clock.

For targets that start the commands of a file again themselves, or have them started by the user:
the commands are the real ones; what starts them, trains, interrupts and pays is this process.
"""

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import yaml

from recommender.export.description import RunDescription
from recommender.export.targets import export_files
from recommender.export.templates import PAID
from tests.recommender.export.replayed import PRELUDE, START, Market, found_s, served

# Whatever runs beside the training ends at once: this process keeps its notes.
STANDS_IN = r"""
date() { ask date; }
sleep() { if [ "$BASHPID" != "$$" ]; then exit 0; fi; ask "sleep $1" > /dev/null; }
timeout() { ask "timeout $2"; }
srun() { bash -s; }
scontrol() { echo localhost; }
nvidia-smi() { echo GPU; }
pip() { :; }
shutdown() { :; }
mountpoint() { return 1; }
curl() { echo 1-0; }
azcopy() { :; }
aws() { bucket "$@"; }
gcloud() { bucket "$@"; }
az() { bucket "$@"; }
bucket() {
  local word file="" key=""
  for word in "$@"; do
    case "$word" in
      *://ours/*) key=$HERE/bucket/${word#*://ours/} ;;
      *) if [ -f "$word" ]; then file=$word; fi ;;
    esac
  done
  case " $* " in
    *" --version "*) echo aws-cli/2 ;;
    *sync*) case "${*: -1}" in *://*) ;; *) mkdir -p "${*: -1}" ;; esac ;;
    *" cat "* | *" - "*) cat "$key" 2> /dev/null ;;
    *" cp "*) mkdir -p "${key%/*}"; cat "$file" > "$key" ;;
  esac
}
"""


def commands_of(run: RunDescription, target: str) -> str:
    """What a machine runs."""
    (text,) = (
        each.text for each in export_files(run, target, "")
        if each.name in ("train.yaml", "train.dstack.yml", "train.sbatch", "train.sh", "machine.sh")
    )  # fmt: skip
    if target == "skypilot":
        job = yaml.safe_load(text)
        given = {name: value for name, value in job["envs"].items() if value is not None}
        text = "".join(f"export {name}='{value}'\n" for name, value in given.items()) + job["run"]
    if target == "dstack":
        job = yaml.safe_load(text)
        given = [each for each in job["env"] if "=" in each]
        text = "".join(f"export '{each}'\n" for each in given) + job["commands"][0]
    return text


class Job:
    """The machines of a plan without a fallback, as a target has them started."""

    def __init__(
        self, folder: Path, plan: SimpleNamespace, market: Market, run: RunDescription, target: str
    ) -> None:
        self.folder, self.plan, self.market, self.run = folder, plan, market, run
        self.waits_itself = target == "skypilot"
        self.now = self.done = self.spot_s = 0.0
        self.closes = 0.0
        self.ended_s: float | None = None
        self.left_s = 0.0
        self.status = 0

    @property
    def cost_usd(self) -> float:
        """The bill at the expected price, moves left out."""
        p, hours = self.plan, (self.ended_s or self.now) / 3600.0
        return float(
            p.fixed_usd + self.spot_s / 3600.0 * p.spot_usd_per_hour + hours * p.base_usd_per_hour
        )

    def replay(self) -> None:
        """Start the commands on each run of the market, until they end for good."""
        disk, market, opens, since = self.folder / "disk", self.market, 0.0, 0.0
        for each in (disk, self.folder / "bucket"):
            shutil.rmtree(each, ignore_errors=True)
        for cycle in range(100 * len(market.lengths)):
            place = cycle % len(market.lengths)
            opens = self.closes + market.waits[place]
            self.closes = opens + market.lengths[place]
            begins = found_s(since, opens) if self.waits_itself else opens
            if begins >= self.closes:
                continue
            self.now = begins + self.plan.changeover_s
            if self.now < self.closes:
                ended = self.start(market.notified[place])
            else:
                self.now, ended = self.closes, False
            up_s = self.now - begins
            if ended or up_s >= self.plan.free_s:
                self.spot_s += max(up_s, self.plan.minimum_s)
            if ended:
                return
            since = self.now

    def start(self, notified: bool) -> bool:
        """Run the commands; whether they have ended, and not been interrupted."""
        self.notified, self.first_s = notified, self.now
        environment = {
            "PATH": os.environ["PATH"], "HERE": str(self.folder), "HOME": str(self.folder),
            "BASH_ENV": str(self.folder / "prelude"), "CLOCK": f"{START + self.now:.0f}",
            "CHECKPOINT_BUCKET": "ours", "AZURE_STORAGE_ACCOUNT": "ours", "RUN_ID": f"{START}",
            "LEFT_S": "1", "NNODES": "1", "NODE_RANK": "0",
            "CHECKPOINT_DIR": f"{self.folder}/disk/{self.run.name}",
            "SKYPILOT_NUM_NODES": "1", "SKYPILOT_NODE_RANK": "0", "SKYPILOT_NODE_IPS": "here",
            "SKYPILOT_NUM_GPUS_PER_NODE": "8", "SLURM_JOB_NODELIST": "here", "SLURM_NNODES": "1",
            "SLURM_NODEID": "0", "SLURM_GPUS_ON_NODE": "8", "DSTACK_NODES_NUM": "1",
            "DSTACK_NODE_RANK": "0", "DSTACK_MASTER_NODE_IP": "here", "DSTACK_GPUS_PER_NODE": "8",
        }  # fmt: skip
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            script = subprocess.Popen(
                ["bash", "job"], cwd=self.folder, env=environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
            try:
                served(script, self.reply, self.folder, lambda: self.status < 0)
            finally:
                with suppress(ProcessLookupError):  # whatever it has left running
                    os.killpg(script.pid, signal.SIGKILL)
                script.wait()
        interrupted, self.status = self.status < 0, 0
        return not interrupted

    def reply(self, request: str) -> tuple[int, str]:
        """Status and output of a call."""
        name, _, words = request.partition(" ")
        if name == "sleep":
            self.now += float(words)
        if name == "timeout":
            self.train(float(words))
            return self.status, ""
        return 0, f"{START + self.now:.0f}"

    def train(self, left_s: float) -> None:
        """Train until the job ends, its time is over, or the machines go."""
        p, first = self.plan, self.now
        work = self.market.work_s - self.done
        finish = first + work + p.stall_s * (max(work - 1e-3, 0.0) // p.interval_s)
        self.now = min(finish, self.closes, first + left_s)
        self.note_minutes((self.now - first) // 60.0)
        if self.now == finish:
            self.ended_s, self.status = finish, 0
            return
        trained = self.now - first
        kept = trained // (p.interval_s + p.stall_s) * p.interval_s
        if self.notified or self.now < self.closes:
            kept = trained * p.interval_s / (p.interval_s + p.stall_s)
        self.done += kept
        self.status = 124 if self.now < self.closes else -1

    def note_minutes(self, minutes: float) -> None:
        """What the commands count beside the training."""
        lines = f"{self.run.plan.usd_per_hour:.4g}\n" * int(minutes)
        for place in ("disk", "bucket"):
            folder = self.folder / place / self.run.name
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / PAID).open("a", encoding="utf-8") as file:
                file.write(lines)


def write_job(run: RunDescription, target: str, folder: Path) -> None:
    """The commands of a target, and what stands in for its machines."""
    folder.mkdir(parents=True, exist_ok=True)
    text = commands_of(run, target).replace("/tmp/train.sh", f"{folder}/train.sh")
    text = text.replace("/checkpoints", f"{folder}/disk").replace("/opt/", "/none/")
    text = re.sub("LONGEST_RUN_S='?", r"\g<0>9", text)  # as the simulation has no cap
    (folder / "job").write_text(text, encoding="utf-8")
    (folder / "prelude").write_text(PRELUDE + STANDS_IN, encoding="utf-8")
    for name in ("requests", "replies"):
        os.mkfifo(folder / name)
