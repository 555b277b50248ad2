"""Candidates for an answer's first three plans besides the best by the goal."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np

from recommender.arrays import Floats, Ints
from recommender.catalogs.frozen import dataclass
from recommender.market.account_quotas import quota_use
from recommender.market.offer_facts import Pool
from recommender.market.quota_rows import quota_market
from recommender.optimize.candidate import Candidate, Cluster
from recommender.optimize.pool import ANY, EPSILON, NEXT_TO, Among
from recommender.plan.effort import evidence_error, screened_cost_usd
from recommender.plan.limits import Limit, Limits
from recommender.plan.plan import Plan
from recommender.planner.baselines import best_of_each_kind
from recommender.planner.evidence import evidence_of
from recommender.planner.plan_builder import Evaluated, is_uninterrupted, meets
from recommender.planner.plan_pool import PlanPool
from recommender.planner.ranking import (
    KIND_PLANS,
    cheapest_in_horizon,
    is_detour,
    kind_of,
    within_horizon,
)

SIMULATED = 24  # clusters that are worth most by estimates
WORTH_BUILDING = 0.3  # what costs more than the best of these by so much is no tie
MOST_BUILT = 8  # kinds of machines


@dataclass(frozen=True)
class TrioCandidates:
    """Candidates for the first three plans of one answer."""

    pool: PlanPool

    @cached_property
    def worth_most(self) -> list[Candidate]:
        """Plans that are worth most by their estimates, simulated, with those by the goal."""
        pool, limits = self.pool, self.pool.problem.limits
        if not pool.best.plans:
            return []
        clusters = _worth_most_clusters(pool, limits)
        found = pool.pool.of_clusters(limits, clusters)
        return list(dict.fromkeys([*pool.best.plans, *found]))

    @cached_property
    def references(self) -> list[Candidate]:
        """The baselines, and the first of the cheapest, of one machine and of what is on demand.

        Not the first alone: it may take twice as long for cents less.
        """
        pool, limits = self.pool, self.pool.problem.limits
        one = replace(limits, max_machines=1, objective="cost")
        found = [
            *([] if limits.goal == "cost" else [pool.select(cheapest_in_horizon(limits))]),
            pool.select(one, "one GPU"),
            pool.select(one, "uninterrupted"),
            pool.select_or_relaxed(limits, "on_demand"),
        ]
        return [
            *(plan for each in found for plan in each.plans[:KIND_PLANS]),
            *(rival.candidate for *_, rival in best_of_each_kind(pool)),
        ]

    @cached_property
    def startable(self) -> list[Evaluated]:
        """The best plans of machines that need no quota which a new account lacks."""
        pool, limits = self.pool, self.pool.problem.limits
        found: list[Candidate] = []
        for each in (limits, *([] if limits.goal == "cost" else [cheapest_in_horizon(limits)])):
            found += pool.pool.select(each, _startable(pool), NEXT_TO).plans[:KIND_PLANS]
        return within_horizon(list(pool.builder.meeting(dict.fromkeys(found))))

    def sure_without(self, limit: Limit) -> list[Evaluated]:
        """The plans without spot and guesses that are worth most if one limit were not."""
        pool, asked = self.pool, self.pool.problem.limits
        aim: Literal["cost", "time"] = "cost" if asked.goal == "cost" else "time"
        free = replace(asked.with_value(limit, None), objective=aim)
        clusters = _worth_most_clusters(pool, free, pool.among("uninterrupted"))
        found = pool.pool.of_clusters(free, clusters)
        found.sort(key=lambda each: _total_usd(pool, each))
        built = pool.builder.under(free).meeting(found[:MOST_BUILT])
        return [each for each in built if is_sure(each.plan)]

    def plans(self, shown: Sequence[Evaluated]) -> list[Evaluated]:
        """All candidates that meet the limits; those of the table as they are there."""
        pool, limits = self.pool, self.pool.problem.limits
        known = dict(pool.builder.built) | {each.candidate: each for each in shown}
        others = self.references
        by_value = limits.objective not in ("cost", "time")
        kinds = _worth_building(pool, self.worth_most) if by_value else []
        pool.builder.prepare([*others, *(alike[0] for alike in kinds)])
        for candidate in others:
            known.setdefault(candidate, pool.builder.build(candidate))
        for alike in kinds:
            known |= {each.candidate: each for each in islice(pool.builder.meeting(alike), 1)}
        meeting = [each for each in known.values() if meets(each.plan, limits)]
        meeting = [e for e in meeting if e in shown[:1] or not is_detour(e.plan)] or meeting
        # With the objective "cost" the cheapest is shown however long it takes.
        return meeting if limits.objective == "cost" else within_horizon(meeting)


def is_sure(plan: Plan) -> bool:
    """Whether nothing interrupts it and nothing of it is guessed."""
    return is_uninterrupted(plan) and not guesses_of(plan)


def guesses_of(plan: Plan) -> int:
    """How much a plan rests on that nobody measured."""
    known = plan.evidence
    return 0 if known is None else len(known.guesses) + (known.speed == "guessed")


def _startable(pool: PlanPool) -> Among:
    """The machines of which a new account can start one at least."""
    facts = pool.problem.facts

    def starts(machine: Pool) -> bool:
        quota = facts.quotas.quota(machine.type, quota_market(facts, machine))
        if facts.terms(machine.type, machine.market).new_account == 0.0:
            return False
        return quota is None or quota.default_new >= quota_use(machine.type, quota.unit)

    pools = pool.problem.single_type_sites.pools
    return Among("startable", tuple(np.array([*map(starts, site)], dtype=bool) for site in pools))


def _total_usd(pool: PlanPool, candidate: Candidate) -> float:
    """Money, a person's work and waiting, by what is known of a plan that is not built."""
    pools, machines = pool.builder.pools_of(candidate), sum(candidate.counts)
    asked = pools[0].type.provider in _asking(pool)
    gpus = sum(n * p.type.gpus for n, p in zip(candidate.counts, pools, strict=True)) * asked
    later, fall = 0, pool.sites.sites[candidate.site].fallbacks
    if candidate.fallback >= 0:
        kind = int(fall.kind[candidate.fallback])
        later = int(fall.count[candidate.fallback]) * int(pool.problem.columns.gpus[kind])
    spot = any(each.spot for each in pools)
    goal = pool.problem.limits.goal
    error = evidence_error(evidence_of(pool.problem, pools))
    return screened_cost_usd(
        candidate.cost_usd, candidate.time_s, gpus, machines, spot, goal, later, error
    )


