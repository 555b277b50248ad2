"""The machines the user rents today, as one more plan to compare with."""

from dataclasses import replace

from recommender.errors import UsageError
from recommender.inputs.units import Comparison
from recommender.market.facts import Pool
from recommender.market.sites import SitePools
from recommender.optimize.incumbent import Candidate
from recommender.optimize.space import OBJECT_STORE
from recommender.plan.limits import Choice
from recommender.plan.plan import Plan
from recommender.planner.plan_builder import Presenter
from recommender.planner.problem import Question
from recommender.text import nearest

# What the user knows better than the catalog holds for today's machines as well.
_KNOWN_BETTER = ("prices_as_quoted", "mtbf_h", "discounts", "on_demand_obtainable", "spot_laws")


def compared(question: Question, today: Comparison | None) -> Plan | None:
    """The plan that the user follows today, with its chance to keep the limits."""
    if today is None:
        return None
    presenter, candidate = named(question, today)
    return presenter.plan(candidate, ("today",))


def named(
    question: Question, today: Comparison, flag: str = "--compare"
) -> tuple[Presenter, Candidate]:
    """Machines that the user names, as a plan: one region, checkpoints in a bucket, no fallback.

    Raises `UsageError` where nobody offers them or they cannot train the job.
    """
    limits = replace(question.limits, max_machines=max(today.count, question.limits.max_machines))
    everything = replace(
        question,
        choice=Choice(
            accelerator="any",
            arch="any",
            failover="none",
            instances=(today.instance_type,),
            **{name: getattr(question.choice, name) for name in _KNOWN_BETTER},
        ),
        limits=limits,
    )
    built = everything.lists
    place = _place(everything, built, today, flag)
    candidate = Candidate(place[0], (place[1],), (today.count,), OBJECT_STORE, -1, 0, 0, 0, 0, 0)
    return Presenter(everything, built), candidate


def _place(question: Question, built: SitePools, today: Comparison, flag: str) -> tuple[int, int]:
    """Site and entry of the machines; the cheapest region where none is named."""
    found = [
        (built.sites[s].entries.usd_per_hour[e], s, e)
        for s, pools in enumerate(built.pools)
        for e, pool in enumerate(pools)
        if _is(question, pool, today)
    ]
    if not found:
        where = f" in {today.region}" if today.region else ""
        names = [name for _, name in question.catalog.instance_types]
        raise UsageError(
            f"{flag}: no {today.market.replace('_', '-')} offer of {today.instance_type}{where}"
            f" that can train this job{_hint(today.instance_type, names)}"
        )
    _, site, entry = min(found)
    return site, entry


def _is(question: Question, pool: Pool, today: Comparison) -> bool:
    region = question.catalog.offers.region[pool.rows[0]]
    return pool.spot == (today.market == "spot") and today.region in ("", region)


def _hint(word: str, names: list[str]) -> str:
    meant = nearest(word, names)
    return f"; did you mean {meant}?" if meant and meant != word else ""
