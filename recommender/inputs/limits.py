"""Parses and formats limits."""

from collections.abc import Callable, Mapping
from math import ceil, floor, log10

from recommender.catalogs.frozen import dataclass
from recommender.inputs import units
from recommender.inputs.units.times import now
from recommender.plan.limits import Limit, Progress, Quantity


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one quantity are read and written."""

    parse: Callable[[str, str], float]
    exact: Callable[[float], str]  # as it was typed
    brief: Callable[[float], str]  # rounded as one would type it
    round_up: Callable[[float], float]  # to the least such value that is not less
    unit: str = ""  # where a sentence names the amount


def _deadline(text: str, name: str) -> float:
    return units.parse_deadline(text, now(), name)


def _three(value: float) -> str:
    """Three significant digits without a power of ten: 1300."""
    return f"{float(f'{value:.3g}'):g}"


def _three_up(value: float) -> float:
    """Three significant digits, never less than the value."""
    if value <= 0.0:
        return value
    unit: float = 10.0 ** (floor(log10(value)) - 2)
    return ceil(value / unit - 1e-9) * unit


def _exact(value: float) -> str:
    return f"{value:g}"


_FORMS: Mapping[Quantity, _Form] = {
    "time": _Form(
        _deadline, units.format_duration, units.brief_duration, lambda s: 60.0 * ceil(s / 60.0)
    ),
    "usd": _Form(units.parse_money, _exact, _three, _three_up, " USD"),
    "usd_per_hour": _Form(units.parse_hourly, _exact, _three, _three_up, " USD/h"),
    "share": _Form(
        units.parse_share,
        units.format_share,
        lambda share: f"{round(100 * share)}%",
        lambda share: ceil(100 * share) / 100,
    ),
}


def parse_limit(limit: Limit) -> Callable[[str, str], float]:
    """The parser of one limit's values."""
    return _FORMS[limit.quantity].parse


def exact(limit: Limit, value: float) -> str:
    """Format a value of a limit exactly: 1d12h, 200, 20%."""
    return _FORMS[limit.quantity].exact(value)


def amount(limit: Limit, value: float) -> str:
    """Format a value of a limit for a sentence: 9h40m, 70 USD."""
    form = _FORMS[limit.quantity]
    return f"{form.brief(value)}{form.unit}"


def as_typed(limit: Limit, left: float, progress: Progress) -> str:
    """Format a limit of the whole job with its flag: "--deadline 9h40m"; `left` remains of it."""
    whole = left + limit.spent_of(progress)
    return f"{limit.flag} {_FORMS[limit.quantity].brief(whole)}"


def rounded_up(limit: Limit, left: float, progress: Progress) -> float:
    """Round a remaining limit up so that the whole limit is a value one would type."""
    spent = limit.spent_of(progress)
    return _FORMS[limit.quantity].round_up(left + spent) - spent