def _asking(pool: PlanPool) -> set[str]:
    """The providers that have quotas."""
    return {quota.provider for quota in pool.problem.catalog.quotas}


def _worth_building(pool: PlanPool, found: Sequence[Candidate]) -> list[list[Candidate]]:
    """Of each kind of machines the plans worth most, if they may be a tie with the best of all."""
    total = {each: _total_usd(pool, each) for each in found}
    most = min(total.values(), default=0.0) * (1.0 + WORTH_BUILDING)
    kinds: dict[object, list[Candidate]] = {}
    for each in sorted(found, key=total.__getitem__):
        if total[each] <= most:
            kinds.setdefault(machines_of(pool, each), []).append(each)
    return [alike[:KIND_PLANS] for alike in list(kinds.values())[:MOST_BUILT]]


def machines_of(pool: PlanPool, candidate: Candidate) -> tuple[object, ...]:
    """The kind of a plan, with the names of its machines: two small ones are no large one."""
    pools = pool.builder.pools_of(candidate)
    return *kind_of(pool.builder, candidate), *(each.type.instance_type for each in pools)


def _worth_most_clusters(pool: PlanPool, limits: Limits, among: Among = ANY) -> list[Cluster]:
    """Clusters whose rated plans cost least with a person's work and waiting."""
    rows = _sure_rows(pool, limits, among)
    total = _rated_total_usd(pool, limits, rows)
    return pool.pool.clusters_of(limits, rows[np.argsort(total, kind="stable")], SIMULATED)


def _sure_rows(pool: PlanPool, limits: Limits, among: Among) -> Ints:
    """The rated plans that meet limits as surely as is asked; if none does, the surest."""
    plans = pool.pool.plans(limits)
    allowed = [among.clusters(table) for table in pool.pool.tables]
    keys = zip(plans.table.tolist(), plans.row.tolist(), strict=True)
    chance = np.where([allowed[table][row] for table, row in keys], plans.chance, -1.0)
    least = min(limits.confidence - EPSILON, chance.max(initial=0.0))
    return np.flatnonzero(chance >= max(least, 0.0))


def _rated_total_usd(pool: PlanPool, limits: Limits, rows: Ints) -> Floats:
    """What rated plans cost, all counted, if what is known of their machines errs against them."""
    plans, tables, asking = pool.pool.plans(limits), pool.pool.tables, _asking(pool)
    gpus, machines, spot, error = np.zeros((4, len(rows)))
    for number in np.flatnonzero(np.bincount(plans.table[rows])).tolist():
        mine, table = plans.table[rows] == number, tables[number]
        found, at = table.found, plans.row[rows[mine]]
        asked = table.site.provider in asking
        gpus[mine], machines[mine] = found.fleet.gpus[at] * asked, found.fleet.machines[at]
        spot[mine] = found.gang.has_spot[at]
        pools = pool.problem.single_type_sites.pools[table.index]
        known = [evidence_error(evidence_of(pool.problem, [pools[e]])) for e in table.rows.tolist()]
        error[mine] = np.where(table.plans.counts[at] > 0, known, 0.0).max(axis=1)
    columns = (plans.usd[rows], plans.time_s[rows], gpus, machines, spot, error)
    return np.array(
        [
            screened_cost_usd(usd, time_s, int(g), int(m), bool(s), limits.goal, error=e)
            for usd, time_s, g, m, s, e in zip(*(each.tolist() for each in columns), strict=True)
        ]
    )
