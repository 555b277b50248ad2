"""An answer as a page: what to rent, every plan, or one plan term by term."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.plan.plan import Plan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.json_output import document
from recommender.report.page import Page, Rows

if TYPE_CHECKING:
    from recommender.report.layout import Block
    from recommender.report.short_answer import ShortPlan

COLUMNS = (
    *("rank", "status", "machines", "market", "provider", "region", "gpus"),
    *("cost_usd_mean", "cost_usd_median", "cost_usd_p05", "cost_usd_p95"),
    *("time_h_median", "time_h_p05", "time_h_p95", "chance", "usd_per_hour", "interruptions"),
    *("checkpoint_path", "checkpoint_interval_s", "overhead", "flop_per_usd", "saving"),
    *("price_as_of", "labels", "launch"),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of an answer a page has."""

    quiet: bool = False
    explain: int = 0  # number of a plan, 0 = none
    all_regions: bool = False
    table: bool = False  # all plans


ALL_USUAL = Shown()


def answer_page(answer: Answer, request: PlanRequest, shown: Shown = ALL_USUAL) -> Page:
    """Plan `explain` term by term, all plans as a table, or what most people would take."""
    quiet, whole = shown.quiet, answer.status == "ok"

    def view(width: int) -> "Sequence[Block]":
        from recommender.report import answer_table, explain, short_forms  # rich

        if shown.explain and whole:
            return explain.render(answer, request, shown.explain, width)
        if shown.table and whole:
            return answer_table.render(answer, request, width, quiet, shown.all_regions)
        return short_forms.short_blocks(answer, request, width, quiet, shown.table)

    def plain() -> Page:
        from recommender.report.explain import assumed_blocks  # rich

        if not (whole and (shown.explain or shown.table)):
            return _short(answer, request, quiet, shown.table)
        assumed = Page(view=lambda _: () if shown.explain or quiet else assumed_blocks(answer))
        return Page(view=view, then=(assumed,))

    return Page(
        view=view,
        plain=plain,
        facts=lambda: document(answer, request),
        sheet=lambda: plan_sheet(answer),
    )


def _short(answer: Answer, request: PlanRequest, quiet: bool, every: bool) -> Page:
    """The short answer as lists, which a chat shows as well as a page; chats have no tables."""
    from recommender.report.short_forms import short_form  # rich

    short = short_form(answer, request, every)
    verdict = (short.verdict,) if short.verdict else ()
    plans = tuple((plan.role, _in_a_line(plan)) for plan in short.plans)
    if quiet:
        return Page(above=verdict, labels=plans)
    labels = (*short.steps, ("Prices", short.prices), ("More", short.more))
    steps = tuple((name, words) for name, words in labels if words)
    warnings = (f"warning: {fmt.clean(each)}" for each in answer.warnings)
    return Page(
        title=f"{short.job}, {short.asked}",
        above=(*verdict, *warnings),
        labels=plans,
        then=(Page(below=(short.span,) if short.span else (), labels=steps),),
    )


def _in_a_line(plan: "ShortPlan") -> str:
    known = " · ".join(filter(None, (plan.where, plan.catch)))
    return f"{plan.machines}: {', '.join(plan.figures)} ({known})"


def plan_sheet(answer: Answer) -> Rows:
    """Every plan of an answer in figures; an infeasible answer gives its closest plans."""
    numbered = [(str(i), "ok", plan) for i, plan in enumerate(answer.plans, 1)]
    if answer.compared is not None:
        numbered.append(("now", "compared", answer.compared))
    if answer.infeasible is not None:
        nearest = [s for s in answer.infeasible.relaxed if s.plan is not None]
        numbered += [("", f"{answer.status}: {s.change}", s.plan) for s in nearest if s.plan]
    return [COLUMNS, *(_row(rank, status, plan) for rank, status, plan in numbered)]


def _row(rank: str, status: str, plan: Plan) -> tuple[str, ...]:
    from recommender.report.launch import launch_line  # it needs the models of checkpoints

    estimate, first = plan.estimate, plan.machines[0]
    cost, time = estimate.cost, estimate.time
    markets = dict.fromkeys(fmt.market(m.market) for m in plan.machines)
    return (
        rank,
        fmt.clean(status),
        " + ".join(f"{m.count}x {fmt.clean(m.instance_type)}" for m in plan.machines),
        " + ".join(markets),
        fmt.clean(first.provider),
        fmt.clean(cells.first_region(plan)),
        cells.gpus(plan.machines),
        *(_number(x) for x in (cost.mean, cost.p50, cost.p05, cost.p95)),
        *(_number(x / 3600) for x in (time.p50, time.p05, time.p95)),
        _number(estimate.chance),
        _number(plan.usd_per_hour),
        _number(estimate.interruptions),
        plan.checkpointing.path,
        _number(plan.checkpointing.interval_s),
        _number(estimate.overhead),
        _number(plan.flopp),
        "" if plan.saving is None or plan.saving < 0.0 else _number(plan.saving),
        min(fmt.clean(m.as_of) for m in plan.machines),
        "; ".join(fmt.clean(label) for label in plan.labels),
        launch_line(plan, int(rank) if rank.isdigit() else None) or "",
    )


def _number(x: float) -> str:
    return f"{x:.6g}" if x == x and abs(x) != float("inf") else ""
