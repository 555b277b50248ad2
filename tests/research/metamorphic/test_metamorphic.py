"""Each relation on a small question, and that a comparison can fail."""

from dataclasses import replace
from random import Random

import pytest

from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits
from tests.research.metamorphic.compare import NAMES, TOP, compared, relation_of, shorter_table
from tests.research.metamorphic.questions import Asking, random_question
from tests.research.metamorphic.relations import RELATIONS, Pair
from tests.shipped import snapshot

LIMITS = Limits(deadline_s=6 * 3600.0, max_machines=2)


@pytest.fixture(scope="module")
def asked() -> Asking:
    job = find_job("resnet18-cifar10")
    return Asking(job, LIMITS, Choice(providers=("gcp",)), snapshot())


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_relation_is_violated(relation: str, asked: Asking) -> None:
    pairs = RELATIONS[relation](asked, Random(relation))
    rows = [compared(0, relation, pair) for pair in pairs]
    assert rows
    assert {row.verdict for row in rows} <= {"holds", "derived"}, rows
    assert any(row.verdict == "holds" for row in rows), rows


def test_a_shorter_table_holds_plans_of_a_longer_one_and_the_same_first(asked: Asking) -> None:
    assert shorter_table(0, asked, 2, 5).verdict == "holds"


def test_a_question_that_is_narrower_but_reported_as_the_wide_one_violates(asked: Asking) -> None:
    dear = replace(asked, choice=replace(asked.choice, market="on_demand"))
    row = compared(0, "restrict", Pair("the wrong way round", dear, asked))
    assert row.verdict == ("violated" if dear.proven else "open")
    assert row.worse > 0.1
    assert compared(0, "permute", Pair("unequal", asked, dear, equal=True)).verdict == "violated"


def test_no_plan_violates_only_where_there_is_reported_to_be_none(asked: Asking) -> None:
    none = replace(asked, limits=replace(LIMITS, deadline_s=60.0))
    assert compared(0, "relax", Pair("none", none, asked)).verdict == (
        "violated" if none.proven else "open"
    )
    assert compared(0, "relax", Pair("no plan either way", none, none)).verdict == "moot"


def test_the_same_number_gives_the_same_question(asked: Asking) -> None:
    drawn = [random_question(Random("1 7"), asked.catalog).words for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert {relation_of(number) for number in range(len(NAMES))} == {*RELATIONS, TOP}
