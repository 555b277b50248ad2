"""A plan by the Google Cloud CLI: `gcloud compute instances create` at each place of the list.

Flags as of gcloud 528 (2025-06). Google ends machines itself after `--max-run-duration`, so the cap
holds even where the script and the machine have hung.
"""

import re

from recommender.export.cloud_script import (
    CloudSteps,
    cloud_files,
    why_not_one_cloud,
)
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.machine_script import MachineSteps
from recommender.export.templates import part

# The newest that others name in public code (2026-08); its driver knows all GPUs of the catalog.
IMAGE_FAMILY = "pytorch-2-9-cu129-ubuntu-2204-nvidia-580"
# Machine types that boot from Hyperdisk alone; A3 and G2 refuse pd-standard, which is gcloud's own
# choice (SkyPilot 0.14.1, clouds/gcp.py, and its issues 4705 and 5351; read 2026-11).
HYPERDISK = "^(a3-ultragpu|a4x?|g4)-"
IMAGE_PROJECT = "deeplearning-platform-release"


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`launch.sh` and what the machines run."""
    flex_start = part("gcp.sh", "flex_start") if run.machines.market == "flex_start" else ()
    cloud = CloudSteps(
        "gcp.sh",
        remarks=_REMARKS,
        setup=part("gcp.sh", "setup", IMAGE_FAMILY=IMAGE_FAMILY, IMAGE_PROJECT=IMAGE_PROJECT),
        start=part("gcp.sh", "start", HYPERDISK=HYPERDISK, FLEX_START=flex_start),
    )
    return cloud_files(run, folder, "gcloud", cloud, MachineSteps("gcp.sh"))


def why_not(run: RunDescription) -> str:
    """Why gcloud cannot run a plan; empty where it can."""
    return why_not_one_cloud(run, "gcp", "gcloud") or _no_type(run)


def _no_type(run: RunDescription) -> str:
    fallback_machines = () if run.fallback is None else run.fallback.machines
    for each in (*run.plan.machines, *fallback_machines):
        if not re.fullmatch(r"[a-z][a-z0-9-]*", each.instance_type):
            return f"{each.instance_type} is no machine type of its own; export --to skypilot"
    return ""


_REMARKS = (
    "Needed first: the bucket; a project in gcloud config; a default network. The machines' "
    "service account (the project's default one, or SERVICE_ACCOUNT) may read and write the "
    "bucket, and delete machines (roles/compute.instanceAdmin.v1).",
    "The image is the newest of IMAGE_FAMILY: look which there are with gcloud compute images list "
    "--project deeplearning-platform-release, as their names carry versions.",
    "A machine deletes itself, and Google deletes it after its --max-run-duration.",
)
