"""The rows of a batch: as JSON lines, as Parquet partitioned by deadline, as a page."""

import json
import shutil
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from recommender.catalogs.files import replace_file
from recommender.errors import UsageError
from recommender.inputs.files import writing
from recommender.report import formatting as fmt
from recommender.report.page import Page, headings
from recommender.text import shown_path

Row = dict[str, Any]
SCHEMA = "recommend.batch/v1"
MISSING = "-o FILE.parquet needs pyarrow: pip install pyarrow; or name a .jsonl"
# Every column and its type in Parquet, in their order.
COLUMNS = {
    **dict.fromkeys(("job", "file", "status", "message"), "string"),
    **dict.fromkeys(("deadline_s", "budget_usd"), "float64"),
    "rank": "int32",
    **dict.fromkeys(("machines", "provider", "region", "gpu"), "string"),
    "gpus": "int32",
    "fallback": "string",
    **dict.fromkeys(("cost_usd", "cost_usd_p05", "cost_usd_p50", "cost_usd_p95"), "float64"),
    **dict.fromkeys(("time_s_p05", "time_s_p50", "time_s_p95"), "float64"),
    **dict.fromkeys(("chance", "interruptions", "usd_per_hour"), "float64"),
    "needs": "string",  # JSON: the quotas it needs
    **dict.fromkeys(("catalog", "as_of"), "string"),
}
PARTITION = "deadline"
ALL = "none"  # its value where there is no deadline


def json_lines(rows: Iterable[Row]) -> str:
    """Every row as an object on a line of its own."""
    return "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in rows)


def check_target(path: Path) -> None:
    """Refuse a file that no batch writes, before anything is planned."""
    if path.suffix not in (".parquet", ".jsonl"):
        raise UsageError(f"-o {shown_path(path)}: plans are written to .parquet or .jsonl")
    if path.suffix == ".parquet":
        _pyarrow()
        _old_parts(path)


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the rows whole or not at all; the same rows are the same bytes."""
    with writing(f"-o {shown_path(path)}"):
        if path.suffix == ".jsonl":
            replace_file(path, json_lines(rows).encode())
        else:
            _write_parquet(rows, path)


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(MISSING) from None


def _old_parts(folder: Path) -> list[Path]:
    """The parts of an earlier batch there; nothing else is replaced."""
    parts = sorted(folder.iterdir()) if folder.is_dir() else []
    if folder.is_file() or not all(each.name.startswith(f"{PARTITION}=") for each in parts):
        raise UsageError(f"-o {shown_path(folder)}: is not a folder of a batch; name another")
    return parts


def _write_parquet(rows: Sequence[Row], folder: Path) -> None:
    """A file for each deadline: pandas, polars and DuckDB read the folder as one table."""
    pyarrow, parquet = _pyarrow()
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    of_each: dict[str, list[Row]] = {}
    for row in rows:
        flat = {**row, "needs": json.dumps(row["needs"]) if row.get("needs") else None}
        of_each.setdefault(row.get(PARTITION) or ALL, []).append(flat)
    for old in _old_parts(folder):
        if old.name.partition("=")[2] not in of_each:
            shutil.rmtree(old)
    for value, some in of_each.items():
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.Table.from_pylist(some, schema=schema), sink)
        part = folder / f"{PARTITION}={value}"
        part.mkdir(parents=True, exist_ok=True)
        replace_file(part / "plans.parquet", sink.getvalue().to_pybytes())


def batch_page(rows: Sequence[Row], version: str) -> Page:
    """The best plan of every job under every limit."""
    columns = headings("job:", "deadline:", "plan:", "place:", "USD", "median time", "chance")
    return Page(
        title=f"{fmt.plural(len({row['file'] for row in rows}), 'job')}, catalog {version}",
        columns=columns,
        rows=tuple(_cells(row) for row in rows),
        flexible=2,
        facts={"schema": SCHEMA, "rows": list(rows)},
    )


def _cells(row: Row) -> tuple[str, ...]:
    if row["status"] != "ok":
        said = row["message"] or "no plan meets it"
        return (row["job"], row.get(PARTITION, ""), fmt.clean(said), "", "", "", "")
    return (
        fmt.clean(row["job"]),
        row[PARTITION],
        row["machines"],
        f"{row['provider']} {row['region']}",
        f"{row['cost_usd']:,.2f}",
        f"{row['time_s_p50'] / 3600:.1f} h",
        f"{row['chance']:.0%}",
    )
