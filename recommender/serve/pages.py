"""The pages that ask: for a plan, and for offers; what is wrong with a question is told on one."""

from collections.abc import Iterable, Sequence

from recommender.catalogs.catalog import Catalog
from recommender.inputs.units import PROVIDERS
from recommender.report import catalog as catalog_view
from recommender.report.html.elements import Element, Sheet, element, written
from recommender.report.html.page import content_policy, style_text
from recommender.serve.question import MOST_CHARACTERS, OfferFilter

FIELDS = (
    ("deadline", "Deadline", "24h"),
    ("budget", "Budget in USD", "200"),
    ("confidence", "Chance wanted", "95%"),
)
TOPS = (20, 50, 200, 1000)  # offers of a page
Choices = Iterable[tuple[str, str]]  # value and what is shown


def start_page(jobs: Sequence[str]) -> bytes:
    """A form; its answer is a report."""
    return _page(
        "What to rent for a training job",
        "A job, and what it may take or cost; without a limit the whole curve of cost and time.",
        _plan_form(jobs),
    )


def catalog_page(catalog: Catalog, asked: OfferFilter) -> bytes:
    """Offers that a filter lets through, the cheapest GPU first, and the filter as a form."""
    found = catalog_view.matching(catalog, asked.name, asked.provider, asked.region, asked.market)
    shown = catalog_view.offers(catalog, found, asked.top)
    table = Sheet(
        f"{min(len(found), asked.top):,} of {len(found):,} offers, the cheapest GPU first",
        tuple(column.title for column in shown.columns),
        shown.rows,
        frozenset(i for i, column in enumerate(shown.columns) if column.right),
    )
    speeds = catalog_view.speeds(catalog, found[: asked.top])
    rows = [table.element(id="offers")] if found else [element("p", "No offer matches.")]
    return _page(
        "What can be rented",
        f"Catalog {catalog.version}; each price is as of the date below it.",
        _offer_form(asked),
        *rows,
        *(element("p", line, class_="faint") for line in speeds),
    )


def refusal_page(problems: Sequence[str], jobs: Sequence[str]) -> bytes:
    """What is wrong with a question, and the form to ask it anew."""
    told = (element("li", problem) for problem in problems)
    return _page(
        "That was not understood", "", element("ul", *told, class_="warning"), _plan_form(jobs)
    )


def _page(title: str, goal: str, *parts: Element) -> bytes:
    style = style_text()
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy",
                content=content_policy([], style, asks=True)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
    )  # fmt: skip
    links = (("./", "Plan"), ("catalog", "Catalog"), ("openapi.json", "API"))
    items = (element("li", element("a", name, href=where)) for where, name in links)
    body = element(
        "body",
        element("nav", element("ul", *items), aria_label="Pages"),
        element("header", element("h1", title), element("p", goal, class_="goal")),
        element("main", *parts),
    )
    return f"<!doctype html>\n{written(element('html', head, body, lang='en'))}\n".encode()


def _plan_form(jobs: Sequence[str]) -> Element:
    fields = (_text(name, title, hint) for name, title, hint in FIELDS)
    job = _select("job", "Job", ((name, name) for name in jobs), "")
    return _form("report", "plan", job, *fields)


def _offer_form(asked: OfferFilter) -> Element:
    markets = (("", "any"), ("spot", "spot"), ("on_demand", "on demand"))
    return _form(
        "catalog",
        "show",
        _text("name", "Machine or GPU", "H100", asked.name),
        _select("provider", "Provider", (("", "any"), *((p, p) for p in PROVIDERS)),
                asked.provider),
        _text("region", "Region", "us-east-1", asked.region),
        _select("market", "Market", markets, asked.market),
        _select("top", "Rows", ((f"{n}", f"{n:,}") for n in TOPS), f"{asked.top}"),
    )  # fmt: skip


def _form(action: str, word: str, *fields: Element) -> Element:
    ask = element("button", word, type="submit")
    return element("form", *fields, ask, action=action, method="get", class_="controls ask")


def _text(name: str, title: str, hint: str, value: str = "") -> Element:
    field = element("input", type="text", name=name, id=name, placeholder=hint, value=value,
                    autocomplete="off", maxlength=f"{MOST_CHARACTERS}")  # fmt: skip
    return element("div", element("label", title, for_=name), field)


def _select(name: str, title: str, choices: Choices, chosen: str) -> Element:
    options = (element("option", shown, value=value, **_chosen(value == chosen))
               for value, shown in choices)  # fmt: skip
    return element("div", element("label", title, for_=name),
                   element("select", *options, name=name, id=name))  # fmt: skip


def _chosen(chosen: bool) -> dict[str, str]:
    return {"selected": "selected"} if chosen else {}
