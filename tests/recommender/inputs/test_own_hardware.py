"""Hardware that a row of an offers file leaves out: that of a catalog machine with the same GPU."""

from datetime import date
from pathlib import Path

import pytest

from recommender.catalogs.catalog import extended
from recommender.catalogs.schema import InstanceType, OwnMachine
from recommender.errors import UsageError
from recommender.inputs.offers_file import read_offers
from recommender.job.jobfile import find_job
from recommender.market.allowed import allowed_offers
from recommender.performance.machines import machine_columns
from recommender.plan.limits import Choice
from tests.shipped import snapshot

CATALOG = snapshot()
KNOWN = tuple(CATALOG.instance_types.values())
MEMORY = {name: gpu.memory_mib for name, gpu in CATALOG.gpus.items()}
SOLD = sorted({(t.gpu, t.gpus) for t in KNOWN if t.gpu and t.gpus})
# The accelerators of SXM and OAM boards: those with a switch or links between all of a machine's.
SXM = ("A100", "A100-80GB", "H100", "H200", "B200", "B300", "GB200")
FIGURES = ("vcpus", "memory_gib", "network_gbit_per_s", "host_gb_per_s", "local_disk_mb_per_s")


def own(folder: Path, **cells: object) -> OwnMachine:
    """The machine of one row."""
    row = {"label": "lab", "usd_per_hour": 9} | cells
    header, values = ",".join(row), ",".join(str(each) for each in row.values())
    (folder / "o.csv").write_text(f"{header}\n{values}\n")
    return read_offers(folder / "o.csv", MEMORY, KNOWN, date(2026, 11, 20)).hardware["lab"]


def sold(gpu: str, gpus: int) -> list[InstanceType]:
    """The catalog's machines with so many of a GPU."""
    return [t for t in KNOWN if (t.gpu, t.gpus) == (gpu, gpus)]


@pytest.mark.parametrize(("gpu", "gpus"), SOLD)
def test_every_machine_that_a_cloud_sells_can_be_named_by_its_gpus_alone(
    tmp_path: Path, gpu: str, gpus: int
) -> None:
    machine = own(tmp_path, gpu=gpu, gpus=gpus)
    provider, _, name = machine.like.partition(" ")
    like = CATALOG.instance_types[provider, name]
    assert like in sold(gpu, gpus)
    assert [getattr(machine, f) for f in FIGURES] == [getattr(like, f) for f in FIGURES]
    assert machine.intra_kind == like.intra_kind
    networks = [t.network_gbit_per_s for t in sold(gpu, gpus) if t.network_gbit_per_s]
    assert machine.network_gbit_per_s == min(networks, default=None)
    assert machine.intra_gb_per_s in [t.intra_gb_per_s for t in sold(gpu, gpus)]


@pytest.mark.parametrize("gpu", SXM)
@pytest.mark.parametrize("gpus", [2, 3, 4, 8, 16])
def test_gpus_on_boards_with_a_switch_use_it(tmp_path: Path, gpu: str, gpus: int) -> None:
    machine = own(tmp_path, gpu=gpu, gpus=gpus)
    assert machine.intra_kind == "nvswitch"
    assert machine.intra_gb_per_s is not None
    assert machine.intra_gb_per_s > 200
    by_pcie = own(tmp_path, gpu=gpu, gpus=gpus, intra="pcie")
    assert by_pcie.intra_gb_per_s is not None
    assert 5 < by_pcie.intra_gb_per_s < by_pcie.host_gb_per_s


def test_what_a_row_states_is_taken_and_nothing_else_is_assumed(tmp_path: Path) -> None:
    cells: dict[str, object] = {
        "vcpus": 64, "memory_gib": 512, "network_gbit_per_s": 40, "network": "ethernet",
        "intra": "pcie", "intra_gb_per_s": 21, "host_gb_per_s": 24, "disk_mb_per_s": 3200,
    }  # fmt: skip
    machine = own(tmp_path, gpu="H100", gpus=8, **cells)
    assert [getattr(machine, f) for f in FIGURES] == [64, 512, 40, 24, 3200]
    assert (machine.network_kind, machine.intra_kind, machine.intra_gb_per_s) == ("tcp", "pcie", 21)
    assert machine.assumed == ()
    for column in ("vcpus", "memory_gib", "host_gb_per_s", "disk_mb_per_s"):
        without = {name: value for name, value in cells.items() if name != column}
        assert len(own(tmp_path, gpu="H100", gpus=8, **without).assumed) == 1


