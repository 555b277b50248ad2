"""The parts of the page that hold words and tables; the script redraws what limits change."""

from collections.abc import Iterable, Iterator, Mapping

from recommender.plan.answer import Answer, Infeasible, SensitivityStep
from recommender.plan.effort import effort_of, reasons_of
from recommender.plan.evidence import Evidence, PriceGrade, SpeedGrade, SpotGrade
from recommender.plan.plan import OWN_TRACE, Plan, SpotFacts
from recommender.report import answer_frame, cells, explain
from recommender.report import formatting as fmt
from recommender.report.advice import comparison, sentences
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.elements import (
    Child,
    Element,
    Sheet,
    element,
    folded,
    fragment,
    names,
    section,
)
from recommender.report.html.page_data import PageData, PlanRow
from recommender.report.launch import launch_line
from recommender.report.limit_words import why_not
from recommender.report.short_answer import ShortPlan, short_answer
from recommender.report.short_refusal import headline as why_none
from recommender.report.trio import faster_still, tie_line, why_it_leads

DETAILED = 16  # plans of the table that are explained term by term
_COLUMNS = ("plan", "machines", "cost USD", "time", "chance", "USD/h")


def job_name(request: PlanRequest) -> str:
    """What the job is called, without anything that could steer a screen."""
    return fmt.clean(request.job.name)


def heading(answer: Answer, request: PlanRequest) -> Element:
    """The question in words."""
    return element(
        "header",
        element("h1", f"What to rent for {job_name(request)}"),
        element("p", answer_frame.goal_line(answer, request) + ".", class_="goal"),
        element("p", answer_frame.job_line(request), class_="faint"),
        *(element("p", f"Warning: {fmt.clean(w)}", class_="warning") for w in answer.warnings),
    )


def contents(parts: Iterable[Element], asks: bool = False) -> Element:
    """Links to the parts; to the server's other pages on a page of the server."""
    links = [(part[0].text or "", f"#{part.get('id')}") for part in parts]
    if asks:
        links = [("New question", "./"), *links, ("Catalog", "catalog")]
    items = (element("li", element("a", name, href=where)) for name, where in links)
    return element("nav", element("ul", *items), aria_label="Parts of the page")


# The plans that the answer leads with


def cards(answer: Answer, request: PlanRequest) -> Element:
    """The plans of the short answer: what to rent, what it costs, how long it takes, its catch."""
    short = short_answer(answer, request)
    made = [_card(row, answer, request) for row in short.plans]
    steps = [(name, words) for name, words in short.steps if name != "Then"]
    words = [comparison(answer, request), tie_line(answer)]
    return section(
        "answer",
        "What to rent",
        element("div", *made, class_="cards"),
        *(element("p", element("strong", f"{name}: "), each) for name, each in steps),
        *(element("p", each) for each in words if each),
        _in_words(answer, request),
    )


def _card(row: ShortPlan, answer: Answer, request: PlanRequest) -> Element:
    plan, lead = row.plan, row.rank == answer.lead
    estimate = plan.estimate
    facts: list[tuple[str, Child, str]] = [
        ("cost", element("strong", f"{fmt.usd(estimate.cost.mean)} USD"), _cost_span(plan)),
        ("time", element("strong", fmt.duration(estimate.time.p50)), _time_span(plan)),
        *_chance(plan, request),
        ("price", f"{fmt.number(plan.usd_per_hour)} USD/h", ""),
    ]
    terms: list[Element] = []
    for name, much, rest in facts:
        terms.append(element("dt", name))
        terms.append(element("dd", much, *([element("small", rest)] if rest else [])))
    reasons = [row.catch, why_it_leads(answer) if lead else "", *reasons_of(plan)]
    reasons += [faster_still(pick) for pick in answer.picks if pick.rank == row.rank]
    work_h = effort_of(plan).total_h
    if work_h >= 0.05:
        reasons.append(f"{fmt.duration(3600.0 * work_h)} of your own work")
    return element(
        "article",
        element("h3", f"{row.role} · plan {row.rank}" if row.rank else row.role),
        element("p", *names(row.machines), class_="machines"),
        element("p", *names(row.where), class_="faint"),
        element("dl", *terms),
        element("ul", *(element("li", fmt.clean(each)) for each in reasons if each)),
        *(_launch(plan, row.rank) if row.rank else []),
        class_="card lead" if lead else "card",
    )


