"""A plan as a configuration of Terraform or OpenTofu: its machines at one place of the list.

Terraform creates what is missing, when it is run. It waits for nothing and knows no deadline: a
lost machine, the next place and the switch to on-demand each take another `terraform apply`.
"""

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
from recommender.export.machine_script import MachineSteps, machine_script
from recommender.export.quoting import hcl as quoted
from recommender.export.quoting import shell
from recommender.export.start import start_line
from recommender.export.templates import MACHINE, Value, part, text_of
from recommender.export.train_command import changed_by_fallback

MAIN = "main.tf"
_AWS_STEPS = MachineSteps(
    "aws.sh",
    rank=(': "${NODE_RANK:?}"  # main.tf sets it',),
    master=("MASTER_ADDR=${MASTER_ADDR:-localhost}  # main.tf sets it but on the first",),
)
# Named in the files of `templates/`, which hold what no plan changes.
_IMAGES = {
    "IMAGE_PARAMETER": aws_cli.IMAGE.removeprefix("resolve:ssm:"),
    "IMAGE_FAMILY": gcloud.IMAGE_FAMILY,
    "IMAGE_PROJECT": gcloud.IMAGE_PROJECT,
}
_CLOUDS = {
    "aws": (_AWS_STEPS, aws_cli.why_not),
    "gcp": (MachineSteps("gcp.sh"), gcloud.why_not),
    "azure": (MachineSteps("azure.sh"), azure_cli.why_not),
}


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`main.tf` and what the machines run."""
    steps, _ = _CLOUDS[run.machines.provider]
    head = commented(header(run, start_line(run.plan, "terraform", folder), _remarks(run)))
    lines = (*_main(run, head), _resources(run.machines.provider))
    return (
        ExportFile(MAIN, "\n".join(lines)),
        ExportFile(MACHINE, machine_script(run, steps), True),
    )


def _resources(provider: str) -> str:
    """What Terraform makes on a cloud, by the locals that the plan decides.

    Arguments as of the providers named there (registry.terraform.io, 2026-11). AWS's takes a region
    for each resource from version 6 on, so a move to the next place ends what runs at the last one.
    """
    text = text_of(f"{provider}.tf")
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


def _main(run: RunDescription, head: list[str]) -> tuple[str, ...]:
    """What the plan decides."""
    lists = [run] if run.on_fallback is None else [run, run.on_fallback]
    return part(
        MAIN,
        "main",
        HEAD=head,
        LAST=max(len(places_of(each)) for each in lists) - 1,
        ON_DEMAND=() if run.fallback is None else part(MAIN, "on_demand"),
        NAME=quoted(run.name),
        LONGEST_S=f"{run.longest_s:.0f}",
        DISK_GB=run.disk_gb,
        DISK_SPEED=_disk_speed(run),
        PLACES=_places(run),
        MACHINES=_machines(run),
        CHANGED=_changed(run),
    )


def _disk_speed(run: RunDescription) -> tuple[str, ...]:
    """Whether AWS's disks get a rate, Google's type; they are as fast as they are large."""
    if run.machines.provider == "gcp":
        return part(MAIN, "disk_of_gcp", HYPERDISK=gcloud.HYPERDISK)
    if run.machines.provider == "aws":
        return part(MAIN, "disk_of_aws", FAST="true" if large_disk(run) else "false")
    return ()


def _changed(run: RunDescription) -> list[str]:
    """Variables of the training script that change once the fallback has taken over."""
    found = " ".join(f"{each.name}={shell(each.value)}" for each in changed_by_fallback(run))
    return [f'var.on_demand ? {quoted(f"export {found}")} : "",'] if found else []


def _machines(run: RunDescription) -> tuple[str, ...]:
    """Type, number and market of what runs, the plan's or the fallback's."""
    later = run.on_fallback
    plan: dict[str, Value] = {
        "TYPE": quoted(run.machines.instance_type),
        "NODES": run.nodes,
        "SPOT": "true" if run.machines.market == "spot" else "false",
    }
    if later is None:
        return part(MAIN, "machines", **plan)
    return part(
        MAIN,
        "machines_and_fallback",
        PLACES=_places(later),
        LATER_TYPE=quoted(later.machines.instance_type),
        LATER_NODES=later.machines.count,
        **plan,
    )


def _places(run: RunDescription) -> list[str]:
    """The places where a plan's machines are requested."""
    pairs = (place.partition(" ") for place in places_of(run))
    return [f"{{ region = {quoted(region)}, zone = {quoted(zone)} }}," for region, _, zone in pairs]
