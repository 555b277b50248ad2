"""The exported launch.sh on drawn paths: it does what was simulated, at the cost that was told."""

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from recommender.arrays import Bools, Floats
from recommender.export.description import RunDescription
from recommender.export.targets import export_files
from recommender.plan.limits import Limits
from recommender.risk.path_inputs import PathInputs, Paths
from recommender.risk.policy import policies_of
from recommender.risk.random_numbers import STRETCH, random_numbers
from recommender.risk.spot_capacity import drawn_cycles
from recommender.risk.walk import walk
from tests.recommender import answers
from tests.recommender.export.replayed import Cloud, Market, replayed, script_of
from tests.recommender.export.replayed_job import Job, write_job
from tests.recommender.export.runs import described
from tests.recommender.optimize.samples import sampled
from tests.recommender.risk.cases import PLAIN, SPOT, path_inputs
from tests.recommender.simulation.events import plan_of

HOUR = 3600.0
SCRIPTED = {
    "aws-cli": answers.AWS_H100, "gcloud": answers.GCP, "azure-cli": answers.AZURE,
    "skypilot": answers.GCP,
}  # fmt: skip
CLOUDS = SCRIPTED | {
    "slurm": answers.GCP, "torchrun": answers.AZURE, "terraform": answers.AWS_H100,
    "dstack": answers.GCP,
}  # fmt: skip
CASE = {
    **PLAIN, **SPOT, "work_s": 20 * HOUR, "speed_sigma": 0.2, "usd_per_move": 0.0,
    "interval_s": 900.0, "stall_s": 20.0, "zone_count": 2.0, "notice_saves": 0.5,
    "fallback_usd_per_hour": 60.0, "fallback_start_s": 600.0, "reserve_s": 600.0,
    "cautious_work_s": 26 * HOUR,
}  # fmt: skip
POLICIES = {
    "to the last moment": {"fallback_speed": 1.0},
    "slower machines": {"fallback_speed": 0.75},
    "faster machines": {"fallback_speed": 1.6, "fallback_usd_per_hour": 90.0},
    "back and forth": {"fallback_speed": 1.0, "wait_above": 0.2, "back_above": 0.05},
    "few checkpoints": {"fallback_speed": 0.9, "reserve_s": 6 * HOUR},  # under an overhead limit
    "stays in its region": {
        "fallback_speed": 1.0, "zone_count": 3.0, "correlation": 0.2, "move_after_s": 1800.0,
        "usd_per_move": 3.0,
    },
    "only spot": {},
    "a budget": {},
}  # fmt: skip
BUDGET_USD = 250.0
DEADLINE_S = 32 * HOUR
POLL_S = 60
SPOT_ALONE = ("only spot", "a budget")
# Where nothing makes the switch the plan without one is told, too.
PAIRS = [(t, p) for t in CLOUDS for p in POLICIES if t in SCRIPTED or p in SPOT_ALONE]
STRETCHES = 8  # of runs drawn for a path


def run_of(target: str, inputs: PathInputs, budget_usd: float | None = None) -> RunDescription:
    """A plan of the target's cloud with these figures."""
    own, p = CLOUDS[target], plan_of(inputs)
    late = replace(own.machines[0], market="on_demand")
    patient = p.wait_above > 0.0
    fallback = replace(
        answers.GCP.fallback,  # type: ignore[type-var]
        machines=(late,), usd_per_hour=p.fallback_usd_per_hour, speed=p.fallback_speed,
        reserve_s=p.reserve_s + p.fallback_start_s, changeover_s=p.changeover_s,
        wait_above=p.wait_above if patient else None, back_above=p.back_above if patient else None,
        caution=p.cautious_work_s / p.work_s,
    )  # fmt: skip
    step_s = p.work_s / answers.JOB.seconds_on(own.gpus, 1.0)
    estimate = replace(own.estimate, step=replace(own.estimate.step, step_s=step_s))
    plan = replace(
        own, fallback=fallback if p.fallback_speed else None, estimate=estimate,
        move_after_s=p.move_after_s, usd_per_hour=p.spot_usd_per_hour,
    )  # fmt: skip
    if budget_usd is not None:
        return described(plan, Limits(budget_usd=budget_usd))
    return described(plan, Limits(deadline_s=DEADLINE_S))


def simulated(
    inputs: PathInputs, deadline_s: float | None, paths: int, patient: bool = True
) -> tuple[Paths, list[Market]]:
    """The plan's own simulation of some paths, and the market on each.

    A target that is not patient moves at once where the plan waits in its region first.
    """
    sample = random_numbers(paths)
    as_run = inputs if patient else replace(inputs, move_after_s=np.zeros(1))
    lengths, waits = drawn_cycles(as_run, sample, STRETCHES)
    notices = [sample.uniforms("notice", STRETCH * n) for n in range(STRETCHES)]
    notified = np.concatenate(notices) < inputs.notice_saves
    queue_s = sample.queue_s(inputs.fallback_at_once, inputs.fallback_wait_s)[0]
    moved = None
    if as_run.move_after_s[0] > 0.0:  # as far as its own region has no machines for so long
        own = drawn_cycles(replace(inputs, move_after_s=np.array([1e12])), sample, STRETCHES)[1]
        moved = own >= inputs.move_after_s[0]
    found = walk(as_run, deadline_s, sample)
    return found, [
        Market(
            waits[:, 0, path].tolist(), lengths[:, 0, path].tolist(), notified[:, path].tolist(),
            float(found.work_s[0, path]), float(queue_s[path]),
            None if moved is None else moved[:, 0, path].tolist(),
        )
        for path in range(paths)
    ]  # fmt: skip