def _cost_span(plan: Plan) -> str:
    cost = plan.estimate.cost
    return f"9 in 10 runs: {fmt.usd_span(cost.p05, cost.p95)}"


def _time_span(plan: Plan) -> str:
    time = plan.estimate.time
    return f"9 in 10 runs: {fmt.duration(time.p05)} to {fmt.duration(time.p95)}"


def _chance(plan: Plan, request: PlanRequest) -> list[tuple[str, Child, str]]:
    """The chance to meet the limits; without limits there is none."""
    if request.limits.goal == "frontier":
        return []
    return [("chance", element("strong", fmt.share(plan.estimate.chance)), "to meet all limits")]


def _launch(plan: Plan, rank: int) -> list[Element]:
    line = launch_line(plan, rank)
    if line is None:
        return []
    name = f"launch-{rank}"
    copy = element(
        "button", "copy", type="button", data_copy=name, hidden="", class_="needs-script",
        aria_label=f"Copy the launch line of plan {rank}",
    )  # fmt: skip
    return [folded("launch line", element("pre", line, id=name), copy)]


def _in_words(answer: Answer, request: PlanRequest) -> Element:
    lead = answer.plans[answer.lead - 1]
    rows = [(label, fmt.clean(words)) for label, words in sentences(lead, request) if words]
    sheet = Sheet(f"Plan {answer.lead} in words", ("part", "how it runs"), tuple(rows))
    return folded(f"How plan {answer.lead} runs", sheet.element())


# Cost against time, under limits that can be moved


def frontier(
    answer: Answer, data: PageData, request: PlanRequest, ask: Mapping[str, str]
) -> Element:
    """The picture with its controls, and every plan that meets the limits as a table.

    `ask` states the question for the form that plans moved limits, on pages of a server.
    """
    parts = fragment("frontier", ask=_ask(ask), table=[_plan_table(answer, data)])
    return section("plans-part", "Cost against time", *parts)


def _ask(stated: Mapping[str, str]) -> list[Element]:
    """A button that plans again; the script sets its limits to those of the sliders."""
    if not stated:
        return []
    job = (element("input", type="hidden", name=n, value=word) for n, word in stated.items())
    limits = (
        element("input", type="hidden", name=name, value="", id=f"ask-{name}")
        for name in ("deadline", "budget", "confidence")
    )
    button = element("button", "plan again under these limits", type="submit")
    return [element("form", *job, *limits, button, action="report", method="get", id="ask",
                    hidden="", class_="screen-only")]  # fmt: skip


def _plan_table(answer: Answer, data: PageData) -> Element:
    """The plans that meet the requested limits; the script rewrites it."""
    rows = tuple(_plan_row(plan, answer) for plan in data.plans if plan.kind != "other")
    right, named = frozenset({2, 3, 4, 5}), frozenset({1})
    sheet = Sheet("Plans under these limits", _COLUMNS, rows, right, named)
    table = sheet.element(id="plans")
    table.set("class", "scroll tall")
    return table


def _plan_row(row: PlanRow, answer: Answer) -> tuple[str, ...]:
    plan = (answer.plans if row.kind == "table" else answer.baselines)[row.number - 1]
    return (
        row.label or row.baseline,
        f"{row.name}\n{row.where}",
        f"{row.cost}\n{row.cost_span}",
        f"{row.time}\n{row.time_span}",
        "" if answer.goal == "frontier" else fmt.share(plan.estimate.chance),
        row.price,
    )


# How sure


def distributions(answer: Answer) -> Element:
    """Cost and time of the chosen plan over its runs."""
    tables = [folded("The figures as a table", _quantiles(answer).element())]
    return section("spread", "How sure", *fragment("spread"), *(tables if answer.plans else []))


