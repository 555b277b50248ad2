"""Writes an answer or a page in the form that was asked for."""

from dataclasses import dataclass
from typing import Any, Literal

from recommender.cli.error_collector import Reader
from recommender.cli.open_catalog import warn
from recommender.cli.options import AnswerFlags, OutputFlags, PageFlags, SheetFlags
from recommender.cli.screen import Screen, put, screen, show
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.plan.plan import Answer
from recommender.report.answer_frame import Asked
from recommender.report.layout import Page, render
from recommender.text import shown

Kind = Literal["table", "json", "csv", "markdown"]
FORMS = ("table", "json", "csv", "markdown")
COLOURS = ("auto", "always", "never")
_MOST_PLANS = 1000


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is written and how much of it."""

    kind: Kind = "table"
    quiet: bool = False
    colour: str = "auto"
    top: int = 5
    explain: int = 0  # number of a plan, 0 = none
    all_regions: bool = False

    def screen(self) -> Screen:
        """The screen this form is written on."""
        return screen(self.colour)


def form_of(output: OutputFlags, answer: AnswerFlags, read: Reader) -> Form:
    """The form that the flags ask for."""
    kind = read.choice(output.output, "--output", FORMS, "table")
    if output.json and output.output is not None and kind != "json":
        read.problems.append(f"--json contradicts --output {kind}; keep one")
    top = read.value(answer.top, "--top", _plans, 5)
    explain = read.value(answer.explain, "--explain", plan_number, 0)
    return Form(
        kind="json" if output.json else kind,
        quiet=output.quiet,
        colour=read.choice(output.color, "--color", COLOURS, "auto"),
        top=max(top, explain),
        explain=explain,
        all_regions=answer.all_regions,
    )


def _plans(word: str, name: str) -> int:
    count = units.parse_whole(word, name, instead="write a number of plans such as 5")
    if count > _MOST_PLANS:
        raise UsageError(f"{name} {shown(word)} is more than {_MOST_PLANS} plans; write less")
    return count


def plan_number(word: str, name: str) -> int:
    """The number of a plan in the table."""
    instead = "write the number of a plan, such as 1"
    return units.parse_whole(word, name, most=_MOST_PLANS, instead=instead)


def show_answer(answer: Answer, asked: Asked, form: Form) -> None:
    """Print the answer on standard output."""
    if form.kind == "table":
        _table(answer, asked, form)
    else:
        put(text_of(answer, asked, form))
        if form.kind == "csv":  # which has no place for them
            warn(answer.warnings)


def text_of(answer: Answer, asked: Asked, form: Form) -> str:
    """The answer as JSON, CSV or Markdown."""
    if form.kind == "json":
        from recommender.report import json_output

        return json_output.dumps(json_output.document(answer, asked))
    if form.kind == "csv":
        from recommender.report import csv_markdown

        return csv_markdown.render_csv(answer)
    from recommender.report import csv_markdown

    return csv_markdown.render_markdown(answer, asked, form.quiet)


def _table(answer: Answer, asked: Asked, form: Form) -> None:
    from recommender.report import answer_table, explain

    on = form.screen()
    if form.explain and answer.status == "ok":
        show(explain.render(answer, asked, form.explain, on.width), on)
        return
    show(answer_table.render(answer, asked, on.width, form.quiet, form.all_regions), on)


def show_page(page: Page, flags: PageFlags) -> None:
    """Print a page in the form that was asked for."""
    if as_json(flags):
        put_json(page.facts)
        return
    on = screen(flags.color or "auto")
    show(render(page, on.width), on)


def as_json(flags: PageFlags) -> bool:
    """Tell whether JSON was asked for; refuse forms that a list does not have."""
    read = Reader()
    form = read.choice(flags.output, "--output", ("table", "json"), "table")
    read.choice(flags.color, "--color", COLOURS, "auto")
    read.stop()
    return flags.json or form == "json"


def sheet_form(flags: SheetFlags) -> str:
    """The form of a list that is a table of figures as well: table, json or csv."""
    read = Reader()
    form: str = read.choice(flags.output, "--output", ("table", "json", "csv"), "table")
    if flags.json and flags.output is not None and form != "json":
        read.problems.append(f"--json contradicts --output {form}; keep one")
    read.stop()
    return "json" if flags.json else form


def put_json(facts: Any) -> None:
    """Print facts as JSON."""
    from recommender.report.json_output import dumps

    put(dumps(facts))
