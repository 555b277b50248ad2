"""Measurements as one JSON record: every raw repetition, and the machine they were taken on."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.fit import Line
from benchmarks.machine import Machine
from benchmarks.metadata import Place
from benchmarks.method import Result
from benchmarks.nvidia import GpuState
from benchmarks.stalls import Profile, what_ifs

SCHEMA = "recommend.bench/v2"
OLD_SCHEMA = "recommend.bench/v1"  # until November 2026: processors only
CONFIDENCE = 0.95


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
