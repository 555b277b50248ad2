"""Names of marks lie on no other name, and none begins beside another's mark."""

from hypothesis import given
from hypothesis import strategies as st

from recommender.report.html.label_places import HEIGHT, LINE, shifts

DECADE = (1.0, 10.0)


def test_a_name_alone_stands_above_its_mark():
    assert shifts(["one GPU"], [3.0], [3.0], DECADE, DECADE) == [-12.0]


def test_of_two_marks_at_one_time_the_upper_is_named_above_and_the_lower_below():
    close = 3.0 * 10 ** (20.0 / HEIGHT)  # 20 pixels higher
    assert shifts(["lower", "upper"], [3.0, 3.0], [3.0, close], DECADE, DECADE) == [14.0, -12.0]


@given(st.integers(1, 5))
def test_names_of_marks_on_one_spot_do_not_overlap(count: int):
    found = sorted(shifts(["plan"] * count, [3.0] * count, [3.0] * count, DECADE, DECADE))
    assert all(after - before >= LINE for before, after in zip(found, found[1:], strict=False))
