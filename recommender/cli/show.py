"""Writes an answer in the form that was asked for."""

from dataclasses import dataclass
from typing import Literal

from recommender import units
from recommender.cli.flags import AnswerFlags, OutputFlags
from recommender.cli.opening import warn
from recommender.cli.reader import Reader
from recommender.cli.screen import Screen, put, screen, show
from recommender.errors import UsageError
from recommender.plan import Answer
from recommender.report.asked import Asked
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
        from recommender.report import jsonview

        return jsonview.dumps(jsonview.document(answer, asked))
    if form.kind == "csv":
        from recommender.report import csvview

        return csvview.render(answer)
    from recommender.report import markdown

    return markdown.render(answer, asked, form.quiet)


def _table(answer: Answer, asked: Asked, form: Form) -> None:
    from recommender.report import explain, table

    on = form.screen()
    if form.explain and answer.status == "ok":
        show(explain.render(answer, asked, form.explain, on.width), on)
        return
    show(table.render(answer, asked, on.width, form.quiet, form.all_regions), on)
