"""Whether an answer is worse than that of a stricter question, whose plan meets its limits too.

Less quota, a shorter deadline, a smaller budget or an overhead limit leave fewer plans, and a gang
may do what an elastic job may: its plan is one of the other's. So the other's search must have met
one as good.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, permutations

from recommender.plan.limits import LIMITS, Limits
from tests.research.mixes.questions import SMALL_ACCOUNT, VCPUS, Question, limits_of
from tests.research.mixes.records import Asked

SAME = 1e-3  # goals closer than this are equally good
# Of any family, at most.
MAX_VCPUS = {"none": math.inf, "small account": max(SMALL_ACCOUNT.values()), **VCPUS}


def worse_than_stricter(done: Sequence[Asked]) -> Iterator[str]:
    """Answers worse than the plan of a stricter question, in words."""
    by_preset = sorted(done, key=lambda asked: asked.question.preset)
    for _, same in groupby(by_preset, key=lambda asked: asked.question.preset):
        yield from _worse(list(same))


def _worse(done: Iterable[Asked]) -> Iterator[str]:
    for asked, stricter in permutations(done, 2):
        if stricter.first is None or not _stricter(stricter.question, asked.question):
            continue
        words = f"{stricter.question.key}: {stricter.first.words}, {stricter.first.goal:.6g}"
        if asked.first is None:
            yield f"{asked.question.key}: no plan; {words}"
        elif asked.best > stricter.first.goal * (1.0 + SAME):
            more = asked.best / stricter.first.goal - 1.0
            yield f"{asked.question.key}: +{more:.2%}, {asked.first.words}; {words}"


def _stricter(one: Question, other: Question) -> bool:
    """Whether every plan of one question is a plan of the other, and both have one goal."""
    elastic_only = one.runs_as != "gang" and other.runs_as == "gang"
    less_quota = one.quotas == other.quotas or MAX_VCPUS[one.quotas] <= VCPUS.get(
        other.quotas, math.inf if other.quotas == "none" else 0.0
    )
    return less_quota and not elastic_only and _tighter(limits_of(one), limits_of(other))


def _tighter(one: Limits, other: Limits) -> bool:
    """Whether limits of one goal allow no more than others."""
    both = [(one.value(limit), other.value(limit)) for limit in LIMITS]
    return one.goal == other.goal and all(
        theirs is None or (mine is not None and mine <= theirs) for mine, theirs in both
    )
