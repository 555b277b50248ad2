"""Quotas: what each provider calls them, and which of them an instance type draws on."""

import re

from recommender.catalogs.schema import Provider, Quota
from tests.research.snapshot.reading import read_hand
from tests.research.snapshot.sources import SourceBook, cite

_AWS_FAMILIES = (
    (r"p[234]", "p4"),
    (r"p5", "p5"),
    (r"p6", "p6"),
    (r"g", "g"),
    (r"trn", "trn"),
)


def quota_rows(book: SourceBook) -> list[Quota]:
    """Read the hand-kept names; quotas of the same name are one pool."""
    source = cite(book, "provider quota names")
    return [
        Quota(
            provider=row["provider"],  # type: ignore[arg-type]
            quota_family=row["quota_family"],
            market=row["market"],  # type: ignore[arg-type]
            name=row["name"],
            unit=row["unit"],
            default_new=float(row["default_new"]),
            source=source,
            as_of=row["as_of"],
        )
        for row in read_hand("quotas")
    ]


def quota_family(provider: Provider, instance_type: str, family: str, gpu: str) -> str:
    """Name the quota family that an instance type draws on."""
    if provider == "aws":
        found = (name for head, name in _AWS_FAMILIES if re.match(head, instance_type))
        return next(found, "standard") if gpu else "standard"
    if not gpu:
        return "cpu"
    if provider == "azure":
        return family
    return "H100-MEGA" if family == "a3-megagpu" else gpu
