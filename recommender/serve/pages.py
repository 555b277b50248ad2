"""Pages with forms: for a plan and for offers. Mistakes of a question are shown on the form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from recommender.catalogs.catalog import Catalog
from recommender.inputs.units import PROVIDERS
from recommender.plan.limits import MARKETS
from recommender.report import catalog as catalog_view
from recommender.report import formatting as fmt
from recommender.report.html.elements import Element, Sheet, element, written
from recommender.report.html.page import head
from recommender.serve.question import MAX_CHARACTERS, SETTINGS, OfferFilter
from recommender.text import shown

FIELDS = (
    ("deadline", "Deadline", "24h"),
    ("budget", "Budget in USD", "200"),
    ("confidence", "Required chance", "95%"),
)
OWN = (
    ("model", "Model", "Qwen/Qwen2.5-7B"),
    ("examples", "Examples", "50k"),
    ("tokens", "or tokens", "20B"),
    ("epochs", "Epochs", "3"),
    ("seq_len", "Tokens per example", "600"),
    ("batch", "Batch", "64"),
)
LISTS = (
    ("measured", "Timings, one a line", "8xH100: 3.1 s/step"),
    ("quotas", "Quotas, one a line", "aws, p, 192, us-east-1"),
)
MAX_LINES = 2000  # characters of such a field
TOPS = (20, 50, 200, 1000)  # offers of a page
Choices = Iterable[tuple[str, str]]  # values and their words
Given = Mapping[str, str]  # what the fields of a form hold, by their names
NOTHING: Given = {}


def start_page(jobs: Sequence[tuple[str, str]]) -> bytes:
    """A form; its answer is a report. `jobs` are names and titles."""
    return _page(
        "What to rent for a training job",
        "Choose a job, or state your own, and what it may take or cost. Without a limit the "
        "answer is the whole curve of cost and time.",
        plan_form(jobs),
        element("p", "A new question is planned in a few seconds; the answer is a page with plans, "
                "their chances, and sliders for the limits.", class_="faint"),
    )  # fmt: skip


def catalog_page(catalog: Catalog, offer_filter: OfferFilter) -> bytes:
    """Offers that a filter lets through, the cheapest GPU first, and the filter as a form."""
    found = catalog_view.matching(
        catalog, offer_filter.name, offer_filter.provider, offer_filter.region, offer_filter.market
    )
    listed = catalog_view.offers(catalog, found, offer_filter.top)
    table = Sheet(
        f"{min(len(found), offer_filter.top):,} of {len(found):,} offers, the cheapest GPU first",
        tuple(column.title for column in listed.columns),
        listed.rows,
        frozenset(i for i, column in enumerate(listed.columns) if column.right),
    )
    notes = catalog_view.about(catalog, found[: offer_filter.top])
    none = element("p", "No offer matches. An empty field matches every offer.")
    rows = [table.element(id="offers")] if found else [none]
    return _page(
        "What can be rented",
        f"Catalog {catalog.version}; each price is as of the date below it.",
        offer_form({name: f"{value}" for name, value in asdict(offer_filter).items()}),
        *rows,
        *(element("p", line, class_="faint") for line in notes),
    )


def refusal_page(problems: Sequence[str], form: Element) -> bytes:
    """The mistakes of a question, and its form as it was filled in."""
    listed = (element("li", problem) for problem in problems)
    return _page("No answer", "", element("ul", *listed, class_="warning"), form)


def _page(title: str, goal: str, *parts: Element) -> bytes:
    links = (("./", "Plan"), ("catalog", "Catalog"), ("openapi.json", "API"))
    items = (element("li", element("a", name, href=where)) for where, name in links)
    body = element(
        "body",
        element("nav", element("ul", *items), aria_label="Pages"),
        element("header", element("h1", title), element("p", goal, class_="goal")),
        element("main", *parts),
    )
    page = element("html", head(title, asks=True), body, lang="en")
    return f"<!doctype html>\n{written(page)}\n".encode()


def plan_form(jobs: Sequence[tuple[str, str]], given: Given = NOTHING) -> Element:
    """The fields of a question; `jobs` are names and titles."""
    fields = (_text(name, title, hint, given.get(name, "")) for name, title, hint in FIELDS)
    job = _select("job", "Job", jobs, given.get("job", ""))
    return _form("report", "plan", job, *fields, _own_fields(given))


def _own_fields(given: Given) -> Element:
    """A job of one's own instead of a named one, what was timed, and what an account may run."""
    texts = (_text(name, title, hint, given.get(name, "")) for name, title, hint in OWN)
    selects = (
        _select(name, name.title(), (("", "as usual"), *((w, w) for w in SETTINGS[name])),
                given.get(name, ""))
        for name in ("method", "stack")
    )  # fmt: skip
    account = (("", "as listed below, or not checked"), ("default-new", "a new account"),
               ("granted", "whatever a plan needs"))  # fmt: skip
    opened = any(given.get(name) for name, *_ in (*OWN, *LISTS, ("account",)))
    return element(
        "details",
        element("summary", "Your own job, quotas and timings"),
        *texts,
        *selects,
        _select("account", "Quotas", account, given.get("account", "")),
        *(_lines(name, title, hint, given.get(name, "")) for name, title, hint in LISTS),
        **({"open": "open"} if opened else {}),
    )


def _lines(name: str, title: str, hint: str, value: str) -> Element:
    """A field of several lines."""
    field = element("textarea", value[:MAX_LINES], name=name, id=name, placeholder=hint, rows="2",
                    maxlength=f"{MAX_LINES}")  # fmt: skip
    return element("div", element("label", title, for_=name), field)


def offer_form(given: Given) -> Element:
    """The filters of the list of offers."""
    markets = (("", "any"), *((each, fmt.market(each)) for each in sorted(MARKETS["any"])))
    return _form(
        "catalog",
        "show",
        _text("name", "Machine or GPU", "H100", given.get("name", "")),
        _select("provider", "Provider", (("", "any"), *((p, p) for p in PROVIDERS)),
                given.get("provider", "")),
        _text("region", "Region", "us-east-1", given.get("region", "")),
        _select("market", "Market", markets, given.get("market", "")),
        _select("top", "Rows", ((f"{n}", f"{n:,}") for n in TOPS), given.get("top", "")),
    )  # fmt: skip


def _form(action: str, word: str, *fields: Element) -> Element:
    ask = element("button", word, type="submit")
    return element("form", *fields, ask, action=action, method="get", class_="controls ask")


def _text(name: str, title: str, hint: str, value: str = "") -> Element:
    field = element(
        "input", type="text", name=name, id=name, placeholder=hint, value=shown(value),
        autocomplete="off", maxlength=f"{MAX_CHARACTERS}",
    )  # fmt: skip
    return element("div", element("label", title, for_=name), field)


def _select(name: str, title: str, choices: Choices, chosen: str) -> Element:
    options = (element("option", words, value=value, **_chosen(value == chosen))
               for value, words in choices)  # fmt: skip
    return element("div", element("label", title, for_=name),
                   element("select", *options, name=name, id=name))  # fmt: skip


def _chosen(chosen: bool) -> dict[str, str]:
    return {"selected": "selected"} if chosen else {}
