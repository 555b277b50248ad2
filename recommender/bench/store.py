"""The user's folder of records, and the short table of speeds that plans read from it."""

import csv
import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path

from catalogs.catalog import Catalog
from catalogs.extend import OWN_BENCH_SOURCE, with_speeds
from catalogs.schema import Achieved
from recommender.bench.figures import Pooled
from recommender.csvtext import Row, read_csv
from recommender.errors import UsageError
from recommender.units import parse_count
from recommender.wholefile import write_whole

SPEEDS = "speeds.csv"
_COLUMNS = ("gpu", "precision", "tflops", "low_tflops", "high_tflops", "machines", "as_of")
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")  # that plans know


def folder() -> Path:
    """Where imported records are kept: RECOMMEND_BENCH, else the user's data folder."""
    named = os.environ.get("RECOMMEND_BENCH", "")
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path("recommend", appauthor=False) / "bench"


def file_name(gpu: str, text: str) -> str:
    """The name under which a record is kept: its GPU, and what it holds."""
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return f"{gpu or 'cpu'}.{digest}.json"


def gpu_of(path: Path) -> str:
    """The catalog's name of the GPU of a kept record."""
    name = path.name.rsplit(".", 2)[0]
    return "" if name == "cpu" else name


def keep(place: Path, name: str, text: str) -> bool:
    """Write a record; tell whether it is new."""
    place.mkdir(parents=True, exist_ok=True)
    if (place / name).exists():
        return False
    write_whole(place / name, text.encode("utf-8"))
    return True


def write_speeds(place: Path, speeds: Sequence[Pooled]) -> None:
    """Write the table that plans read; without any GPU there is none."""
    rows = [s for s in speeds if s.precision in _PRECISIONS]
    if not rows:
        (place / SPEEDS).unlink(missing_ok=True)
        return
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator="\n")
    out.writerow(_COLUMNS)
    for s in rows:
        numbers = [f"{x:.6g}" for x in (s.tflops, s.low, s.high)]
        out.writerow([s.gpu, s.precision, *numbers, s.machines, s.as_of])
    write_whole(place / SPEEDS, text.getvalue().encode("utf-8"))


def with_own_speeds(catalog: Catalog, place: Path | None = None) -> Catalog:
    """The catalog with the user's speeds in place of the shipped ones.

    Raises UsageError where the table cannot be read; `recommend bench import` writes it anew.
    """
    path = (place or folder()) / SPEEDS
    if not path.is_file():
        return catalog
    try:
        rows = [_speed(row) for row in read_csv(path, _COLUMNS, (), {})]
    except UsageError as error:
        said = [*error.problems, f"{path} is written by recommend bench import: remove it"]
        raise UsageError(*said) from None
    return with_speeds(catalog, [row for row in rows if row.gpu in catalog.gpus])


def _speed(row: Row) -> Achieved:
    low, middle, high = (
        parse_count(row.cells.get(name, ""), row.where(name))
        for name in ("low_tflops", "tflops", "high_tflops")
    )
    if not low <= middle <= high or row.cells.get("precision") not in _PRECISIONS:
        raise UsageError(f"{row.place}: is no speed of a GPU")
    gpu, precision = row.cells.get("gpu", ""), row.cells["precision"]
    as_of = row.cells.get("as_of", "")
    return Achieved(gpu, precision, middle, low, high, "measured", OWN_BENCH_SOURCE.source, as_of)
