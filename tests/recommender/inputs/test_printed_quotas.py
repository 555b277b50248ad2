"""Quotas as commands of clouds print them, in use and over each other."""

import json
from pathlib import Path
from typing import Any

import pytest

from recommender.errors import UsageError
from recommender.inputs.quota_file import folded, read_quotas
from recommender.plan.limits import QuotaLimit

NAMES = [
    ("aws", "Running On-Demand P instances"), ("aws", "All P5 Spot Instance Requests"),
    ("gcp", "NVIDIA A100 GPUs"), ("gcp", "Preemptible NVIDIA A100 GPUs"),
    ("gcp", "GPUS_ALL_REGIONS"), ("azure", "Standard NCADS_A100_v4 Family vCPUs"),
    ("azure", "Total Regional vCPUs"),
]  # fmt: skip


def read(folder: Path, tree: Any) -> tuple[QuotaLimit, ...]:
    path = folder / "quotas.json"
    path.write_text(json.dumps(tree), "utf-8")
    return read_quotas(path, NAMES)


def test_aws_service_quotas(tmp_path: Path) -> None:
    arn = "arn:aws:servicequotas:eu-west-1:1:ec2/L-417A185B"
    tree = {"Quotas": [
        {"QuotaArn": arn, "QuotaCode": "L-417A185B", "QuotaName": "any words", "Value": 192.0},
        {"QuotaArn": arn, "QuotaName": "All P5 Spot Instance Requests", "Value": 0.0},
        {"QuotaArn": arn, "QuotaName": "Running Dedicated a1 Hosts", "Value": 2.0},
    ]}  # fmt: skip
    assert read(tmp_path, tree) == (
        QuotaLimit("aws", "Running On-Demand P instances", "on_demand", "eu-west-1", "vcpu", 192),
        QuotaLimit("aws", "All P5 Spot Instance Requests", "spot", "eu-west-1", "vcpu", 0),
    )


def test_gcloud_regions_and_project(tmp_path: Path) -> None:
    region = {"kind": "compute#region", "name": "us-central1", "quotas": [
        {"metric": "NVIDIA_A100_GPUS", "limit": 16.0, "usage": 10.0},
        {"metric": "PREEMPTIBLE_NVIDIA_A100_GPUS", "limit": 16.0, "usage": 0.0},
        {"metric": "SNAPSHOTS", "limit": 5000.0, "usage": 1.0},
    ]}  # fmt: skip
    project = {"kind": "compute#project", "name": "p", "quotas": [
        {"metric": "GPUS_ALL_REGIONS", "limit": 1.0, "usage": 0.0}]}  # fmt: skip
    assert read(tmp_path, [region, project]) == (
        QuotaLimit("gcp", "NVIDIA A100 GPUs", "on_demand", "us-central1", "gpu", 6),
        QuotaLimit("gcp", "Preemptible NVIDIA A100 GPUs", "spot", "us-central1", "gpu", 16),
        QuotaLimit("gcp", "GPUS_ALL_REGIONS", "any", "", "gpu", 1),
    )


def test_az_vm_list_usage(tmp_path: Path) -> None:
    tree = [
        {"currentValue": 20, "limit": "20", "localName": "Total Regional vCPUs"},
        {"currentValue": 0, "limit": "96", "name": {
            "localizedValue": "Standard NCADS_A100_v4 Family vCPUs", "value": "x"}},
        {"currentValue": 0, "limit": "2500", "localName": "Availability Sets"},
    ]  # fmt: skip
    assert [(each.quota_family, each.amount) for each in read(tmp_path, tree)] == [
        ("Total Regional vCPUs", 0), ("Standard NCADS_A100_v4 Family vCPUs", 96),
    ]  # fmt: skip


def test_codes_other_spellings_and_usage_in_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("provider,family,amount,usage\naws,L-417A185B,192,92\n"
                    "gcp,NVIDIA_A100_GPUS,8,\nazure,StandardNCADSA100v4Family,96,0\n",
                    "utf-8")  # fmt: skip
    found = read_quotas(path, NAMES)
    assert [(each.quota_family, each.amount) for each in found] == [
        ("Running On-Demand P instances", 100), ("NVIDIA A100 GPUs", 8),
        ("Standard NCADS_A100_v4 Family vCPUs", 96),
    ]  # fmt: skip


def test_output_without_a_quota_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of its quotas"):
        read(tmp_path, {"Quotas": [{"QuotaName": "Addresses", "Value": 5.0}]})


def test_interfaces_spell_a_name_differently() -> None:
    assert folded("NVIDIA_A100_GPUS") == folded("NVIDIA A100 GPUs")
    assert folded("CPUS") == "cpus"
