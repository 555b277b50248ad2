"""Publishes a version of a store: its export, signed, in a folder that any web server can serve.

Readers name its manifest and the public key: `https://…/manifest.json#ed25519=KEY` (`pin.py`). A
new key is named by the old one in `manifest.json.keys`, so that their address stays.
"""

import base64
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from recommender.catalogs import MANIFEST
from recommender.catalogs.archive import export
from recommender.catalogs.bounds import MAX_MANIFEST, read_plain_file
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.files import replace_file
from recommender.catalogs.pin import (
    SIGNATURE,
    SUCCESSORS,
    Pin,
    Seen,
    Served,
    successor_statement,
)
from recommender.catalogs.store import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_MAX_KEY = 10_000  # bytes of a file with a private key
_HOW = "openssl genpkey -algorithm ed25519 -out key.pem makes one"


def publish_signed(
    store: Store, name: str, out: Path, key: Path, now: datetime, old_key: Path | None = None
) -> str:
    """Write a signed version into a new folder; return the key that its readers name.

    With an `old_key` that key names the new one as its successor. The line is kept next to the
    new key, as KEY.keys, and published with every later version.

    Raises:
        CatalogError: a key cannot be read, the version is damaged or has expired, OUT exists or
            cannot be written; nothing is published then.
    """
    signer = _private_key(key)
    try:
        named, lines = _public(signer), _kept_lines(key)
        if old_key is not None:
            old = _private_key(old_key)
            named, lines = _public(old), _kept_lines(old_key) + _successor_line(old, signer)
        manifest = read_plain_file(store.path(name) / MANIFEST, MAX_MANIFEST)
        signature = signer.sign(manifest)
        # As a reader will see it: what they would refuse is not published.
        Pin(ed25519=base64.b64decode(named)).check(Served(manifest, signature, lines), Seen(), now)
        if old_key is not None:
            replace_file(_lines_path(key), lines)
    except (OSError, ValueError) as error:
        raise CatalogError(f"{out}: not published: {error}") from error
    export(store, name, out, {SIGNATURE: signature, **({SUCCESSORS: lines} if lines else {})})
    return named


def _private_key(path: Path) -> "Ed25519PrivateKey":
    """The private key of a PEM file that only its owner may read."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        content = read_plain_file(path, _MAX_KEY)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise CatalogError(f"{path}: others may read this key; chmod 600 it, or make a new one")
        key = load_pem_private_key(content, password=None)
    except FileNotFoundError:
        raise CatalogError(f"{path}: no such key; {_HOW}") from None
    except (OSError, ValueError, TypeError) as error:
        raise CatalogError(f"{path}: not a private key ({error}); {_HOW}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise CatalogError(f"{path}: not a key of Ed25519; {_HOW}")
    return key


def _public(key: "Ed25519PrivateKey") -> str:
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def _successor_line(old: "Ed25519PrivateKey", new: "Ed25519PrivateKey") -> bytes:
    """What names a key's successor: the new public key, and the old key's signature of it."""
    signed = old.sign(successor_statement(new.public_key().public_bytes_raw()))
    return f"{_public(new)} {base64.b64encode(signed).decode()}\n".encode()


def _lines_path(key: Path) -> Path:
    return key.with_name(f"{key.name}.keys")


def _kept_lines(key: Path) -> bytes:
    try:
        return read_plain_file(_lines_path(key), _MAX_KEY)
    except FileNotFoundError:
        return b""