@dataclass(frozen=True)
class Runs:
    """What became of some paths, one value each."""

    time_s: Floats
    cost_usd: Floats  # moves left out
    fallback_s: Floats
    moves: Floats
    met: Bools  # the limits

    @property
    def ended(self) -> Bools:
        """Not stopped at a cap."""
        return np.isfinite(self.time_s)


def told_of(found: Paths, inputs: PathInputs, limits: Limits) -> Runs:
    """As simulated."""
    cost = found.expected_usd[0] - inputs.usd_per_move * found.moves[0]
    most = limits.budget_usd or np.inf
    met = (found.time_s[0] <= (limits.deadline_s or np.inf)) & (found.cost_usd[0] <= most)
    return Runs(found.time_s[0], cost, found.fallback_s[0], found.moves[0], met)


def compared(
    folder: Path, target: str, run: RunDescription, inputs: PathInputs, paths: int, poll_s: int
) -> tuple[Runs, Runs]:
    """The paths as simulated, and as the files of a target run them."""
    limits, plan = run.limits, plan_of(inputs)
    found, markets = simulated(inputs, limits.deadline_s, paths, target != "skypilot")
    by_script = any(each.name == "launch.sh" for each in export_files(run, target, ""))
    (script_of if by_script else write_job)(run, target, folder)
    seen = []
    for market in markets:
        if by_script:
            cloud = replayed(folder, Cloud(plan, market, run), poll_s)
            figures = cloud.cost_usd, cloud.fallback_s, cloud.moves
            ended_s = cloud.ended_s
        else:
            job = Job(folder, plan, market, run, target)
            job.replay()
            figures, ended_s = (job.cost_usd, 0.0, 0), job.ended_s
        seen.append((ended_s or np.inf, *figures))
    time, cost, fallback, moves = np.array(seen).T
    within = np.isfinite(time) & (time <= (limits.deadline_s or np.inf))
    within &= cost <= (limits.budget_usd or np.inf)
    return told_of(found, inputs, limits), Runs(time, cost, fallback, moves, within)


def case_of(target: str, policy: str) -> tuple[RunDescription, PathInputs]:
    """A plan that follows a policy on the cloud of a target."""
    inputs = path_inputs(CASE | POLICIES[policy])
    return run_of(target, inputs, BUDGET_USD if policy == "a budget" else None), inputs


def agree(folder: Path, target: str, policy: str, paths: int) -> None:
    """The files take the time and cost what was told, and keep the limits as often."""
    run, inputs = case_of(target, policy)
    told, seen = compared(folder, target, run, inputs, paths, POLL_S)
    both = told.ended & seen.ended
    # SkyPilot asks at all places for a while before there is no spot, and pauses between rounds:
    # it goes on demand later, or misses spot that is there.
    by_sky = target == "skypilot"
    less, more = (0.08, 0.04) if by_sky and "wait_above" in POLICIES[policy] else (0.02, 0.02)
    time, cost = (
        getattr(seen, each)[both].mean() / getattr(told, each)[both].mean()
        for each in ("time_s", "cost_usd")
    )
    assert time == pytest.approx(1.0, abs=0.02)
    assert 1.0 - less <= cost <= 1.0 + more
    assert np.abs(seen.fallback_s - told.fallback_s).mean() <= 0.02 * told.time_s.mean()
    assert seen.met.mean() == pytest.approx(told.met.mean(), abs=0.01)
    assert both.mean() >= told.met.mean() - 0.01
    if inputs.fallback_speed[0] > 0.0:
        assert both.all()
        assert (told.fallback_s > 0.0).any()  # some went on demand
    moved = np.abs(seen.time_s - told.time_s)[both] > 0.02 * told.time_s[both]
    assert moved.mean() <= (
        0.2 if by_sky else 0.05
    )  # a look that comes too late for a run that is over is another path


@pytest.mark.parametrize("target", sampled(SCRIPTED, ("gcloud", "skypilot")))
def test_a_script_does_what_was_simulated(tmp_path: Path, target: str) -> None:
    agree(tmp_path, target, "back and forth", 6)


@pytest.mark.parametrize("target", sampled(CLOUDS, ("slurm", "terraform")))
def test_a_job_without_a_fallback_is_run_as_it_was_simulated(tmp_path: Path, target: str) -> None:
    agree(tmp_path, target, "a budget", 8)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "policy"), PAIRS)
def test_files_do_on_many_paths_what_was_simulated(
    tmp_path: Path, target: str, policy: str
) -> None:
    agree(tmp_path, target, policy, 200)


