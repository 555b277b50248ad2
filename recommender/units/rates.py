"""Speeds that users measured: `8xH100: 3.1 s/step`, `2x8xA100: 52k tokens/s`."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from recommender.job import Timing
from recommender.units.numbers import NUMBER, refusal, refuse_sign, refuse_size, scaled
from recommender.units.specs import MOST_MACHINES, NAME, looks_like_instance

Unit = Literal["s/step", "samples/s", "tokens/s"]
USUAL_PER_MACHINE = 8  # GPUs in the largest common machine, where only a total is given

_TIMES = r"(?:([0-9]{1,9})\s*[x×*]\s*)?"
_CLUSTER = rf"{_TIMES}{_TIMES}({NAME})"
_SCALE = r"((?:[kmb](?!s\s*/))?)"  # the m of ms is no million
_RATE = rf"({NUMBER})\s*{_SCALE}\s*([a-z]+)\s*/\s*([a-z]+)(\s*/\s*gpu)?"
_STEPS = ("step", "steps", "it", "iteration", "iterations")
_TOKENS = ("token", "tokens", "tok")
_SAMPLES = (
    "sample", "samples", "image", "images", "img", "imgs", "sequence", "sequences", "seq", "seqs",
    "clip", "clips", "example", "examples",
)  # fmt: skip
_INSTEAD = 'write it like "8xH100: 3.1 s/step" or "2x8xA100: 52k tokens/s" (machines x GPUs each)'


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured speed of a whole cluster, as typed; `timing` gives it a job's batch."""

    machines: int
    gpus: int  # in the whole cluster; 0 where an instance type is named: the catalog knows
    name: str  # a GPU, or an instance type
    value: float
    unit: Unit


def parse_measured(text: str, name: str = "--measured") -> Measured:
    """Read a measured speed: `8xH100: 3.1 s/step`, `4x p4d.24xlarge: 412 samples/s`."""
    cluster, colon, rate = text.partition(":")
    if not colon:
        raise refusal(name, text, "has no colon between machines and speed", _INSTEAD)
    machines, gpus, gpu = _cluster(cluster, text, name)
    value, unit, each = _rate(rate, text, name)
    if each and not gpus:
        raise refusal(name, text, "is per GPU of an instance type", "write the total of all GPUs")
    return Measured(machines, gpus, gpu, value * (gpus if each else 1), unit)


def _cluster(cluster: str, text: str, name: str) -> tuple[int, int, str]:
    found = re.fullmatch(_CLUSTER, cluster.strip())
    if not found:
        raise refusal(name, text, "does not begin with machines", _INSTEAD)
    first, second, kind = found.groups()
    counts = [int(count) for count in (first, second) if count]
    if not all(1 <= count <= MOST_MACHINES for count in counts):
        raise refusal(name, text, f"must count 1 to {MOST_MACHINES}", _INSTEAD)
    if looks_like_instance(kind):
        if len(counts) == 2:
            raise refusal(name, text, "counts GPUs of an instance type", 'write "4x p4d.24xlarge"')
        return math.prod(counts), 0, kind
    gpus = math.prod(counts)
    return counts[0] if len(counts) == 2 else math.ceil(gpus / USUAL_PER_MACHINE), gpus, kind


def _rate(rate: str, text: str, name: str) -> tuple[float, Unit, bool]:
    refuse_sign(name, rate.strip(), _INSTEAD)
    found = re.fullmatch(_RATE, rate.strip(), re.I)
    if not found:
        raise refusal(name, text, "has no speed", _INSTEAD)
    top, bottom = found[3].lower(), found[4].lower()
    value = refuse_size(name, text, scaled(found[1], found[2]), _INSTEAD)
    if top in ("s", "sec", "ms") and bottom in _STEPS and not found[5]:
        return value / (1000 if top == "ms" else 1), "s/step", False
    if bottom not in ("s", "sec", "second"):
        raise refusal(name, text, "has no speed", _INSTEAD)
    if top in _STEPS and not found[5]:
        return 1 / value, "s/step", False
    if top in _TOKENS + _SAMPLES:
        return value, "tokens/s" if top in _TOKENS else "samples/s", bool(found[5])
    raise refusal(name, text, f"has the unknown unit '{top}/{bottom}'", _INSTEAD)


def format_measured(measured: Measured) -> str:
    """Write a measured speed so that `parse_measured` gives it back exactly."""
    each = f"{measured.gpus // measured.machines}x" if measured.gpus else " "
    speed = f"{measured.value!r} {measured.unit}"
    return f"{measured.machines}x{each}{measured.name}: {speed}"


def timing(measured: Measured, global_batch: int, tokens_per_sample: int) -> Timing:
    """Turn a measured speed into samples per second of a job."""
    rate = {
        "s/step": global_batch / measured.value,
        "samples/s": measured.value,
        "tokens/s": measured.value / tokens_per_sample,
    }[measured.unit]
    if measured.gpus:
        return Timing(measured.name, measured.gpus, measured.machines, rate)
    return Timing("", 0, measured.machines, rate, measured.name)
