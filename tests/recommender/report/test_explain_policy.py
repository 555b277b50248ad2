"""The policy of a plan as `--explain` prints it."""

import pytest

from recommender.plan.answer import PolicyFacts
from recommender.report.explain import policy_blocks
from recommender.report.layout import drawn

H = 3600.0
FACTS = PolicyFacts(
    fallback_usd=41.0,
    rule_usd=39.0,
    full_usd=36.0,
    tick_s=240.0,
    time_left_s=(24 * H, 12 * H),
    work_left_s=(16 * H, 8 * H),
    spot_up=(("spot", "spot"), (None, "on-demand")),
    spot_away=(("wait", "wait"), (None, "on-demand")),
)


def test_costs_are_printed_above_the_grid_of_actions() -> None:
    assert (
        drawn(policy_blocks(FACTS, 80), 80)
        == """
Fallback policy
Expected cost under the availability model of the zones, at the predicted speed:
  fallback rule of the plan       41 USD
  two thresholds, the rule above  39 USD
  cost-optimal, a lower bound     36 USD

By time left and work left, in steps of 4 min: what to do while spot is up /
down (od: on-demand).
  time left, by work left
             16 h        8 h
  24 h  spot/wait  spot/wait
  12 h       late         od
"""
    )


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_it_fits_the_terminal(width: int) -> None:
    lines = drawn(policy_blocks(FACTS, width), width).splitlines()
    assert all(len(line) <= width for line in lines)


def test_a_plan_without_a_policy_says_why_and_an_answer_without_one_nothing() -> None:
    assert drawn(policy_blocks(PolicyFacts(why_not="the plan rents no spot"), 80), 80).endswith(
        "No policy was computed: the plan rents no spot.\n"
    )
    assert policy_blocks(None, 80) == []
