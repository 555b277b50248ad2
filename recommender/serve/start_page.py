"""The first page of the server: a job and limits to ask about."""

from collections.abc import Sequence

from recommender.report.html.elements import Element, element, written
from recommender.report.html.page import content_policy, style_text

FIELDS = (
    ("deadline", "Deadline", "24h"),
    ("budget", "Budget in USD", "200"),
    ("confidence", "Chance wanted", "95%"),
)


def start_page(jobs: Sequence[str]) -> str:
    """A form; its answer is a report."""
    style = style_text()
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=content_policy([], style,
                                                                                     asks=True)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "What to rent for a training job"),
        element("style", style),
    )  # fmt: skip
    body = element(
        "body",
        element("header", element("h1", "What to rent for a training job"),
                element("p", "A job, and what it may take or cost; without a limit the whole curve "
                        "of cost and time.", class_="goal")),
        element("main", form("report", jobs)),
    )  # fmt: skip
    return f"<!doctype html>\n{written(element('html', head, body, lang='en'))}\n"


def form(action: str, jobs: Sequence[str]) -> Element:
    """The fields of a question."""
    options = (element("option", name, value=name) for name in jobs)
    job = element("div", element("label", "Job", for_="job"),
                  element("select", *options, name="job", id="job"))  # fmt: skip
    fields = (
        element(
            "div",
            element("label", title, for_=name),
            element("input", type="text", name=name, id=name, placeholder=hint, autocomplete="off"),
        )
        for name, title, hint in FIELDS
    )
    ask = element("button", "plan", type="submit")
    return element("form", job, *fields, ask, action=action, method="get", class_="controls ask")
