"""Answers made by hand in which every part of an answer has something to say."""

from dataclasses import replace

from recommender.plan.answer import (
    Answer,
    Check,
    Difference,
    Faster,
    LimitWorth,
    Pick,
    ProgramFacts,
    ProgramShare,
    Trio,
)
from recommender.plan.evidence import Evidence
from recommender.plan.limits import Limits
from recommender.plan.plan import BillItem, OnDemandFacts
from recommender.report.answer_frame import PlanRequest
from tests.recommender.answers import ANSWER, AWS_A100, AWS_H100, AZURE, GCP, ON_DEMAND, QUESTION

_DEAR = BillItem("checkpoints moved between regions", 30.0)
_MOVED = replace(
    AWS_A100,
    best_share=0.36,
    move_after_s=1800.0,
    estimate=replace(
        AWS_A100.estimate, overhead=0.52, bill=(BillItem("machines, spot", 54.0), _DEAR)
    ),
)
_LED = replace(
    ON_DEMAND,
    best_share=0.05,
    evidence=Evidence("scaled", "old", None, 91.0, 0.2, 0.1, 0.0),
    on_demand=OnDemandFacts(1.0, 0.7, 0.15, 5400.0, 0.999),
    notes=("in 15 % of the runs the on-demand machines are not available within an hour",),
)
_SHOWN = (replace(GCP, best_share=0.4), _MOVED, AWS_H100, AZURE, _LED)
_CHECKS = (
    Check(1, 16_384, 8, (Difference("cost_usd", 64.0, 64.7, 0.4),)),
    Check(5, 16_384, 8, (Difference("chance", 0.995, 0.991, 0.001),)),
)
DEADLINE = replace(
    ANSWER,
    plans=_SHOWN,
    compared=replace(AWS_H100, sites=()),
    checks=_CHECKS,
    warnings=("plan 5 relies on a derived price; --quoted-only leaves such prices out",),
    trio=Trio(
        Pick("sensible", 5, _LED, ties=(3, 4)),
        Pick("cheapest", 1, _SHOWN[0]),
        Pick("safest", 5, _LED),
    ),
    proof=replace(ANSWER.proof, status="open", open_clusters=123, mixes_rated=22),
    program=ProgramFacts(
        "optimal", 41, 3, 0.9, 0.1,
        (ProgramShare("1x a3-highgpu-8g spot", True, 0.87),
         ProgramShare("1x p4d.24xlarge on-demand", False, 0.13)),
        (ProgramShare("1x a3-highgpu-8g spot", True, 1.0),), 0.0, 0.08,
        (LimitWorth("deadline", "hour", 1.25, "program"),),
    ),
)  # fmt: skip
BUDGET = replace(
    DEADLINE,
    goal="time",
    by_value=True,
    best=4,
    compared=None,
    checks=(),
    trio=Trio(
        Pick("sensible", 1, _SHOWN[0]),
        Pick("cheapest", 2, _SHOWN[1]),
        Pick("fastest", 3, _SHOWN[2], faster=Faster(4, 83.0, 252.0)),
    ),
)
CURVE = replace(BUDGET, goal="frontier", by_value=False, best=1, sensitivity=())
FULL: dict[str, tuple[Answer, PlanRequest]] = {
    "deadline": (DEADLINE, QUESTION),
    "budget": (BUDGET, replace(QUESTION, limits=Limits(budget_usd=300.0))),
    "curve": (CURVE, replace(QUESTION, limits=Limits())),
}
