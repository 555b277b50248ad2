"""Holds the arguments of a parsed configuration against the providers' schemas, and prints them.

Pulumi's classes are generated from the schemas of the same Terraform providers: their keyword
arguments are the arguments, lists in the plural; those without a default are required. Runs in an
environment that has pulumi-aws, pulumi-gcp and pulumi-azure:

    python provider_arguments.py PARSED.json
"""

import importlib
import inspect
import json
import re
import sys
from typing import Any

RESOURCES = {
    "aws_iam_instance_profile": "pulumi_aws.iam.instance_profile:InstanceProfileArgs",
    "aws_iam_role": "pulumi_aws.iam.role:RoleArgs",
    "aws_iam_role_policy": "pulumi_aws.iam.role_policy:RolePolicyArgs",
    "aws_instance": "pulumi_aws.ec2.instance:InstanceArgs",
    "aws_launch_template": "pulumi_aws.ec2.launch_template:LaunchTemplateArgs",
    "aws_placement_group": "pulumi_aws.ec2.placement_group:PlacementGroupArgs",
    "aws_security_group": "pulumi_aws.ec2.security_group:SecurityGroupArgs",
    "aws_s3_object": "pulumi_aws.s3.bucket_objectv2:BucketObjectv2Args",
    "google_compute_instance": "pulumi_gcp.compute.instance:InstanceArgs",
    "google_storage_bucket_object": "pulumi_gcp.storage.bucket_object:BucketObjectArgs",
    "azurerm_linux_virtual_machine":
        "pulumi_azure.compute.linux_virtual_machine:LinuxVirtualMachineArgs",
    "azurerm_network_interface": "pulumi_azure.network.network_interface:NetworkInterfaceArgs",
    "azurerm_public_ip": "pulumi_azure.network.public_ip:PublicIpArgs",
    "azurerm_role_assignment": "pulumi_azure.authorization.assignment:AssignmentArgs",
    "azurerm_storage_blob": "pulumi_azure.storage.blob:BlobArgs",
    "azurerm_subnet": "pulumi_azure.network.subnet:SubnetArgs",
    "azurerm_user_assigned_identity":
        "pulumi_azure.authorization.user_assigned_identity:UserAssignedIdentityArgs",
    "azurerm_virtual_network": "pulumi_azure.network.virtual_network:VirtualNetworkArgs",
}  # fmt: skip
LOOKUPS = {
    "aws_ec2_instance_type": "pulumi_aws.ec2.get_instance_type:get_instance_type",
    "aws_s3_bucket": "pulumi_aws.s3.get_bucket:get_bucket",
    "aws_ssm_parameter": "pulumi_aws.ssm.get_parameter:get_parameter",
    "aws_subnet": "pulumi_aws.ec2.get_subnet:get_subnet",
    "aws_subnets": "pulumi_aws.ec2.get_subnets:get_subnets",
    "azurerm_resource_group": "pulumi_azure.core.get_resource_group:get_resource_group",
    "azurerm_storage_account": "pulumi_azure.storage.get_account:get_account",
    "google_compute_image": "pulumi_gcp.compute.get_image:get_image",
}
OWN = {"count", "for_each", "depends_on", "lifecycle", "__is_block__", "__comments__"}


def unquoted(name: str) -> str:
    return name.strip('"')


def arguments(kind: Any) -> dict[str, inspect.Parameter]:
    made = kind.__init__ if inspect.isclass(kind) else kind
    return {
        name.strip("_"): each
        for name, each in inspect.signature(made).parameters.items()
        if name not in ("__self__", "self", "opts")
    }


def argument(name: str, known: dict[str, inspect.Parameter]) -> str | None:
    """The keyword of an argument; of a block its plural."""
    several = (name, f"{name}s", f"{name.removesuffix('y')}ies")
    return next((each for each in several if each in known), None)


def inner(kind: Any, each: inspect.Parameter) -> Any:
    """The class of a nested block, by its name in the annotation."""
    found = re.search(r"ForwardRef\('(\w+Args)'\)", str(each.annotation))
    package = kind.__module__.rpartition(".")[0]
    inputs = importlib.import_module(f"{package}._inputs")
    return getattr(inputs, found[1], None) if found else None


def check(where: str, block: dict[str, Any], kind: Any, problems: list[str]) -> None:
    """Note arguments that do not exist, and required ones that are missing."""
    known, given = arguments(kind), set()
    body = {unquoted(name): value for name, value in block.items() if name not in OWN}
    for dynamic in body.pop("dynamic", []):
        ((name, made),) = [item for item in dynamic.items() if item[0] not in OWN]
        body[unquoted(name)] = made["content"]
    for name, value in body.items():
        keyword = argument(name, known)
        if keyword is None:
            problems.append(f"{where}: no argument {name}")
            continue
        given.add(keyword)
        nested = inner(kind, known[keyword])
        if nested is not None and isinstance(value, list) and isinstance(value[0], dict):
            for each in value:
                check(f"{where}.{name}", each, nested, problems)
    empty = inspect.Parameter.empty
    missing = {n for n, p in known.items() if p.default is empty and n not in given}
    problems += [f"{where}: {name} is required" for name in sorted(missing)]


def main(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        parsed = json.load(file)
    problems: list[str] = []
    for section, homes in (("resource", RESOURCES), ("data", LOOKUPS)):
        for each in parsed.get(section, ()):
            for quoted, blocks in each.items():
                name = unquoted(quoted)
                if name == "terraform_data":  # of Terraform itself
                    continue
                module, _, attribute = homes[name].partition(":")
                kind = getattr(importlib.import_module(module), attribute)
                for label, block in blocks.items():
                    check(f"{name}.{unquoted(label)}", block, kind, problems)
                    print(section, name, label)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
