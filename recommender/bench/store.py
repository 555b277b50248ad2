"""The user's folder of records, and the two short tables that plans read from it."""

import csv
import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from catalogs.catalog import Catalog
from catalogs.extend import OWN_BENCH_SOURCE, with_machines, with_speeds
from catalogs.schema import InstanceType, OwnSpeed
from recommender.bench.figures import Links, Pooled
from recommender.bench.place import LINKS, SPEEDS, folder
from recommender.csvtext import Row, read_csv
from recommender.errors import UsageError
from recommender.units import parse_count
from recommender.wholefile import write_whole

T = TypeVar("T")
_COLUMNS = ("gpu", "precision", "tflops", "low_tflops", "high_tflops", "machines", "as_of")
_MEMORY = "memory_gb_per_s"
_LINK_COLUMNS = ("provider", "instance_type", "as_of")
_LINK_RATES = ("intra_gb_per_s", "network_gb_per_s", "host_gb_per_s")
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")  # that plans know


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
    """Write the table of matrix speeds that plans read; without any GPU there is none."""
    rows = [
        [s.gpu, s.precision, *map(_number, (s.tflops, s.low, s.high)), s.machines, s.as_of,
         _number(s.memory_gb_per_s)]
        for s in speeds
        if s.precision in _PRECISIONS
    ]  # fmt: skip
    _write(place / SPEEDS, (*_COLUMNS, _MEMORY), rows)


def write_links(place: Path, links: Sequence[Links]) -> None:
    """Write the table of instance types' links that plans read; without any there is none."""
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
    write_whole(path, text.getvalue().encode("utf-8"))


def with_own_speeds(catalog: Catalog, place: Path | None = None) -> Catalog:
    """The catalog with the user's speeds and links in place of the shipped ones.

    Raises UsageError where a table cannot be read; `recommend bench import` writes them anew.
    """
    own = place or folder()
    rows = _rows(own / SPEEDS, _COLUMNS, (_MEMORY,), lambda row: _speed(row, catalog))
    machines = _rows(own / LINKS, _LINK_COLUMNS, _LINK_RATES, lambda row: _machine(row, catalog))
    known = with_speeds(catalog, [row for row in rows if row.gpu in catalog.gpus])
    return with_machines(known, [machine for machine in machines if machine is not None])


def _rows(
    path: Path, required: Sequence[str], optional: Sequence[str], read: Callable[[Row], T]
) -> list[T]:
    if not path.is_file():
        return []
    try:
        return [read(row) for row in read_csv(path, required, optional, {})]
    except UsageError as error:
        said = [*error.problems, f"{path} is written by recommend bench import: remove it"]
        raise UsageError(*said) from None


def _speed(row: Row, catalog: Catalog) -> OwnSpeed:
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


def _machine(row: Row, catalog: Catalog) -> InstanceType | None:
    """The catalog's instance type with the user's links; None where the catalog has none."""
    from recommender.performance.machines import listed_gbit

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


def _maybe(row: Row, name: str) -> float | None:
    return parse_count(row.cells[name], row.where(name)) if name in row.cells else None
