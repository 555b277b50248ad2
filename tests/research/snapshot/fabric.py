"""How fast the GPUs of a machine talk: to each other, to the host, to other machines."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from recommender.catalogs.gpu_links import usual_links
from tests.research.snapshot.reading import number, read_hand, read_table


@dataclass(frozen=True, slots=True)
class Network:
    """The network of a whole machine; a rate of None is not known."""

    gbit_per_s: float | None
    peak_gbit_per_s: float | None
    kind: str
    basis: str


@dataclass(frozen=True, slots=True)
class Intra:
    """The link between the GPUs of one machine, as an all-reduce experiences it."""

    kind: str
    gb_per_s: float | None


UNKNOWN = Network(None, None, "tcp", "unknown")

# Copies to the host where none was measured, by PCIe generation as clouds pass it through
# (micro-benchmarks on cloud VMs, read 2026-08): gen 3 6 to 11, gen 4 12 to 27, gen 5 28 to 58.
_HOST_BY_PCIE = {"3": 10.0, "4": 13.0, "5": 50.0}
_THROUGH_HOST = 10.0  # GB/s, rule of thumb where no figure is published
_FLOOR_TO_TYPICAL = 1.1  # health checks demand some 10 % less than what is usual


def rdma_gbit_per_s(words: str) -> float | None:
    """Read the rate of an RDMA fabric from its description: "HDR 8x200 Gbps" is 1,600."""
    many = re.search(r"(\d+)\s*x\s*(\d+)\s*Gbps", words)
    if many:
        return float(many.group(1)) * float(many.group(2))
    one = re.search(r"(\d+)\s*Gbps", words)
    return float(one.group(1)) if one else None


def documented_network(provider: str, instance_type: str, vcpus: int) -> Network | None:
    """Find what the provider documents for a size, or for all sizes of a series."""
    for row in _hand("networks"):
        if row["provider"] == provider and re.fullmatch(row["pattern"], instance_type):
            rate, peak = float(row["gbit_per_s"]), number(row["peak_gbit_per_s"])
            return Network(rate, peak, row["network_kind"], row["basis"])
    for row in _hand("vcpu_networks"):
        if row["provider"] == provider and re.fullmatch(row["pattern"], instance_type):
            rate = min(vcpus * float(row["gbit_per_vcpu"]), float(row["gbit_max"]))
            return Network(rate, None, "tcp", "documented")
    return None


def intra_machine(gpu: str, gpus: int) -> Intra:
    """Find the link between the GPUs of one machine; one GPU needs none."""
    if gpus < 2:
        return Intra("", None)
    usual = usual_links(gpu, gpus)
    return Intra(usual.intra_kind, usual.gb_per_s) if usual else Intra("pcie", _THROUGH_HOST)


@cache
def _hand(name: str) -> list[dict[str, str]]:
    return read_hand(name)


class HostCopies:
    """Copy rates between GPU and host: medians by provider and GPU, else by PCIe generation."""

    def __init__(self, reference: Path, gpu_of: dict[tuple[str, str], str]) -> None:
        rates: dict[tuple[str, str], list[float]] = {}
        for row in read_table(reference / "measured" / "micro.csv"):
            gpu = gpu_of.get((row["provider"], row["instance_type"]))
            if gpu and row["category"] == "pcie_bw":
                if row["metric"].startswith("nvbandwidth H2D"):
                    rates.setdefault((row["provider"], gpu), []).append(float(row["value"]))
                elif "floor" in row["metric"]:
                    rate = float(row["value"]) * _FLOOR_TO_TYPICAL
                    rates.setdefault((row["provider"] + " floor", gpu), []).append(rate)
        self._rates = {key: round(median(values), 1) for key, values in rates.items()}

    def rate(self, provider: str, gpu: str, pcie: str) -> float:
        """Give GB/s of a copy from the host to one GPU; another provider's best, if no own."""
        for who in (provider, f"{provider} floor"):
            if (who, gpu) in self._rates:
                return self._rates[who, gpu]
        elsewhere = [rate for (_, card), rate in self._rates.items() if card == gpu]
        return max(elsewhere, default=_HOST_BY_PCIE.get(pcie, _HOST_BY_PCIE["4"]))
