"""Measurements as one JSON record with every raw repetition: written, and read back.

Records come from other machines and other people: nothing in them is run, sizes are bounded,
every number must be finite, and a rate above what physics allows is refused.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .collectives import Line
from .errors import BadRecord, BenchError
from .machine import Machine
from .metadata import PROVIDERS, Place
from .method import Interference, Result
from .nvidia import GpuState
from .stalls import KINDS, Profile, Run, profile, what_ifs

SCHEMA = "recommend.bench/v2"
OLD_SCHEMA = "recommend.bench/v1"  # until November 2026: processors only
CONFIDENCE = 0.95
MAX_BYTES = 10 * 2**20
MAX_WORD = 200
_MIN_REPEATS = 3
_OVER = 1.02  # clocks are read to a per cent or so
_MARKETS = ("", "spot", "on_demand")


@dataclass(frozen=True, slots=True)
class Record:
    """One run of a suite on one machine."""

    taken_at: str  # ISO 8601, UTC
    suite: str  # "quick", "full"
    device: str  # "cpu", "cuda"
    machine: Machine
    place: Place
    software: Mapping[str, str]
    results: tuple[Result, ...]
    skipped: tuple[str, ...] = ()
    links: tuple[tuple[str, Line], ...] = ()
    gpu_states: tuple[GpuState, ...] = ()  # every two seconds
    profile: Profile | None = None


def document(record: Record) -> dict[str, Any]:
    """The record as JSON has it; medians and intervals are there for readers, not for us."""
    return {
        "schema": SCHEMA,
        "taken_at": record.taken_at,
        "suite": record.suite,
        "device": record.device,
        "confidence": CONFIDENCE,
        "machine": asdict(record.machine),
        "place": asdict(record.place),
        "software": dict(record.software),
        "results": [_result(each) for each in record.results],
        "links": [{"name": name, **asdict(line)} for name, line in record.links],
        "gpu_states": [asdict(each) for each in record.gpu_states],
        "profile": _profile(record.profile) if record.profile else None,
        "skipped": list(record.skipped),
    }


def dumps(record: Record) -> str:
    """One line of JSON; a figure that is no number is refused."""
    return json.dumps(document(record), allow_nan=False, separators=(",", ":"))


def _result(each: Result) -> dict[str, Any]:
    low, high = each.interval
    return {
        "benchmark": each.benchmark,
        "case": each.case,
        "unit": each.unit,
        "work": each.work,
        "seconds": each.seconds,
        "error": each.error,
        "ceiling": each.ceiling,
        "median": each.median,
        "low": low,
        "high": high,
        "spread": each.spread,
        "interference": asdict(each.interference) if each.interference else None,
        "facts": dict(each.facts),
    }


def _profile(found: Profile) -> dict[str, Any]:
    return {
        "training": found.training,
        "runs": [{**asdict(run), "step_s": run.step_s} for run in found.runs],
        "compute_s": found.compute_s,
        "step_s": found.step_s,
        "stalls": [asdict(each) for each in found.stalls],
        "what_ifs": [asdict(each) for each in what_ifs(found)],
    }


_UNITS = {"GFLOP/s": 1e-3, "TFLOP/s": 1.0, "GB/s": 1.0, "samples/s": 1.0}


def read_record(path: Path) -> Record:
    """Read and check one file. Raises BadRecord with the file's name and what is wrong."""
    try:
        with path.open("rb") as file:  # a device has no size, and no end
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise BadRecord(f"{path.name}: larger than 10 MiB; is it the right file?")
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRecord(f"{path.name}: not a text file") from None
    except OSError as error:
        raise BadRecord(f"{path.name}: {error.strerror}") from None
    return parse_record(text, path.name)


