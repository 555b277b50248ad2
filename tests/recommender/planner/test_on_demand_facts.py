"""What a plan says of on-demand machines that may not be there, and what they do to its chance."""

from functools import cache
from itertools import pairwise

import pytest

from recommender.inputs.units import parse_comparison
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits, Progress
from recommender.plan.plan import Plan
from recommender.planner.assumptions import assumptions_of
from recommender.planner.current_setup import current_setup
from recommender.planner.problem import Problem, planning_problem
from tests.recommender import planning
from tests.shipped import snapshot

HOUR = 3600.0
FORTY_H200 = "5x p5en.48xlarge on-demand us-east-1"


def asked(deadline_s: float | None, at_once: float | None) -> Problem:
    limits, choice = Limits(deadline_s=deadline_s), Choice(on_demand_obtainable=at_once)
    catalog, job = snapshot(), find_job("gpt2-medium")
    return planning_problem(job, limits, choice, catalog, Progress(), planning.NOW, 7)


@cache
def rented(machines: str, spare_h: float, at_once: float | None) -> Plan:
    """Machines rented from the start, with so many hours to spare were they there at once."""
    sure = current_setup(asked(None, 1.0), parse_comparison(machines)).plan
    due_s = sure.estimate.time.p95 + spare_h * HOUR
    return current_setup(asked(due_s, at_once), parse_comparison(machines)).plan


def test_forty_h200_on_demand_within_the_hour_are_nothing_to_be_sure_of() -> None:
    """They used to be there after an hour at most: a chance of more than 95 %."""
    plan = rented(FORTY_H200, 1.0, None)
    assert plan.on_demand is not None
    assert plan.on_demand.needed == 1.0
    assert plan.on_demand.late > 0.3
    assert plan.estimate.chance < 0.75
    assert plan.on_demand.chance_if_at_once > 0.95
    (note,) = (note for note in plan.notes if "not available within an hour" in note)
    assert note.startswith("in ")  # all runs need them: that is not said
    assert "100 % of the runs;" not in note


def test_the_chance_follows_what_is_assumed_of_on_demand_machines() -> None:
    shares = (0.05, 0.3, 0.7, 0.95, 1.0)
    chances = [rented(FORTY_H200, 1.0, share).estimate.chance for share in shares]
    assert all(less < more for less, more in pairwise(chances))
    assert chances[0] < 0.5
    assert chances[-1] > 0.95


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        (FORTY_H200, "1x p5en.48xlarge on-demand us-east-1"),
        ("1x p5.48xlarge on-demand ap-south-1", "1x p5.4xlarge on-demand ap-south-1"),
        ("1x p5.48xlarge on-demand us-east-1", "1x p4d.24xlarge on-demand us-east-1"),
        ("1x p4de.24xlarge on-demand us-east-1", "4x g6e.xlarge on-demand us-east-1"),
    ],
)
def test_more_gpus_and_scarcer_ones_are_there_less_often(larger: str, smaller: str) -> None:
    more, less = (rented(machines, 2.0, None).on_demand for machines in (larger, smaller))
    assert more is not None
    assert less is not None
    assert more.at_once < less.at_once
    assert more.late > less.late


def test_what_is_taken_for_granted_is_reported_with_its_share() -> None:
    said = " ".join(assumptions_of(asked(None, None), ()))
    assert "70 % H100 and newer" in said
    assert "5 % (--assume-on-demand)" in " ".join(assumptions_of(asked(None, 0.05), ()))
