"""The sweep by class, as Markdown: what mixes save, and what changed since an earlier version."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.research.mixes.nested import SAME, worse_than_stricter
from tests.research.mixes.questions import LIMITS, OVERHEAD_LIMITS, QUOTAS
from tests.research.mixes.records import Asked, Judged, PlanRecord

SURE = 0.95  # the chance that every question asks for
Key = tuple[str, str, str]  # limits, quotas, how the job runs


def tables(done: Sequence[Asked], before: Sequence[Asked]) -> str:
    """Everything, one section after the other."""
    earlier = {asked.question.key: asked for asked in before}
    parts = [
        _section("Mixes", MIXES, _classes(done)),
        _section("Judged again", AGAIN, _classes(done)),
        _section("Proven", PROVEN, _classes(done)),
        _section("Against the earlier version", AGAINST, _classes(done, earlier) if before else ()),
        _section("Under an overhead limit", OVERHEAD, _classes(_limited(done))),
        _listed("Mixes", [_mix_line(a) for a in done if a.first and a.first.mixes]),
        _listed("Worse than the plan of a stricter question", list(worse_than_stricter(done))),
        _listed("Worse than the earlier version", list(_worse_lines(done))),
        _listed("Refusals where a narrower search finds a plan", list(_false_lines(done))),
        _listed("Beaten", [f"{a.question.key}: {a.beaten}" for a in done if a.beaten]),
        _listed(
            "Programs on which solvers differ",
            [f"{a.question.key}: {a.solvers}" for a in done if a.solvers],
        ),
        _listed("Failed", [f"{a.question.key}: {a.failed}" for a in done if a.failed]),
    ]
    return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and what the earlier version answered."""

    now: Asked
    before: Asked | None


Column = tuple[str, Callable[[Sequence[Pair]], str]]
_Classes = Sequence[tuple[str, Sequence[Pair]]]


def _classes(done: Sequence[Asked], earlier: dict[str, Asked] | None = None) -> _Classes:
    """Questions by limits and by quotas, for each way to run, and all of them."""
    pairs = [Pair(asked, (earlier or {}).get(_asked_before(asked))) for asked in done]
    found: list[tuple[str, Sequence[Pair]]] = []
    for runs_as in dict.fromkeys(asked.question.runs_as for asked in done):
        mine = [pair for pair in pairs if pair.now.question.runs_as == runs_as]
        for limits in (*LIMITS, *OVERHEAD_LIMITS):
            for quotas in QUOTAS:
                q = [p for p in mine if _class_of(p) == (limits, quotas)]
                found.append((f"{runs_as}, {limits}, {quotas}", q))
        found.append((f"**{runs_as}, all**", mine))
    return [(words, each) for words, each in found if each]


def _limited(done: Sequence[Asked]) -> Sequence[Asked]:
    return [asked for asked in done if asked.question.limits in OVERHEAD_LIMITS]


def _asked_before(asked: Asked) -> str:
    """The earlier version knew one way to run."""
    q = asked.question
    return f"{q.preset} | {q.limits} | {q.quotas} | default"


def _class_of(pair: Pair) -> tuple[str, str]:
    return pair.now.question.limits, pair.now.question.quotas


def _section(title: str, columns: Sequence[Column], classes: _Classes) -> str:
    if not classes:
        return ""
    head = ["class", *(name for name, _ in columns)]
    rows = [[words, *(of(pairs) for _, of in columns)] for words, pairs in classes]
    lines = [head, ["---"] * len(head), *rows]
    return f"### {title}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _listed(title: str, lines: Sequence[str]) -> str:
    return f"### {title}\n\n" + "\n".join(f"* {line}" for line in lines) if lines else ""


# Figures of one question


def _goal_of(judged: Judged, asked: Asked) -> float:
    """The goal: time under a budget, cost under a deadline."""
    return judged.time_s if "cheapest" in asked.question.limits else judged.cost_usd


def _goal(judged: Sequence[Judged], asked: Asked) -> float | None:
    """The goal in fresh runs."""
    return _goal_of(judged[0], asked) if judged else None


def _saved(asked: Asked) -> float | None:
    """Share that the first plan saves against the best unmixed one, in fresh runs."""
    mine, other = _goal(asked.judged, asked), _goal(asked.judged_unmixed, asked)
    return None if mine is None or other is None else 1.0 - mine / other


def _change(asked: Asked) -> float | None:
    """By what share today's plan is worse than the earlier one that still meets the limits."""
    if asked.first is None or asked.before is None or asked.before.chance < SURE:
        return None
    return asked.first.goal / asked.before.goal - 1.0


def _planned(asked: Asked | None) -> bool:
    return asked is not None and asked.first is not None


def _proven(asked: Asked | None) -> bool:
    return asked is not None and asked.status == "ok" and asked.gap == 0.0


# Columns


def _count(of: Callable[[Pair], object]) -> Callable[[Sequence[Pair]], str]:
    return lambda pairs: str(sum(bool(of(pair)) for pair in pairs))


def _share(of: Callable[[Pair], object]) -> Callable[[Sequence[Pair]], str]:
    return lambda pairs: f"{100 * sum(bool(of(p)) for p in pairs) / len(pairs):.0f}%"


