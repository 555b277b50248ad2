"""What is left out was written down before the models were improved, and is kept to."""

import pytest

from recommender.errors import RecordError
from tests.research.accuracy.splits import check, splits_of


@pytest.mark.parametrize(
    ("study", "rows"),
    [("one-known", 1075), ("one-unknown", 914), ("several-known", 204), ("other-gpu", 1120)],
)
def test_a_study_predicts_every_run_once(study, rows):
    parts = splits_of(study)
    assert sum(part.rows for part in parts) == rows
    assert len({(p.family, p.stack, p.left_out) for p in parts}) == len(parts)


def test_tables_that_changed_since_the_freeze_are_refused():
    split = splits_of("one-known")[0]
    check(split, split.rows)
    with pytest.raises(RecordError, match="frozen split"):
        check(split, split.rows + 1)


def test_a_source_is_left_out_where_two_are_large_enough_else_a_gpu():
    ways = {(p.family, p.left_out_by) for p in splits_of("one-known")}
    assert ways == {("cnn", "source"), ("encoder", "source"), ("decoder", "gpu"), ("encdec", "gpu")}
