"""The whole report as one HTML file: no network, no second file, the same bytes for one answer."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from recommender.plan.answer import Answer
from recommender.plan.version import __version__
from recommender.report.answer_frame import PlanRequest
from recommender.report.html import breakdown, charts, runs, sections, tornado
from recommender.report.html.elements import Element, element, extend, written
from recommender.report.html.page_data import PageData, page_data
from recommender.report.html.palette import THEMES
from recommender.report.html.prices import (
    NO_PRICES,
    Known,
    PriceSeries,
    moved_offers,
    price_part,
    price_rows,
    series_names,
)
from recommender.report.json_output import document, plain

NOT_ASKED: Mapping[str, str] = {}  # a page that no server made
STATIC = "recommender.report.html"
SCRIPTS = ("vega.js", "report.js")
STYLE = "report.css"
MAX_BYTES = 1_500_000  # of a report


def render(
    answer: Answer,
    request: PlanRequest,
    ask: Mapping[str, str] = NOT_ASKED,
    prices: Known = NO_PRICES,
) -> str:
    """The report of an answer that has report data.

    `ask` holds what the form states that plans moved limits, `prices` holds past prices of offers.
    """
    data, series = page_data(answer, request), moved_offers(prices)
    parts = [*_parts(answer, request, data, ask), *price_part(series)]
    scripts = [_static(name) for name in SCRIPTS] if data.plans else []
    body = element(
        "body",
        element("a", "To the answer", href="#answer", class_="skip"),
        sections.heading(answer, request),
        sections.contents(parts, asks=bool(ask)),
        element("main", *parts),
        sections.closing(answer, request, f"recommend {__version__}"),
        _json("page-data", plain(data)),
        _json("pictures", _pictures(answer, data, series)),
        _json("answer", document(answer, request)),
    )
    extend(body, [element("script", text) for text in scripts])
    title = f"What to rent for {sections.job_name(request)}"
    page = element("html", head(title, scripts, asks=bool(ask)), body, lang="en")
    return f"<!doctype html>\n{written(page)}\n"


def _parts(
    answer: Answer, request: PlanRequest, data: PageData, ask: Mapping[str, str]
) -> list[Element]:
    if not answer.plans:
        met = (
            [sections.frontier(answer, data, request, ask), sections.distributions(answer)]
            if data.plans
            else []
        )
        return [sections.infeasible(answer, request), *met, sections.evidence(answer)]
    return [
        sections.cards(answer, request),
        sections.frontier(answer, data, request, ask),
        sections.distributions(answer),
        *runs.part(answer),
        sections.breakdowns(answer, request),
        sections.alternatives(answer, request, tornado.parts(answer)),
        *sections.program(answer),
        sections.evidence(answer),
    ]


def _pictures(answer: Answer, data: PageData, series: Sequence[PriceSeries]) -> dict[str, Any]:
    """What the script draws: specifications, their rows, and both backgrounds."""
    parts = breakdown.pictures(answer) if answer.plans else []
    specs = {
        "frontier": charts.frontier(data),
        "costs": charts.distribution("cost, USD"),
        "times": charts.distribution(f"time, {data.scale.unit}"),
        **{each.name: each.spec for each in parts},
    }
    rows: dict[str, Any] = {each.name: {"parts": plain(each.rows)} for each in parts}
    if series:
        specs["prices"] = charts.prices(series_names(series))
        rows["prices"] = {"prices": plain(price_rows(series))}
    if runs.has_timelines(answer):
        specs["runs"] = charts.strips(runs.colours(answer))
    if tornado.has_tornado(answer):
        specs["tornado"] = tornado.spec(answer)
        rows["tornado"] = {"ends": plain(tornado.rows(answer))}
    return {
        "specs": specs,
        "rows": rows,
        "runs": plain(runs.rows(answer, data.scale.unit_s)),
        "themes": {
            theme.name: {"config": charts.config(theme), "variables": charts.variables(theme)}
            for theme in THEMES
        },
    }


def head(title: str, scripts: Sequence[str] = (), asks: bool = False) -> Element:
    """The head of every page; one of the server `asks` it other questions by a form."""
    style = _static(STYLE)
    policy = _content_policy(scripts, style, asks)
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", style),
    )


def _content_policy(scripts: Sequence[str], style: str, asks: bool) -> str:
    """Only the scripts and the style that are in the file run; nothing is ever fetched."""
    forms = "'self'" if asks else "'none'"
    run = " ".join(map(_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {run}; style-src {_hash(style)}; img-src data:; "
        f"base-uri 'none'; form-action {forms}"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _json(name: str, facts: Any) -> Element:
    """Facts for the script; no tag can end in them, since they hold no angle bracket."""
    text = json.dumps(facts, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return element("script", text.replace("<", "\\u003c"), type="application/json", id=name)


def _static(name: str) -> str:
    return (resources.files(STATIC) / "static" / name).read_text("utf-8")