def _middle_and_most(
    of: Callable[[Pair], float | None], unit: str = "%"
) -> Callable[[Sequence[Pair]], str]:
    def text(pairs: Sequence[Pair]) -> str:
        values = [value for value in map(of, pairs) if value is not None]
        if not values:
            return ""
        scale = 100.0 if unit == "%" else 1.0
        return f"{scale * median(values):.1f}, {scale * max(values):.1f}{unit}"

    return text


def _plan(of: Callable[[PlanRecord], object]) -> Callable[[Pair], object]:
    return lambda pair: pair.now.first is not None and of(pair.now.first)


def _saved_by_mix(pair: Pair) -> float | None:
    first = pair.now.first
    return _saved(pair.now) if first is not None and first.mixes else None


MIXES: tuple[Column, ...] = (
    ("asked", lambda pairs: str(len(pairs))),
    ("plans", _count(lambda p: p.now.first)),
    ("mix markets", _count(_plan(lambda plan: plan.mixes_markets))),
    ("mix types", _count(_plan(lambda plan: plan.mixes_types))),
    ("spot, then on demand", _count(_plan(lambda plan: plan.fallback))),
    ("a mix saves: median, most", _middle_and_most(_saved_by_mix)),
    ("mix only", _count(lambda p: p.now.first and p.now.first.mixes and not p.now.unmixed)),
    (
        "worse than unmixed",
        _count(lambda p: (saved := _saved(p.now)) is not None and saved < -SAME),
    ),
)


def _short(runs: Iterable[Judged]) -> float:
    """By how much the chance in fresh runs is below what was asked; 0 where it is kept."""
    return max((SURE - j.chance for j in runs if j.on == "fresh"), default=0.0)


def _by_recording(pair: Pair) -> float | None:
    """Saved by a mix on recorded zones, the mean over campaigns."""
    asked = pair.now
    if asked.first is None or not asked.first.mixes:
        return None
    others = {j.on: j for j in asked.judged_unmixed if j.on != "fresh"}
    mine = [(j, others[j.on]) for j in asked.judged if j.on in others]
    saved = [1.0 - _goal_of(a, asked) / _goal_of(b, asked) for a, b in mine]
    return sum(saved) / len(saved) if saved else None


AGAIN: tuple[Column, ...] = (
    ("plans", _count(lambda p: p.now.judged)),
    ("short of 95% by > 0.5", _count(lambda p: _short(p.now.judged) > 0.005)),
    ("by > 1", _count(lambda p: _short(p.now.judged) > 0.01)),
    ("recorded: saved by mixes, median, most", _middle_and_most(_by_recording)),
)
PROVEN: tuple[Column, ...] = (
    ("plans", _count(lambda p: p.now.first)),
    ("proven", _count(lambda p: _proven(p.now))),
    ("of one type", _count(lambda p: p.now.first and p.now.one_type_gap == 0.0)),
    ("gap: median, most", _middle_and_most(lambda p: p.now.gap if p.now.first else None)),
    ("no plan", _count(lambda p: not p.now.first)),
    ("proven", _count(lambda p: p.now.status == "infeasible")),
    ("false", _count(lambda p: p.now.refusal)),
    ("s: median, most", _middle_and_most(lambda p: p.now.seconds, " s")),
)
AGAINST: tuple[Column, ...] = (
    ("asked", _count(lambda p: p.before)),
    ("comparable", _count(lambda p: _change(p.now) is not None)),
    ("worse by > 0.1%", _count(lambda p: (_change(p.now) or 0.0) > SAME)),
    ("better by > 0.1%", _count(lambda p: (_change(p.now) or 0.0) < -SAME)),
    ("proven", _share(lambda p: _proven(p.now))),
    ("before", _share(lambda p: _proven(p.before))),
    (
        "gap before: median, most",
        _middle_and_most(lambda p: p.before.gap if _planned(p.before) else None),
    ),
    ("no plan", _count(lambda p: not p.now.first)),
    ("before", _count(lambda p: p.before and not p.before.first)),
    (
        "s before: median, most",
        _middle_and_most(lambda p: p.before.seconds if p.before else None, " s"),
    ),
)
OVERHEAD: tuple[Column, ...] = (
    ("asked", lambda pairs: str(len(pairs))),
    ("plans", _count(lambda p: p.now.first)),
    ("beaten in cost and time", _count(lambda p: p.now.beaten)),
)


# Lists


def _mix_line(asked: Asked) -> str:
    assert asked.first is not None
    saved = _saved(asked)
    other = asked.unmixed.words if asked.unmixed else "no plan"
    gain = "" if saved is None else f", {100 * saved:.1f}% better"
    return f"{asked.question.key}: {asked.first.words}; unmixed {other}{gain}"


def _worse_lines(done: Iterable[Asked]) -> Iterable[str]:
    for asked in done:
        change = _change(asked)
        if change is not None and change > SAME and asked.first and asked.before:
            words = f"{asked.first.words}, before {asked.before.words}"
            yield f"{asked.question.key}: +{100 * change:.2f}%: {words}"


def _false_lines(done: Iterable[Asked]) -> Iterable[str]:
    return (f"{a.question.key}: {a.refusal}" for a in done if a.refusal)
