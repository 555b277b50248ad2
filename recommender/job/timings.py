"""Parses the user's timings (`8xH100: 3.1 s/step`, or CSV) and matches them to the catalog.

A timing in another precision than the job's says so: `8xH100 bf16: 3.1 s/step`.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast, get_args

from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import Gpu, InstanceType
from recommender.errors import UsageError, refuse_all
from recommender.inputs.csv_text import CsvRow, read_csv, read_each
from recommender.inputs.units import parse_count, parse_whole
from recommender.inputs.units.machines import MAX_MACHINES, NAME, looks_like_instance
from recommender.inputs.units.quantities import NUMBER, refusal, refuse_sign, refuse_size, scaled
from recommender.job.job import Job, Precision, TimedRun, Timing
from recommender.text import shown, unknown

Unit = Literal["s/step", "samples/s", "tokens/s", "MFU"]
USUAL_PER_MACHINE = 8  # GPUs in the largest common machine, where only a total is given

_TIMES = r"(?:([0-9]{1,9})\s*[x×*]\s*)?"
_CLUSTER = rf"{_TIMES}{_TIMES}({NAME})"
_SCALE = r"((?:[kmb](?!s\s*/))?)"  # the m of ms is no million
_RATE = rf"({NUMBER})\s*{_SCALE}\s*([a-z]+)\s*/\s*([a-z]+)(\s*/\s*gpu)?"
_SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_STEPS = ("step", "steps", "it", "iteration", "iterations")
_TOKENS = ("token", "tokens", "tok")
_SAMPLES = (
    "sample", "samples", "image", "images", "img", "imgs", "sequence", "sequences", "seq", "seqs",
    "clip", "clips", "example", "examples",
)  # fmt: skip
_INSTEAD = 'write it like "8xH100: 3.1 s/step" or "2x8xA100: 52k tokens/s" (machines x GPUs each)'
_DATA = ("synthetic", "cached", "cold")
_REQUIRED = ("machines",)
_OPTIONAL = (
    "instance", "gpu", "gpus", "batch", "batch_per_gpu", "step_s", "samples_per_s", "data",
    "servers",
)  # fmt: skip
MAX_RUNS = 1000  # a handful is enough; more is a log, not a table of runs
_EITHER = (("instance", "gpu"), ("step_s", "samples_per_s"))
MAX_OF_PEAK = 2.0  # FLOP of a sample are an estimate


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured speed of a whole cluster, as typed; `timing` combines it with a job's batch."""

    machines: int
    gpus: int  # in the whole cluster; 0 where an instance type is named: the catalog knows
    name: str  # a GPU, or an instance type
    value: float
    unit: Unit
    precision: Precision | Literal[""] = ""  # "": the job's


def parse_measured(text: str, name: str = "--measured") -> Measured:
    """Read a measured speed: `8xH100: 3.1 s/step`, `4x p4d.24xlarge: 412 samples/s`."""
    cluster, colon, rate = text.partition(":")
    if not colon:
        raise refusal(name, text, "has no colon between machines and speed", _INSTEAD)
    cluster, precision = _with_precision(cluster)
    machines, gpus, gpu = _cluster(cluster, text, name)
    value, unit, each = _rate(rate, text, name)
    if each and not gpus:
        raise refusal(name, text, "is per GPU of an instance type", "write the total of all GPUs")
    return Measured(machines, gpus, gpu, value * (gpus if each else 1), unit, precision)


def in_precision(text: str, precision: str) -> str:
    """A measured speed that states its precision; the one given where it stated none."""
    cluster, colon, rate = text.partition(":")
    if not colon or _with_precision(cluster)[1]:
        return text
    return f"{cluster.rstrip()} {precision}:{rate}"


def _with_precision(cluster: str) -> tuple[str, Precision | Literal[""]]:
    """Machines and the precision behind them, if one is stated."""
    machines, _, word = cluster.rstrip().rpartition(" ")
    precisions: tuple[Precision, ...] = get_args(Precision)
    meant = "mixed" if word.lower() == "auto" else word.lower()
    known = next((each for each in precisions if each == meant), None)
    return (machines, known) if known else (cluster, "")


