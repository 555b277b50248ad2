"""The runs that a user timed, as a CSV file: `recommend calibrate JOB timings.csv`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, cast

from catalogs.schema import InstanceType
from recommender.csvtext import Row, read_csv, refuse_all
from recommender.errors import UsageError
from recommender.job import Run
from recommender.text import shown, unknown
from recommender.units import parse_count, parse_whole

Data = Literal["", "synthetic", "cached", "cold"]
_DATA = ("synthetic", "cached", "cold")
_REQUIRED = ("machines",)
_OPTIONAL = ("instance", "gpu", "gpus", "batch", "step_s", "samples_per_s", "data")
_SYNONYMS = {
    "instance_type": "instance", "nodes": "machines", "global_batch": "batch",
    "seconds_per_step": "step_s", "s_per_step": "step_s",
}  # fmt: skip
MOST_RUNS = 1000  # a handful is enough; more is a log, not a table of runs
_EITHER = (("instance", "gpu"), ("step_s", "samples_per_s"))


def read_runs(path: Path, types: Iterable[InstanceType], batch: int) -> tuple[Run, ...]:
    """Read timed runs; every bad row is reported at once.

    Columns: machines; instance or gpu; step_s (seconds) or samples_per_s; optional gpus (in all;
    of whole machines where an instance is named), batch (samples of one step, of all GPUs; else
    `batch`, the job's) and data (synthetic, cached or cold). A row with data on some GPUs of a
    machine and no batch had the share of the job's batch that these GPUs have in a whole one:
    stalls are differences at one batch per GPU. A GPU without an instance is taken for the
    catalog's machine with the nearest number of them.
    """
    rows = read_csv(path, _REQUIRED, _OPTIONAL, _SYNONYMS)
    if len(rows) > MOST_RUNS:
        raise UsageError(
            f"{shown(path.name)}: {len(rows)} runs; at most {MOST_RUNS}, one row for each set-up"
        )
    machines = tuple(sorted((t for t in types if t.gpus), key=lambda t: (t.provider, t.gpus)))
    runs: list[Run] = []
    problems: list[str] = []
    for row in rows:
        try:
            runs.append(_run(row, machines, batch))
        except UsageError as error:
            problems += error.problems
    refuse_all(problems)
    return tuple(runs)


def _run(row: Row, machines: tuple[InstanceType, ...], batch: int) -> Run:
    problems = [
        f"{row.place}: has neither {one} nor {other}; write one of them"
        if one not in row.cells
        else f"{row.place}: has both {one} and {other}; keep one of them"
        for one, other in _EITHER
        if (one in row.cells) == (other in row.cells)
    ]
    if "machines" not in row.cells:
        problems.append(f"{row.where('machines')} is empty")
    refuse_all(problems)
    count = parse_whole(row.cells["machines"], row.where("machines"))
    gpus = _whole(row, "gpus", 0)
    machine = _machine(row, machines, count, gpus)
    gpus = gpus or count * machine.gpus
    share = gpus / (count * machine.gpus) if "data" in row.cells else 1.0
    size = _whole(row, "batch", max(round(batch * share), gpus) if share < 1.0 else batch)
    _refuse_shape(row, machine, count, gpus, size)
    return Run(
        place=row.place,
        machine=f"{machine.provider}/{machine.instance_type}",
        gpu=machine.gpu,
        gpus=gpus,
        machines=count,
        batch=size,
        step_s=_step_s(row, size),
        data=_data(row),
    )


def _machine(row: Row, machines: tuple[InstanceType, ...], count: int, gpus: int) -> InstanceType:
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


def _refuse_shape(row: Row, machine: InstanceType, count: int, gpus: int, batch: int) -> None:
    """Refuse clusters that no machine of that type makes."""
    if gpus < count or gpus > count * machine.gpus:
        fits = f"{machine.instance_type} has {machine.gpus}"
        raise UsageError(f"{row.where('gpus')} {gpus} GPUs on {count} machines; {fits} each")
    if batch < gpus:
        raise UsageError(
            f"{row.where('batch')} {batch} samples on {gpus} GPUs: less than one each; "
            "write the batch of all GPUs"
        )


def _whole(row: Row, column: str, default: int) -> int:
    text = row.cells.get(column)
    return default if text is None else parse_whole(text, row.where(column))


def _step_s(row: Row, batch: int) -> float:
    if "step_s" in row.cells:
        return _rate(row, "step_s", "write seconds, such as 0.35")
    return batch / _rate(row, "samples_per_s", "write samples a second, such as 1450")


def _rate(row: Row, column: str, instead: str) -> float:
    return parse_count(row.cells[column], row.where(column), instead=instead)


def _data(row: Row) -> Data:
    word = row.cells.get("data", "")
    if word.lower() not in ("", *_DATA):
        raise UsageError(f"{row.where('data')} {unknown('value', shown(word), _DATA)}")
    return cast(Data, word.lower())
