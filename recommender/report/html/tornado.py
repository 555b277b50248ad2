"""How the plan that leads moves with one input, and from which point on another plan is better."""

from collections.abc import Callable, Iterator

from recommender.catalogs.frozen import dataclass
from recommender.plan.answer import Answer
from recommender.plan.report_data import BreakEven, Swing, SwingEnd
from recommender.report import cells
from recommender.report import formatting as fmt
from recommender.report.html import charts
from recommender.report.html.elements import Element, Sheet, element, figure

_COLUMNS = ("input", "from", "to", "cost USD", "time", "chance", "break-even")


@dataclass(frozen=True, slots=True)
class End:
    """One side of one bar."""

    what: str
    words: str  # from where to where, and from which point on another plan is better
    side: str  # of the input
    base: float
    end: float
    words_at_end: str
    factor: str
    cost: str
    time: str
    chance: str


def has_tornado(answer: Answer) -> bool:
    """Whether there is anything to draw."""
    return answer.report is not None and bool(answer.report.swings)


def _swings(answer: Answer) -> tuple[Swing, ...]:
    """The widest first, in the figure that is drawn."""
    found = () if answer.report is None else answer.report.swings

    def width(swing: Swing) -> float:
        return abs(_figure(answer, swing.high) - _figure(answer, swing.low))

    return tuple(sorted(found, key=width, reverse=True))


def _figure(answer: Answer, end: SwingEnd) -> float:
    """Time where that is the goal, in seconds, else cost."""
    return end.time_s if answer.goal == "time" else end.cost_usd


def parts(answer: Answer) -> list[Element]:
    """The picture under its heading, with its figures."""
    if not has_tornado(answer):
        return []
    alt = f"How the cost or the time of plan {answer.lead} moves with each input, the widest first."
    return [
        element(
            "p",
            f"How plan {answer.lead} moves if one input changes and all else stays: its machines, "
            "its checkpoints and the other plans.",
        ),
        figure("tornado", alt, _sheet(answer).element()),
    ]


def spec(answer: Answer) -> charts.Spec:
    """The picture: in cost, or in time where that is the goal."""
    unit, name = _unit(answer)
    title = f"time of plan {answer.lead}, {name}"
    if answer.goal != "time":
        title = f"cost of plan {answer.lead}, USD"
    return charts.tornado(len(_swings(answer)), title)


def _unit(answer: Answer) -> tuple[float, str]:
    return cells.time_unit(answer.plans)


def rows(answer: Answer) -> tuple[End, ...]:
    """Two sides of each bar."""
    return tuple(_ends(answer))


def _ends(answer: Answer) -> Iterator[End]:
    estimate, unit = answer.plans[answer.lead - 1].estimate, _unit(answer)[0]
    in_time = answer.goal == "time"
    base = estimate.time.p50 / unit if in_time else estimate.cost.mean
    for swing in _swings(answer):
        for side, end in ((charts.LOWER, swing.low), (charts.HIGHER, swing.high)):
            yield End(
                what=fmt.clean(swing.what),
                words=_described(swing, answer),
                side=side,
                base=base,
                end=end.time_s / unit if in_time else end.cost_usd,
                words_at_end=fmt.duration(end.time_s) if in_time else fmt.usd(end.cost_usd),
                factor=factor_words(end.factor),
                cost=f"{fmt.usd(end.cost_usd)} USD",
                time=fmt.duration(end.time_s),
                chance=fmt.share(end.chance),
            )


def _described(swing: Swing, answer: Answer) -> str:
    """How far the input moves, and where the answer would be another."""
    span = f"{factor_words(swing.low.factor)} to {factor_words(swing.high.factor)}"
    return "; ".join(filter(None, (span, break_even_words(swing.break_evens, answer))))


def factor_words(factor: float) -> str:
    """A factor as people say it: +21 %, −18 %, ×2, half."""
    if abs(factor - 0.5) < 1e-9:
        return "half"
    if factor >= 1.995:
        return f"×{fmt.number(round(factor, 1))}"
    sign = "+" if factor >= 1.0 else "−"
    return f"{sign}{fmt.percent(abs(factor - 1.0))}"


def break_even_words(evens: tuple[BreakEven, ...], answer: Answer) -> str:
    """From which point on another plan is better or the limits are missed."""
    better = "faster" if answer.goal == "time" else "cheaper"
    return "; ".join(
        f"misses the limits from {factor_words(each.factor)} on"
        if not each.plan
        else f"plan {each.plan} is {better} from {factor_words(each.factor)} on"
        for each in evens
    )


def _sheet(answer: Answer) -> Sheet:
    found = tuple(
        (
            f"{fmt.clean(swing.what)} ({swing.why})",
            factor_words(swing.low.factor),
            factor_words(swing.high.factor),
            _both(swing, lambda end: fmt.usd(end.cost_usd)),
            _both(swing, lambda end: fmt.duration(end.time_s)),
            _both(swing, lambda end: fmt.share(end.chance)),
            break_even_words(swing.break_evens, answer) or "not within a third to three times",
        )
        for swing in _swings(answer)
    )
    return Sheet(f"Plan {answer.lead} if one input changes", _COLUMNS, found,
                 frozenset({1, 2, 3, 4, 5}))  # fmt: skip


def _both(swing: Swing, written: Callable[[SwingEnd], str]) -> str:
    low, high = written(swing.low), written(swing.high)
    return low if low == high else f"{low} to {high}"