def _cluster(cluster: str, text: str, name: str) -> tuple[int, int, str]:
    found = re.fullmatch(_CLUSTER, cluster.strip())
    if not found:
        machines, _, word = cluster.strip().rpartition(" ")
        if re.fullmatch(_CLUSTER, machines.strip()):
            known = ", ".join(("auto", *get_args(Precision)))
            what = f"has the unknown precision '{shown(word)}'"
            raise refusal(name, text, what, f"write the machines alone, or one of {known}")
        raise refusal(name, text, "does not begin with machines", _INSTEAD)
    first, second, kind = found.groups()
    counts = [int(count) for count in (first, second) if count]
    if not all(1 <= count <= MAX_MACHINES for count in counts):
        raise refusal(name, text, f"must count 1 to {MAX_MACHINES}", _INSTEAD)
    if looks_like_instance(kind):
        if len(counts) == 2:
            raise refusal(name, text, "counts GPUs of an instance type", 'write "4x p4d.24xlarge"')
        return math.prod(counts), 0, kind
    gpus = math.prod(counts)
    return counts[0] if len(counts) == 2 else math.ceil(gpus / USUAL_PER_MACHINE), gpus, kind


def _rate(rate: str, text: str, name: str) -> tuple[float, Unit, bool]:
    refuse_sign(name, rate.strip(), _INSTEAD)
    used = re.fullmatch(rf"({NUMBER})\s*%\s*(?:of\s*)?MFU", rate.strip(), re.I)
    if used:
        share = refuse_size(name, text, float(used[1]) / 100, _INSTEAD)
        return share, "MFU", False
    # As transformers prints it: train_samples_per_second 12.3
    rate = re.sub(rf"train_(samples|steps)_per_second\s*=?\s*({NUMBER})", r"\2 \1/s", rate.strip())
    found = re.fullmatch(_RATE, rate.strip(), re.I)
    if not found:
        raise refusal(name, text, "has no speed", _INSTEAD)
    top, bottom = found[3].lower(), found[4].lower()
    value = refuse_size(name, text, scaled(found[1], found[2]), _INSTEAD)
    if top in ("s", "sec", "ms") and bottom in _STEPS and not found[5]:
        return value / (1000 if top == "ms" else 1), "s/step", False
    if bottom not in _SECONDS:
        raise refusal(name, text, "has no speed", _INSTEAD)
    value /= _SECONDS[bottom]
    if top in _STEPS and not found[5]:
        return 1 / value, "s/step", False
    if top in _TOKENS + _SAMPLES:
        return value, "tokens/s" if top in _TOKENS else "samples/s", bool(found[5])
    raise refusal(name, text, f"has the unknown unit '{top}/{bottom}'", _INSTEAD)


def timing(
    measured: Measured, batch: int, tokens_per_sample: int, batch_per_gpu: bool = False
) -> Timing:
    """Convert a measured speed to samples per second, with the batch of a step or of a GPU."""
    each = batch_per_gpu and measured.unit == "s/step"
    rate = {
        "s/step": batch * (measured.gpus or 1 if each else 1) / measured.value,
        "samples/s": measured.value,
        "tokens/s": measured.value / tokens_per_sample,
        "MFU": measured.value,  # until the catalog says what the GPU has at most
    }[measured.unit]
    machines, precision = measured.machines, measured.precision
    peak = measured.unit == "MFU"
    if measured.gpus:
        gpus = measured.gpus
        return Timing(measured.name, gpus, machines, rate, precision=precision, of_peak=peak)
    own = measured.name
    return Timing("", 0, machines, rate, own, each_gpu=each, precision=precision, of_peak=peak)


Data = Literal["", "synthetic", "cached", "cold"]
_SYNONYMS = {
    "instance_type": "instance", "nodes": "machines", "global_batch": "batch",
    "seconds_per_step": "step_s", "s_per_step": "step_s",
}  # fmt: skip


