"""Writes pages in the requested format."""

from functools import partial

from recommender.catalogs.frozen import dataclass
from recommender.cli.error_collector import ErrorCollector
from recommender.cli.options import COLOURS, AnswerFlags, OutputFlags, PageFlags
from recommender.cli.screen import screen, write_text
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.report.answer_page import Shown
from recommender.report.formats import FORMATS, written
from recommender.report.page import Page
from recommender.text import shown

_MAX_PLANS = 1000
plan_number = partial(  # of the table
    units.parse_whole, most=_MAX_PLANS, instead="write the number of a plan, such as 1"
)


@dataclass(frozen=True, slots=True)
class Form:
    """How pages are written."""

    kind: str = "table"
    colour: str = "auto"


def form_of(flags: PageFlags, errors: ErrorCollector | None = None) -> Form:
    """The form that was requested; `--json` is short for `--output json`.

    Raises:
        UsageError: there is none such, unless `errors` collect that.
    """
    found = errors or ErrorCollector()
    kind = found.choose(flags.output, "--output", tuple(FORMATS), "table")
    if flags.json and flags.output is not None and kind != "json":
        found.problems.append(f"--json contradicts --output {kind}; keep one")
    form = Form(
        "json" if flags.json else kind, found.choose(flags.color, "--color", COLOURS, "auto")
    )
    if errors is None:
        found.raise_all()
    return form


def shown_of(output: OutputFlags, answer: AnswerFlags, errors: ErrorCollector) -> tuple[Shown, int]:
    """How much of an answer the flags ask for, and how many plans that takes."""
    top = errors.parse(answer.top, "--top", _plans, 5)
    explain = errors.parse(answer.explain, "--explain", plan_number, 0)
    every = answer.table or answer.all_regions or answer.top is not None
    return Shown(output.quiet, explain, answer.all_regions, every), max(top, explain)


def _plans(word: str, name: str) -> int:
    count = units.parse_whole(word, name, instead="write a number of plans such as 5")
    if count > _MAX_PLANS:
        raise UsageError(f"{name} {shown(word)} is more than {_MAX_PLANS} plans; write less")
    return count


def show_page(page: Page, form: Form | PageFlags) -> None:
    """Print a page in the requested format."""
    form = form if isinstance(form, Form) else form_of(form)
    on = screen(form.colour)
    write_text(written(page, form.kind, on.width, on.colour))
