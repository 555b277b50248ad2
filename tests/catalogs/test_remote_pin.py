"""An address may demand which manifest it serves, by its checksum or by its signer."""

import base64
import hashlib
import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.pin import Pin, Seen, Served, pinned, successor_statement
from recommender.catalogs.remote import Remote, load_remote
from tests.catalogs import small

ADDRESS = "https://bucket.example.org/manifest.json"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NEW_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


SIGNED = f"{ADDRESS}#ed25519={text(public(KEY))}"


class Bucket:
    """Serves a folder, or nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder.parent
        self.down = False

    def __call__(self, address: str, most: int) -> bytes:
        assert "#" not in address
        if self.down:
            raise TimeoutError("timed out")
        return (self.folder / address.rpartition("/")[2]).read_bytes()

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    def publish(self, sequence: int, usd: float = 0.526, key: Ed25519PrivateKey = KEY) -> None:
        """Serve prices under a number, signed, for 30 days."""

        def change(tables: dict[str, list[object]]) -> None:
            tables["offers"] = [small.offer(usd_per_hour=usd)]

        small.written(self.folder, change)
        fields = json.loads(self.manifest.read_text())
        expires = f"{NOON + timedelta(days=30):%Y-%m-%dT%H:%M:%SZ}"
        self.sign({**fields, "sequence": sequence, "expires": expires}, key)

    def sign(self, fields: dict[str, object], key: Ed25519PrivateKey = KEY) -> None:
        self.manifest.write_text(json.dumps(fields))
        signature = key.sign(self.manifest.read_bytes())
        (self.folder / "manifest.json.sig").write_bytes(signature)

    def name_successor(self, old: Ed25519PrivateKey, new: Ed25519PrivateKey) -> None:
        line = f"{text(public(new))} {text(old.sign(successor_statement(public(new))))}\n"
        with (self.folder / "manifest.json.keys").open("a") as file:
            file.write(line)

    def load(self, address: str = SIGNED, cache: str = "cache", now: datetime = NOON) -> Remote:
        return load_remote(address, self.home / cache, self, self.home / "signers", now)

    def usd(self, address: str = SIGNED, now: datetime = NOON) -> float:
        """The price that a reader gets without a word of doubt."""
        found = self.load(address, now=now)
        assert found.notes == ()
        return found.catalog.offers.usd_per_hour[0]


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(small.written(tmp_path / "served"))


def the_copy(bucket: Bucket) -> Path:
    (manifest,) = (bucket.home / "cache").glob("*/*/manifest.json")
    return manifest.parent


def halve_prices(copy: Path) -> None:
    """An attacker who can write to the cache: other prices, and a manifest that fits them."""

    def change(tables: dict[str, list[object]]) -> None:
        tables["offers"] = [small.offer(usd_per_hour=0.263)]

    proofs = {path: path.read_bytes() for path in copy.glob("manifest.json.*")}
    small.written(copy, change)
    for path, content in proofs.items():
        path.write_bytes(content)


def test_a_manifest_of_the_demanded_checksum_is_read(bucket: Bucket) -> None:
    digest = hashlib.sha256(bucket.manifest.read_bytes()).hexdigest()
    remote = bucket.load(f"{ADDRESS}#sha256={digest.upper()}")
    assert (len(remote.catalog.offers), remote.notes) == (2, ())


def test_another_manifest_is_refused_however_whole(bucket: Bucket) -> None:
    address = f"{ADDRESS}#sha256={'0' * 64}"
    with pytest.raises(CatalogError, match=f"the address demands {'0' * 64}"):
        bucket.load(address)
    bucket.load(ADDRESS)  # a copy without a demand
    with pytest.raises(CatalogError, match="no copy is kept"):
        bucket.load(address)


def test_what_the_key_has_signed_is_read_night_after_night(bucket: Bucket) -> None:
    for sequence, usd in ((1, 0.5), (2, 0.6), (7, 0.55), (7, 0.55)):
        bucket.publish(sequence, usd)
        assert bucket.usd() == usd


@pytest.mark.parametrize("demand", ["signed", "checksum", "none"])
@pytest.mark.parametrize("answers", [True, False])
def test_a_copy_that_was_rewritten_is_never_used(
    bucket: Bucket, demand: str, answers: bool
) -> None:
    """With a server that answers it is got again; without one it is refused."""
    bucket.publish(1)
    digest = hashlib.sha256(bucket.manifest.read_bytes()).hexdigest()
    address = {"signed": SIGNED, "checksum": f"{ADDRESS}#sha256={digest}", "none": ADDRESS}[demand]
    bucket.load(address)
    halve_prices(the_copy(bucket))
    bucket.down = not answers
    if answers:
        assert bucket.usd(address) == 0.526
        return
    with pytest.raises(CatalogError, match="copy that is kept is not used.*has been changed"):
        bucket.load(address)


@pytest.mark.parametrize("answers", [True, False])
def test_a_rewritten_copy_under_the_name_of_its_own_checksum_is_not_used(
    bucket: Bucket, answers: bool
) -> None:
    bucket.publish(1)
    bucket.load()
    copy = the_copy(bucket)
    halve_prices(copy)
    digest = hashlib.sha256((copy / "manifest.json").read_bytes()).hexdigest()
    copy.rename(copy.with_name(digest))
    (copy.parent / "LAST").write_text(digest)
    bucket.down = not answers
    if answers:
        assert bucket.usd() == 0.526
        return
    with pytest.raises(CatalogError, match="no signature of the manifest"):
        bucket.load()


@pytest.mark.parametrize("name", ["../../elsewhere", "", "/etc", "0" * 64])
def test_a_pointer_out_of_the_cache_is_not_followed(bucket: Bucket, name: str) -> None:
    bucket.load(ADDRESS)
    (the_copy(bucket).parent / "LAST").write_text(name)
    bucket.down = True
    with pytest.raises(CatalogError, match="copy that is kept is not used"):
        bucket.load(ADDRESS)


def test_an_old_manifest_that_is_served_again_leaves_the_last_copy(bucket: Bucket) -> None:
    """Replay: everything in it is signed, but a newer one of the key was seen."""
    bucket.publish(4, 0.4)
    old = {path.name: path.read_bytes() for path in bucket.folder.iterdir()}
    bucket.publish(5, 0.5)
    bucket.load()
    for name, content in old.items():
        (bucket.folder / name).write_bytes(content)
    found = bucket.load()
    assert found.catalog.offers.usd_per_hour[0] == 0.5
    assert "number 4, but number 5 of the same key was seen" in found.notes[0]
    for address in (SIGNED, SIGNED.replace("bucket", "mirror")):  # the memory is of the key
        with pytest.raises(CatalogError, match="number 5 of the same key was seen"):
            bucket.load(address, cache="empty")


def test_two_manifests_of_one_number_are_refused(bucket: Bucket) -> None:
    bucket.publish(4, 0.4)
    bucket.load()
    bucket.publish(4, 0.5)
    assert "two signed manifests bear the number 4" in bucket.load().notes[0]


def test_a_manifest_that_has_expired_is_refused_served_or_kept(bucket: Bucket) -> None:
    """Freeze: newer manifests can be withheld until the last signed one expires."""
    bucket.publish(4)
    assert bucket.usd(now=NOON + timedelta(days=29)) == 0.526
    for down in (False, True):
        bucket.down = down
        with pytest.raises(CatalogError, match="expired at 2026-12-23T12:00:00Z"):
            bucket.load(now=NOON + timedelta(days=31))


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"sequence": 3}, {"expires": "2026-12-01T00:00:00Z"}, {"sequence": 0, "expires": "x"},
        {"sequence": True, "expires": "2026-12-01T00:00:00Z"},
        {"sequence": 3, "expires": "2026-12-01"}, {"sequence": 3, "expires": 5},
    ],
)  # fmt: skip
def test_a_signed_manifest_without_a_number_or_an_expiry_is_refused(
    bucket: Bucket, fields: dict[str, object]
) -> None:
    bucket.sign({**json.loads(bucket.manifest.read_text()), **fields})
    with pytest.raises(CatalogError, match="holds no 'sequence' and 'expires'"):
        bucket.load()


def test_a_key_names_its_successor_and_counts_no_more_itself(bucket: Bucket) -> None:
    bucket.publish(1, 0.1)
    assert bucket.usd() == 0.1
    bucket.name_successor(KEY, NEW_KEY)
    bucket.publish(2, 0.2, NEW_KEY)
    assert bucket.usd() == 0.2
    (bucket.folder / "manifest.json.keys").unlink()  # as a thief of the old key would
    bucket.publish(3, 0.3, KEY)
    assert "no signature of the manifest" in bucket.load().notes[0]
    bucket.publish(3, 0.3, NEW_KEY)
    assert bucket.usd() == 0.3
    bucket.publish(2, 0.2, NEW_KEY)
    with pytest.raises(CatalogError, match="was seen already"):  # the number holds for both keys
        bucket.load(f"{ADDRESS}#ed25519={text(public(NEW_KEY))}")


def test_only_the_key_itself_names_its_successor(bucket: Bucket) -> None:
    bucket.name_successor(NEW_KEY, NEW_KEY)
    bucket.publish(1, key=NEW_KEY)
    with pytest.raises(CatalogError, match="no signature of the manifest"):
        bucket.load()


def test_a_copy_is_used_offline_under_the_successor_as_well(bucket: Bucket) -> None:
    bucket.name_successor(KEY, NEW_KEY)
    bucket.publish(1, 0.1, NEW_KEY)
    bucket.load()
    bucket.down = True
    assert "its last copy is used" in bucket.load().notes[0]


def test_a_damaged_memory_of_a_key_is_refused_and_one_that_cannot_be_kept_is_reported(
    bucket: Bucket,
) -> None:
    bucket.publish(1)
    (bucket.home / "signers").write_text("no folder")
    assert "is not remembered" in bucket.load().notes[0]
    (bucket.home / "signers").unlink()
    bucket.load()
    (memory,) = (bucket.home / "signers").glob("*.json")
    for damaged in ("", "[]", '{"sequence": "9"}', '{"sequence": 9, "key": "AAAA"}'):
        memory.write_text(damaged)
        with pytest.raises(CatalogError, match="remove it to start again"):
            bucket.load()


@pytest.mark.parametrize("wrong", ["changed", "unsigned", "another key", "short"])
def test_what_the_key_has_not_signed_leaves_the_last_copy(bucket: Bucket, wrong: str) -> None:
    bucket.publish(1)
    signature = bucket.folder / "manifest.json.sig"
    before = bucket.load()
    bucket.manifest.write_bytes(bucket.manifest.read_bytes() + b"\n")
    if wrong == "unsigned":
        signature.unlink()
    elif wrong == "another key":
        signature.write_bytes(Ed25519PrivateKey.generate().sign(bucket.manifest.read_bytes()))
    elif wrong == "short":
        signature.write_bytes(b"signed")
    found = bucket.load()
    assert found.catalog.sha256 == before.catalog.sha256
    assert "its last copy is used" in found.notes[0]
    with pytest.raises(CatalogError, match="no copy is kept"):
        bucket.load(cache="other")


def test_a_signature_of_rfc_8032_is_known() -> None:
    """Test 2 of RFC 8032, section 7.1: one byte, signed by another program."""
    key = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    for manifest, said in ((b"\x72", "no 'sequence'"), (b"\x73", "no signature")):
        with pytest.raises(CatalogError, match=said):
            Pin(ed25519=key).check(Served(manifest, signature), Seen(), NOON)


def test_openssl_signs_and_names_a_successor_as_the_documentation_says(
    bucket: Bucket, tmp_path: Path
) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on this machine")
    bucket.publish(1)

    def run(*words: str) -> bytes:
        done = subprocess.run([openssl, *words], capture_output=True)
        if done.returncode:
            pytest.skip("this openssl cannot sign with Ed25519")
        return done.stdout

    def new_key(path: Path) -> str:
        run("genpkey", "-algorithm", "ed25519", "-out", str(path))
        return text(run("pkey", "-in", str(path), "-pubout", "-outform", "DER")[-32:])

    def sign(key: Path, file: Path, out: Path) -> None:
        run("pkeyutl", "-sign", "-rawin", "-inkey", str(key), "-in", str(file), "-out", str(out))

    old, new = tmp_path / "old.pem", tmp_path / "new.pem"
    address = f"{ADDRESS}#ed25519={new_key(old)}"
    sign(old, bucket.manifest, bucket.folder / "manifest.json.sig")
    assert bucket.load(address).notes == ()
    successor = new_key(new)
    statement, signed = tmp_path / "statement", tmp_path / "signed"
    statement.write_text(f"recommend-key {successor}")
    sign(old, statement, signed)
    (bucket.folder / "manifest.json.keys").write_text(f"{successor} {text(signed.read_bytes())}\n")
    bucket.publish(2)
    sign(new, bucket.manifest, bucket.folder / "manifest.json.sig")
    assert bucket.load(address).notes == ()


@pytest.mark.parametrize(
    "fragment", ["", "sha256=12", f"sha256={'g' * 64}", "ed25519=AAAA", "ed25519=!", "key=1", "x"]
)
def test_a_demand_that_is_none_is_refused_and_not_passed_over(fragment: str) -> None:
    with pytest.raises(CatalogError, match="after # an address holds"):
        pinned(f"{ADDRESS}#{fragment}")


def test_an_address_without_a_demand_is_as_it_was() -> None:
    assert pinned(f"{ADDRESS}?sig=1") == (f"{ADDRESS}?sig=1", Pin())
