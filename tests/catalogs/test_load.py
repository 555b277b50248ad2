"""A catalog loads as a whole or is refused with a message that says why."""

import csv
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recommender.catalogs.errors import CatalogError, RecommendError
from recommender.catalogs.load import load, load_snapshot
from recommender.catalogs.serialize import write_catalog
from recommender.catalogs.tables import TABLES, _numbers, _optional_numbers
from tests.catalogs import small


def rewrite(folder: Path, name: str, old: str, new: str) -> None:
    """Change the text of a table and put the new sha256 into the manifest."""
    path = folder / TABLES[name].file
    text = gzip.decompress(path.read_bytes()).decode()
    assert old in text
    changed = gzip.compress(text.replace(old, new, 1).encode(), mtime=0)
    path.write_bytes(changed)
    resign(folder, name, changed)


def resign(folder: Path, name: str, content: bytes) -> None:
    """Make the manifest agree with a changed file."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"][name]["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def edit_manifest(folder: Path, key: str, value: object) -> None:
    """Change one entry of the manifest."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest[key] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_written_catalog_comes_back_as_it_was(tmp_path: Path) -> None:
    catalog = load(small.written(tmp_path))
    assert sorted(catalog.offers, key=lambda o: o.market) == [small.offer(), small.spot()]
    assert catalog.instance_types == {("aws", "g4dn.xlarge"): small.machine()}
    assert catalog.gpus == {"T4": small.gpu()}
    assert catalog.achieved == {("T4", "fp16"): small.achieved()}


def test_every_table_of_the_snapshot_survives_being_written_again(tmp_path: Path) -> None:
    shipped = load_snapshot()
    rows = {
        "offers": list(shipped.offers),
        "instance_types": list(shipped.instance_types.values()),
        "gpus": list(shipped.gpus.values()),
        "achieved": list(shipped.achieved.values()),
    }
    rows |= {name: list(getattr(shipped, name)) for name in TABLES if name not in rows}
    write_catalog(tmp_path, rows)
    assert load(tmp_path).sha256 == shipped.sha256


def test_the_path_of_the_manifest_does_as_well_as_the_folder(tmp_path: Path) -> None:
    folder = small.written(tmp_path)
    assert load(folder / "manifest.json").sha256 == load(folder).sha256


def test_tables_that_an_own_catalog_lacks_come_from_the_snapshot(tmp_path: Path) -> None:
    catalog, shipped = load(small.written(tmp_path)), load_snapshot()
    assert [row.name for row in catalog.quotas] == [row.name for row in shipped.quotas]
    assert len(catalog.egress) == len(shipped.egress)


def test_lent_rows_keep_their_sources(tmp_path: Path) -> None:
    catalog, shipped = load(small.written(tmp_path)), load_snapshot()
    lent, original = catalog.quotas[0], shipped.quotas[0]
    name = shipped.source_by_key[original.source].name
    assert catalog.source_by_key[lent.source].name == name
    assert catalog.source_by_key[1].name == "own price list"


def test_the_version_names_the_newest_price_and_the_content(tmp_path: Path) -> None:
    catalog = load(small.written(tmp_path))
    assert catalog.version == f"2026-08-21-{catalog.sha256[:8]}"


def test_price_dates_are_given_by_provider_and_market(tmp_path: Path) -> None:
    def older(tables: dict[str, list[object]]) -> None:
        tables["offers"].append(small.offer(region="us-west-2", as_of="2026-01-21"))

    on_demand, spot = load(small.written(tmp_path, older)).price_dates()
    assert (on_demand.oldest, on_demand.newest, on_demand.offers) == ("2026-01-21", "2026-08-21", 2)
    assert (spot.market, spot.offers) == ("spot", 1)


def test_a_missing_catalog_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no catalog here"):
        load(tmp_path / "nowhere")


def test_a_refusal_is_one_that_users_see() -> None:
    assert issubclass(CatalogError, RecommendError)


def test_a_truncated_table_is_refused(tmp_path: Path) -> None:
    path = small.written(tmp_path) / "offers.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CatalogError, match="sha256 differs"):
        load(tmp_path)


def test_a_truncated_table_is_refused_even_if_the_manifest_was_made_from_it(
    tmp_path: Path,
) -> None:
    path = small.written(tmp_path) / "offers.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    resign(tmp_path, "offers", path.read_bytes())
    with pytest.raises(CatalogError, match="not a table"):
        load(tmp_path)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(sorted(small.tables())), st.integers(0, 2**20), st.integers(0, 7))
def test_no_flipped_bit_goes_unnoticed(tmp_path: Path, name: str, at: int, bit: int) -> None:
    path = small.written(tmp_path) / TABLES[name].file
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << bit
    path.write_bytes(content)
    with pytest.raises(CatalogError, match="sha256 differs"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "offers.csv.gz"])
def test_a_pipe_in_a_catalog_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = small.written(tmp_path / "catalog")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(CatalogError, match="no plain file"):
        load(folder)


@pytest.mark.parametrize("error", [float("nan"), float("inf"), -0.1, 1.0])
def test_an_uncertainty_that_is_no_share_is_refused(tmp_path: Path, error: float) -> None:
    """NaN, which is found at no place of a list, was an internal error."""

    def change(tables: dict[str, list[object]]) -> None:
        tables["offers"] = [small.offer(uncertainty=error)]

    with pytest.raises(CatalogError, match="uncertainty .* is not in|uncertainty: .* not finite"):
        load(small.written(tmp_path, change))


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize("parse", [_numbers, _optional_numbers])
def test_no_table_holds_a_number_that_is_not_finite(
    parse: Callable[[list[str]], object], number: str
) -> None:
    with pytest.raises(ValueError, match="not finite"):
        parse(["1", number])


