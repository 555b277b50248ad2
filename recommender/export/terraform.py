"""A plan as a configuration of Terraform or OpenTofu: its machines at one place of the list.

Terraform creates what is missing, when it is run. It waits for nothing and knows no deadline: a
lost machine, the next place and the switch to on-demand each take another `terraform apply`.
"""

from dataclasses import replace
from importlib.resources import files as package_files

from recommender.export import aws_cli, azure_cli, gcloud
from recommender.export.checkpoint_upload import upload_words
from recommender.export.cloud_script import places_of
from recommender.export.cluster_network import cluster_network_words
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.header import (
    as_run_words,
    cap_words,
    commented,
    disk_words,
    fallback_words,
    header,
    large_disk,
    saves_elsewhere_words,
    yours_words,
)
from recommender.export.machine_script import MACHINE, machine_script
from recommender.export.quoting import hcl as quoted
from recommender.export.quoting import shell
from recommender.export.start import start_line
from recommender.export.train_command import changed_by_fallback

MAIN = "main.tf"
_AWS_STEPS = replace(
    aws_cli.MACHINE_STEPS,
    rank=(': "${NODE_RANK:?}"  # main.tf sets it',),
    master=("MASTER_ADDR=${MASTER_ADDR:-localhost}  # main.tf sets it but on the first",),
)
# Named in the files of `clouds/`, which hold what no plan changes.
_IMAGES = {
    "IMAGE_PARAMETER": aws_cli.IMAGE.removeprefix("resolve:ssm:"),
    "IMAGE_FAMILY": gcloud.IMAGE_FAMILY,
    "IMAGE_PROJECT": gcloud.IMAGE_PROJECT,
}
_CLOUDS = {
    "aws": (_AWS_STEPS, aws_cli.why_not),
    "gcp": (gcloud.MACHINE_STEPS, gcloud.why_not),
    "azure": (azure_cli.MACHINE_STEPS, azure_cli.why_not),
}


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`main.tf` and what the machines run."""
    steps, _ = _CLOUDS[run.machines.provider]
    head = commented(header(run, start_line(run.plan, "terraform", folder), _remarks(run)))
    lines = [
        *head,
        "",
        *_variables(run),
        *_locals(run),
        "",
        *_BEGAN,
        "",
        _resources(run.machines.provider),
    ]
    return (
        ExportFile(MAIN, "\n".join(lines)),
        ExportFile(MACHINE, machine_script(run, steps), True),
    )


def _resources(provider: str) -> str:
    """What Terraform makes on a cloud, by the locals that the plan decides.

    Arguments as of the providers named there (registry.terraform.io, 2026-11). AWS's takes a region
    for each resource from version 6 on, so a move to the next place ends what runs at the last one.
    """
    text = package_files(__package__).joinpath("clouds", f"{provider}.tf").read_text("utf-8")
    for name, image in _IMAGES.items():
        text = text.replace(name, image)
    return text


def why_not(run: RunDescription) -> str:
    """Why Terraform's machines of one cloud cannot run a plan; empty where they can."""
    if run.machines.provider not in _CLOUDS:
        return f"it is written for AWS, Google Cloud and Azure, not for {run.rents_from}"
    return _CLOUDS[run.machines.provider][1](run)


def _remarks(run: RunDescription) -> tuple[str, ...]:
    found = [
        "Needed first: the bucket, and Terraform 1.5 or OpenTofu with credentials of the cloud.",
        "Terraform creates missing machines only on apply: apply again after an interruption; "
        "with -var place=1 and so on where the place before has no capacity, which ends what runs "
        "there; terraform destroy at the end. Keep its state, which holds the first start.",
        *fallback_words(
            run,
            "You make the switch: terraform apply -var on_demand=true.",
        ),
        "CODE_DIR's files (variable code_dir) are put into the bucket for the machines.",
    ]
    found += saves_elsewhere_words(run)
    found += as_run_words(run, "terraform", "Left to Terraform")
    how = "USD are counted while it trains: boots come on top. Destroy the machines yourself. "
    cap = cap_words(run, f"longest_run_s here and LONGEST_RUN_S in {MACHINE}", how)
    secrets = (
        "put lines like export HF_TOKEN=... into the file secrets of the bucket's folder "
        f"{run.name}, where your machines alone read it; Terraform would keep them in its state"
    )
    network = cluster_network_words(run, MAIN, "destroyed with the machines")
    return (*found, *network, *upload_words(run), *disk_words(run), *yours_words(run, secrets), cap)


