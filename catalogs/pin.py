"""Verifies manifests against a checksum or key in the address, and remembers the last one seen.

    https://…/manifest.json#sha256=<64 hexadecimal digits>      this manifest and no other
    https://…/manifest.json#ed25519=<public key, base64>        whatever the key's owner signs

The signature is the file `manifest.json.sig` next to the manifest: the 64 bytes that `openssl
pkeyutl -sign -rawin` writes. As the manifest holds the checksum of every file, all of the catalog
is pinned by it. A signed manifest carries a sequence number and an expiry, as in TUF and apt: an
older one than was seen of the key is refused (replay), and so is one that has expired (freeze).

To change the key, add a line to `manifest.json.keys`: the new public key and, by the old one, a
signature of the words `recommend-key NEWKEY`, both base64. The address stays; a key that has named
its successor is not valid any more where that has been seen.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urldefrag

from recommender.catalogs import MANIFEST
from recommender.catalogs.bounds import read_plain_file
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.files import parse_json, replace_file
from recommender.catalogs.frozen import dataclass

SIGNATURE = f"{MANIFEST}.sig"
SUCCESSORS = f"{MANIFEST}.keys"
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64
_MAX_KEYS = 32  # lines of SUCCESSORS that are read
_MAX_MEMORY = 10_000  # bytes of what is remembered of a key
_INSTEAD = "ask its publisher which is right"


@dataclass(frozen=True, slots=True)
class Served:
    """A manifest, with the files that prove its origin."""

    manifest: bytes
    signature: bytes = b""
    successors: bytes = b""

    @property
    def sha256(self) -> str:
        """The checksum of the manifest, which contains those of all files."""
        return hashlib.sha256(self.manifest).hexdigest()


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest manifest seen of a key."""

    key: str = ""  # base64; that of the address, or the last of its successors
    sequence: int = 0
    manifest: str = ""  # its checksum


@dataclass(frozen=True, slots=True)
class Pin:
    """A checksum or a public key; empty if the address requires neither."""

    sha256: str = ""
    ed25519: bytes = b""

    def check(self, served: Served, seen: Seen, now: datetime) -> Seen:
        """Refuse a manifest that does not match; return what to remember of it.

        Raises:
            CatalogError: it has another checksum, no signature of the key, is older than one
                that was seen, or has expired.
        """
        if self.sha256 and not hmac.compare_digest(served.sha256, self.sha256):
            raise CatalogError(
                f"the manifest's sha256 is {served.sha256}, the address demands {self.sha256}; "
                f"{_INSTEAD}"
            )
        if not self.ed25519:
            return seen
        key = _last_key(_key(seen.key) or self.ed25519, served.successors)
        if not _is_signed(served.manifest, served.signature, key):
            raise CatalogError(
                "manifest.json.sig is no signature of the manifest by the key in the address; "
                "sign it again, or ask its publisher for the key"
            )
        sequence = _sequence(served.manifest, now)
        _refuse_replay(served, sequence, seen)
        return Seen(_text(key), sequence, served.sha256)


def pinned(address: str) -> tuple[str, Pin]:
    """Split the requirement from the end of an address.

    Raises:
        CatalogError: what follows "#" is no checksum and no key.
    """
    plain, fragment = urldefrag(address)
    name, _, value = fragment.partition("=")
    if "#" not in address:  # nothing after it is no demand either: a variable that was empty
        return plain, Pin()
    if name == "sha256" and len(value) == 64 and not set(value.lower()) - set("0123456789abcdef"):
        return plain, Pin(sha256=value.lower())
    if name == "ed25519" and len(key := _key(value)) == _KEY_BYTES:
        return plain, Pin(ed25519=key)
    raise CatalogError(
        f"#{name[:20]}: after # an address holds sha256=<64 hexadecimal digits> or "
        "ed25519=<public key of 32 bytes, base64>"
    )


def successor_statement(new_key: bytes) -> bytes:
    """The text that a key signs to name its successor; no manifest begins like it."""
    return f"recommend-key {_text(new_key)}".encode()


