"""A plan by the Google Cloud CLI: `gcloud compute instances create` at each place of the list.

Flags as of gcloud 528 (2025-06). Google ends machines itself after `--max-run-duration`, so the cap
holds even where the script and the machine have hung.
"""

import re
from dataclasses import replace

from recommender.export.checkpoint_upload import COMMANDS
from recommender.export.cloud_script import (
    RUN_KEY,
    CloudSteps,
    cloud_files,
    why_not_one_cloud,
)
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.machine_script import MachineSteps

# The newest that others name in public code (2026-08); its driver knows all GPUs of the catalog.
IMAGE_FAMILY = "pytorch-2-9-cu129-ubuntu-2204-nvidia-580"
# Machine types that boot from Hyperdisk alone; A3 and G2 refuse pd-standard, which is gcloud's own
# choice (SkyPilot 0.14.1, clouds/gcp.py, and its issues 4705 and 5351; read 2026-11).
HYPERDISK = "^(a3-ultragpu|a4x?|g4)-"
# --max-run-duration ("Limit the run time of a VM", docs.cloud.google.com/compute, 2026-11)
_LONGEST_S = 120 * 24 * 3600
# A request waits for capacity up to two hours, and then is made again; machines run for up to seven
# days ("Create flex-start VMs", docs.cloud.google.com/compute, 2026-11).
_FLEX_START = (
    "--provisioning-model=FLEX_START --request-valid-for-duration=2h --reservation-affinity=none"
)
_FLEX_LINES = (
    f"options+=({_FLEX_START})",
    f'if [ "$left_s" -gt {7 * 24 * 3600} ]; then left_s={7 * 24 * 3600}; fi',
)
IMAGE_PROJECT = "deeplearning-platform-release"
_LIST = 'gcloud compute instances list --filter="$filter"'
_METADATA = "http://metadata.google.internal/computeMetadata/v1/instance"


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`launch.sh` and what the machines run."""
    cloud = _CLOUD
    if run.machines.market == "flex_start":
        cloud = replace(cloud, start=(cloud.start[0], *_FLEX_LINES, *cloud.start[1:]))
    return cloud_files(run, folder, "gcloud", cloud, MACHINE_STEPS)


def why_not(run: RunDescription) -> str:
    """Why gcloud cannot run a plan; empty where it can."""
    return why_not_one_cloud(run, "gcp", "gcloud") or _no_type(run)


def _no_type(run: RunDescription) -> str:
    fallback_machines = () if run.fallback is None else run.fallback.machines
    for each in (*run.plan.machines, *fallback_machines):
        if not re.fullmatch(r"[a-z][a-z0-9-]*", each.instance_type):
            return f"{each.instance_type} is no machine type of its own; export --to skypilot"
    return ""


_FILTER = (f'local filter="labels.{RUN_KEY}=$run_tag AND status:(PROVISIONING STAGING RUNNING)"',)
_CLOUD = CloudSteps(
    remarks=(
        "Needed first: the bucket; a project in gcloud config; a default network. The machines' "
        "service account (the project's default one, or SERVICE_ACCOUNT) may read and write the "
        "bucket, and delete machines (roles/compute.instanceAdmin.v1).",
        "The image is the newest of IMAGE_FAMILY: look which there are with gcloud compute images "
        "list --project deeplearning-platform-release, as their names carry versions.",
        "A machine deletes itself, and Google deletes it after its --max-run-duration.",
    ),
    setup=(
        f"IMAGE_FAMILY=${{IMAGE_FAMILY:-{IMAGE_FAMILY}}}",
        f"IMAGE_PROJECT=${{IMAGE_PROJECT:-{IMAGE_PROJECT}}}",
    ),
    start=(
        "local rank names=() options=() zones=()",
        "for ((rank = 0; rank < count; rank++)); do",
        '  names+=("${run_tag:0:58}-$rank")',
        "done",
        "local disk_type=pd-balanced",
        f'if [[ "$machine_type" =~ {HYPERDISK} ]]; then disk_type=hyperdisk-balanced; fi',
        f'if [ "$left_s" -gt {_LONGEST_S} ]; then left_s={_LONGEST_S}; fi',
        'if [ "$market" = spot ]; then',
        "  options+=(--provisioning-model=SPOT)",
        "fi",
        'if [ -n "${SERVICE_ACCOUNT:-}" ]; then',
        '  options+=("--service-account=$SERVICE_ACCOUNT")',
        "fi",
        'if [ -n "$zone" ]; then',
        '  zones=("$zone")',
        "else  # the plan names the region alone",
        "  mapfile -t zones < <(gcloud compute machine-types list --format='value(zone)' \\",
        '    --filter="name=$machine_type AND zone ~ ^$region-")',
        "fi",
        'for zone in "${zones[@]}"; do',
        '  if gcloud compute instances create "${names[@]}" --zone="$zone" --quiet \\',
        '    --machine-type="$machine_type" --network-interface=nic-type=GVNIC "${options[@]}" \\',
        '    --instance-termination-action=DELETE --max-run-duration="${left_s}s" \\',
        "    --maintenance-policy=TERMINATE --no-restart-on-failure \\",
        '    --image-family="$IMAGE_FAMILY" --image-project="$IMAGE_PROJECT" \\',
        '    --boot-disk-size="${DISK_GB}GB" --boot-disk-type="$disk_type" \\',
        "    --scopes=cloud-platform \\",
        f'    --labels="{RUN_KEY}=$run_tag" --metadata=install-nvidia-driver=True \\',
        '    --metadata-from-file="startup-script=$boot_file"; then return 0; fi',
        "done",
        "return 1",
    ),
    running=(*_FILTER, f"{_LIST} --format='value(name)'"),
    stop=(
        *_FILTER,
        "local found",
        f"found=$({_LIST} --uri) || return 1",
        'if [ -z "$found" ]; then return 0; fi',
        'xargs gcloud compute instances delete --quiet <<< "$found"',
    ),
    upload_code=(
        "gcloud storage rsync --recursive --exclude='(^|.*/)([.]|__pycache__/).*' \"$code\" \\",
        '  "gs://$CHECKPOINT_BUCKET/$NAME/code"',
    ),
    show=COMMANDS["gcp"].show,
    put=('gcloud storage cp --no-user-output-enabled "$2" "gs://$CHECKPOINT_BUCKET/$1"',),
    drop=('gcloud storage rm --no-user-output-enabled "gs://$CHECKPOINT_BUCKET/$1"',),
)

MACHINE_STEPS = MachineSteps(
    itself=(
        "metadata() {",
        f'  curl -sf -H "Metadata-Flavor: Google" "{_METADATA}/$1"',
        "}",
        "machine=$(metadata name)",
        "zone=$(metadata zone)",
    ),
    setup=(),
    rank=("NODE_RANK=${machine##*-}  # the names end in it",),
    master=("MASTER_ADDR=${machine%-*}-0  # names of one zone are known to its machines",),
    end_machine=(
        'gcloud compute instances delete "$machine" --zone="${zone##*/}" --quiet ||',
        "  shutdown -h now",
    ),
)
