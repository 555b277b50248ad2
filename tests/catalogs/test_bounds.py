"""Texts that would take more memory than a program has are refused before they are split."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recommender.benchmarks.errors import BenchError
from recommender.benchmarks.record import read_record
from recommender.catalogs import bounds
from recommender.catalogs.archive import read_files
from recommender.catalogs.bounds import MAX_LINE, MAX_VALUES, check_json, check_table
from recommender.catalogs.errors import CatalogError, RecommendError
from recommender.catalogs.files import parse_json
from recommender.catalogs.load import load, load_snapshot
from recommender.catalogs.validation import read_canaries
from recommender.errors import UsageError, refuse_all
from recommender.inputs import settings
from recommender.inputs.csv_text import parse_csv
from recommender.inputs.quota_file import read_quotas
from recommender.inputs.toml_text import parse_toml
from recommender.inputs.yaml_text import load_yaml
from recommender.job.jobfile import find_job
from recommender.market.quota_rows import refuse_unknown_quotas
from recommender.traces.law_store import stored
from recommender.traces.read import read_traces
from recommender.train.progress_file import read_progress
from tests.catalogs import small


@pytest.mark.parametrize("unit", ["1,", "[],", "{},", '{"a":[1]},'])
def test_json_of_too_many_values_is_refused(unit: str) -> None:
    text = "[" + unit * (MAX_VALUES + 1) + "1]"
    for each in (text, text.encode()):
        with pytest.raises(ValueError, match="more than 5,000,000 values"):
            check_json(each)
    with pytest.raises(ValueError, match="more than 5,000,000 values"):
        parse_json(text)


def test_long_texts_of_few_values_are_read() -> None:
    assert parse_json(json.dumps(["x" * MAX_VALUES, 1]))[1] == 1


def test_a_malformed_line_is_refused_anywhere_in_the_file() -> None:
    row = "a,b\n" * 50_000
    for text in ("," * (MAX_LINE + 1), row + "," * (MAX_LINE + 1), "x" * (MAX_LINE + 2) + row):
        with pytest.raises(ValueError, match="line of more than"):
            check_table(text)
    check_table(row)
    check_table("x" * MAX_LINE + "\n" + "y" * MAX_LINE)


def test_lines_are_found_as_splitting_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_LINE", 5)
    draw = random.Random(1)
    for _ in range(2000):
        text = "".join(draw.choice("ab\n") for _ in range(draw.randrange(40)))
        longest = max(map(len, text.split("\n")))
        try:
            check_table(text)
            assert longest <= 5
        except ValueError:
            assert longest > 5


@pytest.mark.parametrize("read", [read_progress, read_record, read_canaries, read_traces])
def test_a_file_that_never_ends_is_left_after_what_can_be_held(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    endless = tmp_path / "endless.json"
    endless.symlink_to("/dev/zero")
    with pytest.raises((RecommendError, BenchError), match="larger than|more than|no plain file"):
        read(endless)


@pytest.mark.parametrize("name", ["manifest.json", "offers.csv.gz"])
def test_a_catalog_folder_with_a_file_that_never_ends_is_refused(name: str, tmp_path: Path) -> None:
    folder = small.written(tmp_path)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(CatalogError, match="no plain file"):
        load(folder)


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_CELLS", 100)
    check_table("a,b\n" * 25)
    with pytest.raises(ValueError, match="more than 100 cells"):
        check_table("a,b\n" * 60)


def bomb() -> bytes:
    """60 KB that unpack to sixty million commas."""
    return gzip.compress(b"," * 60_000_000, mtime=0)


def test_a_table_of_a_catalog_that_unpacks_to_commas_is_refused(tmp_path: Path) -> None:
    folder = small.written(tmp_path / "catalog")
    (folder / "offers.csv.gz").write_bytes(bomb())
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"]["offers"]["sha256"] = hashlib.sha256(bomb()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CatalogError, match="line of more than|more than .* cells"):
        load(folder)


def test_a_trace_that_unpacks_to_commas_is_refused(tmp_path: Path) -> None:
    for name, content in (("commas", bomb()), ("lists", gzip.compress(b"[" + b"[]," * 6_000_000))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError):
            read_traces(tmp_path / name)


def test_a_header_of_a_user_table_has_no_thousand_columns() -> None:
    with pytest.raises(UsageError, match="30001 columns; is it the right file"):
        parse_csv("a," * 30_000 + "a", "offers.csv", ("label",), (), {})


def test_of_many_problems_the_first_are_kept_and_the_others_counted() -> None:
    with pytest.raises(UsageError) as refused:
        refuse_all(f"problem {n}" for n in range(1_000))
    assert refused.value.problems[-2:] == ("problem 19", "and 980 more")


def test_more_problems_than_are_counted_are_not_looked_at() -> None:
    """Finding the word that was meant takes a millisecond: 99,000 regions took two minutes."""
    looked_at: list[int] = []

    def problems() -> Iterator[str]:
        for n in range(100_000):
            looked_at.append(n)
            yield f"problem {n}"

    with pytest.raises(UsageError) as refused:
        refuse_all(problems())
    assert refused.value.problems[-1] == "and 980 more at least"
    assert len(looked_at) == 1_001


WORDS = [f"nosuch{n}" for n in range(2_000)]


def unknown_job_keys(path: Path) -> None:
    path.write_text("schema: recommend.job/v1\n" + "".join(f"{word}: 1\n" for word in WORDS))
    find_job(str(path), path.parent)


def unknown_calibration(path: Path) -> None:
    keys = "".join(f"  {word}: 1\n" for word in WORDS)
    path.write_text(f"schema: recommend.job/v1\ncalibration:\n{keys}")
    find_job(str(path), path.parent)


def unknown_settings(path: Path) -> None:
    (path.parent / "recommend.toml").write_text("".join(f"{word} = 1\n" for word in WORDS))
    settings.load({}, path.parent, {}, path)


def unknown_quotas(path: Path) -> None:
    rows = "".join(f"aws,{word},{word},1\n" for word in WORDS)
    table = path.with_suffix(".csv")
    table.write_text(f"provider,family,region,amount\n{rows}")
    refuse_unknown_quotas(read_quotas(table), load_snapshot())


def unknown_laws(path: Path) -> None:
    laws = [{word: 1} for word in WORDS]
    path.write_text(json.dumps({"schema": "recommend.spot-laws/v2", "laws": laws}))
    stored(path)


def unknown_events(path: Path) -> None:
    path.write_text("t_s,event\n" + "".join(f"1,{word}\n" for word in WORDS))
    read_traces(path)


def keys_twice(path: Path) -> None:
    path.write_text("a: 1\n" * 2_000)
    load_yaml(path.read_text(), "x")


@pytest.mark.parametrize(
    "read",
    [
        unknown_job_keys, unknown_calibration, unknown_settings, unknown_quotas, unknown_laws,
        unknown_events, keys_twice,
    ],
)  # fmt: skip
def test_a_file_of_two_thousand_mistakes_is_refused_in_a_few_lines(
    read: Callable[[Path], None], tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path / "file.yaml")
    assert len(refused.value.problems) < 40
    assert "more at least" in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "a" + ".a" * 40_000 + " = 1",
        "[" + ".".join("a" * 40_000) + "]",
        'x = {"a"' + ' . "a"' * 40_000 + " = 1}",
        "x = " + ("{" + "a." * 45 + "a = ") * 20 + "1" + "}" * 20,
        "x = " + "[" * 5_000,
    ],
    ids=range(5),
)
def test_keys_of_many_parts_are_refused_before_each_beginning_is_kept(line: str) -> None:
    """As tomllib of Python 3.11 does: the first took 6 GB."""
    with pytest.raises(ValueError, match="more than 50 parts|nested too deeply"):
        parse_toml(line)


def test_keys_of_a_few_parts_are_read() -> None:
    found = parse_toml('a.b."c.d" = "e.f.g"\n[tool.recommend]\nregions = ["x.y"]\n')
    assert found == {"a": {"b": {"c.d": "e.f.g"}}, "tool": {"recommend": {"regions": ["x.y"]}}}


def test_a_trace_has_no_hundred_thousand_series(tmp_path: Path) -> None:
    rows = "".join(f"s{n},0,machines,1\ns{n},9,end,\n" for n in range(10_001))
    (tmp_path / "trace.csv").write_text(f"series,t_s,event,value\n{rows}")
    with pytest.raises(UsageError, match="more than 10,000 series"):
        read_traces(tmp_path / "trace.csv")


def test_a_file_of_canaries_has_a_size(tmp_path: Path) -> None:
    (tmp_path / "canaries.csv").write_text("provider\n" + "," * 2_000_000)
    with pytest.raises(CatalogError, match="larger than 1,000,000 bytes"):
        read_canaries(tmp_path / "canaries.csv")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_archive(device: str) -> None:
    with pytest.raises(CatalogError, match="no plain file"):
        read_files(Path(device))


def tar_of(size: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("catalog/manifest.json")
        entry.size = size
        tar.addfile(entry, io.BytesIO(b"0" * size))
    return out.getvalue()


@pytest.mark.parametrize("packed", ["gz", "bz2", "xz"])
def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[packed]
    path = tmp_path / f"bomb.tar.{packed}"
    path.write_bytes(pack(tar_of(1_000_000)))
    monkeypatch.setattr("recommender.catalogs.archive.MAX_BYTES", 500_000)
    with pytest.raises(CatalogError, match="unpacks to more than 500,000 bytes"):
        read_files(path)


@pytest.mark.parametrize("packed", ["", "gz", "bz2", "xz"])
def test_an_archive_of_any_packing_is_read(tmp_path: Path, packed: str) -> None:
    pack = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[packed]
    path = tmp_path / "c.tar"
    path.write_bytes(pack(tar_of(100)))
    assert read_files(path) == {"manifest.json": b"0" * 100}


def test_a_header_that_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    """tarfile would read as many bytes of a long name as its header says."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 8_000_000_000
    (tmp_path / "c.tar").write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + b"0" * 1024)
    with pytest.raises(CatalogError):
        read_files(tmp_path / "c.tar")