def _last_key(key: bytes, successors: bytes) -> bytes:
    """The key at the end of the chain that a key begins."""
    for new, signature in _successors(successors):
        if _is_signed(successor_statement(new), signature, key):
            key = new
    return key


def _successors(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in content.decode("ascii", "replace").splitlines()[:_MAX_KEYS]:
        words = [_key(word) for word in line.split()]
        if [len(word) for word in words] == [_KEY_BYTES, _SIGNATURE_BYTES]:
            yield words[0], words[1]


def _key(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (ValueError, binascii.Error):
        return b""


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()


def _is_signed(content: bytes, signature: bytes, key: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(signature) != _SIGNATURE_BYTES:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def _sequence(manifest: bytes, now: datetime) -> int:
    """The sequence number of a signed manifest that has not expired."""
    try:
        fields = parse_json(manifest)
        sequence, expires = fields["sequence"], datetime.fromisoformat(fields["expires"])
        if type(sequence) is not int or sequence < 1 or expires.tzinfo is None:
            raise ValueError("a number from 1 on, and a moment with its time zone, are needed")
    except (ValueError, KeyError, TypeError) as error:
        raise CatalogError(
            f"the signed manifest holds no 'sequence' and 'expires' ({error}), so an old one "
            "could not be distinguished from the newest; export and sign it again"
        ) from error
    if now.astimezone(UTC) > expires:
        raise CatalogError(
            f"the signed manifest expired at {fields['expires']}: no newer one was signed, "
            "or newer ones are withheld; ask its publisher, and check this clock"
        )
    return sequence


def _refuse_replay(served: Served, sequence: int, seen: Seen) -> None:
    if sequence < seen.sequence:
        raise CatalogError(
            f"the signed manifest is number {sequence}, but number {seen.sequence} of the same key "
            f"was seen already: an old one is served again; {_INSTEAD}"
        )
    if sequence == seen.sequence and served.sha256 != seen.manifest:
        raise CatalogError(f"two signed manifests bear the number {sequence}; {_INSTEAD}")


def default_signers() -> Path:
    """The folder with what was seen of each key; not in a cache that may be deleted."""
    from platformdirs import user_data_path

    return user_data_path("recommend", appauthor=False) / "signers"


@dataclass(frozen=True, slots=True)
class Signers:
    """A folder with one small file for each key."""

    folder: Path

    def seen(self, pin: Pin) -> Seen:
        """What was seen of a key; nothing at first, or if no key is required.

        Raises:
            CatalogError: the file is damaged.
        """
        path = self._path(pin.ed25519)
        if not pin.ed25519:
            return Seen()
        try:
            found = Seen(**parse_json(read_plain_file(path, _MAX_MEMORY)))
            if type(found.sequence) is not int or len(_key(found.key)) != _KEY_BYTES:
                raise ValueError("no sequence number or no key")
        except (FileNotFoundError, NotADirectoryError):
            return Seen()
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise CatalogError(
                f"{path}: cannot be read ({error}); remove it to start again with this key"
            ) from error
        return found

    def remember(self, pin: Pin, newest: Seen) -> tuple[str, ...]:
        """Save what was seen, for this key and its successor; warn if that fails."""
        if not pin.ed25519:
            return ()
        from filelock import FileLock

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / "lock", timeout=10):
                for key in {pin.ed25519, _key(newest.key)}:
                    if newest.sequence > self.seen(replace(pin, ed25519=key)).sequence:
                        self._write(key, newest)
        except OSError as error:  # a lock that is never free is one as well
            return (f"{self.folder}: what was signed last is not remembered ({error.strerror})",)
        return ()

    def _write(self, key: bytes, newest: Seen) -> None:
        fields = {"key": newest.key, "sequence": newest.sequence, "manifest": newest.manifest}
        replace_file(self._path(key), json.dumps(fields).encode())

    def _path(self, key: bytes) -> Path:
        return self.folder / f"{hashlib.sha256(key).hexdigest()[:32]}.json"
