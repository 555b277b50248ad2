"""The rank of a machine, as a page and as JSON."""

from typing import Any

from recommender.plan.standing import BreakEven, MachineStanding
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.json_output import STANDING_SCHEMA, finding
from recommender.report.limit_words import why_not
from recommender.report.page import Page, headings


def standing_page(found: MachineStanding, request: PlanRequest) -> Page:
    """A verdict, the machine's best plan next to the best of all, and what would win."""
    plans = [each for each in (found.best, found.plan) if each is not None]
    if found.standing == "first":
        plans = plans[:1]
    unit, name = cells.time_unit(plans) if plans else (1.0, "h")
    columns = headings(":", "machines:", "USD", name, "chance")
    names = ["best", "this one"] if found.best is not None else ["this one"]
    rows = tuple(
        cells.compared_row(n, p, p.estimate.cost, p.estimate.time, p.estimate.chance, unit)
        for n, p in zip(names, plans, strict=False)
    )
    below = (*_reasons(found, request), *_wins(found))
    return Page(_title(found, request), columns, rows, 1, below, document(found, request))


def _title(found: MachineStanding, request: PlanRequest) -> str:
    name, job = fmt.clean(found.machine), fmt.clean(request.job.name)
    if found.standing == "first":
        return f"{name} is the best for {job}."
    if found.standing == "behind":
        place = f"{found.compared} plans are" if found.rank is None else _place(found)
        return f"{name} meets the limits of {job}, but {place} better."
    words = {
        "not offered": "cannot be rented there",
        "not allowed": "may not be rented",
        "cannot train": f"cannot train {job}",
        "over limits": f"meets the limits of {job} in no number",
    }
    return f"{name} {words[found.standing]}."


def _place(found: MachineStanding) -> str:
    assert found.rank is not None
    return "one kind of plan is" if found.rank == 2 else f"{found.rank - 1} kinds of plans are"


def _reasons(found: MachineStanding, request: PlanRequest) -> list[str]:
    reasons = map(fmt.clean, found.reasons)
    sentences = [f"{reason[:1].upper()}{reason[1:]}." for reason in reasons]
    if found.standing == "over limits" and found.plan is not None:
        wrong = why_not(found.plan, request.limits)
        sentences = [f"Its nearest plan {wrong}.", *sentences] if wrong else sentences
    return sentences


def _wins(found: MachineStanding) -> list[str]:
    """The price and the speed from which on it is the best."""
    if found.standing not in ("behind", "over limits"):
        return []
    if found.best is None:
        return ["No other machine meets the limits either."]
    price, speed = found.price, found.speed
    sentences = ["No price makes it the best."]
    if price is not None:
        sentences = [
            f"It would be the best below {fmt.number(price.after)} USD/h instead of "
            f"{fmt.number(price.before)} ({100.0 * (price.factor - 1.0):+.0f} %){_checked(price)}."
        ]
    if speed is not None:
        sentences.append(
            f"Or if it trained {fmt.number(speed.factor)} times as fast at its price"
            f"{_checked(speed)}."
        )
    return sentences


def _checked(found: BreakEven) -> str:
    """Whether planning everything again agrees on both sides of the break-even."""
    if found.wins and found.loses:
        return ", checked by planning again"
    return "; planned again, it " + ("leads a little before that" if found.wins else "does not")


def document(found: MachineStanding, request: PlanRequest) -> dict[str, Any]:
    """All figures as plain objects: seconds, USD, shares, six significant digits."""
    return finding(STANDING_SCHEMA, "machine", found, request)