def test_a_number_of_gpus_that_is_not_sold_is_taken_in_proportion(tmp_path: Path) -> None:
    three, four = own(tmp_path, gpu="L40S", gpus=3), own(tmp_path, gpu="L40S", gpus=4)
    assert three.like == four.like == "aws g6e.12xlarge"
    assert (three.vcpus, three.network_gbit_per_s) == (36, pytest.approx(75))
    assert three.intra_gb_per_s == four.intra_gb_per_s  # per GPU
    assert own(tmp_path, gpu="B300", gpus=1).vcpus == 192 / 8


def test_links_are_those_of_the_kind_that_is_given(tmp_path: Path) -> None:
    by_nvlink = own(tmp_path, gpu="H100", gpus=8, intra="nvlink")
    assert (by_nvlink.intra_kind, by_nvlink.intra_gb_per_s) == ("nvlink", 450)
    bridged = own(tmp_path, gpu="A100-80GB-PCIe", gpus=2)
    assert (bridged.intra_kind, bridged.intra_gb_per_s) == ("nvlink", 193)
    alone = own(tmp_path, gpu="H100", gpus=1, intra="nvswitch")
    assert (alone.intra_kind, alone.intra_gb_per_s) == ("", None)
    assert own(tmp_path, gpu="L4", gpus=8, intra="nvlink", intra_gb_per_s=50).intra_gb_per_s == 50
    with pytest.raises(UsageError, match="no machine with L4 and nvlink .* intra_gb_per_s"):
        own(tmp_path, gpu="L4", gpus=8, intra="nvlink")


def test_a_slice_has_its_memory_and_its_sevenths_of_the_speed(tmp_path: Path) -> None:
    job = find_job("resnet50-imagenet")
    part, whole = own(tmp_path, gpu="H100 3g.40gb", gpus=1), own(tmp_path, gpu="H100", gpus=1)
    assert (part.gpu, part.gpu_memory_mib) == ("H100", 40 * 1024)
    found = machine_columns(job, (part, whole), CATALOG.gpus, CATALOG.achieved)
    assert found.compute_per_s[0] / found.compute_per_s[1] == pytest.approx(3 / 7)
    assert found.memory_bytes[0] / found.memory_bytes[1] == pytest.approx(0.5, rel=0.01)
    with pytest.raises(UsageError, match="cannot share a job; write 1"):
        own(tmp_path, gpu="H100 3g.40gb", gpus=2)
    with pytest.raises(UsageError, match="unknown GPU 'H1000'"):
        own(tmp_path, gpu="H1000 3g.40gb", gpus=1)


@pytest.mark.parametrize(("wanted", "listed"), [("nvidia", 1), ("amd", 1), ("any", 1), ("aws", 0)])
def test_own_machines_take_part_whatever_their_vendor(
    tmp_path: Path, wanted: str, listed: int
) -> None:
    (tmp_path / "o.csv").write_text("label,gpu,gpus,usd_per_hour\nlab,MI325X,8,9\n")
    found = read_offers(tmp_path / "o.csv", MEMORY, KNOWN, date(2026, 11, 20))
    catalog = extended(CATALOG, found.hardware, found.offers)
    choice = Choice(accelerator=wanted, providers=("own",))
    assert len(allowed_offers(catalog, choice).rows) == listed


