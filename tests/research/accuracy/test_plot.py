"""The picture of docs/research/accuracy.md: a dot per run, perfect ones on the diagonal."""

import re
import xml.etree.ElementTree as ET

import numpy as np

from tests.research.accuracy.plot import LEFT, SIDE, TOP, drawing
from tests.research.accuracy.study import Held

SVG = "{http://www.w3.org/2000/svg}"
HELD = Held(
    labels=("MLPerf v1.0", "Lambda v2", "torchtitan"),
    predicted=np.array([10.0, 200.0, 3.0]),
    measured=np.array([10.0, 100.0, 4.0]),
)


def dots(text: str) -> list[tuple[float, float, str]]:
    circles = ET.fromstring(text).iter(f"{SVG}circle")
    return [
        (float(c.get("cx", "0")), float(c.get("cy", "0")), str(c.get("fill")))
        for c in circles
        if c.get("fill-opacity")
    ]


def test_every_run_is_a_dot_inside_its_square() -> None:
    found = dots(drawing([("one", HELD)]))
    assert len(found) == 3
    assert len({colour for *_, colour in found}) == 3
    assert all(LEFT <= x <= LEFT + SIDE and TOP <= y <= TOP + SIDE for x, y, _ in found)


def test_a_right_prediction_lies_on_the_diagonal_and_a_high_one_above_it() -> None:
    (x1, y1, _), (x2, y2, _), _ = dots(drawing([("one", HELD)]))
    assert abs((x1 - LEFT) - (TOP + SIDE - y1)) < 0.11
    assert TOP + SIDE - y2 > x2 - LEFT


def test_two_studies_are_drawn_side_by_side_and_the_bytes_repeat() -> None:
    text = drawing([("one", HELD), ("two", HELD)])
    assert text == drawing([("one", HELD), ("two", HELD)])
    assert len(dots(text)) == 6
    assert re.findall(r">(one|two)<", text) == ["one", "two"]
