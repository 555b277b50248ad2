"""The user's folder of benchmark records: imports, and the two short tables that plans read."""

import csv
import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from recommender.benchmarks import figures
from recommender.benchmarks.errors import BadRecord, BenchError
from recommender.benchmarks.record import Record, parse_record, read_record
from recommender.catalogs.catalog import OWN_BENCH_SOURCE, Catalog, with_machines, with_speeds
from recommender.catalogs.errors import RecommendError
from recommender.catalogs.files import replace_file
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.schema import InstanceType, OwnSpeed
from recommender.errors import RecordError, UsageError
from recommender.inputs.csv_text import CsvRow, read_csv
from recommender.inputs.files import read_text
from recommender.inputs.units import parse_count
from recommender.performance.measurements import LINKS, SPEEDS, folder
from recommender.performance.measurements.pool import (
    Links,
    Pooled,
    StoredRecord,
    catalog_gpu,
    impossible,
    links_of,
    pooled,
    too_small,
)
from recommender.text import shown

T = TypeVar("T")
_COLUMNS = ("gpu", "precision", "tflops", "low_tflops", "high_tflops", "machines", "as_of")
_MEMORY = "memory_gb_per_s"
_LINK_COLUMNS = ("provider", "instance_type", "as_of")
_LINK_RATES = ("intra_gb_per_s", "network_gb_per_s", "host_gb_per_s")
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")  # that plans know
_FAR = 0.25  # from the shipped range: worth a word
_MAX_BYTES = 10 * 2**20


def file_name(gpu: str, text: str) -> str:
    """The file name of a record, from its GPU and its contents."""
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return f"{gpu or 'cpu'}.{digest}.json"


def gpu_of(path: Path) -> str:
    """The catalog's name of the GPU of a kept record."""
    name = path.name.rsplit(".", 2)[0]
    return "" if name == "cpu" else name


def save_new(place: Path, name: str, text: str) -> bool:
    """Write a record; return whether it is new."""
    place.mkdir(parents=True, exist_ok=True)
    if (place / name).exists():
        return False
    replace_file(place / name, text.encode("utf-8"))
    return True


def write_speeds(place: Path, speeds: Sequence[Pooled]) -> None:
    """Write the table of matrix speeds for plans; without any GPU there is none."""
    rows = [
        [s.gpu, s.precision, *map(_number, (s.tflops, s.low, s.high)), s.machines, s.as_of,
         _number(s.memory_gb_per_s)]
        for s in speeds
        if s.precision in _PRECISIONS
    ]  # fmt: skip
    _write(place / SPEEDS, (*_COLUMNS, _MEMORY), rows)


def write_links(place: Path, links: Sequence[Links]) -> None:
    """Write the table of instance types' links for plans; without any there is none."""
    rows = [
        [each.provider, each.instance_type, each.as_of,
         *(_number(getattr(each, name)) for name in _LINK_RATES)]
        for each in links
    ]  # fmt: skip
    _write(place / LINKS, (*_LINK_COLUMNS, *_LINK_RATES), rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if not rows:
        path.unlink(missing_ok=True)
        return
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator="\n")
    out.writerow(header)
    out.writerows(rows)
    replace_file(path, text.getvalue().encode("utf-8"))


def with_own_speeds(catalog: Catalog, place: Path | None = None) -> Catalog:
    """The catalog with the user's speeds and links instead of the shipped ones.

    Raises UsageError if a table cannot be read; `recommend bench import` writes it again.
    """
    own = place or folder()
    rows = _rows(own / SPEEDS, _COLUMNS, (_MEMORY,), lambda row: _speed(row, catalog))
    machines = _rows(own / LINKS, _LINK_COLUMNS, _LINK_RATES, lambda row: _machine(row, catalog))
    known = with_speeds(catalog, [row for row in rows if row.gpu in catalog.gpus])
    return with_machines(known, [machine for machine in machines if machine is not None])


def _rows(
    path: Path, required: Sequence[str], optional: Sequence[str], read: Callable[[CsvRow], T]
) -> list[T]:
    if not path.is_file():
        return []
    try:
        return [read(row) for row in read_csv(path, required, optional, {})]
    except UsageError as error:
        sentences = [*error.problems, f"{path} is written by recommend bench import: remove it"]
        raise UsageError(*sentences) from None


def _speed(row: CsvRow, catalog: Catalog) -> OwnSpeed:
    low, middle, high = (
        parse_count(row.cells.get(name, ""), row.where(name))
        for name in ("low_tflops", "tflops", "high_tflops")
    )
    if not low <= middle <= high or row.cells.get("precision") not in _PRECISIONS:
        raise UsageError(f"{row.place}: is no speed of a GPU")
    gpu, precision = row.cells.get("gpu", ""), row.cells["precision"]
    return OwnSpeed(
        gpu, precision, middle, low, high, "measured", OWN_BENCH_SOURCE.source,
        row.cells.get("as_of", ""), catalog.achieved.get((gpu, precision)), _maybe(row, _MEMORY),
    )  # fmt: skip


