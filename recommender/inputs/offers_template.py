"""The example offers file: every column explained, and two valid rows."""

from collections.abc import Iterable
from textwrap import wrap

from recommender.inputs.offers_file import COLUMNS

MEANING = {
    "label": "your name for the machine, as plans show it",
    "gpu": "its GPU, one of those below; H100 3g.40gb: a MIG slice of one",
    "gpus": "GPUs in one machine",
    "usd_per_hour": "USD of one machine's hour: power and depreciation, or rent; 0: paid anyway",
    "count": "number of machines; empty: up to --max-machines, or one that is paid anyway",
    "market": "on-demand, reserved, or spot if the owner may reclaim it; empty: on-demand",
    "region": "its location, any word; clusters use machines of one region; empty: own",
    "instance_type": "the owner's name for it, shown after the label",
    "network_gbit_per_s": "sustained Gbit/s of one machine to other machines",
    "network": "tcp (ethernet) or rdma (infiniband, efa)",
    "intra": "its links: pcie, nvlink, nvswitch, xgmi, roce (Gaudi), ici (TPU), neuronlink",
    "intra_gb_per_s": "GB/s per GPU of an all-reduce over these links (nccl-tests: busbw)",
    "vcpus": "hardware threads, which decode and augment the input",
    "memory_gib": "its main memory",
    "disk_mb_per_s": "MB/s of its local disk, for data and checkpoints",
    "host_gb_per_s": "GB/s of a copy from one GPU to main memory",
    "gpu_memory_gib": "memory of one GPU, if it differs from the usual",
    "one_host": "yes: one box, as on a marketplace, that no network joins to others",
    "as_of": "date of the price, 2026-11-20; empty: today; of several dates the newest holds",
    "minimum_h": "least hours that are charged; empty: none",
    "step_h": "hours of a billing step, which are charged whole: 1, or 24 for days",
    "maximum_h": "longest rental in hours; jobs that may take longer are not planned on it",
    "start_h": "hours until machines are there, half of the times; empty: as in a cloud",
    "notice_s": "seconds of warning before spot machines are taken back",
    "upfront": "yes: paid in advance, used or not (state it with minimum_h)",
    "egress_per_gb": "USD of a GB that leaves: checkpoints, the model; empty: free",
    "disk_per_gb_month": "USD of a GB of disk and month, 100 GiB a machine; empty: none",
    "currency": "of the row's amounts, with what 1 USD is in it: EUR=0.86@2026-11-27",
    "country": "where it is: DE, or DE FR if it may be in either",
    "new_account": "machines that a new account may rent, 0: on request; for --quota default-new",
    "launcher": "the cloud as sky launch --infra names it, for --to skypilot",
}
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
    lines += ["#", *(f"# {name:{width}}  {MEANING[name]}" for name in COLUMNS), "#"]
    names = wrap(f"GPUs: {', '.join(sorted(gpus))}", 98, break_on_hyphens=False)
    lines += [f"# {line}" for line in names]
    lines += ["", ",".join(COLUMNS)]
    lines += [",".join(row.get(name, "") for name in COLUMNS) for row in EXAMPLES]
    return "\n".join(lines) + "\n"
