"""The example offers file: every column explained, and two valid rows."""

from collections.abc import Iterable
from textwrap import wrap

from recommender.inputs.offers_file import COLUMNS

EXAMPLES = (
    {"label": "lab", "gpu": "H100", "gpus": "8", "usd_per_hour": "12.50", "count": "2",
     "network_gbit_per_s": "400", "network": "rdma"},
    {"label": "workstation", "gpu": "L40S", "gpus": "4", "usd_per_hour": "1.90", "count": "1"},
)  # fmt: skip
_INTRODUCTION = (
    "Machines that you own, or rent from a provider that recommend has no prices for.",
    "recommend JOB --offers offers.csv adds them to the clouds; --provider own uses only them.",
    "Required: label, gpu, gpus, usd_per_hour. Other hardware that a row leaves empty is copied",
    "from the catalog machine with the same GPUs and the slowest network; answers name it.",
    "Lines that begin with # are ignored.",
)


def offers_template(gpus: Iterable[str]) -> str:
    """Write the file; `gpus` are those of the catalog."""
    width = max(map(len, COLUMNS))
    lines = [f"# {line}" for line in _INTRODUCTION]
    lines += ["#", *(f"# {name:{width}}  {meaning}" for name, meaning in COLUMNS.items()), "#"]
    names = wrap(f"GPUs: {', '.join(sorted(gpus))}", 98, break_on_hyphens=False)
    lines += [f"# {line}" for line in names]
    lines += ["", ",".join(COLUMNS)]
    lines += [",".join(row.get(name, "") for name in COLUMNS) for row in EXAMPLES]
    return "\n".join(lines) + "\n"