def _machine(row: CsvRow, catalog: Catalog) -> InstanceType | None:
    """The catalog's instance type with the user's links; None where the catalog has none."""
    from recommender.performance.machines import listed_gbit  # only own links need it

    known = catalog.instance_types.get(
        (row.cells.get("provider", ""), row.cells.get("instance_type", ""))
    )
    intra, network, host = (_maybe(row, name) for name in _LINK_RATES)
    if known is None:
        return None
    gbit = listed_gbit(known, network * 1e9) if network else known.network_gbit_per_s
    return replace(
        known,
        intra_gb_per_s=intra or known.intra_gb_per_s,
        network_gbit_per_s=gbit,
        network_basis="measured" if network else known.network_basis,
        host_gb_per_s=host or known.host_gb_per_s,
        source=OWN_BENCH_SOURCE.source,
    )


def _maybe(row: CsvRow, name: str) -> float | None:
    return parse_count(row.cells[name], row.where(name)) if name in row.cells else None


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    added: tuple[str, ...]  # one line per file
    pooled: tuple[Pooled, ...]
    links: tuple[Links, ...]
    warnings: tuple[str, ...]
    folder: Path


def import_files(paths: Sequence[Path], catalog: Catalog, gpu: str | None) -> Imported:
    """Check every file, import all or none, and pool all records.

    Raises UsageError with everything that is wrong with any of them.
    """
    read: list[tuple[Path, str, StoredRecord]] = []
    problems: list[str] = []
    for path in paths:
        try:
            read.append((path, *checked(path, catalog, gpu)))
        except RecommendError as error:
            problems += str(error).splitlines()
    if problems:
        raise UsageError(*problems)
    place, added, warnings = folder(), [], []
    for path, text, each in read:
        new = save_new(place, file_name(each.gpu, text), text)
        added.append(f"{shown(path.name)}: {_what(each)}{'' if new else ', known already'}")
        warnings += _doubts(path, each, catalog)
    every = records(place)
    found, links = pooled(every, dict(catalog.gpus)), links_of(every, catalog)
    write_speeds(place, found)
    write_links(place, links)
    warnings += [
        f"{s.gpu} {s.precision}: {s.outliers} of {s.machines} machines are more than 10 % off "
        "the median; look at them with recommend bench compare"
        for s in found
        if s.outliers
    ]
    return Imported(tuple(added), found, links, tuple(warnings), place)


def records(place: Path) -> list[StoredRecord]:
    """Every imported record. Raises RecordError for one that was changed since its import."""
    paths = sorted(place.glob("*.*.json")) if place.is_dir() else []
    return [StoredRecord(gpu_of(path), usable(partial(read_record, path))) for path in paths]


def usable(read: Callable[[], T]) -> T:
    """Convert errors of the stand-alone benchmarks to ours."""
    try:
        return read()
    except BadRecord as error:
        raise RecordError(str(error)) from None
    except BenchError as error:
        raise UsageError(str(error)) from None


def checked(path: Path, catalog: Catalog, gpu: str | None) -> tuple[str, StoredRecord]:
    """A file's text, and its record with the catalog's name of its GPU.

    Raises RecordError with everything that is wrong with it.
    """
    text = read_text(path, _MAX_BYTES)
    record = usable(lambda: parse_record(text, shown(path.name)))
    if not record.machine.gpu or record.device == "cpu":
        return text, StoredRecord("", record)
    place = record.place
    try:
        name = catalog_gpu(catalog, record.machine.gpu, place.provider, place.instance_type, gpu)
    except RecordError as error:
        raise RecordError(f"{shown(path.name)}: {error}") from None
    wrong = impossible(record, catalog.gpus.get(name))
    if gpu is None:
        wrong += too_small(record, catalog.gpus.get(name))
    if wrong:
        raise RecordError("\n".join(f"{shown(path.name)}: {each}" for each in wrong))
    return text, StoredRecord(name, record)


def _what(each: StoredRecord) -> str:
    own: Record = each.record
    where = " ".join(word for word in (own.place.instance_type, own.place.region) if word)
    device = each.gpu or own.machine.processor
    return f"{device}{f' ({where})' if where else ''}, {own.suite} suite of {own.taken_at[:10]}"


def _doubts(path: Path, each: StoredRecord, catalog: Catalog) -> list[str]:
    """What is usable and yet worth a word: disturbed, or far from what was published."""
    name = shown(path.name)
    sentences = []
    count = figures.disturbed(each.record.results)
    if count:
        sentences.append(f"{name}: {count} of {len(each.record.results)} cases were disturbed")
    for speed in figures.speeds(each.record):
        known = catalog.achieved.get((each.gpu, speed.precision))
        if known is None or known.kind == "fallback":
            continue
        low, high = (1 - _FAR) * known.low_tflops, (1 + _FAR) * known.high_tflops
        if not low <= speed.typical <= high:
            sentences.append(
                f"{name}: {each.gpu} {speed.precision} {speed.typical:.3g} TFLOP/s; published "
                f"are {known.low_tflops:g} to {known.high_tflops:g}"
            )
    return sentences
