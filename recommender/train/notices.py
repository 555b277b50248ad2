"""The provider's interruption notice of a spot machine, read from its metadata service.

| provider | asked | notice before the end |
|:--|:--|:--|
| AWS | IMDSv2: a token, then GET /latest/meta-data/spot/instance-action (404: none) | 2 min |
| Google Cloud | GET /computeMetadata/v1/instance/preempted: TRUE or FALSE | 30 s |
| Azure | GET /metadata/scheduledevents?api-version=2020-07-01: Preempt, Terminate, ... | 30 s |

EC2 User Guide "Spot Instance interruption notices", Compute Engine "Preemptible VM instances",
Azure "Scheduled Events for Linux VMs", read 2026-11. The services are on a link-local address of
the machine itself. The firmware says which one is read; on any other machine none is. The
variables that give the clouds' own libraries another address apply here, too.
"""

import json
import logging
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recommender.catalogs.frozen import dataclass
from recommender.errors import UsageError
from recommender.text import unknown

POLL_S = 2.0  # Google's and Azure's notices last 30 s
_TIMEOUT_S = 2.0
_TOKEN_TTL_S = 21_600
_LOG = logging.getLogger("recommender.train")
# A proxy of the environment must not be used for the machine's own metadata.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_FIRMWARE = Path("/sys/class/dmi/id")
_ENDPOINTS = {  # read by the AWS SDKs and by google-auth (their references, 2026-11)
    "AWS_EC2_METADATA_SERVICE_ENDPOINT": ("aws", "{}"),
    "GCE_METADATA_HOST": ("gcp", "http://{}"),
}
_VENDORS = {"Amazon EC2": "aws", "Google": "gcp"}
_AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"  # of every Azure VM's chassis
_LOSES_MACHINE = ("Preempt", "Terminate", "Redeploy", "Reboot")


@dataclass(frozen=True, slots=True)
class Notice:
    """An announced interruption; equal for every reading of one event."""

    provider: str
    action: str  # in the provider's word: terminate, stop, Preempt, ...
    at: str  # the time it says, or nothing


Reader = Callable[[str], Notice | None]


def read_aws(endpoint: str) -> Notice | None:
    """The notice of EC2 for this machine; each reading gets a new token, so none expires."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_TTL_S)}
    token = _get(f"{endpoint}/latest/api/token", ttl, "PUT") or ""
    headers = {"X-aws-ec2-metadata-token": token}
    text = _get(f"{endpoint}/latest/meta-data/spot/instance-action", headers)
    if text is None:
        return None
    found = json.loads(text)
    return Notice("aws", str(found["action"]), str(found.get("time", "")))


def read_gcp(endpoint: str) -> Notice | None:
    """The notice of Compute Engine for this machine."""
    headers = {"Metadata-Flavor": "Google"}
    text = _get(f"{endpoint}/computeMetadata/v1/instance/preempted", headers)
    taken = text is not None and text.strip().upper() == "TRUE"
    return Notice("gcp", "preempted", "") if taken else None


def read_azure(endpoint: str) -> Notice | None:
    """The notice of Azure for this machine and its scale set, which is lost together."""
    address = f"{endpoint}/metadata/scheduledevents?api-version=2020-07-01"
    text = _get(address, {"Metadata": "true"})
    events = json.loads(text)["Events"] if text else []
    for event in events:
        if event["EventType"] in _LOSES_MACHINE:
            return Notice("azure", str(event["EventType"]), str(event.get("NotBefore", "")))
    return None


READERS: dict[str, tuple[Reader, str]] = {
    "aws": (read_aws, "http://169.254.169.254"),
    "gcp": (read_gcp, "http://metadata.google.internal"),
    "azure": (read_azure, "http://169.254.169.254"),
}


def provider_of_this_machine(firmware: Path = _FIRMWARE) -> str | None:
    """The cloud of this machine according to its firmware, without the network."""
    if _line(firmware / "chassis_asset_tag") == _AZURE_ASSET_TAG:
        return "azure"
    return _VENDORS.get(_line(firmware / "sys_vendor"))


def usual_notices() -> "NoticeWatch | None":
    """The notice reader of this machine, from an address in the environment or its firmware."""
    for variable, (provider, address) in _ENDPOINTS.items():
        if named := os.environ.get(variable):
            return NoticeWatch(provider, address.format(named))
    found = provider_of_this_machine()
    return None if found is None else NoticeWatch(found)


class NoticeWatch:
    """Polls a metadata service in a thread; `take` returns each notice once."""

    def __init__(self, provider: str, endpoint: str | None = None, poll_s: float = POLL_S) -> None:
        if provider not in READERS:
            raise UsageError(unknown("provider of notices", provider, READERS))
        self._read, usual = READERS[provider]
        self._endpoint = (endpoint or usual).rstrip("/")
        self._poll_s = poll_s
        self._lock = threading.Lock()
        self._seen: set[Notice] = set()
        self._new: Notice | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="notices", daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, waiting for a running poll at most its time limit."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(2 * _TIMEOUT_S)

    def take(self) -> Notice | None:
        """A notice that was not returned before."""
        with self._lock:
            new, self._new = self._new, None
        return new

    def _poll(self) -> None:
        warned = False
        while not self._ended.is_set():
            try:
                self._publish(self._read(self._endpoint))
            except (OSError, ValueError, KeyError, TypeError) as error:
                if not warned:
                    _LOG.warning("no notices from %s: %s; trying again", self._endpoint, error)
                warned = True
            self._ended.wait(self._poll_s)

    def _publish(self, notice: Notice | None) -> None:
        if notice is None or notice in self._seen:
            return
        with self._lock:
            self._seen.add(notice)
            self._new = notice


def _get(address: str, headers: dict[str, str], method: str = "GET") -> str | None:
    """The text at an address, or nothing where the service has none (404)."""
    request = urllib.request.Request(address, headers=headers, method=method)
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
            text: Any = answer.read(1 << 16)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        raise
    return str(text, "utf-8", "replace")


def _line(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""
