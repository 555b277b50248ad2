"""A published catalog: signed, taken over, and attacked in more than a hundred ways."""

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from recommender.catalogs.archive import import_published
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.load import SNAPSHOT
from recommender.catalogs.pin import successor_statement
from recommender.catalogs.publication import publish_signed
from recommender.catalogs.remote import Remote, load_remote
from recommender.catalogs.store import Store, VersionFiles, newest_good, publish, write_lock
from tests.catalogs.versions_data import MORNING, content
from tests.failing_calls import failing

ADDRESS = "https://prices.example.org/manifest.json"
NIGHT = MORNING + timedelta(days=2)
PEM = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
Attack = Callable[[dict[str, bytes]], dict[str, bytes]]


def key_file(folder: Path, name: str, seed: int) -> Path:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(seed, seed + 32)))
    path = folder / name
    path.write_bytes(key.private_bytes(*PEM))
    path.chmod(0o600)
    return path


def secret(seed: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes(range(seed, seed + 32)))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class World:
    """A publisher with two nights of prices, and a reader."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = key_file(folder, "key.pem", 1)
        store = Store(folder / "store")
        for number, usd in ((1, 0.5), (2, 0.6)):
            files = dict(content(folder, usd).files)
            manifest = json.loads(files["manifest.json"])
            manifest |= {
                "sequence": number,
                "expires": f"{NIGHT + timedelta(days=30):%Y-%m-%dT%H:%M:%SZ}",
            }
            files["manifest.json"] = json.dumps(manifest).encode()
            with write_lock(store):
                publish(store, VersionFiles(files), MORNING + number * timedelta(days=1))
        first, second = store.names()
        self.named = publish_signed(store, first, folder / "first", self.key, NIGHT)
        publish_signed(store, second, folder / "second", self.key, NIGHT)
        self.store = store
        self.first, self.second = files_of(folder / "first"), files_of(folder / "second")

    def read(
        self, served: dict[str, bytes], now: datetime = NIGHT, reader: str = "reader"
    ) -> Remote:
        def get(address: str, most: int) -> bytes:
            content = served.get(address.rpartition("/")[2])
            if content is None or len(content) > most:
                raise FileNotFoundError(address)
            return content

        home = self.folder / reader
        address = f"{ADDRESS}#ed25519={self.named}"
        return load_remote(address, home / "cache", get, home / "signers", now)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("publication"))


def manifest_with(**fields: object) -> Attack:
    """Another manifest under the old signature."""

    def attack(files: dict[str, bytes]) -> dict[str, bytes]:
        manifest = json.loads(files["manifest.json"]) | fields
        return files | {"manifest.json": json.dumps(manifest).encode()}

    return attack


def signed_with(seed: int, **fields: object) -> Attack:
    """Another manifest, signed with a key."""

    def attack(files: dict[str, bytes]) -> dict[str, bytes]:
        manifest = json.loads(files["manifest.json"]) | fields
        content = json.dumps({k: v for k, v in manifest.items() if v is not None}).encode()
        return files | {"manifest.json": content, "manifest.json.sig": secret(seed).sign(content)}

    return attack


def put(name: str, content: bytes) -> Attack:
    return lambda files: files | {name: content}


def flipped(name: str, at: float) -> Attack:
    def attack(files: dict[str, bytes]) -> dict[str, bytes]:
        content = bytearray(files[name])
        content[int(at * (len(content) - 1))] ^= 0x10
        return files | {name: bytes(content)}

    return attack


def cut(name: str, share: float) -> Attack:
    return lambda files: files | {name: files[name][: int(share * len(files[name]))]}


def without(name: str) -> Attack:
    return lambda files: {each: content for each, content in files.items() if each != name}


def line(old: int, new: int, signer: int) -> bytes:
    raw = secret(new).public_key().public_bytes_raw()
    signature = secret(signer).sign(successor_statement(raw))
    del old
    return b" ".join(map(base64.b64encode, (raw, signature))) + b"\n"


def with_keys(content: bytes, then: Attack) -> Attack:
    return lambda files: then(files | {"manifest.json.keys": content})


def attacks() -> Iterator[tuple[str, Attack]]:
    tables = ["offers.csv.gz", "instance_types.csv.gz", "gpus.csv.gz", "achieved.csv.gz"]
    for name in ("manifest.json", "manifest.json.sig", *tables, "sources.csv"):
        for at in (0.0, 0.3, 0.6, 1.0):
            yield f"flip {name} {at}", flipped(name, at)
        for share in (0.0, 0.5, 0.99):
            yield f"cut {name} {share}", cut(name, share)
        yield f"without {name}", without(name)
    for number, signature in enumerate((b"", bytes(64), bytes(63), bytes(65), b"x" * 9000)):
        yield f"signature {number}", put("manifest.json.sig", signature)
    yield "foreign key", signed_with(50)
    yield "unsigned rise of the number", manifest_with(sequence=99)
    yield "unsigned longer life", manifest_with(expires="2099-01-01T00:00:00Z")
    for number in (0, -1, "2", 2.0, True, None):
        yield f"number {number!r}", signed_with(1, sequence=number)
    for moment in ("2026-11-22T00:00:00Z", "2099-01-01T00:00:00", "never", 5, None):
        yield f"expiry {moment!r}", signed_with(1, expires=moment)
    yield "same number, other prices", signed_with(1, note="other")
    yield "older number", signed_with(1, sequence=1)
    foreign = signed_with(50)
    yield "successor by itself", with_keys(line(1, 50, 50), foreign)
    yield "successor by another", with_keys(line(1, 50, 70), foreign)
    yield "successor cut", with_keys(line(1, 50, 1)[:-20], foreign)
    yield "successor without a signature", with_keys(line(1, 50, 1).split()[0], foreign)
    yield "successor of a successor that none named", with_keys(line(50, 70, 50), signed_with(70))
    yield (
        "successor after too many lines",
        with_keys(line(1, 50, 70) * 40 + line(1, 50, 1), foreign),
    )
    yield "statement as manifest", put("manifest.json", successor_statement(bytes(32)))
    yield "nothing", lambda files: {}


def test_no_attack_on_a_published_catalog_is_accepted_and_each_is_told(tmp_path: Path) -> None:
    world, tried = World(tmp_path), 0
    accepted = []
    for name, attack in attacks():
        tried += 1
        for state in ("new", "knows"):
            reader = f"{state}-{tried}"
            if state == "knows":
                assert world.read(world.second, reader=reader).catalog.offers.usd_per_hour[0] == 0.6
            elif name in ("same number, other prices", "older number"):
                continue  # what was never seen cannot be known to be older
            served = attack(dict(world.second))
            try:
                found = world.read(served, reader=reader)
            except CatalogError:
                continue
            told = bool(found.notes) and "last copy is used" in found.notes[0]
            if state == "knows" and told and found.catalog.offers.usd_per_hour[0] == 0.6:
                continue
            # A copy that is whole needs no file of the server but the manifest and its signature.
            proofs = {k: served.get(k) for k in ("manifest.json", "manifest.json.sig")}
            if state == "knows" and proofs.items() <= world.second.items():
                continue
            accepted.append((state, name))
    assert tried >= 60
    assert accepted == []


def test_older_and_withheld_versions_are_refused(world: World) -> None:
    world.read(world.second, reader="replay")
    found = world.read(world.first, reader="replay")
    assert found.catalog.offers.usd_per_hour[0] == 0.6
    assert "number 1" in found.notes[0]
    late = NIGHT + timedelta(days=60)
    with pytest.raises(CatalogError, match="expired"):
        world.read(world.second, now=late, reader="frozen")
    with pytest.raises(CatalogError, match="expired"):
        world.read(world.second, now=late, reader="replay")


def test_the_key_is_changed_at_one_address(tmp_path: Path) -> None:
    world = World(tmp_path)
    new = key_file(tmp_path, "new.pem", 50)
    name = world.store.names()[-1]
    named = publish_signed(world.store, name, tmp_path / "third", new, NIGHT, world.key)
    assert named == world.named
    assert world.read(files_of(tmp_path / "third")).notes == ()
    # Later nights need the new key alone, and the old one is not valid any more.
    publish_signed(world.store, name, tmp_path / "fourth", new, NIGHT)
    assert world.read(files_of(tmp_path / "fourth")).notes == ()
    keys = files_of(tmp_path / "third")["manifest.json.keys"]
    with pytest.raises(CatalogError, match="no signature"):
        world.read(world.second | {"manifest.json.keys": keys}, reader="other")


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("rotates", [False, True])
def test_a_call_that_fails_leaves_a_whole_publication_or_none_in_the_way(
    tmp_path: Path, rotates: bool, lasting: bool
) -> None:
    world = World(tmp_path)
    name = world.store.names()[-1]
    at, calls_made = 0, 1
    while at < calls_made:
        folder = tmp_path / f"{at}"
        folder.mkdir()
        old, new = key_file(folder, "old.pem", 1), key_file(folder, "new.pem", 50)
        keys = (new, NIGHT, old) if rotates else (old, NIGHT)
        with failing(folder, at, lasting=lasting) as calls:
            try:
                said = publish_signed(world.store, name, folder / "out", *keys)
            except CatalogError:
                said = ""
        assert (folder / "out").exists() == bool(said), calls.calls[at:]
        assert said or publish_signed(world.store, name, folder / "out", *keys)
        assert world.read(files_of(folder / "out"), reader=f"{at}").notes == ()
        at, calls_made = at + 3, len(calls.calls)


def test_a_key_that_others_may_read_or_that_is_none_is_refused(
    world: World, tmp_path: Path
) -> None:
    name = world.store.names()[-1]
    rsa = tmp_path / "rsa.pem"
    rsa.write_bytes(generate_private_key(65537, 2048).private_bytes(*PEM))
    rsa.chmod(0o600)
    text = tmp_path / "text.pem"
    text.write_text("not a key")
    text.chmod(0o600)
    known = key_file(tmp_path, "open.pem", 9)
    known.chmod(0o644)
    for key, reason in (
        (rsa, "not a key of Ed25519"),
        (text, "not a private key"),
        (known, "others may read"),
        (tmp_path / "none.pem", "no such key"),
    ):
        with pytest.raises(CatalogError, match=reason):
            publish_signed(world.store, name, tmp_path / "out", key, NIGHT)
        assert not (tmp_path / "out").exists()


def test_what_is_published_is_taken_over_once(world: World, tmp_path: Path) -> None:
    mine = Store(tmp_path / "mine")
    found = world.read(world.second, reader="taker")
    arguments = (found.catalog, found.manifest, ADDRESS, world.folder / "of-0.6", datetime.now(UTC))
    name, _ = import_published(mine, *arguments)
    assert newest_good(mine).catalog.offers.usd_per_hour[0] == 0.6
    assert mine.report(name)["source"] == ADDRESS
    assert import_published(mine, *arguments)[0] == ""
    assert mine.names() == (name,)
    assert SNAPSHOT.exists()