def _quantiles(answer: Answer) -> Sheet:
    columns = ("plan", "cost 5 %", "50 %", "95 %", "99 %", "mean", "time 5 %", "50 %", "95 %",
               "99 %", "chance")  # fmt: skip
    rows = []
    for i, plan in enumerate(answer.plans, 1):
        cost, time = plan.estimate.cost, plan.estimate.time
        money = (fmt.usd(x) for x in (cost.p05, cost.p50, cost.p95, cost.p99, cost.mean))
        clock = (fmt.duration(x) for x in (time.p05, time.p50, time.p95, time.p99))
        rows.append((f"plan {i}", *money, *clock, fmt.share(plan.estimate.chance)))
    right = frozenset(range(1, len(columns)))
    return Sheet("Cost in USD and time of each plan, by share of the runs", columns, tuple(rows),
                 right)  # fmt: skip


# Where time and money go


def breakdowns(answer: Answer, request: PlanRequest) -> Element:
    """Bars for time, step and bill of each plan, and every term of each as a table."""
    return section("where", "Time and money", *fragment("where"), *_terms(answer, request))


def _terms(answer: Answer, request: PlanRequest) -> Iterator[Element]:
    for i, plan in enumerate(answer.plans[:DETAILED], 1):
        sheets = [
            Sheet(title, ("term", "amount", "share or remark"), tuple(terms), frozenset({1}))
            for title, terms in explain.sections(plan, request)
            if terms
        ]
        named = f"Plan {i} as tables: {cells.short_machines(plan)}"
        yield folded(named, *(sheet.element() for sheet in sheets))


# What would change it


def alternatives(answer: Answer, request: PlanRequest, otherwise: list[Element]) -> Element:
    """What other figures and other limits would give, and the baselines."""
    parts = [*otherwise, *changes(answer), *baseline_part(answer, request)]
    return section("changes", "What would change it", *parts)


def changes(answer: Answer) -> list[Element]:
    """What other limits give, each planned again."""
    steps = [_step(step) for step in answer.sensitivity]
    if not steps:
        return []
    title = f"Other limits, planned again, against plan {answer.best}"
    columns = ("change", "effect", "best plan then")
    sheet = Sheet(title, columns, tuple(steps), named=frozenset({0, 2}))
    return [sheet.element()]


def _step(step: SensitivityStep) -> tuple[str, str, str]:
    plan = "" if step.plan is None else cells.short_machines(step.plan)
    return fmt.clean(step.change), fmt.clean(step.effect), plan


def baseline_part(answer: Answer, request: PlanRequest) -> list[Element]:
    """What anybody would think of first, and whether it meets the limits."""
    rows = [_baseline(plan, request) for plan in answer.baselines]
    rows += [_baseline(answer.compared, request)] if answer.compared else []
    if not rows:
        return []
    columns = ("baseline", "machines", "cost USD", "time", "chance", "limits")
    right, named = frozenset({2, 3, 4}), frozenset({1})
    return [Sheet("Baselines", columns, tuple(rows), right, named).element()]


def _baseline(plan: Plan, request: PlanRequest) -> tuple[str, ...]:
    name = fmt.clean(plan.labels[0]) if plan.labels else "now"
    estimate = plan.estimate
    return (
        name,
        cells.short_machines(plan),
        fmt.usd(estimate.cost.mean),
        fmt.duration(estimate.time.p50),
        fmt.share(estimate.chance),
        why_not(plan, request.limits) or "met",
    )


# The program behind the order


def program(answer: Answer) -> list[Element]:
    """Shares of the linear program and what a little more of each limit is worth."""
    facts = answer.program
    if facts is None or facts.status != "optimal":
        return []
    shares = tuple((fmt.clean(s.configuration), fmt.percent(s.share)) for s in facts.shares)
    worth = tuple(explain.worth_words(answer))
    parts: list[Child] = [
        *(element("p", each) for each in explain.program_words(answer)),
        Sheet("Shares of the work", ("configuration", "share"), shares, frozenset({1})).element(),
    ]
    if worth:
        parts.append(
            Sheet("Shadow prices: what a little more of a limit is worth", ("limit", "worth"),
                  worth).element()
        )  # fmt: skip
    return [section("program", "Linear program", *parts)]


# What it rests on


