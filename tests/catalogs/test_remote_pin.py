"""An address may demand which manifest it serves, by its checksum or by who has signed it."""

import base64
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.remote import Pin, load_remote, pinned
from tests.catalogs import small

ADDRESS = "https://bucket.example.org/manifest.json"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = base64.b64encode(KEY.public_key().public_bytes_raw()).decode()


class Bucket:
    """Serves a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, address: str, most: int) -> bytes:
        assert "#" not in address
        return (self.folder / address.rpartition("/")[2]).read_bytes()

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    def sign(self) -> None:
        signature = KEY.sign(self.manifest.read_bytes())
        (self.folder / "manifest.json.sig").write_bytes(signature)


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(small.written(tmp_path / "served"))


def test_a_manifest_of_the_demanded_checksum_is_read(bucket: Bucket, tmp_path: Path) -> None:
    digest = hashlib.sha256(bucket.manifest.read_bytes()).hexdigest()
    remote = load_remote(f"{ADDRESS}#sha256={digest.upper()}", tmp_path / "cache", bucket)
    assert (len(remote.catalog.offers), remote.notes) == (2, ())


def test_another_manifest_is_refused_however_whole(bucket: Bucket, tmp_path: Path) -> None:
    address = f"{ADDRESS}#sha256={'0' * 64}"
    with pytest.raises(CatalogError, match=f"the address demands {'0' * 64}"):
        load_remote(address, tmp_path / "cache", bucket)
    load_remote(ADDRESS, tmp_path / "cache", bucket)  # a copy that nobody has demanded is none
    with pytest.raises(CatalogError, match="no copy is kept"):
        load_remote(address, tmp_path / "cache", bucket)


def test_what_the_key_has_signed_is_read_night_after_night(bucket: Bucket, tmp_path: Path) -> None:
    address = f"{ADDRESS}#ed25519={PUBLIC}"
    for text in ("", "\n"):
        bucket.manifest.write_bytes(bucket.manifest.read_bytes() + text.encode())
        bucket.sign()
        assert load_remote(address, tmp_path / "cache", bucket).notes == ()


@pytest.mark.parametrize("wrong", ["changed", "unsigned", "another key", "short"])
def test_what_the_key_has_not_signed_leaves_the_last_copy(
    bucket: Bucket, tmp_path: Path, wrong: str
) -> None:
    bucket.sign()
    address = f"{ADDRESS}#ed25519={PUBLIC}"
    signature = bucket.folder / "manifest.json.sig"
    before = load_remote(address, tmp_path / "cache", bucket)
    bucket.manifest.write_bytes(bucket.manifest.read_bytes() + b"\n")
    if wrong == "unsigned":
        signature.unlink()
    elif wrong == "another key":
        signature.write_bytes(Ed25519PrivateKey.generate().sign(bucket.manifest.read_bytes()))
    elif wrong == "short":
        signature.write_bytes(b"signed")
    found = load_remote(address, tmp_path / "cache", bucket)
    assert found.catalog.sha256 == before.catalog.sha256
    assert "its last copy is used" in found.notes[0]
    with pytest.raises(CatalogError, match="no copy is kept"):
        load_remote(address, tmp_path / "other", bucket)


def test_a_signature_of_rfc_8032_is_known() -> None:
    """Test 2 of section 7.1: one byte, signed by somebody else's program."""
    key = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    Pin(ed25519=key).check(b"\x72", lambda: signature)
    with pytest.raises(CatalogError, match="no signature"):
        Pin(ed25519=key).check(b"\x73", lambda: signature)


def test_openssl_signs_as_the_documentation_says(bucket: Bucket, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on this machine")
    key, signature = tmp_path / "key.pem", bucket.folder / "manifest.json.sig"
    made = [openssl, "genpkey", "-algorithm", "ed25519", "-out", str(key)]
    sign = [openssl, "pkeyutl", "-sign", "-rawin", "-inkey", str(key), "-in", str(bucket.manifest),
            "-out", str(signature)]  # fmt: skip
    for words in (made, sign):
        if subprocess.run(words, capture_output=True).returncode:
            pytest.skip("this openssl cannot sign with Ed25519")
    told = [openssl, "pkey", "-in", str(key), "-pubout", "-outform", "DER"]
    public = base64.b64encode(subprocess.run(told, capture_output=True).stdout[-32:]).decode()
    assert load_remote(f"{ADDRESS}#ed25519={public}", tmp_path / "cache", bucket).notes == ()


@pytest.mark.parametrize(
    "fragment", ["sha256=12", f"sha256={'g' * 64}", "ed25519=AAAA", "ed25519=!", "key=1", "x"]
)
def test_a_demand_that_is_none_is_refused_and_not_passed_over(fragment: str) -> None:
    with pytest.raises(CatalogError, match="after # an address holds"):
        pinned(f"{ADDRESS}#{fragment}")


def test_an_address_without_a_demand_is_as_it_was() -> None:
    assert pinned(f"{ADDRESS}?sig=1") == (f"{ADDRESS}?sig=1", Pin())