def test_of_a_gpu_that_no_cloud_sells_the_least_is_assumed(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("label,gpu,gpus,usd_per_hour\nlab,RTX-4090,4,9\n")
    machine = read_offers(tmp_path / "o.csv", MEMORY, (), date(2026, 11, 20)).hardware["lab"]
    assert (machine.like, machine.vcpus, machine.network_gbit_per_s) == ("", 32, None)
    assert machine.intra_gb_per_s == pytest.approx(8.9, abs=0.1)  # PCIe 3.0


# GB/s in one direction of all links of a GPU, by the vendors' data sheets; a TPU's host has no
# wrap-around, so that two links of a corner chip bound it.
LISTED = {
    ("GB300", 4): ("nvswitch", 900), ("MI325X", 8): ("xgmi", 448), ("MI350X", 8): ("xgmi", 538),
    ("MI355X", 8): ("xgmi", 538), ("Gaudi2", 8): ("roce", 262.5), ("Gaudi3", 8): ("roce", 525),
    ("GH200", 4): ("nvlink", 450), ("TPU-v4", 4): ("ici", 100), ("TPU-v5e", 8): ("ici", 100),
    ("TPU-v5p", 4): ("ici", 200), ("TPU-v6e", 8): ("ici", 200), ("H100-PCIe", 8): ("pcie", 63),
    ("H100-NVL", 8): ("pcie", 63), ("L40", 8): ("pcie", 31.5), ("A30", 4): ("pcie", 31.5),
}  # fmt: skip


@pytest.mark.parametrize(("gpu", "gpus"), LISTED)
def test_gpus_that_no_cloud_sells_so_have_the_links_of_their_boards(
    tmp_path: Path, gpu: str, gpus: int
) -> None:
    kind, listed = LISTED[gpu, gpus]
    machine = own(tmp_path, gpu=gpu, gpus=gpus)
    assert machine.intra_kind == kind
    assert 0.3 * listed < (machine.intra_gb_per_s or 0.0) < listed
    assert own(tmp_path, gpu=gpu, gpus=gpus, intra=kind).intra_gb_per_s == machine.intra_gb_per_s


def test_the_kind_of_links_alone_is_enough_where_their_rate_is_known(tmp_path: Path) -> None:
    assert own(tmp_path, gpu="GB300", gpus=4, intra="nvlink").intra_gb_per_s == 673
    assert own(tmp_path, gpu="GB300", gpus=72, intra="nvswitch").intra_gb_per_s == 840
    assert own(tmp_path, gpu="H100-PCIe", gpus=2, intra="nvlink").intra_gb_per_s == 208
    for gpu in ("H100-PCIe", "L40", "TPU-v5e"):
        with pytest.raises(UsageError, match=f"no machine with {gpu} and nvswitch .* intra_gb_per"):
            own(tmp_path, gpu=gpu, gpus=4, intra="nvswitch")


@pytest.mark.parametrize("gpu", ["H100-NVL", "H100-PCIe", "A100-80GB-PCIe", "A30"])
def test_bridges_link_pairs_and_pcie_links_the_pairs(tmp_path: Path, gpu: str) -> None:
    pair = own(tmp_path, gpu=gpu, gpus=2, intra="nvlink")
    eight = own(tmp_path, gpu=gpu, gpus=8, intra="nvlink")
    assert (pair.intra_kind, eight.intra_kind) == ("nvlink", "pcie")
    assert (pair.intra_gb_per_s or 0.0) > 3 * (eight.intra_gb_per_s or 1e9)
    assert f"PCIe {eight.intra_gb_per_s:g} GB/s" in eight.assumed


@pytest.mark.parametrize("gpu", ["H100-PCIe", "A30"])
def test_a_bridge_that_is_bought_apart_counts_where_it_is_stated(tmp_path: Path, gpu: str) -> None:
    assert own(tmp_path, gpu=gpu, gpus=2).intra_kind == "pcie"
    assert own(tmp_path, gpu=gpu, gpus=2, intra="nvlink").intra_kind == "nvlink"


@pytest.mark.parametrize(
    ("gpu", "memory_gib", "faster"),
    [
        ("RTX-3090", 24, "A40"),
        ("RTX-4090", 24, "L40S"),
        ("RTX-5090", 32, "RTX-PRO-6000"),
        ("RTX-A6000", 48, "A100"),
        ("RTX-6000-Ada", 48, "H100"),
    ],
)
def test_workstations_are_planned_with_below_the_server_part_of_their_chip(
    tmp_path: Path, gpu: str, memory_gib: int, faster: str
) -> None:
    """Gaming parts sum 16-bit products in FP32 at half the rate: 165 of 330 TFLOP/s on a 4090."""
    assert own(tmp_path, gpu=gpu, gpus=4).intra_kind == "pcie"
    assert CATALOG.gpus[gpu].memory_mib == memory_gib * 1024
    rate = CATALOG.achieved[gpu, "bf16"].tflops
    assert 0.7 < rate / (CATALOG.gpus[gpu].peak_bf16_tflops or 0.0) < 0.85
    assert rate < CATALOG.achieved[faster, "bf16"].tflops