def zipped(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"{}" * 100)
    return path


@pytest.mark.parametrize(
    ("at", "value"),
    [(8, 99), (6, 1), (6, 0x40), (4, 255)],
    ids=["method", "encrypted", "strongly encrypted", "version"],
)
def test_a_zip_that_python_cannot_unpack_is_refused(tmp_path: Path, at: int, value: int) -> None:
    content = bytearray(zipped(tmp_path / "c.zip").read_bytes())
    central = content.index(b"PK\x01\x02")
    content[at], content[central + at + 2] = value, value
    (tmp_path / "c.zip").write_bytes(content)
    with pytest.raises(CatalogError, match="not a catalog archive"):
        read_files(tmp_path / "c.zip")


@pytest.mark.parametrize("packed", ["gz", "bz2", "xz"])
def test_a_damaged_archive_is_refused_wherever_it_is_damaged(tmp_path: Path, packed: str) -> None:
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[packed]
    good, draw = pack(tar_of(5000)), random.Random(packed)
    path = tmp_path / f"c.tar.{packed}"
    for _ in range(200):
        bad = bytearray(good)
        if draw.random() < 0.3:
            del bad[draw.randrange(len(bad)) :]
        for _ in range(draw.randrange(3) if bad else 0):
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        path.write_bytes(bad)
        try:
            read_files(path)
        except CatalogError:
            continue


def test_a_zip_of_a_million_files_is_refused_before_they_are_listed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        for number in range(101):
            archive.writestr(f"{number}", b"")
    with pytest.raises(CatalogError, match="more than 100 files"):
        read_files(tmp_path / "c.zip")


def test_a_tar_of_many_files_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "c.tar", "w") as archive:
        for number in range(101):
            archive.addfile(tarfile.TarInfo(f"{number}"))
    with pytest.raises(CatalogError, match="more than 100 files"):
        read_files(tmp_path / "c.tar")
