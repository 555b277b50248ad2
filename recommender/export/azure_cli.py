"""A plan by the Azure CLI: `az vm create` at each place of the list.

Commands as of azure-cli 2.91 (2026). Machines are deleted by themselves or by the script: one that
only shuts down goes on costing. Their names are known inside a virtual network, which the script
makes for each region.
"""

from recommender.export.cloud_script import (
    RUN_KEY,
    CloudSteps,
    cloud_files,
    why_not_one_cloud,
)
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.machine_script import ROOT, MachineSteps

_BLOB = "az storage blob"
_QUIET = "--only-show-errors --output none"
_METADATA = "http://169.254.169.254/metadata/instance/compute"
_INSTALLER = "https://aka.ms/InstallAzureCLIDeb"  # Microsoft's own, for Debian and Ubuntu


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`launch.sh` and what the machines run."""
    return cloud_files(run, folder, "azure-cli", _CLOUD, MACHINE_STEPS)


def why_not(run: RunDescription) -> str:
    """Why the Azure CLI cannot run a plan; empty where it can."""
    if run.machines.confidential:
        return "it starts no confidential VMs; export --to torchrun and start them yourself"
    return why_not_one_cloud(run, "azure", "azure-cli")


_TAGGED = f"[?tags.\\\"{RUN_KEY}\\\"=='$run_tag']"
_SHOW = (
    f'{_BLOB} download --container-name "$CHECKPOINT_BUCKET" --name "$1" --no-progress \\',
    "  --only-show-errors 2> /dev/null",
)
_CLOUD = CloudSteps(
    remarks=(
        "Needed first: a resource group, named in RESOURCE_GROUP; a storage account, named in "
        "AZURE_STORAGE_ACCOUNT, with the container CHECKPOINT_BUCKET; a user-assigned identity, "
        "its id in IDENTITY, that may write blobs there (Storage Blob Data Contributor) and delete "
        "machines of the group (Virtual Machine Contributor). So may you.",
        "The image is the newest of IMAGE, Azure's own for GPUs: PyTorch comes with your "
        "requirements.txt.",
        "A machine deletes itself; its public address, which it needs to reach the bucket, goes "
        "when launch.sh stops.",
    ),
    setup=(
        ': "${RESOURCE_GROUP:?export RESOURCE_GROUP=name of a resource group first}"',
        ': "${AZURE_STORAGE_ACCOUNT:?export AZURE_STORAGE_ACCOUNT=your account first}"',
        ': "${IDENTITY:?export IDENTITY=id of a user-assigned identity first}"',
        "IMAGE=${IMAGE:-microsoft-dsvm:ubuntu-hpc:2204:latest}",
        "export AZURE_STORAGE_ACCOUNT AZURE_STORAGE_AUTH_MODE=login",
    ),
    start=(
        "local rank pid failed=0 options=() pids=()",
        'az network vnet create --resource-group "$RESOURCE_GROUP" --name "$NAME-$region" \\',
        f'  --location "$region" --subnet-name train {_QUIET} || return 1',
        'if [ "$market" = spot ]; then',
        "  options+=(--priority Spot --eviction-policy Delete --max-price -1)",
        "fi",
        'if [ -n "$zone" ]; then',
        '  options+=(--zone "$zone")',
        "fi",
        "for ((rank = 0; rank < count; rank++)); do",
        '  az vm create --resource-group "$RESOURCE_GROUP" --name "${run_tag:0:58}-$rank" \\',
        '    --location "$region" --size "$machine_type" --image "$IMAGE" \\',
        '    --assign-identity "$IDENTITY" --custom-data "$boot_file" \\',
        '    --vnet-name "$NAME-$region" --subnet train --nsg "" --public-ip-sku Standard \\',
        "    --admin-username azureuser --generate-ssh-keys --nic-delete-option Delete \\",
        '    --os-disk-size-gb "$DISK_GB" --os-disk-delete-option Delete \\',
        "    --storage-sku os=Premium_LRS \\",
        f'    --tags "{RUN_KEY}=$run_tag" "${{options[@]}}" {_QUIET} &',
        "  pids+=($!)",
        "done",
        'for pid in "${pids[@]}"; do wait "$pid" || failed=1; done',
        'return "$failed"',
    ),
    running=(
        'az vm list --resource-group "$RESOURCE_GROUP" --output tsv \\',
        f'  --query "{_TAGGED}.name"',
    ),
    stop=(
        "local kind found",
        "for kind in vm 'network public-ip'; do",
        "  # shellcheck disable=SC2086  # two words are a group and its command",
        '  found=$(az $kind list --resource-group "$RESOURCE_GROUP" --output tsv \\',
        f'    --query "{_TAGGED}.id") || return 1',
        '  [ -n "$found" ] || continue',
        '  if [ "$kind" = vm ]; then',
        f'    xargs az vm delete --yes {_QUIET} --ids <<< "$found" || return 1',
        "  else",
        f'    xargs az network public-ip delete {_QUIET} --ids <<< "$found" || return 1',
        "  fi",
        "done",
    ),
    upload_code=(
        "local copy",
        "copy=$(mktemp -d)",
        "(cd \"$code\" && find . -type f ! -path '*/.*' ! -path '*/__pycache__/*' -print0 |",
        '  tar --null -T - -c) | tar -C "$copy" -x',
        f'{_BLOB} upload-batch --destination "$CHECKPOINT_BUCKET" --overwrite \\',
        f'  --destination-path "$NAME/code" --source "$copy" {_QUIET}',
    ),
    show=_SHOW,
    put=(
        f'{_BLOB} upload --container-name "$CHECKPOINT_BUCKET" --name "$1" --file "$2" \\',
        f"  --overwrite {_QUIET}",
    ),
    drop=(f'{_BLOB} delete --container-name "$CHECKPOINT_BUCKET" --name "$1" {_QUIET}',),
    pass_on=("CHECKPOINT_BUCKET", "AZURE_STORAGE_ACCOUNT"),
)

MACHINE_STEPS = MachineSteps(
    itself=(
        "metadata() {",
        f'  curl -sf -H Metadata:true "{_METADATA}/$1?api-version=2021-02-01&format=text"',
        "}",
        "machine=$(metadata name)",
    ),
    setup=(
        "export AZURE_STORAGE_AUTH_MODE=login",
        f"command -v az > /dev/null || curl -sfL {_INSTALLER} | bash > /dev/null",
        f"az login --identity {_QUIET}",
    ),
    get_folder=(
        f'{_BLOB} download-batch --source "$CHECKPOINT_BUCKET" --pattern "$1/*" \\',
        f'  --destination "{ROOT}" --overwrite {_QUIET}',
    ),
    put_folder=(
        f'{_BLOB} upload-batch --destination "$CHECKPOINT_BUCKET" --destination-path "$1" \\',
        f'  --source "{ROOT}/$1" --overwrite {_QUIET}',
    ),
    put_file=(
        f'{_BLOB} upload --container-name "$CHECKPOINT_BUCKET" --name "$1" \\',
        f'  --file "{ROOT}/$1" --overwrite {_QUIET}',
    ),
    drop_folder=(f'{_BLOB} delete-batch --source "$CHECKPOINT_BUCKET" --pattern "$1/*" {_QUIET}',),
    show=_SHOW,
    rank=("NODE_RANK=${machine##*-}  # the names end in it",),
    master=("MASTER_ADDR=${machine%-*}-0  # names of a network are known to its machines",),
    end_machine=(
        f'az vm delete --yes --ids "$(metadata resourceId)" {_QUIET} ||',
        "  shutdown -h now",
    ),
)
