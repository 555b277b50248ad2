"""What the address of a shared catalog demands of its manifest: a checksum or a signature.

    https://…/manifest.json#sha256=<64 hexadecimal digits>      this manifest and no other
    https://…/manifest.json#ed25519=<public key, base64>        whatever the key's owner signed

The signature is the file `manifest.json.sig` beside the manifest: the 64 bytes that `openssl
pkeyutl -sign -rawin` writes. As the manifest holds the checksum of every file, all of the catalog
is pinned by it. An older catalog of the same signer is not told from the newest: see its ages.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urldefrag

from catalogs.errors import CatalogError

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
