"""A plan by the AWS CLI: `aws ec2 run-instances` at each place of the failover list.

Zones are found by their ids, as their names differ between accounts: the default subnet of the
zone is taken. The image is AWS's own for PyTorch, by its public parameter (AWS Deep Learning AMIs,
"Retrieve the latest AMI ID", 2026-11).
"""

from recommender.export.cloud_script import (
    CloudSteps,
    cloud_files,
    why_not_one_cloud,
)
from recommender.export.cluster_network import efa_types
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.header import large_disk
from recommender.export.machine_script import MachineSteps
from recommender.export.quoting import assignment, shell
from recommender.export.templates import part

# CUDA 13 and driver 595, which know B300 and RTX PRO 6000; AWS patches PyTorch 2.7 (CUDA 12.8) no
# more since 2026-04-23 (DLAMI support policy and release notes, 2026-10).
IMAGE = (
    "resolve:ssm:/aws/service/deeplearning/ami/x86_64/"
    "oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-24.04/latest/ami-id"
)
_BUY = (
    "The block is bought first: aws ec2 describe-capacity-block-offerings, then "
    "purchase-capacity-block; its id (cr-...) goes into CAPACITY_RESERVATION. It is paid whole."
)
_FAST_DISK = ',"Iops":4000,"Throughput":1000'  # 5 cents an hour; gp3 does 125 MB/s by default
_REMARKS = (
    "Needed first: the bucket; an instance profile that may read and write it, named in "
    "INSTANCE_PROFILE; default subnets in the regions above, which new accounts have.",
    "The image is AWS's newest of IMAGE, a public parameter: look whether it has the PyTorch you "
    "want, or name an AMI in IMAGE (AMIs are of one region).",
    "A machine ends itself: its shutdown terminates it.",
)
_RIGHTS = "To start several machines you need the right to call ec2:DescribeInstanceTypes{}."
_EFA_RIGHTS = (
    ", and for EFA ec2:DescribeSecurityGroups, CreateSecurityGroup, AuthorizeSecurityGroupIngress, "
    "AuthorizeSecurityGroupEgress and CreatePlacementGroup"
)


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`launch.sh` and what the machines run."""
    return cloud_files(run, folder, "aws-cli", _cloud(run), MachineSteps("aws.sh"))


def why_not(run: RunDescription) -> str:
    """Why the AWS CLI cannot run a plan; empty where it can."""
    return why_not_one_cloud(run, "aws", "aws-cli")


def _setup(run: RunDescription) -> tuple[str, ...]:
    later = () if run.on_fallback is None else run.on_fallback.locations
    regions = dict.fromkeys(location.region for location in (*run.locations, *later))
    block = ': "${CAPACITY_RESERVATION:?export CAPACITY_RESERVATION=id of the block first}"'
    fast_network = part("aws.sh", "fast_network") if run.trains_on_several else ()
    return (
        *((block,) if run.machines.market == "reserved_block" else ()),
        ': "${INSTANCE_PROFILE:?export INSTANCE_PROFILE=name of an instance profile first}"',
        f"IMAGE=${{IMAGE:-{IMAGE}}}",
        assignment("DISK_SPEED", _FAST_DISK if large_disk(run) else ""),
        f"REGIONS=({' '.join(map(shell, regions))})",
        *part("aws.sh", "zone_filter"),
        *fast_network,
    )


def _cloud(run: RunDescription) -> CloudSteps:
    several, block = run.trains_on_several, run.machines.market == "reserved_block"
    rights = _RIGHTS.format(_EFA_RIGHTS if efa_types(run) else "")
    return CloudSteps(
        "aws.sh",
        remarks=(*((_BUY,) if block else ()), *_REMARKS, *((rights,) if several else ())),
        setup=_setup(run),
        start=part(
            "aws.sh",
            "start",
            IN_BLOCK=part("aws.sh", "in_block") if block else (),
            IF_SEVERAL=part("aws.sh", "if_several") if several else (),
        ),
    )