def read_runs(
    path: Path,
    types: Iterable[InstanceType],
    batch: int,
    servers: int = 0,
    batch_per_gpu: bool = False,
) -> tuple[TimedRun, ...]:
    """Read timed runs; every bad row is reported at once.

    Columns: machines; instance or gpu; step_s (seconds) or samples_per_s; optional gpus (the total
    number; default: all of the named instances), batch (samples per step of all GPUs) or
    batch_per_gpu (of each; default: the job's `batch` of either kind), data (synthetic, cached or
    cold) and servers (parameter servers of the run, also with a single worker; default: the job's
    `servers`; 0 for a worker without servers). A row with data on some GPUs of a machine and no
    batch used the share of the job's batch that these GPUs have in the whole machine, because
    stalls are differences at one batch per GPU. A GPU without an instance means the catalog's
    machine with the closest number of them.
    """
    rows = read_csv(path, _REQUIRED, _OPTIONAL, _SYNONYMS)
    if len(rows) > MAX_RUNS:
        raise UsageError(
            f"{shown(path.name)}: {len(rows)} runs; at most {MAX_RUNS}, one row for each set-up"
        )
    machines = tuple(sorted((t for t in types if t.gpus), key=lambda t: (t.provider, t.gpus)))
    return read_each(rows, lambda row: _run(row, machines, batch, servers, batch_per_gpu))


def _run(
    row: CsvRow,
    machines: tuple[InstanceType, ...],
    batch: int,
    servers: int,
    batch_per_gpu: bool,
) -> TimedRun:
    problems = [
        f"{row.place}: has neither {one} nor {other}; write one of them"
        if one not in row.cells
        else f"{row.place}: has both {one} and {other}; keep one of them"
        for one, other in _EITHER
        if (one in row.cells) == (other in row.cells)
    ]
    if "machines" not in row.cells:
        problems.append(f"{row.where('machines')} is empty")
    if "batch" in row.cells and "batch_per_gpu" in row.cells:
        problems.append(f"{row.place}: has both batch and batch_per_gpu; keep one of them")
    refuse_all(problems)
    count = parse_whole(row.cells["machines"], row.where("machines"))
    gpus = _whole(row, "gpus", 0)
    machine = _machine(row, machines, count, gpus)
    gpus = gpus or count * machine.gpus
    share = gpus / (count * machine.gpus) if "data" in row.cells else 1.0
    usual = max(round(batch * share), gpus) if share < 1.0 else batch
    if batch_per_gpu or "batch_per_gpu" in row.cells:
        usual = gpus * _whole(row, "batch_per_gpu", batch)
    size = _whole(row, "batch", usual)
    _refuse_shape(row, machine, count, gpus, size)
    return TimedRun(
        place=row.place,
        machine=f"{machine.provider}/{machine.instance_type}",
        gpu=machine.gpu,
        gpus=gpus,
        machines=count,
        batch=size,
        step_s=_step_s(row, size),
        data=_data(row),
        servers=_servers(row, servers, count),
    )


def _servers(row: CsvRow, stated: int, machines: int) -> int:
    """How many parameter servers a run had; 0 of a job without, and of a worker that had none."""
    word, where = row.cells.get("servers"), row.where("servers")
    if not stated:
        if word not in (None, "0"):
            raise UsageError(f"{where} {shown(word)}, but the job has no sync: parameter_server")
        return 0
    if word == "0":
        if machines > 1:
            raise UsageError(f"{where} 0 of {machines} machines; write how many there were")
        return 0
    return stated if word is None else parse_whole(word, where)


def _machine(
    row: CsvRow, machines: tuple[InstanceType, ...], count: int, gpus: int
) -> InstanceType:
    if "instance" in row.cells:
        word = row.cells["instance"]
        same = [t for t in machines if t.instance_type.lower() == word.lower()]
        if not same:
            listing = "recommend catalog show lists the instance types"
            choices = [t.instance_type for t in machines]
            raise UsageError(
                f"{row.where('instance')} {unknown('instance type', word, choices, listing)}"
            )
        return same[0]
    word = row.cells["gpu"]
    alike = [t for t in machines if t.gpu.lower() == word.lower()]
    if not alike:
        choices = sorted({t.gpu for t in machines})
        raise UsageError(f"{row.where('gpu')} {unknown('GPU', word, choices)}")
    if not gpus:
        raise UsageError(f"{row.where('gpus')} is empty; write how many GPUs ran in all")
    return min(alike, key=lambda t: (t.gpus * count < gpus, abs(t.gpus - gpus / count)))


def _refuse_shape(row: CsvRow, machine: InstanceType, count: int, gpus: int, batch: int) -> None:
    """Refuse clusters that no machine of that type makes."""
    if gpus < count or gpus > count * machine.gpus:
        fits = f"{machine.instance_type} has {machine.gpus}"
        raise UsageError(f"{row.where('gpus')} {gpus} GPUs on {count} machines; {fits} each")
    if batch < gpus:
        raise UsageError(
            f"{row.where('batch')} {batch} samples on {gpus} GPUs: less than one each; "
            "write the batch of all GPUs"
        )


