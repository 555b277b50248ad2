"""Copies of public files, so that one that has not changed since last night is not sent again.

A copy is one file: a line of JSON (address, validators, checksum), then the content, gzipped. It
is used only where the server itself says that the file is still the same (304 Not Modified), so
what is read from it is as true today as what is sent.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from catalogs import durable
from catalogs.jsontext import parsed

VALIDATORS = MappingProxyType({"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"})


@dataclass(frozen=True, slots=True)
class Copy:
    """What an address served before, and the headers that ask whether it still does."""

    content: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Copies:
    """A folder of copies by name; without a folder nothing is kept."""

    folder: Path | None

    def find(self, name: str, url: str) -> Copy | None:
        """The copy of an address; None without one, or where it is damaged."""
        if self.folder is None:
            return None
        try:
            head, _, packed = (self.folder / name).read_bytes().partition(b"\n")
            about = parsed(head)
            content = gzip.decompress(packed)
            headers = {str(key): str(value) for key, value in about["headers"].items()}
            same = about["url"] == url and about["sha256"] == hashlib.sha256(content).hexdigest()
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zlib.error):
            return None
        return Copy(content, headers) if same and headers else None

    def keep(self, name: str, url: str, answered: Mapping[str, str], content: bytes) -> None:
        """Keep what an address has served to its end; a full disk costs only the copy."""
        headers = {ask: answered[said] for said, ask in VALIDATORS.items() if answered.get(said)}
        if self.folder is None or not headers:
            return
        about = {"url": url, "headers": headers, "sha256": hashlib.sha256(content).hexdigest()}
        packed = gzip.compress(content, compresslevel=1, mtime=0)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            durable.replace(self.folder / name, json.dumps(about).encode() + b"\n" + packed)
        except OSError:
            return
