"""Names of marks lie on no other name, none begins near another's mark, and none is cut off."""

import math

from hypothesis import given
from hypothesis import strategies as st

from recommender.report.html.label_places import AWAY, HEIGHT, LETTER, LINE, WIDTH, Place, places

DECADE = (1.0, 10.0)
ABOVE, BELOW = Place(-12.0, left=False), Place(14.0, left=False)
INSIDE = st.floats(1.01, 9.9)


def test_a_single_name_is_placed_above_its_mark():
    assert places(["one GPU"], [(3.0, 3.0)], [], DECADE, DECADE) == [ABOVE]


def test_of_two_marks_at_one_time_the_upper_is_named_above_and_the_lower_below():
    close = 3.0 * 10 ** (20.0 / HEIGHT)  # 20 pixels higher
    marks = [(3.0, 3.0), (3.0, close)]
    assert places(["lower", "upper"], marks, [], DECADE, DECADE) == [BELOW, ABOVE]


def test_a_name_leaves_other_marks_uncovered():
    on_the_right = 3.0 * 10 ** ((AWAY + 20.0) / WIDTH)
    above = 3.0 * 10 ** (12.0 / HEIGHT)
    (found,) = places(["one GPU"], [(3.0, 3.0)], [(on_the_right, above)], DECADE, DECADE)
    assert found == Place(-12.0, left=True)


@given(st.integers(1, 6))
def test_names_of_marks_on_one_spot_do_not_overlap(count: int):
    found = places(["plan"] * count, [(3.0, 3.0)] * count, [], DECADE, DECADE)
    for left in (False, True):
        side = sorted(place.dy for place in found if place.left is left)
        assert all(after - before >= LINE for before, after in zip(side, side[1:], strict=False))


@given(INSIDE, INSIDE, st.integers(1, 40))
def test_a_name_ends_inside_of_the_axes(x: float, y: float, letters: int):
    (place,) = places(["x" * letters], [(x, y)], [], DECADE, DECADE)
    at, long = WIDTH * math.log10(x), AWAY + LETTER * letters
    assert at - long >= 0 if place.left else at + long <= WIDTH
    assert LINE / 2 <= HEIGHT * (1 - math.log10(y)) + place.dy <= HEIGHT - LINE / 2
