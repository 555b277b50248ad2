"""A version goes from one store to another, or to a server, with its checksums."""

import gzip
import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.catalogs.archive import export, import_into, read_files
from recommender.catalogs.errors import CatalogError, StoreError
from recommender.catalogs.refresh.run import refresh
from recommender.catalogs.schema import BOOKED
from recommender.catalogs.store import Store, newest_good
from tests.catalogs import small
from tests.catalogs.refresh.world import World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A store with one version."""
    made = make_world(tmp_path_factory.mktemp("world"))
    refresh(made.order())
    return made


def exported(world: World, out: Path) -> Path:
    return export(world.store, world.store.names()[0], out)


@pytest.mark.parametrize("name", ["c.tar.gz", "c.tar", "c.tgz", "c.zip", "folder"])
def test_what_is_exported_can_be_imported_and_says_so(
    world: World, tmp_path: Path, name: str
) -> None:
    other = Store(tmp_path / "other")
    made, _ = import_into(other, exported(world, tmp_path / name), world.base, world.now)
    found = newest_good(other)
    assert found.name == made
    mine = newest_good(world.store).catalog
    assert [o.usd_per_hour for o in found.catalog.offers] == [o.usd_per_hour for o in mine.offers]
    assert set(found.catalog.offers.as_of) == set(mine.offers.as_of)
    assert set(found.catalog.offers.flag) <= {"imported", "floor"}
    assert {f.reason for f in other.fetch_times(made)} == {"imported"}


def test_a_full_disk_leaves_no_half_export_in_the_way(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        patched.setattr("pathlib.Path.write_bytes", full)
        for name in ("c.tar.gz", "c.zip", "folder"):
            with pytest.raises(StoreError, match="No space left"):
                exported(world, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert exported(world, tmp_path / "c.tar.gz").exists()


def test_the_checksums_are_those_of_sha256sum(world: World, tmp_path: Path) -> None:
    folder = exported(world, tmp_path / "folder")
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == len(list(folder.iterdir())) - 1
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", ["c.tar.gz", "c.tar", "c.zip"])
def test_the_same_version_is_the_same_bytes_at_any_time(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    now = exported(world, tmp_path / name).read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    (tmp_path / "later").mkdir()
    assert exported(world, tmp_path / "later" / name).read_bytes() == now


@pytest.mark.parametrize("name", ["c.tar.gz", "c.zip", "folder"])
def test_a_link_that_leads_nowhere_is_in_the_way_and_stays(
    world: World, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).symlink_to(tmp_path / "nowhere" / name)
    with pytest.raises(StoreError, match="exists already"):
        exported(world, tmp_path / name)
    assert (tmp_path / name).is_symlink()


def test_nothing_is_overwritten(world: World, tmp_path: Path) -> None:
    (tmp_path / "c.zip").write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        exported(world, tmp_path / "c.zip")


def test_the_statistical_guards_warn_of_what_is_imported(world: World, tmp_path: Path) -> None:
    _, problems = import_into(
        Store(tmp_path / "other"), exported(world, tmp_path / "c.zip"), world.base, world.now
    )
    assert any("gcp" in problem for problem in problems)  # canaries this small world lacks


def test_a_catalog_without_offers_is_not_published(world: World, tmp_path: Path) -> None:
    empty = small.written(tmp_path / "empty", lambda tables: tables.update(offers=[]))
    other = Store(tmp_path / "other")
    with pytest.raises(CatalogError, match="more than half of the offers would be lost"):
        import_into(other, empty, world.base, world.now)
    assert not other.names()


def tarred(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "x") as archive:
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def link(name: str, target: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    return entry


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (tarfile.TarInfo("../manifest.json"), "which no catalog has"),
        (tarfile.TarInfo("/manifest.json"), "which no catalog has"),
        (tarfile.TarInfo("a/b/manifest.json"), "which no catalog has"),
        (tarfile.TarInfo("setup.py"), "which no catalog has"),
        (link("manifest.json", "/etc/passwd"), "no plain file"),
    ],
)
def test_an_archive_that_holds_anything_else_is_refused(
    tmp_path: Path, entry: tarfile.TarInfo, words: str
) -> None:
    with pytest.raises(CatalogError, match=words):
        read_files(tarred(tmp_path / "bad.tar", (entry, b"")))


def test_a_file_that_comes_twice_is_refused(tmp_path: Path) -> None:
    twice = [(tarfile.TarInfo(f"{folder}/manifest.json"), b"{}") for folder in ("a", "b")]
    with pytest.raises(CatalogError, match="holds a file twice"):
        read_files(tarred(tmp_path / "bad.tar", *twice))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_tar_file_of_long_headers_is_refused_before_they_are_read(
    tmp_path: Path, kind: bytes
) -> None:
    """Ten million attributes in 60 MB took tarfile 9 s."""
    header = tarfile.TarInfo("manifest.json")
    header.type, header.size = kind, 600_000
    (tmp_path / "long.tar").write_bytes(header.tobuf() + b"6 a=1\n" * 100_000 + bytes(1024))
    with pytest.raises(CatalogError, match="a header of 600,000 bytes"):
        read_files(tmp_path / "long.tar")


def test_an_archive_with_attributes_of_files_is_read(tmp_path: Path) -> None:
    """As other programs write them, for long names and times of less than a second."""
    small.written(tmp_path / "catalog")
    made = tmp_path / "made.tar"
    with tarfile.open(made, "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "é"}) as tar:
        tar.add(tmp_path / "catalog", "v")
    assert read_files(made) == read_files(tmp_path / "catalog")


def test_a_signed_export_is_read_with_what_signs_it(tmp_path: Path) -> None:
    folder = small.written(tmp_path / "catalog")
    for name in ("manifest.json.sig", "manifest.json.keys"):
        (folder / name).write_bytes(b"signed")
    assert "manifest.json" in read_files(folder)


def test_text_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("no archive")
    with pytest.raises(CatalogError, match="not a catalog archive"):
        read_files(tmp_path / "bad")
    with pytest.raises(CatalogError, match="gone: no such file or folder"):
        read_files(tmp_path / "gone")


def test_a_changed_file_is_refused(world: World, tmp_path: Path) -> None:
    folder = exported(world, tmp_path / "folder")
    (folder / "fees.csv.gz").write_bytes(b"")
    with pytest.raises(CatalogError, match=r"'fees.csv.gz' is missing or differs"):
        read_files(folder)


def test_a_poisoned_price_is_refused_even_with_right_checksums(
    world: World, tmp_path: Path
) -> None:
    folder = exported(world, tmp_path / "folder")
    (folder / "SHA256SUMS").unlink()
    path = folder / "offers-aws.csv.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    bad = gzip.compress(text.replace(",55.04,", ",-1,").encode())
    path.write_bytes(bad)
    manifest = folder / "manifest.json"
    old = hashlib.sha256((world.store.path(world.store.names()[0]) / path.name).read_bytes())
    manifest.write_text(
        manifest.read_text().replace(old.hexdigest(), hashlib.sha256(bad).hexdigest())
    )
    with pytest.raises(CatalogError, match="not a positive number"):
        import_into(Store(tmp_path / "other"), folder, world.base, world.now)
    assert Store(tmp_path / "other").names() == ()


def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recommender.catalogs.archive.MAX_BYTES", 500)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "x", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"0" * 501)
    with pytest.raises(CatalogError, match="unpacks to more than 500 bytes"):
        read_files(tmp_path / "bomb.zip")


def test_a_damaged_version_is_not_exported(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    refresh(world.order())
    name = world.store.names()[0]
    (world.store.path(name) / "offers-gcp.csv.gz").write_bytes(b"")
    with pytest.raises(CatalogError, match="sha256 differs"):
        export(world.store, name, tmp_path / "c.zip")


def test_an_imported_version_is_renewed_by_the_next_refresh(world: World, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    import_into(other, exported(world, tmp_path / "c.zip"), world.base, world.now)
    report = refresh(replace(world.order(), store=other))
    assert report.outcome == "published"
    offers = newest_good(other).catalog.offers
    unread = {*BOOKED, "committed"}  # of price pages, which no client reads
    flags = {f for f, m in zip(offers.flag, offers.market, strict=True) if m not in unread}
    assert "imported" not in flags