def _variables(run: RunDescription) -> list[str]:
    lists = [run] if run.on_fallback is None else [run, run.on_fallback]
    most = max(len(places_of(each)) for each in lists) - 1
    lines = [
        'variable "checkpoint_bucket" {',
        '  description = "Your bucket for checkpoints, which exists"',
        "  type        = string",
        "}",
        "",
        'variable "code_dir" {',
        '  description = "Folder of your training script"',
        "  type        = string",
        '  default     = "."',
        "}",
        "",
        'variable "place" {',
        '  description = "Which place of the failover list, from 0 on"',
        "  type        = number",
        "  default     = 0",
        "  validation {",
        f"    condition     = var.place >= 0 && var.place <= {most}",
        f'    error_message = "The plan has places 0 to {most}."',
        "  }",
        "}",
        "",
    ]
    if run.fallback is not None:
        lines += [
            'variable "on_demand" {',
            '  description = "Whether the fallback has taken over"',
            "  type        = bool",
            "  default     = false",
            "}",
            "",
        ]
    return lines


def _locals(run: RunDescription) -> list[str]:
    """What the plan decides."""
    lines = [
        "locals {",
        f"  name          = {quoted(run.name)}",
        f"  longest_run_s = {run.longest_s:.0f} # since the first start",
        f"  disk_gb       = {run.disk_gb}",
        *_disk_speed(run),
        "  # Where the machines are requested, in this order.",
        *_places("places", run),
    ]
    lines += _of_machines(run)
    lines += [
        "  # Without caches, checkpoints and Terraform's own files.",
        "  code = toset([",
        '    for path in fileset(var.code_dir, "**") : path',
        '    if !can(regex("(^|/)([.]|__pycache__)|[.]tfstate|[.]tf$", path))',
        "  ])",
        f'  script = file("${{path.module}}/{MACHINE}")',
        '  head = join("\\n", [',
        '    "#!/usr/bin/env bash",',
        "    \"RUN_ID=$(date -d '${terraform_data.began.output}' +%s)\",",
        '    "LEFT_S=$(( RUN_ID + ${local.longest_run_s} - $(date +%s) ))",',
        '    "export RUN_ID LEFT_S NNODES=${local.nodes}",',
        '    "export CHECKPOINT_BUCKET=${var.checkpoint_bucket}",',
        *_changed(run),
        "  ])",
        "}",
    ]
    return lines


def _disk_speed(run: RunDescription) -> list[str]:
    """Whether AWS's disks get a rate, Google's type; they are as fast as they are large."""
    if run.machines.provider == "gcp":
        ask = f'can(regex("{gcloud.HYPERDISK}", local.machine_type))'
        return [f'  disk_type     = {ask} ? "hyperdisk-balanced" : "pd-balanced"']
    if run.machines.provider != "aws":
        return []
    return [f"  fast_disk     = {'true' if large_disk(run) else 'false'} # else 125 MB/s"]


def _changed(run: RunDescription) -> list[str]:
    """Variables of the training script that change once the fallback has taken over."""
    found = " ".join(f"{each.name}={shell(each.value)}" for each in changed_by_fallback(run))
    return [f'    var.on_demand ? {quoted(f"export {found}")} : "",'] if found else []


def _places(name: str, run: RunDescription) -> list[str]:
    """The places where a plan's machines are requested, as a list of that name."""
    return [f"  {name} = [", *(f"    {_place(place)}," for place in places_of(run)), "  ]"]


def _of_machines(run: RunDescription) -> list[str]:
    """Type, number and market of what runs, the plan's or the fallback's."""
    first, nodes, later = run.machines, run.nodes, run.on_fallback
    spot = "true" if first.market == "spot" else "false"
    if later is None:
        return [
            "  place        = local.places[var.place]",
            f"  machine_type = {quoted(first.instance_type)}",
            f"  nodes        = {nodes}",
            f"  spot         = {spot}",
        ]
    fallback = later.machines
    return [
        *_places("fallback_places", later),
        "  # A shorter list is repeated.",
        "  place        = var.on_demand ? element(local.fallback_places, var.place) : "
        "element(local.places, var.place)",
        f"  machine_type = var.on_demand ? {quoted(fallback.instance_type)} : "
        f"{quoted(first.instance_type)}",
        f"  nodes        = var.on_demand ? {fallback.count} : {nodes}",
        f"  spot         = var.on_demand ? false : {spot}",
    ]


def _place(place: str) -> str:
    region, _, zone = place.partition(" ")
    return f"{{ region = {quoted(region)}, zone = {quoted(zone)} }}"


_BEGAN = (
    "# When the first machine was requested: the cap counts from it, through all applies.",
    'resource "terraform_data" "began" {',
    "  input = timestamp()",
    "  lifecycle {",
    "    ignore_changes = [input]",
    "  }",
    "}",
)