def test_a_missing_table_file_is_refused(tmp_path: Path) -> None:
    (small.written(tmp_path) / "gpus.csv.gz").unlink()
    with pytest.raises(CatalogError, match=r"gpus.csv.gz: cannot be read"):
        load(tmp_path)


def test_a_catalog_without_offers_in_its_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="lists no table offers"):
        load(small.written(tmp_path, lambda tables: tables.pop("offers") and None))


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    edit_manifest(small.written(tmp_path), "schema_version", 2)
    with pytest.raises(CatalogError, match="schema version 2; this program reads 1"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema_version": 1}', "\udcff"])
def test_a_broken_manifest_is_refused(tmp_path: Path, text: str) -> None:
    path = small.written(tmp_path) / "manifest.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CatalogError, match=r"manifest\.json"):
        load(tmp_path)


def test_an_unknown_table_is_refused(tmp_path: Path) -> None:
    manifest = json.loads((small.written(tmp_path) / "manifest.json").read_text())
    edit_manifest(tmp_path, "tables", manifest["tables"] | {"tpus": {"sha256": "", "rows": 0}})
    with pytest.raises(CatalogError, match="unknown table 'tpus'"):
        load(tmp_path)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    rewrite(small.written(tmp_path), "gpus", ",watts", "")
    with pytest.raises(CatalogError, match="broken|missing: \\['watts'\\]"):
        load(tmp_path)


def test_a_table_of_an_older_program_lacks_the_last_columns_only(tmp_path: Path) -> None:
    rules = [replace(rule, source=1) for rule in load_snapshot().billing]
    write_catalog(tmp_path, small.tables() | {"billing": rules})
    table, path = TABLES["billing"], tmp_path / TABLES["billing"].file
    text = gzip.decompress(path.read_bytes()).decode()
    width = len(table.columns) - len(table.later)
    older = [",".join(line.split(",")[:width]) for line in text.splitlines()]

    def put(lines: list[str]) -> None:
        content = gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0)
        path.write_bytes(content)
        resign(tmp_path, "billing", content)

    put(older)
    found = load(tmp_path).billing
    keyed = sorted((replace(rule, **table.later) for rule in rules), key=table.identity())
    assert keyed == list(found)
    put([",".join(line.split(",")[:-1]) for line in older])
    with pytest.raises(CatalogError, match="missing"):
        load(tmp_path)


def test_an_extra_column_is_named(tmp_path: Path) -> None:
    folder = small.written(tmp_path)
    rewrite(folder, "gpus", ",as_of\n", ",as_of,colour\n")
    rewrite(folder, "gpus", ",2026-08-01\n", ",2026-08-01,green\n")
    with pytest.raises(CatalogError, match=r"unknown: \['colour'\]"):
        load(tmp_path)


def test_a_renamed_column_is_named(tmp_path: Path) -> None:
    rewrite(small.written(tmp_path), "gpus", ",watts", ",tdp")
    with pytest.raises(CatalogError, match=r"missing: \['watts'\], unknown: \['tdp'\]"):
        load(tmp_path)


def test_a_row_with_a_cell_too_few_is_refused(tmp_path: Path) -> None:
    rewrite(small.written(tmp_path), "gpus", "T4,nvidia", "T4")
    with pytest.raises(CatalogError, match="a row is broken"):
        load(tmp_path)


def test_a_number_of_rows_other_than_promised_is_refused(tmp_path: Path) -> None:
    manifest = json.loads((small.written(tmp_path) / "manifest.json").read_text())
    manifest["tables"]["offers"]["rows"] = 3
    edit_manifest(tmp_path, "tables", manifest["tables"])
    with pytest.raises(CatalogError, match="2 rows; the manifest says 3"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("table", "old", "new", "column"),
    [
        ("offers", "0.526", "cheap", "usd_per_hour"),
        ("offers", "0.526", "", "usd_per_hour"),
        ("offers", "on_demand", "flex", "market"),
        ("offers", "aws", "ebay", "provider"),
        ("instance_types", ",16384,4,", ",16384,4.5,", "vcpus"),
        ("gpus", ",2018,", ",late,", "released"),
    ],
)
def test_a_wrong_value_is_refused_by_column(
    tmp_path: Path, table: str, old: str, new: str, column: str
) -> None:
    rewrite(small.written(tmp_path), table, old, new)
    with pytest.raises(CatalogError, match=f"column {column}"):
        load(tmp_path)


def test_text_with_commas_and_quotes_survives(tmp_path: Path) -> None:
    def quoted(tables: dict[str, list[object]]) -> None:
        tables["sources"] = [replace(small.tables()["sources"][0], name='a, "b"')]

    assert load(small.written(tmp_path, quoted)).source_by_key[1].name == 'a, "b"'


def test_two_rows_of_one_key_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two rows for"):
        small.written(tmp_path, lambda tables: tables["offers"].append(small.offer()))


def test_writing_twice_gives_the_same_bytes_in_any_order_of_rows(tmp_path: Path) -> None:
    first = small.written(tmp_path / "first")
    second = small.written(tmp_path / "second", lambda tables: tables["offers"].reverse())
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_empty_cells_mean_unknown(tmp_path: Path) -> None:
    load(small.written(tmp_path))
    text = gzip.decompress((tmp_path / "gpus.csv.gz").read_bytes()).decode()
    row = next(csv.DictReader(text.splitlines()))
    assert row["peak_bf16_tflops"] == ""


def test_loading_needs_no_heavy_package() -> None:
    code = (
        "import sys; from recommender.catalogs.load import load_snapshot; load_snapshot(); "
        "print([m for m in ('numpy', 'pandas', 'pydantic', 'recommender.job') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
