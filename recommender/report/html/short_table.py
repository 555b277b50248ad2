"""The short answer as a piece of HTML, as notebooks show it."""

from recommender.plan.answer import Answer
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.elements import Element, element, written
from recommender.report.short_answer import ShortPlan
from recommender.report.short_forms import short_form

_RIGHT = "text-align: right"
_LEFT = "text-align: left"


def short_table(answer: Answer, request: PlanRequest) -> str:
    """What to rent, or the nearest plans, and what to do first."""
    short = short_form(answer, request)
    head = [element("th", ""), element("th", short.asked, style=_LEFT)]
    head += [element("th", each, style=_RIGHT) for each in short.headings]
    labels = [*short.steps, ("Prices", short.prices)]
    return written(
        element(
            "div",
            element("p", element("strong", short.job)),
            *(element("p", f"Warning: {fmt.clean(each)}") for each in answer.warnings),
            *([element("p", short.verdict)] if short.verdict else []),
            *(
                [element("table", element("tr", *head), *map(_row, short.plans))]
                if short.plans
                else []
            ),
            *([element("p", short.span)] if short.span else []),
            *(
                element("p", element("strong", f"{name} "), words)
                for name, words in labels
                if words
            ),
        )
    )


def _row(plan: ShortPlan) -> Element:
    below = [part for each in (plan.where, plan.catch) if each for part in (element("br"), each)]
    return element(
        "tr",
        element("th", plan.role),
        element("td", element("strong", plan.machines), *below, style=_LEFT),
        *(element("td", each, style=_RIGHT) for each in plan.figures),
    )
