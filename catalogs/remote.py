"""Reads a catalog that somebody serves over HTTPS: manifest first, every file by its checksum.

    https://…/manifest.json#sha256=<64 hexadecimal digits>      this manifest and no other
    https://…/manifest.json#ed25519=<public key, base64>        whatever the key's owner signed

The signature is the file `manifest.json.sig` next to the manifest: the 64 bytes that `openssl
pkeyutl -sign -rawin` writes. As the manifest holds the checksum of every file, all of the catalog
is pinned by it. An older catalog of the same signer is not told from the newest: see its ages.

A copy is kept in the user's cache folder under the checksum of the manifest. Where the server
does not answer the last copy is used, and said so. Checksums protect from truncation and from
half-written uploads, not from whoever can change the manifest: serve it from a place that only
the right people write to, or demand a checksum or a signature in the address.
"""

import base64
import binascii
import hashlib
import hmac
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from recommender.catalogs import MANIFEST
from recommender.catalogs.archive import FILES, MOST_BYTES
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.errors import CatalogError
from recommender.catalogs.files import parse_json, replace_file, write_new
from recommender.catalogs.frozen import dataclass
from recommender.catalogs.load import load
from recommender.catalogs.tables import TABLES

_KEY_BYTES, _SIGNATURE_BYTES = 32, 64


@dataclass(frozen=True, slots=True)
class Pin:
    """A checksum or a public key; empty where the address demands nothing."""

    sha256: str = ""
    ed25519: bytes = b""

    def check(self, manifest: bytes, signature: Callable[[], bytes]) -> None:
        """Refuse a manifest that is not the one demanded.

        Raises:
            CatalogError: it has another checksum, or no signature of the key.
        """
        found = hashlib.sha256(manifest).hexdigest()
        if self.sha256 and not hmac.compare_digest(found, self.sha256):
            raise CatalogError(
                f"the manifest's sha256 is {found}, the address demands {self.sha256}; "
                "ask whoever serves it which is right"
            )
        if self.ed25519 and not _is_signed(manifest, signature(), self.ed25519):
            raise CatalogError(
                "manifest.json.sig is no signature of the manifest by the key in the address; "
                "sign it again, or ask whoever serves it for the key"
            )


def pinned(address: str) -> tuple[str, Pin]:
    """Take what an address demands from its end.

    Raises:
        CatalogError: what follows "#" is no checksum and no key.
    """
    plain, fragment = urldefrag(address)
    name, _, value = fragment.partition("=")
    if not fragment:
        return plain, Pin()
    if name == "sha256" and len(value) == 64 and not set(value.lower()) - set("0123456789abcdef"):
        return plain, Pin(sha256=value.lower())
    if name == "ed25519" and len(key := _key(value)) == _KEY_BYTES:
        return plain, Pin(ed25519=key)
    raise CatalogError(
        f"#{fragment[:20]}…: after # an address holds sha256=<64 hexadecimal digits> or "
        "ed25519=<public key of 32 bytes, base64>"
    )


