"""`recommend simulate`: one plan on thousands of simulated paths."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.cli import planner_inputs
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import INFEASIBLE
from recommender.cli.flags import Word, Words, argument, flag
from recommender.cli.groups import command_app
from recommender.cli.open_catalog import warn
from recommender.cli.options import (
    OutputFlags,
    TraceFlags,
    changed_settings,
    with_settings,
)
from recommender.cli.output import Form, form_of, plan_number, show_page
from recommender.cli.planner_inputs import PlannerFlags
from recommender.cli.screen import progress
from recommender.cli.search_progress import watched
from recommender.cli.strict import PlanCommand, call_problems, complete_job
from recommender.cli.written_files import draw, picture_path
from recommender.export.start import TARGETS
from recommender.inputs import units
from recommender.inputs.files import writing
from recommender.report.answer_page import answer_page
from recommender.report.simulation import simulation_page
from recommender.text import shown_path

if TYPE_CHECKING:
    from recommender.planner.simulate_plan import PlanSimulation
    from recommender.simulation.simulate import SimulationOptions

MAX_RUNS = 10_000_000
POLICIES = ("net", "thresholds", "full")
_COUNTED = re.compile(r"[0-9]+\s*[x×*]")  # how machines begin, and no job does


@dataclass(frozen=True, slots=True)
class SimulationFlags:
    """What is simulated, how often, and on which capacity."""

    PANEL: ClassVar = "Simulation"
    plan: Word = flag("N", "Number of the plan (the leading one).")
    runs: Word = flag("N", "Number of simulated runs (10000).")
    trace: Word = flag("FILE", "Recorded availability to simulate on.")
    run_law: Word = flag(
        "LAW|FILE",
        "Law of spot runs: weibull:0.6, lognormal:1.5, exponential, or a survival curve.",
    )
    deflatable: Word = flag(
        "FACTS", "If spot machines lost speed instead: pressure=10%,depth=50%,episode=30m,price=2."
    )
    policy: Word = flag(
        "net|thresholds|full",
        "Compare the plan's fallback rule (net) with two thresholds, or also the full policy.",
    )
    executor: Word = flag(TARGETS, "Simulate also how this target would run it.")
    policy_table: Word = flag("FILE.csv", "Write the plan's full policy as a table.")
    plot: Word = flag("FILE", "Draw the histograms (.svg, .png); needs the extra `plot`.")


WORDS = argument(
    "[JOB] [MACHINES]",
    "A job, and machines such as 8x p4d.24xlarge spot; without machines, the best plan.",
    None,
    complete_job,
)


def simulate(
    ctx: typer.Context,
    question: PlannerFlags,
    simulation: SimulationFlags,
    recording: TraceFlags,
    output: OutputFlags,
    words: Words = WORDS,
) -> None:
    """Simulate one plan in thousands of runs: cost, time, states, limits.

    Simulates the best plan under the limits, plan N (--plan), or machines that you name.

    \b
    recommend simulate resnet50-imagenet --deadline 24h
    recommend simulate resnet50-imagenet 4x g6e.12xlarge spot --runs 100000
    recommend simulate llama3-8b-lora --deadline 12h --trace zone.csv --plot runs.svg
    """
    errors = ErrorCollector(call_problems(ctx))
    settings = changed_settings(errors)
    form = form_of(with_settings(output, settings), errors)
    job, named = _parted(words or [])
    call = question.over(settings, job)
    picture = errors.attempt(lambda: picture_path(simulation.plot), None)
    order = _order(simulation, recording, call, named, errors)
    which = _which(simulation.plan, named, errors)
    # The plan is that of the usual seed; --seed draws the runs that it is simulated on.
    ready = planner_inputs.read_inputs(
        replace(call, search=replace(call.search, seed=None)), 5, errors
    )
    simulated = _simulated(ready, which, order, form)

    found = simulated.simulation
    assert found is not None
    if simulation.policy_table is not None and simulated.policy is not None:
        _write(Path(simulation.policy_table), simulated.policy)
    if picture is not None:
        from recommender.report.html.picture import runs_spec

        draw(picture, runs_spec(found))
    show_page(simulation_page(found, ready.request, output.quiet), form)
    warn(ready.request.job.remarks)


def _parted(words: list[str]) -> tuple[list[str], str]:
    """The job's words, and those of machines behind it."""
    first = next((i for i, word in enumerate(words) if _COUNTED.match(word)), len(words))
    if len(words) > 1 and first == len(words):
        first = 1
    return words[:first], " ".join(words[first:])