def parse_record(text: str, name: str) -> Record:
    """Read and check the text of a record; `name` begins every message."""
    try:
        if re.search("[0-9]{301}", text):
            raise ValueError("a number of more than 300 digits")
        tree = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{name}: not JSON ({error}); was it cut off?") from None
    top = _Node(tree, name)
    schema = top.word("schema")
    if schema == OLD_SCHEMA:
        return _old(top)
    if schema != SCHEMA:
        raise BadRecord(f"{name}: schema is {schema!r}; this version reads {OLD_SCHEMA}, {SCHEMA}")
    record = Record(
        taken_at=_moment(top),
        suite=top.choice("suite", ("quick", "full")),
        device=top.choice("device", ("cpu", "cuda")),
        machine=_machine(top.node("machine")),
        place=_place(top.node("place")),
        software=top.words("software"),
        results=tuple(_read_result(each) for each in top.nodes("results")),
        skipped=tuple(_checked_word(each, f"{name}: skipped") for each in top.list("skipped")),
        links=tuple(_link(each) for each in top.nodes("links")),
        gpu_states=tuple(_state(each) for each in top.nodes("gpu_states")),
        profile=_read_profile(top.node("profile")) if top.raw("profile") is not None else None,
    )
    if not record.results and not record.profile:
        raise BadRecord(f"{name}: holds no results")
    return record


@dataclass(frozen=True, slots=True)
class _Node:
    """An object of a record, with its place in the file for messages."""

    value: Any
    where: str

    def raw(self, key: str) -> Any:
        if not isinstance(self.value, dict):
            raise BadRecord(f"{self.where}: must be an object")
        if key not in self.value:
            raise BadRecord(f"{self.where}: {key} is missing")
        return self.value[key]

    def word(self, key: str) -> str:
        return _checked_word(self.raw(key), f"{self.where}: {key}")

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        word = self.word(key)
        if word not in choices:
            raise BadRecord(f"{self.where}: {key} is {word!r}; one of {', '.join(choices)}")
        return word

    def number(self, key: str, least: float = -math.inf) -> float:
        return _checked_number(self.raw(key), f"{self.where}: {key}", least)

    def maybe(self, key: str, least: float = -math.inf) -> float | None:
        return None if self.raw(key) is None else self.number(key, least)

    def list(self, key: str) -> "list[Any]":
        value = self.raw(key)
        if not isinstance(value, list):
            raise BadRecord(f"{self.where}: {key} must be a list")
        return value

    def node(self, key: str) -> "_Node":
        return _Node(self.raw(key), f"{self.where}: {key}")

    def nodes(self, key: str) -> "tuple[_Node, ...]":
        return tuple(
            _Node(each, f"{self.where}: {key}[{i}]") for i, each in enumerate(self.list(key))
        )

    def numbers(self, key: str, least: float) -> tuple[float, ...]:
        return tuple(
            _checked_number(each, f"{self.where}: {key}", least) for each in self.list(key)
        )

    def words(self, key: str) -> dict[str, str]:
        value = self.raw(key)
        if not isinstance(value, dict):
            raise BadRecord(f"{self.where}: {key} must be an object")
        at = f"{self.where}: {key}"
        return {_checked_word(k, at): _checked_word(v, at) for k, v in value.items()}


def _read_result(node: _Node) -> Result:
    unit = node.choice("unit", tuple(_UNITS))
    seconds = node.numbers("seconds", 0.0)
    if len(seconds) < _MIN_REPEATS or min(seconds) <= 0:
        raise BadRecord(f"{node.where}: seconds must be {_MIN_REPEATS} positive numbers or more")
    scale = _UNITS[unit]
    ceiling = node.maybe("ceiling", 0.0)
    facts = node.raw("facts")
    if not isinstance(facts, dict):
        raise BadRecord(f"{node.where}: facts must be an object")
    found = Result(
        node.word("benchmark"),
        node.word("case"),
        "TFLOP/s" if unit == "GFLOP/s" else unit,
        _positive(node, "work") * scale,
        seconds,
        node.number("error", 0.0),
        ceiling,
        _interference(node.node("interference")),
        tuple((str(key), _fact(node, key, value)) for key, value in facts.items()),
    )
    if ceiling and found.median > _OVER * ceiling:
        raise BadRecord(
            f"{node.where}: {found.case} reaches {found.median:.4g} {found.unit}, more than the "
            f"{ceiling:.4g} that the hardware can; the record is wrong"
        )
    return found


def _fact(node: _Node, key: str, value: object) -> object:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return _checked_number(value, f"{node.where}: {key}", -math.inf)
    return _checked_word(value, f"{node.where}: {key}")


def _interference(node: _Node) -> Interference | None:
    if node.value is None:
        return None
    return Interference(
        node.maybe("others"), node.maybe("steal"), int(node.number("slow")), node.number("drift")
    )


