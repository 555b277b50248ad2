"""Figures of DeepVM that the comparison needs, with their source and date.

All from lass-lab/DeepVM at 73feab9 (2024-04), the code of Kim et al., "DeepVM", CCGrid 2024
(arXiv 2403.05861): `solution/data.json`, `solution/run.py`, `simulation/` and the sheets behind
figures 5 (`fig5_data.xlsx`) and 8 (`fig8_data.xlsx`). Prices in USD/h as the authors used
them; every spot price of a GPU machine is their 0.30 x on-demand.
"""

from typing import NamedTuple

SOURCE = "lass-lab/DeepVM@73feab9"
AS_OF = "2024-04-01"


class GpuVm(NamedTuple):
    """A GPU machine: prices, network, its score and the fitted sigmoid of its speed-up."""

    name: str
    on_demand: float
    spot: float
    network_gbps: float
    score: float
    a: float
    b: float
    c: float


class CpuVm(NamedTuple):
    """A CPU machine that can hold checkpoints."""

    name: str
    on_demand: float
    network_gbps: float
    memory_gib: float


VIRTUAL = (  # the ten invented types of the simulation
    GpuVm("A", 0.75, 0.225, 10.0, 100.0, 0.14, 14.5, 13.5),
    GpuVm("B", 0.526, 0.1578, 25.0, 377.0, 0.13, 12.9, 6.2),
    GpuVm("C", 1.006, 0.3018, 10.0, 696.0, 0.09, 20.1, 5.0),
    GpuVm("D", 0.55, 0.165, 15.0, 700.0, 0.2, 10.0, 5.0),
    GpuVm("E", 0.368, 0.1104, 1.7, 100.0, 0.1, 20.0, 15.0),
    GpuVm("F", 1.236, 0.3708, 25.0, 800.0, 0.1, 15.0, 10.0),
    GpuVm("G", 0.973, 0.2919, 30.0, 200.0, 0.1, 15.0, 10.0),
    GpuVm("H", 0.252, 0.0756, 5.0, 150.0, 0.2, 10.0, 5.0),
    GpuVm("I", 1.622, 0.4866, 30.0, 900.0, 0.2, 9.9, 7.0),
    GpuVm("J", 0.22, 0.066, 5.0, 50.0, 0.1, 20.0, 15.0),
)
REAL = (
    GpuVm("g3s.xlarge", 0.75, 0.225, 10.0, 100.0, 0.1408559584, 14.49263334, 13.53250952),
    GpuVm("g4dn.xlarge", 0.526, 0.1578, 25.0, 377.0, 0.1338806402, 12.87424514, 6.176666667),
    GpuVm("g5.xlarge", 1.006, 0.3018, 10.0, 696.0, 0.0853342807, 20.06669931, 4.962225551),
)
REMOTE = (
    CpuVm("c3.xlarge", 0.21, 0.3, 7.5),
    CpuVm("c4.xlarge", 0.199, 1.7, 7.5),
    CpuVm("t3.xlarge", 0.1664, 5.0, 16.0),
    CpuVm("c5.xlarge", 0.17, 10.0, 8.0),
    CpuVm("m6i.xlarge", 0.192, 12.5, 16.0),
    CpuVm("d3.xlarge", 0.499, 15.0, 32.0),
    CpuVm("c5n.xlarge", 0.216, 25.0, 10.5),
    CpuVm("c6in.xlarge", 0.2268, 30.0, 8.0),
)
VCPUS = 4  # of every machine above
QUOTA_GPU = {"on_demand": 32, "spot": 128}  # vCPUs of the G family
QUOTA_CPU = 256
# Trainers that saturate one remote node, by the narrower of the two networks in Gbit/s.
SATURATION = {0.3: 2, 1.7: 12, 5: 16, 10: 20, 12.5: 24, 15: 24, 25: 28, 30: 32}

# Figure 5: seconds for 3 epochs of CIFAR-10, ResNet-18, batch 128 per GPU, by number of machines.
SIZES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)
FIG5_S = {
    "g3s.xlarge": (
        245.586753, 138.381733, 98.943584, 54.101074, 38.106861,
        30.82298, 26.135926, 22.838648, 19.309485, 19.596381,
    ),
    "g4dn.xlarge": (
        61.155439, 59.040696, 43.985407, 26.897989, 19.955663,
        16.338413, 14.145735, 12.777697, 11.14009, 11.64543,
    ),
    "g5.xlarge": (
        31.009284, 65.604995, 50.185442, 30.196604, 22.537816,
        18.274681, 15.107765, 13.876209, 11.287556, 10.772441,
    ),
}  # fmt: skip
FIG5_IMAGES = 3 * 50_000

# Figure 8 at 3 USD/h, ResNet-50: machines re-derived from the hourly prices.
FIG8 = {
    "rank 1": (17, "g4dn.xlarge", "c5.xlarge", 2.8526),
    "rank 2": (17, "g4dn.xlarge", "m6i.xlarge", 2.8746),
    "rank 3": (17, "g4dn.xlarge", "c5n.xlarge", 2.8986),
    "cost first": (16, "g4dn.xlarge", "", 2.8930),
    "performance first": (7, "g5.xlarge", "", 2.8168),
}

# The simulation's pickle (deleted from the repository in 73feab9, kept in its history) scored
# by throughput = score x speed-up: share of the best plan, mean and worst of 98 budgets.
SIMULATED = {
    "deepvm": (0.80273, 0.2188),
    "performance first": (0.66585, 0.1562),
    "no scale": (0.23969, 0.1250),
    "cost first": (0.19966, 0.0938),
}
FASTER_THAN_DEEPVM = 44  # budgets of 98 at which performance first has the higher throughput
