"""Quotas as clouds print them: aws service-quotas, gcloud compute, az vm list-usage, in JSON."""

from collections.abc import Iterator
from typing import Any

from recommender.inputs.csv_text import CsvRow

# Codes of EC2's quotas in vCPU, as public listings of `aws service-quotas` have them (2026-11-29)
AWS_CODES = {
    "L-417A185B": "Running On-Demand P instances",
    "L-DB2E81BA": "Running On-Demand G and VT instances",
    "L-2C3B7624": "Running On-Demand Trn instances",
    "L-1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "L-7212CCBC": "All P4, P3 and P2 Spot Instance Requests",
    "L-C4BD4855": "All P5 Spot Instance Requests",
    "L-3819A6DF": "All G and VT Spot Instance Requests",
    "L-6B0D517C": "All Trn Spot Instance Requests",
    "L-34B43A08": "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
}


def printed_quotas(tree: Any, name: str) -> list[CsvRow] | None:
    """Read a command's output as rows of a quota file; None if it is none.

    `aws service-quotas list-service-quotas`, `gcloud compute regions describe` or `list` and
    `project-info describe`, `az vm list-usage`. The last does not say of which region.
    """
    found = None
    if isinstance(tree, dict) and isinstance(tree.get("Quotas"), list):
        found = list(_of_aws(tree["Quotas"]))
    regions = tree if isinstance(tree, list) else [tree]
    if found is None and any(_is_gcp(each) for each in regions):
        found = [row for each in regions if _is_gcp(each) for row in _of_gcp(each)]
    if found is None and isinstance(tree, list) and any(_is_azure(each) for each in tree):
        found = list(_of_azure(tree))
    if found is None:
        return None
    return [CsvRow(f"{name}, entry {n}", cells) for n, cells in enumerate(found, 1)]


def _of_aws(quotas: list[Any]) -> Iterator[dict[str, str]]:
    for each in quotas:
        if isinstance(each, dict) and each.get("Value") is not None:
            parts = str(each.get("QuotaArn", "")).split(":")
            family = AWS_CODES.get(str(each.get("QuotaCode")), str(each.get("QuotaName", "")))
            yield {"provider": "aws", "family": family, "amount": str(each["Value"]),
                   "unit": "vcpu", "market": "spot" if " Spot " in family else "on-demand",
                   "region": parts[3] if len(parts) > 3 else ""}  # fmt: skip


def _is_gcp(tree: Any) -> bool:
    inner = tree.get("quotas") if isinstance(tree, dict) else None
    return isinstance(inner, list) and any(isinstance(q, dict) and "metric" in q for q in inner)


def _of_gcp(region: dict[str, Any]) -> Iterator[dict[str, str]]:
    whole = str(region.get("kind", "")) == "compute#project"
    for each in region["quotas"]:
        if isinstance(each, dict) and each.get("limit") is not None:
            metric = str(each.get("metric", ""))
            market = "spot" if metric.startswith("PREEMPTIBLE") else "on-demand"
            yield {"provider": "gcp", "family": metric, "amount": str(each["limit"]),
                   "usage": str(each.get("usage") or ""),
                   "unit": "gpu" if "GPU" in metric else "vcpu",
                   "market": "any" if whole else market,
                   "region": "" if whole else str(region.get("name", ""))}  # fmt: skip


def _is_azure(tree: Any) -> bool:
    return isinstance(tree, dict) and "currentValue" in tree and "limit" in tree


def _of_azure(usages: list[Any]) -> Iterator[dict[str, str]]:
    for each in usages:
        if _is_azure(each):
            named = each.get("name")
            own = named.get("localizedValue") if isinstance(named, dict) else None
            family = str(each.get("localName") or own or "")
            market = "spot" if "Low-priority" in family or "Spot" in family else "on-demand"
            yield {"provider": "azure", "family": family, "amount": str(each["limit"]),
                   "usage": str(each["currentValue"]), "unit": "vcpu", "market": market,
                   "region": ""}  # fmt: skip
