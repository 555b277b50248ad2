"""Writes the quotas of an account as the file that `--quota` reads."""

import csv
import io
from collections.abc import Sequence

from catalogs.refresh.harvest import QuotaValue

_COLUMNS = ("provider", "family", "market", "region", "unit", "amount")


def quota_text(quotas: Sequence[QuotaValue]) -> str:
    """The quotas as CSV, sorted, the same bytes each time."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for q in sorted(quotas, key=lambda q: (q.provider, q.family, q.market, q.region)):
        writer.writerow([q.provider, q.family, q.market, q.region, q.unit, f"{q.amount:.15g}"])
    return out.getvalue()
