"""The project's own CSV format of traces: `recommend.trace/v1`, change points of any series.

One row per change. Columns (docs/traces.md):

    series   name of the series; empty where the file holds one
    t_s      seconds since the series' start, ascending
    event    machines | price | add | remove | stop | end
    value    machines up, or USD per hour of one machine, from then on
    node     name of the machine that was added, removed (taken by the provider) or stopped

and, on the first row of a series, what is known of it: provider, region, zone, instance_type,
gpu, gpus, capacity, kind (probe, hold), start (with its time zone), step_s, source. The last
row of every series is its end: until then it was watched.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Literal, cast

import numpy as np

from recommender.catalogs.files import gzipped, replace_file
from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError, refuse_all, refuse_many
from recommender.inputs.csv_text import CsvRow, parse_csv
from recommender.inputs.files import writing
from recommender.inputs.units import PROVIDERS, format_instant, parse_instant
from recommender.text import shown, shown_path, unknown
from recommender.traces.trace import (
    ADDED,
    GIVEN_BACK,
    TAKEN,
    Kind,
    Place,
    Trace,
    changes,
    counted,
    named_events,
)

REQUIRED = ("t_s", "event")
OF_SERIES = (
    "provider", "region", "zone", "instance_type", "gpu", "gpus", "capacity", "kind", "start",
    "step_s", "source",
)  # fmt: skip
OPTIONAL = ("series", "value", "node", *OF_SERIES)
COLUMNS = ("series", "t_s", "event", "value", "node", *OF_SERIES)
NODE_EVENTS = {"add": ADDED, "remove": TAKEN, "stop": GIVEN_BACK}
EVENTS = ("machines", "price", *NODE_EVENTS, "end")
KINDS = ("probe", "hold")
MAX_ROWS = 2_000_000
MAX_MACHINES = 100_000
MAX_SERIES = 10_000


@dataclass(slots=True)
class _Draft:
    """A series while its rows are read."""

    place: str
    known: dict[str, str] = field(default_factory=dict)
    machines: list[tuple[float, int]] = field(default_factory=list)
    prices: list[tuple[float, float]] = field(default_factory=list)
    nodes: list[tuple[float, int, str]] = field(default_factory=list)
    up: set[str] = field(default_factory=set)
    last_s: float = 0.0
    end_s: float | None = None


def parse(text: str, name: str) -> tuple[Trace, ...]:
    """Read the text of a trace file; raise `UsageError` with every mistake found."""
    rows = parse_csv(text, name, REQUIRED, OPTIONAL, {}, MAX_ROWS)
    drafts: dict[str, _Draft] = {}
    problems: list[str] = []
    for row in rows:
        key = row.cells.get("series", "")
        if key not in drafts and len(drafts) == MAX_SERIES:
            raise UsageError(f"{name}: more than {MAX_SERIES:,} series; is it the right file?")
        draft = drafts.setdefault(key, _Draft(row.place))
        problems += _take(draft, row)
        refuse_many(problems)
    made: list[Trace] = []
    for key, draft in drafts.items():
        try:
            made.append(_trace(key or name.partition(".")[0], draft))
        except UsageError as error:
            problems += error.problems
            refuse_many(problems)
    refuse_all(problems)
    return tuple(made)


def _take(draft: _Draft, row: CsvRow) -> list[str]:
    """Add one row to its series; what is wrong with it."""
    cells = row.cells
    problems = [
        f"{row.where(c)} '{shown(cells[c])}' contradicts '{shown(draft.known[c])}' before"
        for c in OF_SERIES
        if c in cells and draft.known.setdefault(c, cells[c]) != cells[c]
    ]
    t_s = _number(cells.get("t_s", ""))
    event = cells.get("event", "")
    if event not in EVENTS:
        problems.append(f"{row.where('event')} {unknown('event', event, EVENTS)}")
    if t_s is None or t_s < 0:
        message = shown(cells.get("t_s", ""))
        return [*problems, f"{row.where('t_s')} '{message}' is not a number of seconds from 0 on"]
    if t_s < draft.last_s:
        problems.append(f"{row.where('t_s')} {t_s:g} is before {draft.last_s:g}; rows must ascend")
    if draft.end_s is not None:
        problems.append(f"{row.place}: comes after the end of its series; end is the last row")
    draft.last_s = max(draft.last_s, t_s)
    return problems + _event(draft, row, event, t_s)


def _event(draft: _Draft, row: CsvRow, event: str, t_s: float) -> list[str]:
    if event == "end":
        draft.end_s = t_s
    elif event in ("machines", "price"):
        return _level(draft, row, event, t_s)
    elif event in NODE_EVENTS:
        return _node(draft, row, event, t_s)
    return []


def _level(draft: _Draft, row: CsvRow, event: str, t_s: float) -> list[str]:
    word = row.cells.get("value", "")
    value = _number(word)
    if event == "price":
        if value is None or value <= 0:
            return [f"{row.where('value')} '{shown(word)}' is not a price in USD per hour"]
        draft.prices.append((t_s, value))
        return []
    if value is None or value != int(value) or not 0 <= value <= MAX_MACHINES:
        return [f"{row.where('value')} '{shown(word)}' is not a number of machines"]
    draft.machines.append((t_s, int(value)))
    return []


def _node(draft: _Draft, row: CsvRow, event: str, t_s: float) -> list[str]:
    node = row.cells.get("node", "")
    if not node:
        return [f"{row.where('node')} is empty; name the machine"]
    if (event == "add") == (node in draft.up):
        state = "is up already" if event == "add" else "is not up"
        return [f"{row.where('node')} '{shown(node)}' {state}"]
    if event == "add":
        draft.up.add(node)
    else:
        draft.up.remove(node)
    draft.nodes.append((t_s, NODE_EVENTS[event], node))
    return []


def _trace(name: str, draft: _Draft) -> Trace:
    series, problems = f"series '{shown(name)}' (from {draft.place} on)", []
    if draft.end_s is None:
        problems.append(f"{series}: has no end; close it with a row of event end")
    elif draft.end_s <= 0:
        problems.append(f"{series}: ends at 0 s; nothing was watched")
    if draft.machines and draft.nodes:
        problems.append(f"{series}: has both machines and named nodes; keep one of them")
    if not (draft.machines or draft.nodes or draft.prices):
        problems.append(f"{series}: has an end and nothing before it")
    if draft.machines and draft.machines[0][0] > 0:
        problems.append(f"{series}: machines are known from {draft.machines[0][0]:g} s only, not 0")
    t_s = np.array([t for t, _ in draft.machines], dtype=np.float64)
    machines = np.array([n for _, n in draft.machines], dtype=np.int64)
    events = named_events(draft.nodes)
    if draft.nodes:
        t_s, machines = counted(events)
    known = _Known(draft, series)
    facts = known.trace(
        int(machines.max(initial=min(1, len(machines))))
    )  # at least one was requested
    refuse_all([*problems, *known.problems])
    keep = changes(t_s, machines)
    prices = np.array([usd for _, usd in draft.prices], dtype=np.float64)
    price_t = np.array([t for t, _ in draft.prices], dtype=np.float64)
    changed = changes(price_t, prices)
    return Trace(
        name=name,
        end_s=draft.end_s or 0.0,
        t_s=t_s[keep],
        machines=machines[keep],
        price_t_s=price_t[changed],
        usd_per_hour=prices[changed],
        events=events,
        place=facts.place,
        capacity=facts.capacity,
        kind=facts.kind,
        start=facts.start,
        step_s=facts.step_s,
        source=draft.known.get("source", ""),
    )


@dataclass(frozen=True, slots=True)
class _Facts:
    place: Place
    capacity: int
    kind: Kind
    start: datetime | None
    step_s: float


@dataclass(slots=True)
class _Known:
    """Reads what a series says of itself."""

    draft: _Draft
    series: str
    problems: list[str] = field(default_factory=list)

    def trace(self, most: int) -> _Facts:
        """The facts of a series on which at most so many machines were up."""
        cells = self.draft.known
        capacity = self._whole("capacity") or most
        if capacity < most:
            self.problems.append(f"{self.series}: capacity {capacity} is below the {most} seen up")
        place = Place(
            provider=self._choice("provider", PROVIDERS),
            region=cells.get("region", ""),
            zone=cells.get("zone", ""),
            instance_type=cells.get("instance_type", ""),
            gpu=cells.get("gpu", ""),
            gpus=self._whole("gpus"),
        )
        kind = cast("Literal['', 'probe', 'hold']", self._choice("kind", KINDS))
        return _Facts(place, capacity, kind, self._start(), self._step())

    def _choice(self, column: str, choices: Iterable[str]) -> str:
        word = self.draft.known.get(column, "")
        if word and word not in (known := tuple(choices)):
            self.problems.append(f"{self.series}, column {column}: {unknown('value', word, known)}")
        return word

    def _whole(self, column: str) -> int:
        word = self.draft.known.get(column, "")
        value = _number(word) if word else 0.0
        if value is None or value < 0 or value != int(value) or value > MAX_MACHINES:
            message = f"'{shown(word)}' is not a whole number"
            self.problems.append(f"{self.series}, column {column}: {message}")
            return 0
        return int(value)

    def _step(self) -> float:
        word = self.draft.known.get("step_s", "")
        value = _number(word) if word else 0.0
        if value is None or value < 0:
            message = f"'{shown(word)}' is not a number of seconds"
            self.problems.append(f"{self.series}, column step_s: {message}")
            return 0.0
        return value

    def _start(self) -> datetime | None:
        word = self.draft.known.get("start", "")
        try:
            return parse_instant(word, f"{self.series}, column start:") if word else None
        except UsageError as error:
            self.problems.extend(error.problems)
            return None


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def write(traces: Sequence[Trace]) -> str:
    """The text of a file that holds some traces; `parse` gives the same ones back."""
    made = io.StringIO(newline="")
    writer = csv.DictWriter(made, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for trace in traces:
        about = _about(trace)
        for row in _rows(trace):
            writer.writerow({"series": trace.name, **row, **about})
            about = {}
    return made.getvalue()


def _about(trace: Trace) -> dict[str, str]:
    p = trace.place
    found = {
        "provider": p.provider,
        "region": p.region,
        "zone": p.zone,
        "instance_type": p.instance_type,
        "gpu": p.gpu,
        "gpus": str(p.gpus) if p.gpus else "",
        "capacity": str(trace.capacity) if trace.capacity else "",
        "kind": trace.kind,
        "start": format_instant(trace.start) if trace.start else "",
        "step_s": _exact(trace.step_s) if trace.step_s else "",
        "source": trace.source,
    }
    return {name: value for name, value in found.items() if value}


def _rows(trace: Trace) -> Iterator[dict[str, str]]:
    """Rows in order of time; machines before prices before nodes within a second."""
    words = {change: word for word, change in NODE_EVENTS.items()}
    found: list[tuple[float, int, dict[str, str]]] = []
    if not len(trace.events):
        found += [
            (t, 0, {"event": "machines", "value": str(n)})
            for t, n in zip(trace.t_s.tolist(), trace.machines.tolist(), strict=True)
        ]
    prices = zip(trace.price_t_s.tolist(), trace.usd_per_hour.tolist(), strict=True)
    found += [(t, 1, {"event": "price", "value": repr(usd)}) for t, usd in prices]
    e = trace.events
    nodes = zip(e.t_s.tolist(), e.change.tolist(), e.node.tolist(), strict=True)
    found += [(t, 2, {"event": words[c], "node": e.names[node]}) for t, c, node in nodes]
    for t, _, row in sorted(found, key=lambda each: each[:2]):
        yield {"t_s": _exact(t), **row}
    yield {"t_s": _exact(trace.end_s), "event": "end"}


def _exact(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)


def write_file(traces: Sequence[Trace], path: Path) -> None:
    """Write a trace file in one step; the same traces give the same bytes."""
    data = write(traces).encode()
    if path.suffix == ".gz":
        data = gzipped(data)
    with writing(shown_path(path)):
        replace_file(path, data)