def _whole(row: CsvRow, column: str, default: int) -> int:
    text = row.cells.get(column)
    return default if text is None else parse_whole(text, row.where(column))


def _step_s(row: CsvRow, batch: int) -> float:
    if "step_s" in row.cells:
        return _csv_rate(row, "step_s", "write seconds, such as 0.35")
    return batch / _csv_rate(row, "samples_per_s", "write samples a second, such as 1450")


def _csv_rate(row: CsvRow, column: str, instead: str) -> float:
    return parse_count(row.cells[column], row.where(column), instead=instead)


def _data(row: CsvRow) -> Data:
    word = row.cells.get("data", "")
    if word.lower() not in ("", *_DATA):
        raise UsageError(f"{row.where('data')} {unknown('value', shown(word), _DATA)}")
    return cast(Data, word.lower())


def on_catalog(job: Job, known: Mapping[str, Gpu], types: Iterable[InstanceType]) -> Job:
    """Complete a job's timings from the catalog; unknown GPUs and types are refused by name."""
    if not job.timings:
        return job
    names = {name.lower(): name for name in known}
    machines = {t.instance_type.lower(): t for t in types if t.gpus}
    found: list[Timing] = []
    problems: list[str] = []
    for timing in job.timings:
        machine = machines.get(timing.instance_type.lower())
        if timing.instance_type and machine:
            gpus_in_all = timing.machines * machine.gpus
            name = machine.instance_type
            known_now = replace(timing, gpu=machine.gpu, gpus=gpus_in_all, instance_type=name)
            rate = timing.samples_per_s * (gpus_in_all if timing.each_gpu else 1)
            found.append(replace(known_now, samples_per_s=rate, each_gpu=False))
        elif not timing.instance_type and timing.gpu.lower() in names:
            found.append(replace(timing, gpu=names[timing.gpu.lower()]))
        else:
            problems.append(_refusal(timing, names.values(), machines.values()))
    found = [_of_peak(job, each, known[each.gpu]) if each.of_peak else each for each in found]
    reasons = (above_peak(job, t.samples_per_s, known[t.gpu], t.gpus) for t in found)
    problems += [f"measured: {why}" for why in reasons if why]
    if problems:
        raise UsageError(*problems)
    return replace(job, timings=tuple(found))


def _of_peak(job: Job, timing: Timing, gpu: Gpu) -> Timing:
    """A timing that says which share of the vendor's peak was used, as samples per second."""
    wide = job.precision in ("fp32", "tf32")
    peak = (gpu.peak_tf32_tflops or gpu.peak_fp32_tflops) if wide else None
    peak = peak or gpu.peak_bf16_tflops or gpu.peak_fp16_tflops or gpu.peak_fp32_tflops or 0.0
    rate = timing.samples_per_s * peak * 1e12 * timing.gpus / job.flop_per_sample
    return replace(timing, samples_per_s=rate, of_peak=False)


def above_peak(job: Job, samples_per_s: float, gpu: Gpu, gpus: int) -> str:
    """Explain why a speed exceeds what the GPUs can compute; empty if it does not.

    Such a speed is a typo in the number or its unit.
    """
    peaks = (gpu.peak_fp32_tflops, gpu.peak_fp16_tflops, gpu.peak_bf16_tflops, gpu.peak_fp8_tflops)
    peak = max((peak for peak in peaks if peak), default=0.0) * 1e12 * gpus
    times = samples_per_s * job.flop_per_sample / peak if peak else 0.0
    if times <= MAX_OF_PEAK:
        return ""
    timing = f"{gpus}x{gpu.gpu}: {samples_per_s:.3g} samples/s"
    return f"{timing} is {times:,.0f} times the vendor's peak; check the number and its unit"


def _refusal(timing: Timing, gpus: Iterable[str], machines: Iterable[InstanceType]) -> str:
    if timing.instance_type:
        choices = [machine.instance_type for machine in machines]
        listing = "recommend catalog lists the instance types"
        return f"measured: {unknown('instance type', timing.instance_type, choices, listing)}"
    return f"measured: {unknown('GPU', timing.gpu, gpus)}"
