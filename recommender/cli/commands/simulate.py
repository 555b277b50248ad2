"""`recommend simulate`: one plan on thousands of simulated paths."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.cli import planner_inputs
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.exit_codes import INFEASIBLE
from recommender.cli.groups import command_app
from recommender.cli.open_catalog import warn
from recommender.cli.options import (
    AnswerFlags,
    JobFlags,
    LimitFlags,
    OfferFlags,
    OutputFlags,
    OwnFlags,
    SearchFlags,
    TraceFlags,
    Word,
    changed_settings,
    with_settings,
)
from recommender.cli.output import OutputOptions, output_options, plan_number, show_answer
from recommender.cli.screen import progress, write_blocks, write_text
from recommender.cli.search_progress import watched
from recommender.cli.strict import PlanCommand, call_problems, complete_job
from recommender.cli.written_files import draw, picture_path
from recommender.export.start import TARGETS
from recommender.inputs import units
from recommender.inputs.files import writing
from recommender.report.answer_frame import PlanRequest
from recommender.text import shown_path

if TYPE_CHECKING:
    from recommender.plan.simulation import Simulation
    from recommender.planner.simulate_plan import PlanSimulation
    from recommender.simulation.simulate import SimulationOptions

MAX_RUNS = 10_000_000
POLICIES = ("net", "thresholds", "full")
_COUNTED = re.compile(r"[0-9]+\s*[x×*]")  # how machines begin, and no job does


def _flag(help: str, *names: str, metavar: str) -> Any:
    return typer.Option(
        *names, help=help, metavar=metavar, rich_help_panel="Simulation", show_default=False
    )


@dataclass(frozen=True, slots=True)
class SimulationFlags:
    """What is simulated, how often, and on which capacity."""

    plan: Annotated[Word, _flag("Number of the plan (the leading one).", metavar="N")] = None
    runs: Annotated[Word, _flag("Number of simulated runs (10000).", metavar="N")] = None
    trace: Annotated[Word, _flag("Recorded availability to simulate on.", metavar="FILE")] = None
    run_law: Annotated[
        Word,
        _flag(
            "Law of spot runs: weibull:0.6, lognormal:1.5, exponential, or a survival curve.",
            metavar="LAW|FILE",
        ),
    ] = None
    deflatable: Annotated[
        Word,
        _flag(
            "If spot machines lost speed instead: pressure=10%,depth=50%,episode=30m,price=2.",
            metavar="FACTS",
        ),
    ] = None
    policy: Annotated[
        Word,
        _flag(
            "Compare the plan's fallback rule (net) with two thresholds, or also the full policy.",
            metavar="net|thresholds|full",
        ),
    ] = None
    executor: Annotated[
        Word,
        _flag(
            "Simulate also how this target would run it.",
            metavar="|".join(TARGETS),
        ),
    ] = None
    policy_table: Annotated[
        Word, _flag("Write the plan's full policy as a table.", metavar="FILE.csv")
    ] = None
    plot: Annotated[
        Word, _flag("Draw the histograms (.svg, .png); needs the extra `plot`.", metavar="FILE")
    ] = None


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[JOB] [MACHINES]",
        help="A job, and machines such as 8x p4d.24xlarge spot; without machines, the best plan.",
        autocompletion=complete_job,
        show_default=False,
    ),
]


def simulate(
    ctx: typer.Context,
    limits: LimitFlags,
    offers: OfferFlags,
    own: OwnFlags,
    job_flags: JobFlags,
    simulation: SimulationFlags,
    recording: TraceFlags,
    search: SearchFlags,
    output: OutputFlags,
    words: Words = None,
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
    form = output_options(with_settings(output, settings), AnswerFlags(), errors)
    job, named = _parted(words or [])
    call = planner_inputs.PlannerFlags(tuple(job), limits, offers, own, job_flags, search).over(
        settings
    )
    picture = errors.attempt(lambda: picture_path(simulation.plot), None)
    order = _order(simulation, recording, search, own, named, errors)
    which = _which(simulation.plan, named, errors)
    # The plan is that of the usual seed; --seed draws the runs that it is simulated on.
    ready = planner_inputs.read_inputs(
        replace(call, search=replace(call.search, seed=None)), form.top, errors
    )
    simulated = _simulated(ready, which, order, form)
    found = simulated.simulation
    assert found is not None
    if simulation.policy_table is not None and simulated.policy is not None:
        _write(Path(simulation.policy_table), simulated.policy)
    if picture is not None:
        from recommender.report.html.picture import runs_spec

        draw(picture, runs_spec(found))
    _show(found, ready.request, form)
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
    search: SearchFlags,
    own: OwnFlags,
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
    if own.compare is not None:
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
    seed = errors.parse(search.seed, "--seed", planner_inputs.parse_seed, SEED)
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
    form: OutputOptions,
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
        show_answer(found.answer, request, form)
        raise typer.Exit(INFEASIBLE)
    return found


def _write(path: Path, table: str) -> None:
    """The policy table, whole or not at all."""
    with writing(f"--policy-table {shown_path(path)}"):
        replace_file(path, table.encode("utf-8"))


def _show(found: "Simulation", request: PlanRequest, form: OutputOptions) -> None:
    from recommender.report import json_output
    from recommender.report import simulation as simulation_view

    if form.kind == "table":
        on = form.screen()
        write_blocks(simulation_view.render(found, request, on.width, form.quiet), on)
    elif form.kind == "json":
        write_text(json_output.dumps(simulation_view.document(found, request)))
    elif form.kind == "csv":
        write_text(simulation_view.csv_text(found))
    else:
        write_text(simulation_view.markdown(found, request, form.quiet))


command = command_app("simulate", simulate, PlanCommand)
