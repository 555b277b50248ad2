"""Two files of rows, before and after a change: by class, and where the answers are worse."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import sqrt
from pathlib import Path

from tests.research.contract.ask import COLUMNS, Row, file_beside
from tests.research.contract.questions import KINDS, questions

SAME, SLIGHT, MUCH = 1e-4, 1e-3, 1e-2  # shares of the goal
LISTED = 10
INFINITE = float("inf")
GOALS = {"cost": ("usd",), "time": ("hours",), "frontier": ("usd", "hours")}
NEAREST = {"--deadline": ("hours_p95",), "--budget": ("usd_p95",)}
RANKS = {"plan": 0, "none": 1, "refusal": 1, "error": 2}
HEAD = ("class", "questions", "equal", "better", "within 0.1 %", "worse 0.1-1 %", "worse > 1 %",
        "short of chance", "most worse", "same plan", "CPU s before", "after")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pair:
    """A question's rows before and after, and processor seconds."""

    before: Row
    after: Row
    cpu_before: float
    cpu_after: float

    @property
    def short(self) -> bool:
        """Whether the plan keeps its limits more seldom than asked, and did not before."""
        return _short(self.after) and not _short(self.before)

    @property
    def worse(self) -> float:
        """By which share the goal is worse: of a plan, or of the nearest limits of none."""
        ranks = RANKS[self.before.answer] - RANKS[self.after.answer]
        if ranks or self.short:
            return INFINITE if ranks < 0 or self.short else -INFINITE
        names = self._figures
        pairs = [(getattr(self.before, name), getattr(self.after, name)) for name in names]
        return max((_more(*pair) for pair in pairs), default=0.0)

    @property
    def _figures(self) -> tuple[str, ...]:
        """What is compared: the goal, or the first limit that is too tight."""
        if self.before.answer == "plan":
            return GOALS[self.before.goal]
        flags = {row.nearest.partition(" ")[0] for row in (self.before, self.after)}
        return NEAREST.get(flags.pop(), ()) if len(flags) == 1 else ()


def _short(row: Row) -> bool:
    """By more than 16,384 paths can tell, the most that a chance is followed on."""
    if row.answer != "plan":
        return False
    asked = float(row.asked)
    return float(row.chance) < asked - sqrt(asked * (1.0 - asked) / 16_384)


def _more(before: str, after: str) -> float:
    if not before or not after:
        return 0.0 if before == after else INFINITE if before else -INFINITE
    return float(after) / float(before) - 1.0


def read(path: Path) -> dict[str, Row]:
    """The rows of a file by the words of their questions; none where there is no file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["words"]: Row(*(row[name] for name in COLUMNS)) for row in csv.DictReader(file)}


def seconds(path: Path) -> dict[str, float]:
    """Processor seconds by the words of questions."""
    beside = file_beside(path)
    if not beside.exists():
        return {}
    with beside.open(encoding="utf-8", newline="") as file:
        return {row["words"]: float(row["cpu_s"]) for row in csv.DictReader(file)}


def pairs_of(before: Path, after: Path) -> list[Pair]:
    """The questions that both files answer."""
    rows, cpu = (read(before), read(after)), (seconds(before), seconds(after))
    return [
        Pair(row, rows[1][words], cpu[0].get(words, 0.0), cpu[1].get(words, 0.0))
        for words, row in rows[0].items()
        if words in rows[1]
    ]


def report(before: Path, after: Path) -> Iterator[str]:
    """The table by class, the worst, and the relations that do not hold."""
    pairs = pairs_of(before, after)
    yield from ("| " + " | ".join(HEAD) + " |", "| :-- |" + " --: |" * (len(HEAD) - 1))
    for kind in (*KINDS, "all"):
        some = [pair for pair in pairs if kind in (pair.before.kind, "all")]
        if some:
            yield _line(kind, some)
    yield from chain(("",), _worst(pairs))
    for name, path in (("before", before), ("after", after)):
        yield from chain(("", f"narrower questions with better plans, {name}:"), broken(read(path)))


def _line(kind: str, pairs: list[Pair]) -> str:
    worse = [pair.worse for pair in pairs]
    counts = (
        sum(abs(w) <= SAME for w in worse),
        sum(w < -SLIGHT for w in worse),
        sum(SAME < abs(w) <= SLIGHT for w in worse),
        sum(SLIGHT < w <= MUCH for w in worse),
        sum(w > MUCH for w in worse),
        sum(pair.short for pair in pairs),
    )
    cells = [kind, f"{len(pairs)}", f"{counts[0] / len(pairs):.1%}", *map(str, counts[1:])]
    cells += [f"{max(worse):+.2%}", f"{sum(_alike(p) for p in pairs) / len(pairs):.1%}"]
    cells += [f"{sum(p.cpu_before for p in pairs):.0f}", f"{sum(p.cpu_after for p in pairs):.0f}"]
    return "| " + " | ".join(cells) + " |"


def _alike(pair: Pair) -> bool:
    before, after = pair.before, pair.after
    return (before.machines, before.nearest) == (after.machines, after.nearest)


def _worst(pairs: list[Pair]) -> Iterator[str]:
    for pair in sorted(pairs, key=lambda pair: -pair.worse)[:LISTED]:
        if pair.worse > SAME:
            yield f"{pair.worse:+.2%} {pair.before.words}"
            yield from (f"    {_words(row)}" for row in (pair.before, pair.after))


def _words(row: Row) -> str:
    return f"{row.answer} {row.usd} USD, {row.hours} h, {row.chance}: {row.machines or row.nearest}"


def broken(rows: Mapping[str, Row]) -> Iterator[str]:
    """Questions whose plan is better than that of a question that allows all theirs and more."""
    asked = questions()
    nested = chain(
        ((each.words, each.wider) for each in asked),
        ((each.narrower, each.words) for each in asked),
    )
    for words in nested:
        narrow, wide = map(rows.get, words)
        if narrow is None or wide is None or narrow.answer != "plan" or narrow.goal != wide.goal:
            continue
        worse = Pair(narrow, wide, 0.0, 0.0).worse
        if worse > SLIGHT and not _short(narrow):
            yield f"{worse:+.2%} {wide.words}"
            yield from (f"    {row.words}: {_words(row)}" for row in (narrow, wide))