def evidence(answer: Answer) -> Element:
    """Assumptions, grades of evidence, and the dates of the prices."""
    remarks = [f"{fmt.clean(each).rstrip('.')}." for each in answer.assumptions]
    columns = ("plan", "speed", "prices", "oldest price", "spot interruptions")
    grades = tuple(_grades(answer))
    sheet = Sheet("How well founded each plan is", columns, grades)
    return section(
        "evidence",
        "What it rests on",
        *([element("ul", *(element("li", each) for each in remarks))] if remarks else []),
        *([sheet.element()] if grades else []),
        _prices(answer),
    )


_SPEED: dict[SpeedGrade, str] = {
    "measured": "measured on this GPU",
    "scaled": "scaled from other GPUs",
    "guessed": "from the datasheet",
}
_PRICE: dict[PriceGrade, str] = {
    "fresh": "likely unchanged",
    "old": "may have moved",
    "floor": "at the price floor",
    "derived": "derived from others",
    "asked": "asked by hosts of a marketplace",
}
_LAW: dict[SpotGrade, str] = {
    "measured": "traces of these machines",
    "carried over": "traces of this GPU in other machines",
    "untraced": "traces of other GPUs",
    "stated": "as you stated (--mtbf)",
}


def _law(known: Evidence, spot: SpotFacts | None) -> str:
    """What the interruptions of a plan are taken from, and how old that is."""
    if known.spot is None or spot is None:
        return "no spot"
    own = spot.basis.startswith(OWN_TRACE)
    return f"{fmt.clean(spot.basis) if own else _LAW[known.spot]}, {fmt.clean(spot.as_of)}"


def _grades(answer: Answer) -> Iterator[tuple[str, ...]]:
    for i, plan in enumerate(answer.plans, 1):
        known, spot = plan.evidence, plan.spot
        if known is None:
            continue
        yield (
            f"plan {i}",
            f"{_SPEED[known.speed]} (±{fmt.percent(plan.estimate.speed_sigma)})",
            f"{_PRICE[known.price]} (±{fmt.percent(known.price_sd)})",
            min(m.as_of[:10] for m in plan.machines),
            _law(known, spot),
        )


def _prices(answer: Answer) -> Element:
    items = (
        element(
            "li",
            f"{fmt.provider(price.provider)}, {fmt.market(price.market)}: "
            f"{price.offers:,} offers, prices of ",
            element("time", price.as_of[:10], datetime=price.as_of[:10]),
        )
        for price in answer.prices
    )
    return element("div", element("h3", "Prices"), element("ul", *items))


# Where no plan meets the limits


def infeasible(answer: Answer, request: PlanRequest) -> Element:
    """Why there is no plan, and which limits would leave one."""
    why = answer.infeasible or Infeasible((), ())
    rows = tuple(_nearest(step) for step in why.relaxed)
    columns = ("change", "best plan then", "cost USD", "time")
    sheet = Sheet("Limits that leave a plan", columns, rows, named=frozenset({0, 1}))
    binding = [element("li", fmt.clean(each)) for each in why.binding]
    return section(
        "answer",
        "No plan",
        element("p", why_none(request, answer.status == "infeasible")),
        *([element("ul", *binding)] if binding else []),
        *([element("p", fmt.clean(why.unexplored))] if why.unexplored else []),
        *([sheet.element()] if rows else []),
    )


def _nearest(step: SensitivityStep) -> tuple[str, ...]:
    if step.plan is None:
        return fmt.clean(step.change), fmt.clean(step.effect), "", ""
    estimate = step.plan.estimate
    figures = fmt.usd(estimate.cost.mean), fmt.duration(estimate.time.p50)
    return fmt.clean(step.change), cells.short_machines(step.plan), *figures


def closing(answer: Answer, request: PlanRequest, tool: str) -> Element:
    """Where the page comes from, and the answer for programs."""
    save = element("button", "save the answer as JSON", type="button", id="save-json", hidden="",
                   class_="needs-script")  # fmt: skip
    facts = " · ".join(answer_frame.closing_facts(answer, request)) if answer.plans else ""
    return element(
        "footer",
        *([element("p", fmt.clean(facts), class_="faint")] if facts else []),
        element("p", f"{tool} · catalog {fmt.clean(request.catalog)} · seed {answer.seed}",
                class_="faint"),
        save,
    )  # fmt: skip
