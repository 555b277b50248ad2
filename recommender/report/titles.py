"""The lines above a table: which job, which goal, how old the prices are."""

from recommender.limits import Limits
from recommender.plan import Answer, PriceDate
from recommender.report import text
from recommender.report.age import age_days
from recommender.report.asked import Asked
from recommender.units import brief_duration


def job_line(asked: Asked) -> str:
    """The job in one line: amount, work, precision, checkpoint."""
    job = asked.job
    per = job.tokens_per_sample
    unit = "token" if per > 1 else text.clean(job.sample_unit)
    facts = [
        f"{text.large(job.samples * per)} {unit}s",
        f"{text.scientific(job.total_flop)} FLOP",
        "mixed precision" if job.precision == "mixed" else job.precision,
        *([job.method] if job.method != "full" else []),
        f"{text.size(job.checkpoint_bytes)} checkpoint",
    ]
    return f"{text.clean(job.name)}: {', '.join(facts)}"


def goal_line(answer: Answer, limits: Limits) -> str:
    """What is sought and which limits are kept with which chance."""
    kept = limits_kept(limits)
    if not kept:
        return {
            "cost": "Cheapest plans, without any limit",
            "time": "Fastest plans, without any limit",
            "frontier": "Plans that no other plan beats in both cost and time",
        }[answer.goal]
    what = {"cost": "Cheapest", "time": "Fastest", "frontier": "Best"}[answer.goal]
    return f"{what} plans that {kept} with at least {text.percent(limits.confidence)} chance"


def limits_kept(limits: Limits) -> str:
    """The limits in words: "finish within 24 h and cost at most 200 USD in total"."""
    costs = []
    if limits.budget_usd is not None:
        costs.append(f"{_money(limits.budget_usd)} USD in total")
    if limits.hourly_usd is not None:
        costs.append(f"{_money(limits.hourly_usd)} USD/h")
    parts = []
    if limits.deadline_s is not None:
        parts.append(f"finish within {_time(limits.deadline_s)}")
    if costs:
        parts.append(f"cost at most {text.listing(costs)}")
    return text.listing(parts)


def _time(seconds: float) -> str:
    """A deadline as it was typed: 24 h, 5 d, but 14h24m where one unit would round it."""
    one_unit = seconds % (3600.0 if seconds < 360_000.0 else 86_400.0) == 0.0
    return text.duration(seconds) if one_unit else brief_duration(seconds)


def _money(usd: float) -> str:
    """An amount as it was typed: 1,234.5."""
    return f"{usd:,.2f}".rstrip("0").rstrip(".") if usd >= 1.0 else text.three(usd)


def price_line(answer: Answer, asked: Asked) -> str:
    """How old the prices are, oldest per provider."""
    if not answer.prices:
        return ""
    ages = [(provider, _age(date)) for provider, date in _oldest(answer.prices)]
    ages = [each for each in ages if each != ("own", "0")] or ages  # dated today by default
    known = ", ".join(f"{age} ({text.provider(name)})" for name, age in ages)
    if all(age == "0" for _, age in ages):
        return "Prices are of today."
    days = "day" if {age for _, age in ages} == {"1"} else "days"
    quoted = asked.choice.prices_as_quoted
    return f"Prices are {known} {days} old; " + (
        "taken as quoted." if quoted else "the spans include it."
    )


def _oldest(prices: tuple[PriceDate, ...]) -> list[tuple[str, str]]:
    dates: dict[str, str] = {}
    for price in prices:
        dates[price.provider] = min(price.as_of, dates.get(price.provider, price.as_of))
    return list(dates.items())


def _age(as_of: str) -> str:
    days = age_days(as_of)
    return "unknown" if days is None else str(days)
