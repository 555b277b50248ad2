"""Staying or moving, as a page and as JSON."""

import math
from typing import Any

from recommender.plan.replan import MovingCost, PriceMove, Remaining, Replan
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.json_output import REPLAN_SCHEMA, finding
from recommender.report.page import Page, headings


def replan_page(found: Replan, request: PlanRequest) -> Page:
    """The advice, both options, and what a move saves and costs."""
    unit, name = cells.time_unit([each.plan for each in _options(found)])
    columns = headings(":", "machines:", "USD left", f"{name} left", "chance")
    names = ("stay", "move")
    rows = tuple(
        cells.compared_row(n, left.plan, left.cost, left.time, left.chance, unit)
        for n, left in zip(names, _options(found), strict=False)
    )
    legend = "Remaining cost (mean) and time (median); below them the range of 9 in 10 runs."
    below = (legend, *_sentences(found, request))
    return Page(advice(found, request), columns, rows, 1, below, document(found, request))


def advice(found: Replan, request: PlanRequest) -> str:
    """The recommendation in one sentence."""
    progress = request.progress
    so_far = (
        f"{fmt.clean(request.job.name)}, {fmt.percent(progress.done_share)} done after "
        f"{fmt.duration(progress.elapsed_s)}"
    )
    if found.verdict == "stay":
        also = (
            "" if found.meets_limits else ", although the remaining limits are unlikely to be met"
        )
        return f"{so_far}: stay{also}."
    assert found.move is not None
    to = f"{so_far}: move to {cells.short_machines(found.move.plan)}"
    if not found.meets_limits:
        often = (
            f"{fmt.share(found.move.chance)} of the runs, staying in {fmt.share(found.stay.chance)}"
        )
        return f"{to}: it meets the remaining limits in {often}."
    return (
        f"{to}{'' if found.net_usd > 0.0 else ', because staying is unlikely to meet the limits'}."
    )


def _options(found: Replan) -> list[Remaining]:
    return [found.stay] if found.move is None else [found.stay, found.move]


def _sentences(found: Replan, request: PlanRequest) -> tuple[str, ...]:
    """What a move saves, what it costs, which prices moved, and why nothing meets the limits."""
    lines = []
    if found.binding or found.moving is None:
        why = f": {'; '.join(map(fmt.clean, found.binding))}" if found.binding else ""
        chance = fmt.percent(request.limits.confidence)
        lines.append(f"No other machines meet the remaining limits with {chance} chance{why}.")
    if found.moving is not None:
        lines += [_saved(found), _costs(found.moving), _worth(found, request)]
    lines += [_price(each) for each in found.prices]
    return tuple(lines)


def _saved(found: Replan) -> str:
    money = _less(found.saved_usd, f"{fmt.usd(abs(found.saved_usd))} USD", "costs")
    time = _less(found.saved_s, fmt.duration(abs(found.saved_s)), "takes")
    return (
        f"Moving {money} and {time}; it is cheaper in {fmt.percent(found.cheaper)} of the runs, "
        f"faster in {fmt.percent(found.sooner)}."
    )


def _less(saved: float, amount: str, verb: str) -> str:
    return f"saves {amount}" if saved >= 0.0 else f"{verb} {amount} more"


def _costs(moving: MovingCost) -> str:
    """The parts of a move; all but the hours of work are in its figures above."""
    parts = [
        f"the new machines are available at once in {fmt.share(moving.at_once)} of the runs"
        + (f", 1 in 20 waits {fmt.duration(moving.wait_p95_s)}" if moving.wait_p95_s else ""),
        f"{fmt.duration(moving.start_s)} to start ({fmt.usd(moving.start_usd)} USD)",
        f"{fmt.duration(moving.lost_work_s)} of work since the last checkpoint, repeated "
        f"({fmt.usd(moving.lost_usd)} USD)",
    ]
    if moving.transfer_usd >= 0.005:
        parts.append(f"{fmt.usd(moving.transfer_usd)} USD to transfer the checkpoint")
    return f"These figures include: {'; '.join(parts)}."


def _worth(found: Replan, request: PlanRequest) -> str:
    assert found.moving is not None
    effort_s = 3600.0 * found.moving.effort_h
    effort = f"{fmt.duration(effort_s)} of your work, worth {fmt.usd(found.moving.effort_usd)} USD"
    if effort_s > (request.limits.deadline_s or math.inf) - request.progress.elapsed_s:
        effort += ", more than the time that is left of the deadline"
    if found.net_usd > 0.0:
        return f"It also takes {effort}, so a move is worth {fmt.usd(found.net_usd)} USD in total."
    return f"It also takes {effort}" + ("." if found.verdict == "move" else ": it does not pay.")


def _price(moved: PriceMove) -> str:
    where = " ".join(fmt.clean(each) for each in (moved.region, moved.zone) if each)
    name = f"{fmt.clean(moved.instance_type)} {fmt.market(moved.market)} in {where}"
    if moved.now_usd is None or moved.change is None:
        return f"Price: {name} is no longer offered (was {fmt.number(moved.before_usd)} USD/h)."
    return (
        f"Price: {name} {fmt.number(moved.before_usd)} → {fmt.number(moved.now_usd)} USD/h "
        f"({100.0 * moved.change:+.0f} %)."
    )


def document(found: Replan, request: PlanRequest) -> dict[str, Any]:
    """All figures as plain objects: seconds, USD, shares, six significant digits."""
    return finding(REPLAN_SCHEMA, "replan", found, request)
