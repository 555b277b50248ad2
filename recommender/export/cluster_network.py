"""What several machines need of the network, and what an exported file leaves to its user.

The estimate counts on the network that a machine type is sold with. AWS's EFA is requested by the
files themselves. Google's and Azure's fast networks need networks, images or scale sets that are
set up once, which a file of a run does not do: it says so.
"""

import re

from recommender.export.description import RunDescription

# "Networking and GPU machines" (docs.cloud.google.com/compute/docs/gpus/gpu-network-bandwidth, read
# 2026-11): one network for each interface of GPUDirect, one RDMA network for all of RoCE.
_TCPX = "{} more networks with a gVNIC interface in each and the software of {}"
_ROCE = (
    "a network with the zone's RDMA network profile, eight interfaces of type MRDMA in it and the "
    "NCCL plug-in for it"
)
_GOOGLE = {
    "a3-highgpu-8g": _TCPX.format("four", "GPUDirect-TCPX"),
    "a3-megagpu-8g": _TCPX.format("eight", "GPUDirect-TCPXO"),
    "a3-ultragpu-8g": _ROCE,
    "a4-highgpu-8g": _ROCE,
}
_GOOGLE_PAGE = "docs.cloud.google.com/compute/docs/gpus/gpu-network-bandwidth"
# Sizes with an r reach each other by InfiniBand ("Azure virtual machine sizes naming conventions",
# learn.microsoft.com, 2026-11).
_INFINIBAND = re.compile(r"Standard_N[CD]\d+[a-z]*r")
# The AWS types that the snapshot has on RDMA ("Supported instance types" of EFA, Amazon EC2 User
# Guide, 2026-08): large ones of the G families, and all of the newer P and Trn families.
_EFA = re.compile(
    r"(g4dn|g5|g6e?|gr6|g7e?)\.(8|12|16|24|48)xlarge|g4dn\.metal|p3dn\..*|p4de?\..*|p[5-9].*|"
    r"trn1n?\.32xlarge|trn2.*"
)


def cluster_network_words(run: RunDescription, file: str, groups: str) -> list[str]:
    """What several machines get and lack of the network that the estimate counts on.

    They are the plan's or the fallback's. `groups` says what becomes of the groups that AWS needs
    and `file` creates.
    """
    found = [_efa_words(run, file, groups), *map(_network_words, _clusters(run))]
    return [words for words in dict.fromkeys(found) if words]


def efa_types(run: RunDescription) -> list[str]:
    """The machine types with EFA of which several train together, the plan's or the fallback's."""
    types = [each.machines for each in _clusters(run) if each.machines.provider == "aws"]
    names = dict.fromkeys(machines.instance_type for machines in types)
    return [name for name in names if _EFA.fullmatch(name)]


def _clusters(run: RunDescription) -> list[RunDescription]:
    return [each for each in (run, run.on_fallback) if each is not None and each.nodes > 1]


def _efa_words(run: RunDescription, file: str, groups: str) -> str:
    types = efa_types(run)
    if not types:
        return ""
    return (
        f"On {' and '.join(types)}, {file} requests EFA on every network card, and creates a "
        f"security group and a cluster placement group for it ({groups})."
    )


def _network_words(run: RunDescription) -> str:
    """The fast networks of Google and Azure that the estimate counts on and a file lacks."""
    machines = run.machines
    if machines.provider == "gcp":
        needed = next((v for k, v in _GOOGLE.items() if machines.instance_type.startswith(k)), "")
        return needed and (
            f"The estimate counts on the fast network of {machines.instance_type}, which needs "
            f"{needed} ({_GOOGLE_PAGE}). This file requests one gVNIC card for each machine: until "
            "you add them, steps take longer than estimated."
        )
    if machines.provider == "azure" and _INFINIBAND.match(machines.instance_type):
        return (
            "The estimate counts on InfiniBand, which connects VMs of one scale set only. This "
            "file starts separate VMs, which reach each other by Ethernet: steps take longer than "
            "estimated, unless you create the VMs as a scale set (az vmss create "
            "--orchestration-mode Uniform --single-placement-group true "
            "--platform-fault-domain-count 1 --disable-overprovision)."
        )
    return ""
