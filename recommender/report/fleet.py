"""A fleet as a page: what runs where and when, what gives way first, and what more would save."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np

from recommender.catalogs.frozen import dataclass
from recommender.inputs.fleet_file import FleetEntry
from recommender.optimize.fleet import Fleet, FleetPlan
from recommender.optimize.fleet_risk import Together
from recommender.report import formatting as fmt
from recommender.report.page import Page, headings

SCHEMA = "recommend.fleet/v1"
FIRST = 3  # jobs, quotas and budgets that are named
LEAST_USD = 0.005  # less is no amount


@dataclass(frozen=True, slots=True)
class Placed:
    """A job of a fleet that runs."""

    entry: FleetEntry
    row: dict[str, Any]  # its plan, as a row of a batch
    start: datetime
    end: datetime  # by which 19 of 20 runs are done


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """What a fleet runs, and what it leaves out."""

    placed: tuple[Placed, ...]  # by their starts
    left_out: tuple[tuple[FleetEntry, str], ...]  # and why
    plan: FleetPlan
    fleet: Fleet
    start: datetime
    slot_s: float
    spent: Mapping[tuple[str, str], float]  # of each team and month, USD
    common: Together  # one fate for all jobs
    single: Together  # independent ones
    catalog: str


def fleet_page(answer: FleetAnswer) -> Page:
    """The page of a fleet."""
    return Page(
        title=f"{fmt.plural(len(answer.placed), 'job')} of {len(answer.fleet.jobs)}, "
        f"catalog {answer.catalog}",
        columns=headings("job:", "team:", "start:", "done by:", "plan:", "place:", "USD", "chance"),
        rows=tuple(_cells(each) for each in answer.placed),
        flexible=4,
        below=tuple(_below(answer)),
        facts=_facts(answer),
    )


def _cells(placed: Placed) -> tuple[str, ...]:
    row = placed.row
    return (
        fmt.clean(placed.entry.name), fmt.clean(placed.entry.team), f"{placed.start:%d %b %H:%M}",
        f"{placed.end:%d %b %H:%M}", row["machines"], f"{row['provider']} {row['region']}",
        f"{row['cost_usd']:,.2f}", f"{row['chance']:.0%}",
    )  # fmt: skip


def _below(answer: FleetAnswer) -> Iterator[str]:
    plan, names = answer.plan, [job.name for job in answer.fleet.jobs]
    total = sum(each.row["cost_usd"] for each in answer.placed)
    yield (
        f"Costs {total:,.2f} USD on average; no other choice and order of these plans is better by "
        f"more than {plan.gap:.1%} of costs and what is left out."
    )
    for entry, why in answer.left_out:
        said = (
            why
            or f"does not fit, or others are worth more than its {_worth(answer, entry):,.0f} USD"
        )
        yield f"Left out: {fmt.clean(entry.name)} ({fmt.clean(said)})."
    for (team, month), usd in sorted(answer.spent.items()):
        most = answer.fleet.budgets.get((team, month))
        if most is not None:
            yield f"{fmt.clean(team)}, {month}: {usd:,.2f} of {most:,.2f} USD."
    run = {each.entry.name for each in answer.placed}
    first = [names[n] for n in np.argsort(plan.margin, kind="stable") if names[n] in run][:FIRST]
    if first:
        yield f"To leave out first: {fmt.listing([fmt.clean(each) for each in first])}."
    for number in np.argsort(-plan.later, kind="stable")[:FIRST]:
        if plan.later[number] > LEAST_USD:
            name = fmt.clean(names[number])
            saved = f"{plan.later[number]:,.2f} USD"
            yield f"Delay first: {name}; with time until the last deadline it saves {saved}."
    for group, usd in sorted(plan.worth.items(), key=lambda each: -each[1])[:FIRST]:
        if usd > LEAST_USD:
            what = "One dollar more for" if group[0] == "budget" else "One more of"
            yield f"{what} {fmt.clean(' '.join(group[1:]))} saves {usd:,.2f} USD."
    yield _risk(answer.common, answer.single)


def _worth(answer: FleetAnswer, entry: FleetEntry) -> float:
    return next(float(job.worth) for job in answer.fleet.jobs if job.name == entry.name)


def _risk(common: Together, single: Together) -> str:
    """The chances of the whole, if what befalls one befalls all and if each has its own fate."""
    in_time = _span(common.in_time, single.in_time)
    enough = _span(common.within_quotas, single.within_quotas)
    pairs = f"all in time {in_time}", f"quotas suffice for fallbacks too {enough}"
    high = max(common.usd_p95, single.usd_p95)
    return f"Together: {', '.join(pairs)}; at most {high:,.2f} USD in 19 of 20 cases."


def _span(one: float, other: float) -> str:
    low, high = sorted((f"{one:.0%}", f"{other:.0%}"), key=lambda word: float(word[:-1]))
    return low if low == high else f"{low} to {high}"


def _facts(answer: FleetAnswer) -> Mapping[str, Any]:
    """What the page says, for programs."""
    plan, names = answer.plan, [job.name for job in answer.fleet.jobs]
    return {
        "schema": SCHEMA,
        "catalog": answer.catalog,
        "start": answer.start.isoformat(),
        "slot_s": answer.slot_s,
        "gap": plan.gap,
        "usd": sum(each.row["cost_usd"] for each in answer.placed),
        "jobs": [
            {
                "name": each.entry.name,
                "team": each.entry.team,
                "start": each.start.isoformat(),
                "end": each.end.isoformat(),
                **{key: value for key, value in each.row.items() if key not in ("job", "inputs")},
            }
            for each in answer.placed
        ],
        "left_out": [{"name": entry.name, "why": why} for entry, why in answer.left_out],
        "spent": [
            {
                "team": team,
                "month": month,
                "usd": usd,
                "budget": answer.fleet.budgets.get((team, month)),
            }
            for (team, month), usd in sorted(answer.spent.items())
        ],
        "worth": [{"of": list(group), "usd": usd} for group, usd in plan.worth.items()],
        "margin_usd": {
            n: float(m) if np.isfinite(m) else None for n, m in zip(names, plan.margin, strict=True)
        },
        "later_usd": dict(zip(names, plan.later.tolist(), strict=True)),
        "together": {"common": asdict(answer.common), "independent": asdict(answer.single)},
    }
