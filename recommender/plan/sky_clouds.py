"""The clouds that SkyPilot rents machines from, and what it does not do there.

Read in its version 0.14.1 (sky/clouds, `_CLOUD_UNSUPPORTED_FEATURES`; 2026-11).
"""

CLUSTERS = "clusters of several machines"
DISKS = "disks of a kind"
CONTROLLER = "the machine that watches a job"
SPOT = "spot machines"
_ALL_BUT_CLUSTERS = (SPOT, DISKS, CONTROLLER)
_LACKS: dict[str, tuple[str, ...]] = {
    "aws": (), "azure": (), "gcp": (), "ibm": (), "nebius": (), "oci": (), "ssh": (),
    "cudo": _ALL_BUT_CLUSTERS,
    "do": (SPOT, DISKS),
    "fluidstack": _ALL_BUT_CLUSTERS,
    "hyperbolic": (CLUSTERS, *_ALL_BUT_CLUSTERS),
    "kubernetes": (SPOT, DISKS),
    "lambda": _ALL_BUT_CLUSTERS,
    "mithril": (DISKS, CONTROLLER),
    "paperspace": (SPOT, DISKS),
    "primeintellect": (CLUSTERS, DISKS),
    "runpod": (CLUSTERS, DISKS),
    "scp": (SPOT, DISKS),
    "seeweb": (CLUSTERS, *_ALL_BUT_CLUSTERS),
    "shadeform": (CLUSTERS, *_ALL_BUT_CLUSTERS),
    "vast": (CLUSTERS, DISKS),
    "verda": (CLUSTERS, DISKS, CONTROLLER),
    "vsphere": (CLUSTERS, SPOT, DISKS),
    "yotta": (CLUSTERS, *_ALL_BUT_CLUSTERS),
}  # fmt: skip


def lacks(infra: str) -> tuple[str, ...]:
    """What SkyPilot does not do on a cloud, named as it names it: "lambda", "ssh/pool"."""
    return _LACKS.get(infra.partition("/")[0], ())
