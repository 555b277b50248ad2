"""Failover lists of checkpoints that are cheap and dear to move."""

from dataclasses import replace

from recommender.job.jobfile import find_job
from recommender.market.failover_lists import PATIENCE_S
from recommender.market.offer_facts import Facts, Pool, move_usd
from recommender.plan.effort import WAIT_USD
from recommender.plan.limits import Choice, Limits, Progress
from recommender.planner.problem import Problem, planning_problem
from tests.recommender.planning import NOW
from tests.shipped import snapshot


def problem(checkpoint_gb: float, **chosen: object) -> Problem:
    job = replace(find_job("llama3-70b-sft"), checkpoint_bytes=checkpoint_gb * 1e9)
    choice = replace(Choice(providers=("aws",), gpus=()), **chosen)
    return planning_problem(job, Limits(), choice, snapshot(), Progress(), NOW, 7)


def lists(asked: Problem) -> list[Pool]:
    return [p for pools in asked.single_type_sites.pools for p in pools if p.spot]


def regions(facts: Facts, pool: Pool) -> set[str]:
    return {facts.catalog.offers.region[row] for row in pool.rows}


def test_no_patience_costs_more_than_the_move() -> None:
    asked = problem(1_000.0)
    found = lists(asked)
    patient = [p for p in found if p.move_after_s]
    assert len(patient) > 10
    for pool in patient:
        worth_s = 3600.0 * move_usd(asked.facts, pool) / WAIT_USD
        assert len(regions(asked.facts, pool)) > 1
        same = [
            p.move_after_s
            for p in found
            if replace(p, move_after_s=0.0) == replace(pool, move_after_s=0.0)
        ]
        assert same == [0.0, *(each for each in PATIENCE_S if each <= worth_s)]


def test_small_checkpoints_move_at_once() -> None:
    assert not any(pool.move_after_s for pool in lists(problem(5.0)))


def test_who_stays_in_a_region_has_nothing_to_wait_for() -> None:
    asked = problem(1_000.0, failover="zone")
    assert not any(pool.move_after_s for pool in lists(asked))


def test_a_list_inside_the_cheapest_region_stands_beside_those_across_regions() -> None:
    asked = problem(1_000.0)
    facts, found = asked.facts, lists(asked)
    here = [p for p in found if len(p.rows) > 1 and len(regions(facts, p)) == 1]
    away = {(p.kind, len(p.rows)) for p in found if len(regions(facts, p)) > 1}
    assert {(p.kind, len(p.rows)) for p in here} & away
    narrower = lists(problem(1_000.0, failover="zone"))
    for pool in here:
        same = [p for p in narrower if (p.kind, len(p.rows)) == (pool.kind, len(pool.rows))]
        assert _mean_usd(facts, pool) <= min(_mean_usd(facts, p) for p in same) + 1e-9


def _mean_usd(facts: Facts, pool: Pool) -> float:
    return sum(map(facts.planning_price, pool.rows)) / len(pool.rows)
