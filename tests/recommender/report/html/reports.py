"""Reports of a few questions on the small catalog, each made once."""

from functools import cache
from html.parser import HTMLParser
from typing import Any

from recommender.api.calls import recommend
from recommender.plan.answer import Answer
from recommender.plan.limits import Limits
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.page import render
from tests.recommender.planning import NOW, job, small

LIMITS = {
    "deadline": Limits(deadline_s=24 * 3600.0),
    "budget": Limits(budget_usd=60.0),
    "frontier": Limits(),
    "infeasible": Limits(deadline_s=600.0),
}


@cache
def asked(which: str) -> tuple[Answer, PlanRequest]:
    """An answer with its report data, and the question."""
    answer = recommend(job(), LIMITS[which], catalog=small(), now=NOW, report=True)
    return answer, PlanRequest(job(), LIMITS[which], catalog="small")


@cache
def page(which: str) -> str:
    """The report of a question."""
    return render(*asked(which))


class Read(HTMLParser):
    """A page as a reader of its tags meets it: elements with their attributes, and their text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "link", "br", "img", "wbr"):
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.open:
            path = tuple(tag for tag, _ in self.open)
            self.texts.append((path, self.open[-1][1], data.replace("\u00a0", " ")))

    def of(self, tag: str, **attributes: str) -> list[str]:
        """Texts directly inside of elements with these attributes."""
        return [
            text
            for path, own, text in self.texts
            if path[-1] == tag and all(own.get(k) == v for k, v in attributes.items())
        ]


def facts(text: str, name: str) -> Any:
    """What a page gives its script, or holds for programs."""
    import json

    (found,) = Read(text).of("script", id=name)
    return json.loads(found)
