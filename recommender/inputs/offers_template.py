"""The example offers file: every column explained, and two valid rows."""

from collections.abc import Iterable
from textwrap import wrap

from recommender.inputs.offers_file import COLUMNS

MEANING = {
    "label": "your name for the machine, as plans show it",
    "gpu": "its GPU, one of those below",
    "gpus": "GPUs in one machine",
    "usd_per_hour": "USD an hour of one machine: power and write-off, or what its owner asks",
    "count": "how many there are; empty: as many as --max-machines",
    "market": "on-demand, or spot where the owner may take it back; empty: on-demand",
    "region": "where it stands, any word; machines of one region make clusters; empty: own",
    "instance_type": "the owner's name for it, shown behind the label",
    "network_gbit_per_s": "sustained Gbit/s between machines, of one machine",
    "network": "tcp (ethernet) or rdma (infiniband, efa)",
    "intra": "links between its GPUs: pcie, nvlink, nvswitch, xgmi, neuronlink",
    "intra_gb_per_s": "GB/s per GPU that an all-reduce over them reaches (nccl-tests: busbw)",
    "vcpus": "hardware threads, which decode and augment the input",
    "memory_gib": "its main memory",
    "disk_mb_per_s": "what its local disk reads and writes, for data and checkpoints",
    "host_gb_per_s": "GB/s of a copy from one GPU to main memory",
    "gpu_memory_gib": "memory of one GPU, where it differs from the usual",
    "as_of": "date of the price, 2026-11-20; empty: today",
}
EXAMPLES = (
    {"label": "lab", "gpu": "H100", "gpus": "8", "usd_per_hour": "12.50", "count": "2",
     "network_gbit_per_s": "400", "network": "rdma"},
    {"label": "workstation", "gpu": "L40S", "gpus": "4", "usd_per_hour": "1.90", "count": "1"},
)  # fmt: skip
_INTRODUCTION = (
    "Machines that you own, or rent where recommend knows no prices.",
    "recommend JOB --offers offers.csv plans with them beside the clouds; --provider own alone.",
    "Needed: label, gpu, gpus, usd_per_hour. What a row leaves empty of a machine's hardware is",
    "that of the catalog's machine with as many of its GPU and the least network; answers name it.",
    "Lines that begin with # are passed over.",
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
