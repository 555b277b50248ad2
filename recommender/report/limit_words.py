"""Limits in words: what every plan promises, and which limit a plan misses."""

from collections.abc import Callable, Mapping

from recommender.inputs.units import brief_duration
from recommender.plan.limits import LIMITS, Limits, PathLimit, Quantity
from recommender.plan.plan import Plan
from recommender.plan.simulation import LimitChance
from recommender.report import formatting as fmt


def limits_in_words(limits: Limits) -> str:
    """The limits in words: "finish within 24 h and cost at most 200 USD in total"."""
    amounts: dict[str, list[str]] = {}
    for limit, value in limits.given(LIMITS):
        if limit.promise is not None:
            verb, after = limit.promise
            amounts.setdefault(verb, []).append(f"{as_typed(limit.quantity, value)}{after}")
    return fmt.listing([f"{verb} {fmt.listing(each)}" for verb, each in amounts.items()])


def as_typed(quantity: Quantity, amount: float) -> str:
    """A limit as it was given, not rounded: "14h24m", "1,234.5 USD"."""
    return _AS_TYPED[quantity](amount)


def why_not(plan: Plan, limits: Limits) -> str:
    """The limit that a plan misses, in words; empty if it meets all."""
    missed = [
        (limit, limit.missed.format(_ROUNDED[limit.quantity](limit.of_plan(plan))))
        for limit, most in limits.given(LIMITS)
        if not limit.allows(limit.of_plan(plan), most)
    ]
    sure = plan.estimate.chance >= limits.confidence
    # A run that is too slow or over budget is one of the few that may be, if the chance is met.
    parts = [words for limit, words in missed if not isinstance(limit, PathLimit)]
    parts += [words for limit, words in missed if isinstance(limit, PathLimit) and not sure]
    if parts or sure:
        return next(iter(parts), "")
    return f"meets the limits in only {fmt.share(plan.estimate.chance)} of runs"


def limit_words(of: LimitChance) -> str:
    """A simulated limit in words: "in 24 h"."""
    quantity = next(limit.quantity for limit in LIMITS if limit.name == of.limit)
    return f"{'in' if quantity == 'time' else 'within'} {_THREE[quantity](of.value)}"


def _time(seconds: float) -> str:
    """A deadline as it was typed: 24 h, 5 d, but 14h24m where one unit would round it."""
    unit = 60.0 if seconds < 5400.0 else 3600.0 if seconds < 360_000.0 else 86_400.0
    return fmt.duration(seconds) if seconds % unit == 0.0 else brief_duration(seconds)


def _money(usd: float) -> str:
    """An amount as it was typed: 1,234.5."""
    return f"{usd:,.2f}".rstrip("0").rstrip(".") if usd >= 1.0 else fmt.number(usd)


_AS_TYPED: Mapping[Quantity, Callable[[float], str]] = {
    "time": _time,
    "usd": lambda usd: f"{_money(usd)} USD",
    "usd_per_hour": lambda usd: f"{_money(usd)} USD/h",
    "share": fmt.percent,
}
_ROUNDED: Mapping[Quantity, Callable[[float], str]] = {
    "time": fmt.duration,
    "usd": lambda usd: f"{fmt.usd(usd)} USD",
    "usd_per_hour": lambda usd: f"{fmt.number(usd)} USD/h",
    "share": fmt.percent,
}
_THREE: Mapping[Quantity, Callable[[float], str]] = {
    **_ROUNDED,
    "usd": lambda usd: f"{fmt.number(usd)} USD",
}
