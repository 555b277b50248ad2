"""From a question to a simulated plan, on the shipped snapshot."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recommender.api.calls import recommend
from recommender.errors import UsageError
from recommender.inputs.units import Comparison, parse_comparison
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.simulation import Simulation
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.simulate_plan import PlanSimulation, simulate_plan
from recommender.risk.laws import Weibull
from recommender.risk.random_numbers import SEED
from recommender.simulation.deflatable import Deflatable
from recommender.simulation.scenario import WhatIf
from recommender.simulation.simulate import SimulationOptions
from tests.shipped import snapshot

H = 3600.0
JOB = find_job("resnet50-imagenet")
LIMITS = Limits(deadline_s=24 * H)
CATALOG = snapshot()
NOW = datetime(2026, 11, 21, tzinfo=UTC)
CHOICE = Choice(providers=("aws",))


NOTHING = WhatIf()


def simulated(
    what_if: WhatIf = NOTHING,
    which: int | Comparison | None = None,
) -> Simulation:
    found = simulate_plan(problem(LIMITS), which, SimulationOptions(2048, 7, what_if))
    assert found.simulation is not None
    return found.simulation


def problem(limits: Limits) -> Problem:
    return planning_problem(JOB, limits, CHOICE, CATALOG, Progress(), NOW, SEED)


def test_the_printed_runs_are_simulated_to_the_printed_figures() -> None:
    answer = recommend(JOB, LIMITS, CHOICE, catalog=CATALOG, now=NOW)
    printed = answer.plans[answer.lead - 1].estimate
    found = simulated()
    assert found.number == answer.lead
    assert found.cost.mean == pytest.approx(printed.cost.mean)
    assert found.time.p95 == pytest.approx(printed.time.p95)
    assert found.interruptions.mean == pytest.approx(printed.interruptions)
    assert found.chance == pytest.approx(printed.chance)


def test_plan_n_is_the_one_recommend_shows() -> None:
    shown = recommend(JOB, LIMITS, CHOICE, catalog=CATALOG, now=NOW).plans
    found = simulated(which=2)
    assert (found.number, found.plan.machines) == (2, shown[1].machines)
    with pytest.raises(UsageError, match="--plan 900: there is no such plan; the plans are 1 to "):
        simulated(which=900)


def test_machines_can_be_named() -> None:
    found = simulated(which=parse_comparison("2x g5.12xlarge on-demand us-east-1"))
    (machines,) = found.plan.machines
    assert (machines.count, machines.instance_type, machines.market) == (
        2,
        "g5.12xlarge",
        "on_demand",
    )
    assert found.number == 0
    assert found.plan.fallback is None
    with pytest.raises(UsageError, match="the machines 2x nothing spot: unknown"):
        simulated(which=parse_comparison("2x nothing spot"))


def test_where_no_plan_meets_the_limits_the_answer_says_why() -> None:
    found = simulate_plan(
        problem(Limits(deadline_s=60.0, max_machines=1)), None, SimulationOptions()
    )
    assert found.simulation is None
    assert found.answer is not None
    assert found.answer.status == "infeasible"
    assert isinstance(found, PlanSimulation)


RECORDED = "t_s,event,value\n0,machines,4\n36000,machines,0\n72000,end,\n"
SPOT = parse_comparison("4x g5.12xlarge spot us-east-1")


def test_a_recording_takes_the_place_of_the_spot_class(tmp_path: Path) -> None:
    path = tmp_path / "zone.csv"
    path.write_text(RECORDED)
    found = simulated(WhatIf(trace=path), SPOT)
    assert "zone.csv, 1 series" in found.capacity
    assert "4 machines up 50 % of the time, 10 h at a time" in found.capacity
    path.write_text("t_s,event,value\n0,machines,3\n72000,end,\n")
    with pytest.raises(UsageError, match="never has 4 machines up"):
        simulated(WhatIf(trace=path), SPOT)


def test_a_recording_of_machines_that_never_go_costs_no_interruption(tmp_path: Path) -> None:
    path = tmp_path / "zone.csv"
    path.write_text("t_s,event,value\n0,machines,4\n72000,end,\n")
    found = simulated(WhatIf(trace=path), SPOT)
    assert found.interruptions.mean == 0.0
    assert {s.name for s in found.states if s.share > 0} <= {"starting", "training", "saving"}
    assert "never interrupted" in found.capacity
    assert found.closed_form.time_s == pytest.approx(found.time.mean, rel=0.01)


def test_the_closed_form_takes_the_end_of_a_short_recording_for_no_interruption(
    tmp_path: Path,
) -> None:
    long, short = tmp_path / "long.csv", tmp_path / "short.csv"
    long.write_text("t_s,event,value\n0,machines,4\n7200000,end,\n")
    short.write_text("t_s,event,value\n0,machines,4\n3600,end,\n")
    forms = [simulated(WhatIf(trace=p), SPOT).closed_form for p in (long, short)]
    assert forms[0] == forms[1]


def test_runs_of_another_law_and_deflatable_machines_are_what_ifs_of_spot() -> None:
    weibull = simulated(WhatIf(law=Weibull(0.6)), SPOT)
    assert "Weibull runs of shape 0.6" in weibull.capacity
    shrunk = simulated(WhatIf(deflatable=Deflatable(0.1, 0.5, 1800.0)), SPOT)
    assert any("what-if" in note for note in shrunk.notes)
    assert shrunk.time.mean < simulated(which=SPOT).time.mean
    assert shrunk.closed_form.time_s == pytest.approx(shrunk.time.mean, rel=0.03)
    on_demand = parse_comparison("4x g5.12xlarge on-demand us-east-1")
    with pytest.raises(UsageError, match="this plan rents none"):
        simulated(WhatIf(law=Weibull(0.6)), on_demand)


def test_verify_compares_the_printed_figures_with_other_paths() -> None:
    plain = recommend(JOB, LIMITS, CHOICE, catalog=CATALOG, now=NOW)
    verified = recommend(JOB, LIMITS, CHOICE, catalog=CATALOG, now=NOW, verify=True)
    assert plain.checks == ()
    assert verified.plans == plain.plans
    assert [check.rank for check in verified.checks] == [*range(1, len(plain.plans) + 1)]
    for check, plan in zip(verified.checks, verified.plans, strict=True):
        cost, time, chance = check.differences
        estimate = plan.estimate
        assert (cost.printed, time.printed) == (estimate.cost.mean, estimate.time.p50)
        assert check.seed != verified.seed
        assert abs(cost.simulated - cost.printed) <= 4 * cost.error + 1e-9
        assert abs(time.simulated - time.printed) <= 4 * time.error + 1e-9
        assert abs(chance.simulated - chance.printed) <= 4 * chance.error + 1e-9
