"""Writes an answer or a page in the requested format."""

from typing import TYPE_CHECKING, Any, Literal

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.open_catalog import warn
from recommender.cli.options import AnswerFlags, OutputFlags, PageFlags, SheetFlags
from recommender.cli.screen import Screen, screen, write_blocks, write_text
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.plan.answer import Answer
from recommender.report.answer_frame import PlanRequest
from recommender.text import shown

if TYPE_CHECKING:
    from recommender.report.layout import Page

OutputFormat = Literal["table", "json", "csv", "markdown"]
FORMATS = ("table", "json", "csv", "markdown")
COLOURS = ("auto", "always", "never")
_MAX_PLANS = 1000


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How an answer is written and how much of it."""

    kind: OutputFormat = "table"
    quiet: bool = False
    colour: str = "auto"
    top: int = 5
    explain: int = 0  # number of a plan, 0 = none
    all_regions: bool = False
    table: bool = False  # all plans

    def screen(self) -> Screen:
        """The screen this form is written on."""
        return screen(self.colour)


def output_options(
    output: OutputFlags, answer: AnswerFlags, errors: ErrorCollector
) -> OutputOptions:
    """The form that the flags ask for."""
    kind = _format_of(output, FORMATS, errors)
    top = errors.parse(answer.top, "--top", _plans, 5)
    explain = errors.parse(answer.explain, "--explain", plan_number, 0)
    return OutputOptions(
        kind=kind,
        quiet=output.quiet,
        colour=errors.choose(output.color, "--color", COLOURS, "auto"),
        top=max(top, explain),
        explain=explain,
        all_regions=answer.all_regions,
        table=answer.table or answer.all_regions or answer.top is not None,
    )


def _format_of(
    flags: OutputFlags | PageFlags | SheetFlags, formats: tuple[str, ...], errors: ErrorCollector
) -> Any:
    """The format that was requested; `--json` is short for `--output json`."""
    form = errors.choose(flags.output, "--output", formats, "table")
    if flags.json and flags.output is not None and form != "json":
        errors.problems.append(f"--json contradicts --output {form}; keep one")
    return "json" if flags.json else form


def _plans(word: str, name: str) -> int:
    count = units.parse_whole(word, name, instead="write a number of plans such as 5")
    if count > _MAX_PLANS:
        raise UsageError(f"{name} {shown(word)} is more than {_MAX_PLANS} plans; write less")
    return count


def plan_number(word: str, name: str) -> int:
    """The number of a plan in the table."""
    instead = "write the number of a plan, such as 1"
    return units.parse_whole(word, name, most=_MAX_PLANS, instead=instead)


def show_answer(answer: Answer, request: PlanRequest, form: OutputOptions) -> None:
    """Print the answer on standard output."""
    if form.kind == "table":
        _table(answer, request, form)
    else:
        write_text(text_of(answer, request, form))
        if form.kind == "csv":  # which has no place for them
            warn(answer.warnings)


def text_of(answer: Answer, request: PlanRequest, form: OutputOptions) -> str:
    """The answer as JSON, CSV or Markdown."""
    if form.kind == "json":
        from recommender.report import json_output

        return json_output.dumps(json_output.document(answer, request))
    if form.kind == "csv":
        from recommender.report import csv_markdown

        return csv_markdown.render_csv(answer)
    from recommender.report import csv_markdown

    return csv_markdown.render_markdown(answer, request, form.table, form.quiet)


def _table(answer: Answer, request: PlanRequest, form: OutputOptions) -> None:
    """The answer on a terminal: a plan term by term, all plans, or the short form."""
    on = form.screen()
    if form.explain and answer.status == "ok":
        from recommender.report import explain

        blocks = explain.render(answer, request, form.explain, on.width)
    elif form.table and answer.status == "ok":
        from recommender.report import answer_table

        blocks = answer_table.render(answer, request, on.width, form.quiet, form.all_regions)
    else:
        from recommender.report.short_forms import short_blocks

        blocks = short_blocks(answer, request, on.width, form.quiet, form.table)
    write_blocks(blocks, on)


def show_page(page: "Page", flags: PageFlags) -> None:
    """Print a page in the requested format."""
    if as_json(flags):
        put_json(page.facts)
        return
    from recommender.report.layout import render

    on = screen(flags.color or "auto")
    write_blocks(render(page, on.width), on)


def as_json(flags: PageFlags) -> bool:
    """Whether JSON was requested; refuse formats that a list does not have."""
    errors = ErrorCollector()
    form = _format_of(flags, ("table", "json"), errors)
    errors.choose(flags.color, "--color", COLOURS, "auto")
    errors.raise_all()
    return bool(form == "json")


def sheet_format(flags: SheetFlags) -> str:
    """The form of a list that is a table of figures as well: table, json or csv."""
    errors = ErrorCollector()
    form: str = _format_of(flags, ("table", "json", "csv"), errors)
    errors.raise_all()
    return form


def put_json(facts: Any) -> None:
    """Print facts as JSON."""
    from recommender.report.json_output import dumps

    write_text(dumps(facts))