def _order(
    flags: SimulationFlags,
    recording: TraceFlags,
    call: PlannerFlags,
    named: str,
    errors: ErrorCollector,
) -> "SimulationOptions":
    from recommender.risk.random_numbers import SEED
    from recommender.simulation.scenario import WhatIf, parse_deflatable, parse_law
    from recommender.simulation.simulate import SimulationOptions

    runs = errors.parse(flags.runs, "--runs", units.whole_of("10000"), 10_000)
    if runs > MAX_RUNS:
        errors.problems.append(f"--runs {runs} is more than {MAX_RUNS:,}; write less")
    if flags.plan is not None and named:
        errors.problems.append("--plan names a plan of the answer; leave it or the machines out")
    if call.own.compare is not None:
        errors.problems.append("--compare has no place here; name the machines behind the job")
    changes = [flags.trace, flags.run_law, flags.deflatable]
    if sum(change is not None for change in changes) > 1:
        errors.problems.append("--trace, --run-law and --deflatable exclude each other; keep one")
    if flags.trace is None and recording.series:
        errors.problems.append("--series reads a trace; give --trace FILE as well")
    what_if = WhatIf(
        trace=None if flags.trace is None else Path(flags.trace),
        series=tuple(recording.series or ()),
        law=errors.parse(flags.run_law, "--run-law", parse_law, None),
        deflatable=errors.parse(flags.deflatable, "--deflatable", parse_deflatable, None),
    )
    seed = errors.parse(call.search.seed, "--seed", planner_inputs.parse_seed, SEED)
    policy = errors.choose(flags.policy, "--policy", POLICIES, "net")
    executor = errors.choose(flags.executor, "--executor", TARGETS, "")
    table = flags.policy_table
    if table is not None and os.path.isdir(table):
        errors.problems.append(f"--policy-table {shown_path(table)} is a folder; name a file in it")
    return SimulationOptions(runs, seed, what_if, policy, executor, table is not None)


def _which(plan: str | None, named: str, errors: ErrorCollector) -> int | units.Comparison | None:
    """The number of a plan, or named machines; None for the leading plan."""
    if named:
        return errors.parse(named, "the machines", units.parse_comparison, None)
    return errors.parse(plan, "--plan", plan_number, None)


def _simulated(
    ready: planner_inputs.PlannerInputs,
    which: int | units.Comparison | None,
    order: "SimulationOptions",
    form: Form,
) -> "PlanSimulation":
    """The simulation; where no plan meets the limits, the answer says why."""
    from recommender.optimize.watch import Watch
    from recommender.planner.simulate_plan import simulate_plan

    request, watch = ready.request, Watch()
    with (
        progress("simulated runs", order.runs, after_first=True) as tick,
        watched(watch, request.limits.goal, ready.options.prove, after=""),
    ):
        problem = planner_inputs.problem_of(ready)
        found = simulate_plan(problem, which, order, ready.options, tick=tick, watch=watch)
    if found.simulation is None:
        assert found.answer is not None
        show_page(answer_page(found.answer, request), form)
        raise typer.Exit(INFEASIBLE)
    return found


def _write(path: Path, table: str) -> None:
    """The policy table, whole or not at all."""
    with writing(f"--policy-table {shown_path(path)}"):
        replace_file(path, table.encode("utf-8"))


command = command_app("simulate", simulate, PlanCommand)
