"""Single simulated runs as strips: a lucky, a typical and an unlucky one of each plan."""

from collections.abc import Iterator

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.plan.report_data import Doing, Timeline
from recommender.report import formatting as fmt
from recommender.report.html.elements import Element, Sheet, figure, fragment, section
from recommender.report.html.palette import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
)

COLOURS: dict[str, str] = {
    "work": BLUE,
    "start-up": SKY,
    "restart": PURPLE,
    "lost work": VERMILION,
    "waiting": GREY,
    "on-demand part": GREEN,
    "fallback": ORANGE,
    "further cycles": YELLOW,
}
_COLUMNS = ("run", "time", "cost USD", "interruptions", "checkpoints", "start-up and restarts",
            "lost work", "waiting", "on the fallback")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Strip:
    """One run as the script draws it; moments in the unit of the page, to five digits."""

    plan: int
    run: str  # "typical: 3.5 h, 22 USD"
    cycle: float | None  # from one checkpoint to the next
    segments: tuple[tuple[str, float, float], ...]
    interruptions: tuple[float, ...]


def has_timelines(answer: Answer) -> bool:
    """Whether there are runs to show."""
    return answer.report is not None and bool(answer.report.timelines)


def part(answer: Answer) -> list[Element]:
    """The picture, and the same runs in figures."""
    if answer.report is None or not answer.report.timelines:
        return []
    alt = (
        "A lucky, a typical and an unlucky simulated run of the chosen plan, as strips of work, "
        "start-ups, restarts, lost work, waiting and fallback, with their interruptions."
    )
    sheet = _sheet(answer.report.timelines)
    picture = figure("runs", alt, sheet.element())
    return [section("runs-part", "Three runs", *fragment("runs", picture=[picture]))]


def _sheet(timelines: tuple[Timeline, ...]) -> Sheet:
    rows = tuple(
        (
            f"plan {t.number}, {t.luck}",
            fmt.duration(t.time_s),
            fmt.usd(t.cost_usd),
            str(len(t.interruptions_s)),
            str(t.saves),
            _spent(t, "start-up", "restart"),
            _spent(t, "lost work"),
            _spent(t, "waiting"),
            _spent(t, "fallback"),
        )
        for t in timelines
    )
    return Sheet("Three runs of each plan", _COLUMNS, rows, frozenset(range(1, len(_COLUMNS))))


def _spent(timeline: Timeline, *doing: Doing) -> str:
    """The time spent so; what is below half a second is what rounding leaves."""
    seconds = sum(s.end_s - s.start_s for s in timeline.segments if s.doing in doing)
    return fmt.duration(seconds if seconds >= 0.5 else 0.0)


def colours(answer: Answer) -> dict[str, str]:
    """Of what the runs spend time on."""
    timelines = () if answer.report is None else answer.report.timelines
    done = {segment.doing for timeline in timelines for segment in timeline.segments}
    return {doing: colour for doing, colour in COLOURS.items() if doing in done}


def rows(answer: Answer, unit_s: float) -> tuple[Strip, ...]:
    """The runs of all plans that are shown."""
    timelines = () if answer.report is None else answer.report.timelines
    return tuple(_strips(timelines, unit_s))


def _strips(timelines: tuple[Timeline, ...], unit_s: float) -> Iterator[Strip]:
    def at(seconds: float) -> float:
        return float(f"{seconds / unit_s:.5g}")

    for t in timelines:
        yield Strip(
            plan=t.number,
            run=f"{t.luck}: {fmt.duration(t.time_s)}, {fmt.usd(t.cost_usd)} USD",
            cycle=at(t.cycle_s) if t.saves else None,
            segments=tuple((s.doing, at(s.start_s), at(s.end_s)) for s in t.segments),
            interruptions=tuple(map(at, t.interruptions_s)),
        )
