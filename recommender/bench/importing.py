"""Merges records of measurements into the user's folder, each checked before any is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks import figures
from benchmarks.errors import BadRecord, BenchError
from benchmarks.reading import parse_record, read_record
from benchmarks.record import Record
from catalogs.catalog import Catalog
from recommender.bench import store
from recommender.bench.figures import Links, Pooled
from recommender.bench.links import links_of
from recommender.bench.names import catalog_gpu
from recommender.bench.place import folder
from recommender.bench.pool import Kept, impossible, pooled, too_small
from recommender.errors import RecommendError, RecordError, UsageError
from recommender.text import shown
from recommender.wholefile import read_text

T = TypeVar("T")
_FAR = 0.25  # from the shipped range: worth a word
_MOST_BYTES = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    added: tuple[str, ...]  # one line per file
    pooled: tuple[Pooled, ...]
    links: tuple[Links, ...]
    warnings: tuple[str, ...]
    folder: Path


def import_files(paths: Sequence[Path], catalog: Catalog, gpu: str | None) -> Imported:
    """Check every file, keep them all or none, pool what is there.

    Raises UsageError with everything that is wrong with any of them.
    """
    read: list[tuple[Path, str, Kept]] = []
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
        new = store.keep(place, store.file_name(each.gpu, text), text)
        added.append(f"{shown(path.name)}: {_what(each)}{'' if new else ', known already'}")
        warnings += _doubts(path, each, catalog)
    every = records(place)
    found, links = pooled(every, dict(catalog.gpus)), links_of(every, catalog)
    store.write_speeds(place, found)
    store.write_links(place, links)
    warnings += [
        f"{s.gpu} {s.precision}: {s.outliers} of {s.machines} machines are more than 10 % off "
        "the median; look at them with recommend bench compare"
        for s in found
        if s.outliers
    ]
    return Imported(tuple(added), found, links, tuple(warnings), place)


def records(place: Path) -> list[Kept]:
    """Every record that was imported. Raises RecordError for one that was changed since."""
    paths = sorted(place.glob("*.*.json")) if place.is_dir() else []
    return [Kept(store.gpu_of(path), usable(partial(read_record, path))) for path in paths]


def usable(read: Callable[[], T]) -> T:
    """Turn the refusals of the stand-alone benchmarks into ours."""
    try:
        return read()
    except BadRecord as error:
        raise RecordError(str(error)) from None
    except BenchError as error:
        raise UsageError(str(error)) from None


def checked(path: Path, catalog: Catalog, gpu: str | None) -> tuple[str, Kept]:
    """A file's text, and its record with the catalog's name of its GPU.

    Raises RecordError with everything that is wrong with it.
    """
    text = read_text(path, _MOST_BYTES)
    record = usable(lambda: parse_record(text, shown(path.name)))
    if not record.machine.gpu or record.device == "cpu":
        return text, Kept("", record)
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
    return text, Kept(name, record)


def _what(each: Kept) -> str:
    own: Record = each.record
    where = " ".join(word for word in (own.place.instance_type, own.place.region) if word)
    device = each.gpu or own.machine.processor
    return f"{device}{f' ({where})' if where else ''}, {own.suite} suite of {own.taken_at[:10]}"


def _doubts(path: Path, each: Kept, catalog: Catalog) -> list[str]:
    """What is usable and yet worth a word: disturbed, or far from what was published."""
    name = shown(path.name)
    said = []
    count = figures.disturbed(each.record.results)
    if count:
        said.append(f"{name}: {count} of {len(each.record.results)} cases were disturbed")
    for speed in figures.speeds(each.record):
        known = catalog.achieved.get((each.gpu, speed.precision))
        if known is None or known.kind == "fallback":
            continue
        low, high = (1 - _FAR) * known.low_tflops, (1 + _FAR) * known.high_tflops
        if not low <= speed.typical <= high:
            said.append(
                f"{name}: {each.gpu} {speed.precision} {speed.typical:.3g} TFLOP/s; published "
                f"are {known.low_tflops:g} to {known.high_tflops:g}"
            )
    return said