def _key(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (ValueError, binascii.Error):
        return b""


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


_TIMEOUT_S = 30.0
_MOST_MANIFEST = 1_000_000
_LAST = "LAST"
_ASIDE, _FILLED_S = ".new-", 3600.0  # what is older was left behind
SIGNATURE = f"{MANIFEST}.sig"
_MOST_SIGNATURE = 1000

Get = Callable[[str, int], bytes]  # from an address, at most so many bytes


@dataclass(frozen=True, slots=True)
class Remote:
    """A catalog read from an address, and what was wrong on the way."""

    catalog: Catalog
    notes: tuple[str, ...]


def default_cache() -> Path:
    """Where copies lie."""
    from platformdirs import user_cache_path

    return user_cache_path("recommend") / "catalogs"


def load_remote(address: str, cache: Path, get: "Get | None" = None) -> Remote:
    """Load the catalog of https://…/manifest.json.

    Raises:
        CatalogError: the address is not allowed, what it serves is no catalog or not the one
            demanded, or the server does not answer and no copy is kept.
    """
    demanded = address  # a copy that was read without a checksum or key is none for one with it
    address, pin = pinned(address)
    _check_address(address)
    if not urlsplit(address).path.endswith(f"/{MANIFEST}"):
        raise CatalogError(f"{_shown(address)}: name the manifest: https://…/{MANIFEST}")
    get = get or fetch
    kept = cache / hashlib.sha256(demanded.encode()).hexdigest()[:16]
    try:
        manifest = get(address, _MOST_MANIFEST)
        pin.check(manifest, lambda: get(_beside(address, SIGNATURE), _MOST_SIGNATURE))
        folder = kept / hashlib.sha256(manifest).hexdigest()
        catalog = _kept_copy(folder) or _fill(address, manifest, folder, get)
    except (OSError, CatalogError) as error:  # no answer, or a half-written upload
        return _last_copy(address, kept, error)
    if folder.is_dir():
        _remember(kept, folder)
    return Remote(catalog, ())


def fetch(address: str, most: int) -> bytes:
    """Get what an address serves, within limits of time and size."""
    request = Request(address, headers={"User-Agent": "recommend", "Accept-Encoding": "identity"})
    with build_opener(_SameScheme()).open(request, timeout=_TIMEOUT_S) as answer:
        content: bytes = answer.read(most + 1)
    if len(content) > most:
        raise CatalogError(f"{_shown(address)}: more than {most:,} bytes")
    return content


class _SameScheme(HTTPRedirectHandler):
    """Follows a redirect to another https address only."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """Refuse to leave https."""
        _check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme != "https" and not local:
        raise CatalogError(f"{_shown(address)}: a catalog is read over https:// only")
    if parts.username or parts.password:
        raise CatalogError(f"{_shown(address)}: the address holds a password; remove it")


def _shown(address: str) -> str:
    """The address without user, password and query, which may be secret."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def _kept_copy(folder: Path) -> Catalog | None:
    """What is kept of this manifest; a damaged copy is got again."""
    if not (folder / MANIFEST).is_file():
        return None
    try:
        return load(folder)
    except CatalogError:
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _fill(address: str, manifest: bytes, folder: Path, get: Get) -> Catalog:
    """Get every file that the manifest names, and keep them in one step.

    Each program writes a folder of its own: several may read the same address at once.
    """
    files = {name: get(_beside(address, name), MOST_BYTES) for name in _files(address, manifest)}
    try:
        aside = _folder_beside(folder)
        try:
            for name, content in (*files.items(), (MANIFEST, manifest)):
                write_new(aside / name, content)
            catalog = load(aside)
            with suppress(OSError):  # another program was faster, or no copy can be kept
                os.rename(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise CatalogError(f"{folder}: cannot be written: {error.strerror}") from error
    return catalog


def _folder_beside(folder: Path) -> Path:
    """A new folder in the cache; elsewhere if nothing can be written there, so nothing is kept."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(prefix=_ASIDE, dir=folder.parent))
    except OSError:
        return Path(mkdtemp())


def _beside(address: str, name: str) -> str:
    """The address of a file in the manifest's folder, with the same query (signed addresses)."""
    query = urlsplit(address).query
    return urljoin(address, name) + (f"?{query}" if query else "")


def _files(address: str, manifest: bytes) -> list[str]:
    try:
        tables = parse_json(manifest)["tables"]
        names = []
        for name, entry in sorted(tables.items()):
            parts = entry.get("parts")
            table = TABLES[name]
            names += [table.file] if parts is None else [table.part(each) for each in parts]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(f"{_shown(address)}: not a manifest: {error}") from error
    if not FILES.issuperset(names):
        raise CatalogError(f"{_shown(address)}: the manifest names files that no catalog has")
    return names


def _remember(kept: Path, folder: Path) -> None:
    """Keep this copy for days without a connection, and no other."""
    try:
        replace_file(kept / _LAST, folder.name.encode())
        for path in kept.iterdir():
            if path.is_dir() and path != folder and not _is_being_filled(path):
                shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return  # a full disk, or another program at work: costs the copy, not the answer


def _is_being_filled(path: Path) -> bool:
    return path.name.startswith(_ASIDE) and time.time() - path.stat().st_mtime < _FILLED_S


def _last_copy(address: str, kept: Path, error: OSError | CatalogError) -> Remote:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(error, HTTPError):
        reason = f"HTTP {error.code}"
    try:
        folder = kept / (kept / _LAST).read_text(encoding="utf-8").strip()
        catalog = load(folder)
    except (OSError, CatalogError):
        raise CatalogError(f"{_shown(address)}: cannot be read ({reason}), no copy is kept") from (
            error
        )
    note = f"{_shown(address)} cannot be read ({reason}); its last copy is used"
    return Remote(catalog, (note,))