def _positive(node: _Node, key: str) -> float:
    value = node.number(key)
    if value <= 0:
        raise BadRecord(f"{node.where}: {key} must be above zero, not {value:g}")
    return value


def _machine(node: _Node) -> Machine:
    return Machine(
        node.word("processor"),
        int(node.number("cpus", 1)),
        node.maybe("memory_gib", 0.0),
        node.word("system"),
        node.word("gpu"),
        int(node.number("gpus", 0)),
        node.maybe("gpu_memory_gib", 0.0),
        node.word("machine"),
    )


def _place(node: _Node) -> Place:
    node.choice("market", _MARKETS)
    node.choice("provider", ("", *PROVIDERS))
    return Place(*(node.word(each.name) for each in fields(Place)))


def _link(node: _Node) -> tuple[str, Line]:
    line = Line(
        node.number("latency_s", 0.0),
        _positive(node, "bytes_per_s"),
        node.number("r2"),
        node.numbers("residuals", -1.0),
        # Since 21 November 2026; before, one line was all.
        node.number("least_bytes", 0.0) if "least_bytes" in node.value else 0.0,
    )
    return node.word("name"), line


def _state(node: _Node) -> GpuState:
    mhz, most, memory = map(node.maybe, ("mhz", "max_mhz", "max_memory_mhz"))
    celsius, watts, most_watts = map(node.maybe, ("celsius", "watts", "most_watts"))
    slowed = bool(node.raw("slowed"))
    busy = node.maybe("busy", 0.0) if "busy" in node.value else None  # since 21 November 2026
    driver = node.word("driver")
    return GpuState(driver, mhz, most, memory, celsius, watts, most_watts, slowed, busy)


def _read_profile(node: _Node) -> Profile:
    """The stalls are computed again from the raw steps."""
    runs = [
        Run(
            node_.choice("kind", KINDS),  # type: ignore[arg-type]
            int(node_.number("gpus", 1)),
            int(node_.number("batch_per_gpu", 1)),
            node_.numbers("seconds", 0.0),
            int(node_.number("machines", 1)),
        )
        for node_ in node.nodes("runs")
    ]
    training = node.word("training") if "training" in node.value else ""
    return _with_place(lambda: profile(runs, training), node.where)


def _with_place(make: Callable[[], Profile], where: str) -> Profile:
    try:
        return make()
    except (BenchError, ArithmeticError) as error:
        raise BadRecord(f"{where}: {error}") from None


def _old(top: _Node) -> Record:
    """A record of version 1: one processor, square products of numpy, no place."""
    hardware = top.node("hardware")
    machine = Machine(
        hardware.word("processor"),
        int(hardware.number("cpus", 1)),
        hardware.maybe("memory_gib", 0.0),
        hardware.word("system"),
    )
    results = tuple(
        _read_result(_Node(_filled(each.value), each.where)) for each in top.nodes("results")
    )
    if not results:
        raise BadRecord(f"{top.where}: holds no results")
    software = {"python": hardware.word("python"), "numpy": hardware.word("numpy")}
    suite = "quick" if top.raw("quick") is True else "full"
    return Record(_moment(top), suite, "cpu", machine, Place(), software, results)


def _filled(value: Any) -> Any:
    """A result of version 1 with the fields that version 2 added."""
    if not isinstance(value, dict):
        return value
    precision = str(value.get("case", "")).partition(" ")[0]
    squares = {"precision": precision, "kind": "square"}
    facts: Mapping[str, object] = squares if value.get("benchmark") == "matmul" else {}
    return {"ceiling": None, "interference": None, "facts": dict(facts), **value}


def _moment(top: _Node) -> str:
    word = top.word("taken_at")
    try:
        moment = datetime.fromisoformat(word)
    except ValueError:
        raise BadRecord(f"{top.where}: taken_at {word!r} is no date") from None
    if moment.tzinfo is None:
        raise BadRecord(f"{top.where}: taken_at {word!r} names no time zone")
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")  # noqa: UP017


def _checked_word(value: object, where: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_WORD or not value.isprintable():
        raise BadRecord(f"{where} must be a short text")
    return value


def _checked_number(value: object, where: str, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRecord(f"{where} must be a number")
    if not math.isfinite(value) or value < least or abs(value) > 1e18:
        raise BadRecord(f"{where} is {value:g}, which cannot be")
    return value


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no figure")
