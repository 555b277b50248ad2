"""A plan by the Azure CLI: `az vm create` at each place of the list.

Commands as of azure-cli 2.91 (2026). Machines are deleted by themselves or by the script: one that
only shuts down goes on costing. Their names are known inside a virtual network, which the script
makes for each region.
"""

from recommender.export.cloud_script import (
    CloudSteps,
    cloud_files,
    why_not_one_cloud,
)
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.machine_script import MachineSteps
from recommender.export.templates import part


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`launch.sh` and what the machines run."""
    cloud = CloudSteps(
        "azure.sh",
        remarks=_REMARKS,
        setup=part("azure.sh", "setup"),
        start=part("azure.sh", "start"),
        pass_on=("CHECKPOINT_BUCKET", "AZURE_STORAGE_ACCOUNT"),
    )
    return cloud_files(run, folder, "azure-cli", cloud, MachineSteps("azure.sh"))


def why_not(run: RunDescription) -> str:
    """Why the Azure CLI cannot run a plan; empty where it can."""
    if run.machines.confidential:
        return "it starts no confidential VMs; export --to torchrun and start them yourself"
    return why_not_one_cloud(run, "azure", "azure-cli")


_REMARKS = (
    "Needed first: a resource group, named in RESOURCE_GROUP; a storage account, named in "
    "AZURE_STORAGE_ACCOUNT, with the container CHECKPOINT_BUCKET; a user-assigned identity, its id "
    "in IDENTITY, that may write blobs there (Storage Blob Data Contributor) and delete machines "
    "of the group (Virtual Machine Contributor). So may you.",
    "The image is the newest of IMAGE, Azure's own for GPUs: PyTorch comes with your "
    "requirements.txt.",
    "A machine deletes itself; its public address, which it needs to reach the bucket, goes when "
    "launch.sh stops.",
)
