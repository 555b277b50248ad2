"""The evidence for a plan's figures: the weakest among its machines."""

from collections.abc import Sequence

from recommender.catalogs.registry import is_marketplace
from recommender.catalogs.schema import BOOKED, InstanceType, SpotClass
from recommender.market.offer_facts import Facts, Pool
from recommender.performance.gpu_speed import precision_on
from recommender.performance.priors import prior_of
from recommender.performance.speed_spread import SpeedEvidence, evidence_for
from recommender.plan.evidence import (
    PRICE_GRADES,
    SPEED_GRADES,
    SPOT_GRADES,
    Evidence,
    PriceGrade,
    SpotGrade,
)
from recommender.planner.problem import Problem

FRESH = 0.10  # sd of ln price that its age gives it, up to which a price counts as fresh


def evidence_of(problem: Problem, pools: Sequence[Pool]) -> Evidence:
    """The evidence for a plan's machines; of each kind the weakest."""
    facts, offers = problem.facts, problem.catalog.offers
    speeds = [_speed(problem, pool) for pool in pools]
    firsts = [pool.rows[0] for pool in pools]
    laws = [(pool.type, facts.spot_class(pool.type, pool.rows)) for pool in pools if pool.spot]
    known = [(t, law) for t, law in laws if law is not None]
    return Evidence(
        speed=max((s.grade for s in speeds), key=SPEED_GRADES.index),
        price=max((_price(facts, row) for row in firsts), key=PRICE_GRADES.index),
        spot=max((_law(facts, *each) for each in known), key=SPOT_GRADES.index, default=None),
        price_age_days=max(facts.age_days(offers.as_of[row]) for row in firsts),
        speed_sd=max(s.sd for s in speeds),
        price_sd=max(facts.offer_price_sd(row) for row in firsts),
        hazard_sd=max((facts.carried_sd(*each) for each in known), default=0.0),
        begin="assumed" if any(pool.market in BOOKED for pool in pools) else "usual",
        size="unpublished" if any(p.type.kind == "fallback" for p in pools) else "published",
    )


def _speed(problem: Problem, pool: Pool) -> SpeedEvidence:
    gpu = problem.catalog.gpus[pool.type.gpu]
    precision = precision_on(problem.job.precision, gpu)
    return evidence_for(
        problem.job, prior_of(problem.job), gpu, precision, problem.catalog.achieved
    )


def _price(facts: Facts, row: int) -> PriceGrade:
    o = facts.catalog.offers
    if is_marketplace(o.provider[row]):
        return "asked"
    if o.kind[row] == "derived":
        return "derived"
    if o.flag[row] == "floor":
        return "floor"
    old = facts.drift_sd(o.provider[row], o.market[row], o.as_of[row]) > FRESH
    return "old" if old else "fresh"


def _law(facts: Facts, machine: InstanceType, law: SpotClass) -> SpotGrade:
    if facts.choice.mtbf_h is not None:
        return "stated"
    if law.basis != "transferred":
        return "measured"
    return "carried over" if facts.is_traced(machine) else "untraced"
