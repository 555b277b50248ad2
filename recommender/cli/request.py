"""Turns flags into a question, and reports every mistake in them at once."""

from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Any

from recommender.cli.error_collector import ErrorCollector, name_of, one_of
from recommender.cli.options import JobFlags, LimitFlags, OfferFlags, OwnFlags, WorkerFlags
from recommender.errors import UsageError
from recommender.inputs import units
from recommender.inputs.limits import parse_limit
from recommender.inputs.units.times import now
from recommender.inputs.workers import Workers
from recommender.job.schema import check_flag
from recommender.job.timings import parse_measured
from recommender.plan.limits import LIMITS, Choice, Limits, Progress
from recommender.text import shown

_MARKETS = {
    "any": "any", "spot": "spot", "on-demand": "on_demand", "on_demand": "on_demand",
    "reserved": "reserved",
}  # fmt: skip
_PATHS = ("auto", "object_store", "anchor", "memory_tier", "none")
MAX_MACHINES = 1024  # a bigger cluster is no spot gang
MIN_CONFIDENCE = 0.05  # a lower one is a typo: 0.95% for 95%
MIN_MTBF_H, MAX_MTBF_H = 0.1, 8760.0  # six minutes, a year
_chance = partial(
    units.parse_share, zero=True, one=True, instead="write a share such as 80% or 0.8"
)
_done = partial(units.parse_share, zero=True, instead="write a share such as 40% or 0.4")
_elapsed = partial(units.parse_duration, zero=True)
_spent = partial(units.parse_money, zero=True)


def limits_of(flags: LimitFlags, errors: ErrorCollector) -> Limits:
    """The limits, in seconds and USD."""
    values = {
        limit: errors.parse(
            getattr(flags, limit.name.replace("-", "_")), limit.flag, parse_limit(limit), None
        )
        for limit in LIMITS
    }
    limits = Limits(
        confidence=errors.parse(flags.confidence, "--confidence", _sure, 0.95),
        max_machines=errors.parse(flags.max_machines, "--max-machines", _machines, 16),
        objective=errors.choose(flags.objective, "--objective", ("auto", "cost", "time"), "auto"),
    )
    for limit, value in values.items():
        limits = limits.with_value(limit, value)
    return limits


def deadline_at(flags: LimitFlags) -> datetime | None:
    """The deadline if it was given as a moment, in its time zone; None for a duration."""
    return units.deadline_moment(flags.deadline, now()) if flags.deadline else None


def workers_of(flags: WorkerFlags, usual: int, errors: ErrorCollector) -> Workers:
    """Where work is done; in `usual` processes unless another number was given."""
    count = errors.parse(flags.workers, "--workers", units.parse_whole, usual)
    return Workers(count, flags.scheduler or "")


def _sure(word: str, name: str) -> float:
    instead = "write a share such as 95% or 0.95"
    share = units.parse_share(word, name, instead=instead)
    if share < MIN_CONFIDENCE:
        raise UsageError(f"{name} {shown(word)} is hardly any chance; {instead}")
    return share


def choice_of(flags: OfferFlags, own: OwnFlags, errors: ErrorCollector) -> Choice:
    """Which offers may be used; quotas come from their own file."""
    return Choice(
        providers=errors.parse_all(flags.provider, "--provider", one_of(units.PROVIDERS)),
        regions=errors.parse_all(flags.region, "--region", name_of),
        countries=_countries(flags, errors),
        zones=errors.parse_all(flags.zone, "--zone", name_of),
        gpus=errors.parse_all(flags.gpu, "--gpu", units.parse_gpu),
        instances=errors.parse_all(flags.instance, "--instance", name_of),
        deny=errors.parse_all(flags.deny, "--deny", name_of),
        market=_market(flags, errors),
        failover=errors.choose(flags.failover, "--failover", ("none", "zone", "region"), "region"),
        checkpoint_to=errors.choose(flags.checkpoint_to, "--checkpoint-to", _PATHS, "auto"),
        mix="auto" if flags.mix is None else "yes" if flags.mix else "no",
        accelerator=errors.choose(
            flags.accelerator, "--accelerator", ("nvidia", "amd", "aws", "any"), "nvidia"
        ),
        arch=errors.choose(flags.arch, "--arch", ("x86_64", "arm64", "any"), "x86_64"),
        quoted_only=flags.quoted_only,
        confidential=flags.confidential,
        prices_as_quoted=own.prices_as_quoted,
        mtbf_h=errors.parse(own.mtbf, "--mtbf", _mtbf, None),
        discounts=_discounts(own, errors),
        on_demand_obtainable=errors.parse(
            own.assume_on_demand, "--assume-on-demand", _chance, None
        ),
    )


def _discounts(own: OwnFlags, errors: ErrorCollector) -> tuple[tuple[str, float], ...]:
    found = errors.parse_all(own.discount, "--discount", units.parse_discount)
    names = [name for name, _ in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    errors.problems.extend(f"--discount names {name} twice; keep one" for name in twice)
    return found


def _countries(flags: OfferFlags, errors: ErrorCollector) -> tuple[str, ...]:
    asked = errors.parse_all(flags.country, "--country", units.parse_country)
    return tuple(sorted({country for group in asked for country in group}))


def _market(flags: OfferFlags, errors: ErrorCollector) -> Any:
    market = _MARKETS[errors.choose(flags.market, "--market", tuple(_MARKETS), "any")]
    if flags.no_spot and market == "spot":
        errors.problems.append("--no-spot contradicts --market spot; keep one")
    return "no_spot" if flags.no_spot and market == "any" else market


def _hours(word: str, name: str) -> float:
    """A number of hours, or a duration with its unit."""
    instead = "write hours, such as 3.5, or 90m"
    if word.strip()[-1:].lower() in ("d", "h", "m", "s", "w"):
        return units.parse_duration(word, name, most_s=MAX_MTBF_H * 3600, instead=instead) / 3600
    return units.parse_count(word, name, most=MAX_MTBF_H, instead=instead)


def progress_of(own: OwnFlags, errors: ErrorCollector) -> Progress:
    """What is already done and spent."""
    return Progress(
        done_share=errors.parse(own.done, "--done", _done, 0.0),
        elapsed_s=errors.parse(own.elapsed, "--elapsed", _elapsed, 0.0),
        spent_usd=errors.parse(own.spent, "--spent", _spent, 0.0),
    )


def check_job_flags(flags: JobFlags, own: OwnFlags, errors: ErrorCollector) -> None:
    """Report what is wrong with the job's flags even where the job itself cannot be found."""
    errors.parse_all(own.measured, "--measured", parse_measured)
    errors.parse(own.data_at, "--data-at", units.parse_data_at, None)
    typed = {each.name: getattr(flags, each.name) for each in fields(flags)}
    for name, word in typed.items():
        if isinstance(word, str):
            errors.parse(word, name, _field, None)


def _field(word: str, name: str) -> None:
    check_flag(name, word)


def _machines(word: str, name: str) -> int:
    count = units.parse_whole(word, name, instead="write a number of machines such as 16")
    if count > MAX_MACHINES:
        raise UsageError(f"{name} {shown(word)} is more than {MAX_MACHINES}; write less")
    return count


def _mtbf(word: str, name: str) -> float:
    hours = _hours(word, name)
    if hours < MIN_MTBF_H:
        instead = "write hours, such as 3.5, or 90m"
        raise UsageError(f"{name} {shown(word)} is less than a machine takes to start; {instead}")
    return hours