CHOOSE = """
began=0
date() { echo "$now"; }
before=nothing
while IFS='|' read -r phase now text; do noticed=$(printf '%b' "$text"); choice; done
"""


def chosen(run: RunDescription, cases: list[tuple[str, int, str]]) -> list[str]:
    """What the script's own decision is, by phase, time and what was noted of the progress."""
    (text,) = (each.text for each in export_files(run, "gcloud", "") if each.name == "launch.sh")
    begin = text.index("DEADLINE_S=")
    figures = text[begin : text.index("\n\n", begin)]
    function = text[text.index("choice() {") : text.index("go_on_demand() {")]
    asked = "".join(f"{'|'.join(map(str, case))}\n" for case in cases)
    script = f"set -euo pipefail\n{figures}\n{function}{CHOOSE}"
    done = subprocess.run(
        ["bash", "-c", script], input=asked, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("policy", ["to the last moment", "slower machines", "back and forth"])
def test_the_decision_is_that_of_the_policy(policy: str) -> None:
    """On random histories, by the policy's own moments; borders within a second are left out."""
    inputs, rng = path_inputs(CASE | POLICIES[policy]), np.random.default_rng(5)
    p, rules = plan_of(inputs), policies_of(inputs, DEADLINE_S)
    cases, wanted = [], []
    while len(cases) < 250:
        done, slower = float(rng.uniform(0, 1)), float(rng.choice([0.0, 0.8, 1.3]))
        phase, now = str(rng.choice(["plan", "fallback"])), int(rng.uniform(0, DEADLINE_S))
        work = p.work_s * (slower or 1.0)
        left, known = np.array([[work * (1.0 - done)]]), slower > 0.0
        careful = left if known else left * p.cautious_work_s / p.work_s
        need = float(rules.need_s(left)[0, 0])
        spare = float(rules.last_moment_s(left)[0, 0]) - now
        back = spare - p.changeover_s - p.back_above * need if np.isfinite(p.back_above) else -9e9
        waits = float(rules.patience_ends_s(careful)[0, 0]) - now
        if min(abs(spare), abs(waits), abs(back)) < 3.0:
            continue
        noted = {
            "step": round(done * 1e9), "total_steps": 10**9,
            "step_s": slower * p.work_s / 1e9 if known else None, "planned_work_s": p.work_s,
        }  # fmt: skip
        cases.append((phase, now, json.dumps(noted, indent=1).replace("\n", "\\n")))
        if phase == "plan":
            wanted.append("now" if spare < 0 else "without_spot" if waits < 0 else "stay")
        else:
            wanted.append("back" if back > 0 else "stay")
    assert chosen(run_of("gcloud", inputs), cases) == wanted
    assert len(set(wanted)) >= 3


def test_a_plain_share_counts_and_nonsense_does_not() -> None:
    """Of 20 h of work in 32 h, with 20 min in reserve: 11.67 h in, it is time."""
    run = run_of(
        "gcloud",
        path_inputs(CASE | POLICIES["to the last moment"] | {"cautious_work_s": 20 * HOUR}),
    )
    late, early = int(11.7 * HOUR), int(11.6 * HOUR)
    for text in ("what", "7", "{", ""):
        cases = [("plan", now, text) for now in (early, late)]
        assert chosen(run, cases) == ["stay", "now"]
    half = [("plan", now + 10 * 3600, "0.5") for now in (early, late)]
    assert chosen(run, half) == ["stay", "now"]


@pytest.mark.parametrize("obeys", [True, False])
def test_machines_that_are_given_up_are_stopped_if_they_do_not_end(
    tmp_path: Path, obeys: bool
) -> None:
    """They have ten minutes, and those of an upload; spot would stay for good."""
    inputs = path_inputs(CASE | POLICIES["to the last moment"])
    run = run_of("gcloud", inputs)
    market = Market([0.0], [400 * HOUR], [True], 60 * HOUR)
    script_of(run, "gcloud", tmp_path)
    cloud = Cloud(plan_of(inputs), market, run)
    cloud.obeys = obeys
    found = replayed(tmp_path, cloud, POLL_S)
    given_s = 0.0 if obeys else run.safe_after_s + 600.0
    assert found.spot_s == pytest.approx(found.switches[0] + given_s, abs=2.5 * POLL_S)
    assert found.up == {}


@pytest.mark.parametrize("target", sampled(SCRIPTED, ("gcloud", "skypilot")))
def test_on_demand_machines_that_come_late_are_asked_for_again(tmp_path: Path, target: str) -> None:
    """Twice they are needed, each time refused for half an hour; spot comes back in between."""
    inputs = path_inputs(CASE | POLICIES["back and forth"])
    run = run_of(target, inputs)
    market = Market([0.0, 9 * HOUR, 9 * HOUR], [5 * HOUR] * 3, [True] * 3, 20 * HOUR, HOUR / 2)
    script_of(run, target, tmp_path)
    found = replayed(tmp_path, Cloud(plan_of(inputs), market, run), POLL_S)
    assert found.ended_s is not None
    assert found.ended_s < DEADLINE_S
    assert len(found.switches) == 2
