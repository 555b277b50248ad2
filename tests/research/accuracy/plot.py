"""Draws predicted against measured speed of published runs, by source.

python -P tests/run.py tests.research.accuracy.plot --reference DIR -o docs/research/accuracy.svg
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from recommender.arrays import Z_90
from tests.research.accuracy.study import Held
from tests.research.accuracy.training import known_stack, several

# First word of a label, the name in the legend, its colour (Okabe and Ito 2008).
SOURCES = (
    ("MLPerf", "MLPerf Training v0.6-v2.1", "#0072B2"),
    ("NVIDIA", "NVIDIA DeepLearningExamples", "#009E73"),
    ("Lambda", "Lambda", "#D55E00"),
    ("TensorFlow", "TensorFlow benchmarks 2017", "#CC79A7"),
    ("", "LLM tables, MXNet and others", "#7A7A00"),
)
SIDE, LEFT, TOP, GAP = 380, 62, 56, 70
WIDTH, HEIGHT = LEFT + 2 * SIDE + GAP + 30, SIDE + TOP + 118
FONT = "font-family='Helvetica, Arial, sans-serif'"
INK, FAINT = "#1f2933", "#8a94a0"
TYPICAL_SPREAD = 0.25  # sd of ln speed behind the dashed lines; each answer prints its own


def drawing(panels: Sequence[tuple[str, Held]]) -> str:
    """One square per study, both axes logarithmic, samples/s of one GPU."""
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' "
        f"viewBox='0 0 {WIDTH} {HEIGHT}' {FONT} font-size='12' fill='{INK}'>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
    ]
    for number, (title, held) in enumerate(panels):
        parts += _panel(title, held, LEFT + number * (SIDE + GAP))
    return "\n".join([*parts, *_legend(), "</svg>\n"])


def _panel(title: str, held: Held, left: float) -> Iterator[str]:
    both = np.log10(np.concatenate([held.predicted, held.measured]))
    low, high = float(np.floor(both.min())), float(np.ceil(both.max()))

    def at(value: float) -> float:
        return SIDE * (value - low) / (high - low)

    yield f"<text x='{left}' y='{TOP - 24}' font-size='14'>{escape(title)}</text>"
    box = f"x='{left}' y='{TOP}' width='{SIDE}' height='{SIDE}'"
    yield f"<rect {box} fill='none' stroke='{FAINT}'/>"
    for power in range(int(low), int(high) + 1):
        x, y, label = left + at(power), TOP + SIDE - at(power), f"{10.0**power:g}"
        yield f"<text x='{x:.1f}' y='{TOP + SIDE + 16}' text-anchor='middle'>{label}</text>"
        yield f"<text x='{left - 6}' y='{y + 4:.1f}' text-anchor='end'>{label}</text>"
    middle, below = left + SIDE / 2, TOP + SIDE + 34
    yield f"<text x='{middle}' y='{below}' text-anchor='middle'>measured, samples/s per GPU</text>"
    if left == LEFT:
        x, y = 14, TOP + SIDE / 2
        turned = f"x='{x}' y='{y}' text-anchor='middle' transform='rotate(-90 {x} {y})'"
        yield f"<text {turned}>predicted, samples/s per GPU</text>"
    for shift, dashes in ((0.0, ""), (1.0, "4 3"), (-1.0, "4 3")):
        yield _diagonal(left, SIDE * _off(shift) / (high - low), dashes)
    for label, x, y in zip(held.labels, held.measured, held.predicted, strict=True):
        px, py = left + at(np.log10(x)), TOP + SIDE - at(np.log10(y))
        dot = f"cx='{px:.1f}' cy='{py:.1f}' fill='{_colour(label)}'"
        yield f"<circle {dot} r='2.4' fill-opacity='.55'/>"


def _off(shift: float) -> float:
    """Decades between the diagonal and an end of the span."""
    return float(shift * Z_90 * TYPICAL_SPREAD / np.log(10.0))


def _diagonal(left: float, up: float, dashes: str) -> str:
    """A line of slope one inside the square, moved up by some pixels."""
    x1, x2 = left + max(-up, 0.0), left + SIDE - max(up, 0.0)
    y1, y2 = TOP + SIDE - max(up, 0.0), TOP + max(-up, 0.0)
    dash = f" stroke-dasharray='{dashes}'" if dashes else ""
    place = f"x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'"
    return f"<line {place} stroke='{FAINT}'{dash}/>"


def _colour(label: str) -> str:
    return next(colour for start, _, colour in SOURCES if label.startswith(start))


def _legend() -> Iterator[str]:
    y = TOP + SIDE + 66
    for number, (_, name, colour) in enumerate(SOURCES):
        x = LEFT + (number % 3) * 290
        line = y + 22 * (number // 3)
        yield f"<circle cx='{x}' cy='{line - 4}' r='4' fill='{colour}'/>"
        yield f"<text x='{x + 10}' y='{line}'>{escape(name)}</text>"
    x, line = LEFT + 2 * 290, y + 22
    dash = f"x1='{x - 8}' y1='{line - 4}' x2='{x + 6}' y2='{line - 4}' stroke-dasharray='4 3'"
    yield f"<line {dash} stroke='{FAINT}'/>"
    yield f"<text x='{x + 10}' y='{line}'>5-95 % span at a spread of {TYPICAL_SPREAD:g}</text>"


def main() -> None:
    """Draw the picture of docs/research/accuracy.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    panels = (
        ("One machine, source left out", known_stack(chosen.reference)),
        ("Several machines, source left out", several(chosen.reference)),
    )
    chosen.output.write_text(drawing(panels), encoding="utf-8")


if __name__ == "__main__":
    main()
