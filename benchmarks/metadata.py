"""Which cloud machine this is: instance type, region and market, as the provider tells them.

Read only where the firmware names the provider, never through a proxy, with a short timeout,
and only for these fields: nothing here reads a path that holds credentials. AWS is asked with a
session token (IMDSv2). https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys
https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service
"""

import hashlib
import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Those of the catalogs; bench.pyz is alone.
PROVIDERS = (
    "aws", "gcp", "azure", "lambda", "nebius", "runpod", "verda", "oci", "hyperstack",
    "jarvislabs", "coreweave", "crusoe", "together", "digitalocean", "vultr", "scaleway", "seeweb",
    "ovh", "cloudrift", "vast", "lium", "own",
)  # fmt: skip
ENDPOINT = "169.254.169.254"  # link-local, the same at all three
TIMEOUT_S = 0.3
_DMI = Path("/sys/class/dmi/id")
_MAX_BYTES = 64 * 2**10
_AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"  # every Azure machine's chassis asset tag
_TOKEN_S = "60"

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """A rented machine; empty where the provider does not tell."""

    provider: str = ""
    instance_type: str = ""
    region: str = ""
    zone: str = ""
    market: str = ""  # "spot", "on_demand"
    machine: str = ""  # a hash of the instance's number: tells two machines apart, names none


def provider_of(dmi: Path = _DMI) -> str:
    """The provider that the firmware names; empty on other machines."""
    names = ("sys_vendor", "bios_vendor", "product_name", "chassis_asset_tag")
    vendor, bios, product, tag = (_first_line(dmi / name) for name in names)
    if "Amazon EC2" in (vendor, bios) or vendor.startswith("Amazon"):
        return "aws"
    # P2, P3 and G3 run on Xen and name Amazon in the version only, "4.11.amazon":
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html
    if _first_line(dmi / "bios_version").lower().endswith(".amazon"):
        return "aws"
    if product == "Google Compute Engine":
        return "gcp"
    if tag == _AZURE_TAG:
        return "azure"
    return ""


def find_place(provider: str, endpoint: str = ENDPOINT, timeout_s: float = TIMEOUT_S) -> Place:
    """Read the provider's metadata service; what it does not answer stays empty."""
    ask = {"aws": _aws, "gcp": _gcp, "azure": _azure}.get(provider)
    if ask is None:
        return Place()
    try:
        return ask(_Service(endpoint, timeout_s))
    except (OSError, http.client.HTTPException, ValueError):
        return Place(provider)


@dataclass(frozen=True, slots=True)
class _Service:
    endpoint: str
    timeout_s: float

    def get(self, path: str, headers: Headers, method: str = "GET", flavour: str = "") -> str:
        """One answer as text; raises OSError for anything but 200.

        http.client knows no proxies: the answer comes from this machine's own service.
        """
        connection = http.client.HTTPConnection(self.endpoint, timeout=self.timeout_s)
        try:
            connection.request(method, path, headers=dict(headers))
            response = connection.getresponse()
            if response.status != 200:
                raise OSError(f"{path}: {response.status}")
            if flavour and response.getheader("Metadata-Flavor") != flavour:
                raise OSError(f"{path}: not answered by {flavour}")
            return response.read(_MAX_BYTES).decode("utf-8").strip()
        finally:
            connection.close()


def _aws(service: _Service) -> Place:
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": _TOKEN_S}
    token = service.get("/latest/api/token", lifetime, "PUT")
    headers = {"X-aws-ec2-metadata-token": token}
    ask = _blank_if_missing(lambda path: service.get(f"/latest/meta-data/{path}", headers))
    life = ask("instance-life-cycle")
    return Place(
        "aws",
        ask("instance-type"),
        ask("placement/region"),
        ask("placement/availability-zone"),
        {"spot": "spot", "on-demand": "on_demand"}.get(life, ""),
        hashed(ask("instance-id")),
    )


def _gcp(service: _Service) -> Place:
    root, headers = "/computeMetadata/v1/instance/", {"Metadata-Flavor": "Google"}
    ask = _blank_if_missing(lambda path: service.get(root + path, headers, flavour="Google"))
    zone = ask("zone").rpartition("/")[2]  # projects/1234/zones/us-central1-a
    spot = ask("scheduling/preemptible").upper()
    return Place(
        "gcp",
        ask("machine-type").rpartition("/")[2],
        zone.rpartition("-")[0],
        zone,
        {"TRUE": "spot", "FALSE": "on_demand"}.get(spot, ""),
        hashed(ask("id")),
    )


def _azure(service: _Service) -> Place:
    path = "/metadata/instance/compute?api-version=2021-02-01&format=json"
    document = json.loads(service.get(path, {"Metadata": "true"}))
    if not isinstance(document, dict):
        raise ValueError("not an object")
    word = {key: str(document.get(key) or "") for key in ("vmSize", "location", "zone", "priority")}
    return Place(
        "azure",
        word["vmSize"],
        word["location"],
        word["zone"],
        "spot" if word["priority"] in ("Spot", "Low") else "on_demand",
        hashed(str(document.get("vmId") or "")),
    )


def _blank_if_missing(get: Callable[[str], str]) -> Callable[[str], str]:
    """An unanswered field is empty: a machine without one still has the others."""

    def ask(path: str) -> str:
        try:
            return get(path)
        except (OSError, http.client.HTTPException, ValueError):
            return ""

    return ask


def hashed(name: str) -> str:
    """Twelve digits that tell machines apart and cannot be turned back."""
    return hashlib.sha256(f"recommend {name}".encode()).hexdigest()[:12] if name else ""


def _first_line(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""
