"""Colours of the page: eight that any colour vision can distinguish, on light and dark."""

from recommender.catalogs.frozen import dataclass

# Okabe and Ito, Color Universal Design, 2008; yellow is too faint on white for lines.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY, YELLOW = "#E69F00", "#56B4E9", "#8A929B", "#F0E442"
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)  # of curves, in their order


@dataclass(frozen=True, slots=True)
class Theme:
    """What pictures are drawn with on one background."""

    name: str
    ink: str
    faint: str
    grid: str
    paper: str
    chance: tuple[str, str]  # of plans that never meet the limits, and that always do
    limit: str


LIGHT = Theme("light", "#1b2430", "#556170", "#e3e7ec", "#ffffff", ("#8494A4", BLUE), "#B04A00")
DARK = Theme("dark", "#e8edf2", "#a4afbb", "#2c3743", "#131a22", ("#66788A", "#6CC4F5"), "#F2894A")
THEMES = (LIGHT, DARK)
