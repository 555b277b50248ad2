"""The rules of hardware facts: families, networks, links, quotas, achieved speeds."""

from typing import Any

import pytest

from tests.catalogs import small
from tests.research.snapshot import achieved
from tests.research.snapshot.fabric import documented_network, intra_machine, rdma_gbit_per_s
from tests.research.snapshot.machines import attached_name, family_of
from tests.research.snapshot.quotas import quota_family
from tests.research.snapshot.sources import SourceBook


@pytest.mark.parametrize(
    ("provider", "name", "family"),
    [
        ("aws", "p6-b200.48xlarge", "p6-b200"),
        ("gcp", "a3-highgpu-8g", "a3-highgpu"),
        ("gcp", "n1-standard-8+1xT4", "n1-standard"),
        ("azure", "Standard_ND96isr_H100_v5", "NDH100v5"),
        ("azure", "Standard_NC6s_v3", "NCv3"),
        ("azure", "Standard_NC4as_T4_v3", "NCT4v3"),
        ("azure", "Standard_ND128isr_NDR_GB200_v6", "NDGB200v6"),
        ("azure", "Standard_D4s_v5", "Dv5"),
    ],
)
def test_families_are_named_as_people_do(provider: Any, name: str, family: str) -> None:
    assert family_of(provider, name) == family


def test_an_unreadable_azure_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="not an Azure size"):
        family_of("azure", "Basic_A1")


@pytest.mark.parametrize(
    ("words", "gbit"),
    [
        ("InfiniBand HDR 8x200 Gbps", 1600),
        ("InfiniBand NDR 8x400 Gbps (GPUDirect RDMA)", 3200),
        ("InfiniBand EDR 100 Gbps", 100),
        ("InfiniBand", None),
        ("", None),
    ],
)
def test_rates_of_fabrics_are_read_from_words(words: str, gbit: float | None) -> None:
    assert rdma_gbit_per_s(words) == gbit


def test_networks_of_small_machines_are_scaled_from_the_family_maximum() -> None:
    network = documented_network("gcp", "g2-standard-24", 24)
    assert network is not None
    assert (network.gbit_per_s, network.basis) == (25.0, "scaled")


def test_networks_of_plain_hosts_follow_their_vcpus() -> None:
    rates = [documented_network("gcp", f"n1-standard-{n}", n) for n in (8, 64)]
    assert [network and network.gbit_per_s for network in rates] == [16.0, 32.0]


def test_an_undocumented_size_has_no_network() -> None:
    assert documented_network("azure", "Standard_NC6s_v3", 6) is None


@pytest.mark.parametrize(
    ("gpu", "gpus", "kind", "rate"),
    [
        ("H100", 1, "", None),
        ("H100", 4, "nvswitch", 365),
        ("H100", 8, "nvswitch", 450),
        ("L4", 8, "pcie", 10),
        ("A10", 2, "pcie", 10),
        ("Trainium1", 16, "neuronlink", None),
    ],
)
def test_links_inside_a_machine_depend_on_gpu_and_count(
    gpu: str, gpus: int, kind: str, rate: float | None
) -> None:
    intra = intra_machine(gpu, gpus)
    assert (intra.kind, intra.gb_per_s) == (kind, rate)


@pytest.mark.parametrize(
    ("provider", "name", "family", "gpu", "quota"),
    [
        ("aws", "p4d.24xlarge", "p4d", "A100", "p4"),
        ("aws", "p5en.48xlarge", "p5en", "H200", "p5"),
        ("aws", "g6e.xlarge", "g6e", "L40S", "g"),
        ("aws", "c5n.large", "c5n", "", "standard"),
        ("gcp", "a3-megagpu-8g", "a3-megagpu", "H100", "H100-MEGA"),
        ("gcp", "g2-standard-4", "g2-standard", "L4", "L4"),
        ("azure", "Standard_NC6s_v3", "NCv3", "V100-PCIe", "NCv3"),
        ("azure", "Standard_D4s_v5", "Dv5", "", "cpu"),
    ],
)
def test_machines_draw_on_the_right_quota(
    provider: Any, name: str, family: str, gpu: str, quota: str
) -> None:
    assert quota_family(provider, name, family, gpu) == quota


def test_attached_gpus_show_in_the_name() -> None:
    assert attached_name("n1-standard-8", 1, "T4") == "n1-standard-8+1xT4"


def bench(gpu: str, dtype: str, value: str, source: str, metric: str = "") -> dict[str, str]:
    return {
        "category": "gemm",
        "unit": "TFLOPS",
        "gpu": gpu,
        "dtype": dtype,
        "value": value,
        "metric": metric,
        "source": source,
        "date": "2026-04-08",
    }


def test_several_sources_give_their_median_and_range() -> None:
    rows = [
        bench("H100 SXM", "bf16", "794.5", "stas00/ml-engineering MAMF table"),
        bench("H100-SXM", "bf16", "730", "huggingface/gpu-fryer"),
    ]
    (speed,) = achieved.measured_rows(rows, SourceBook())
    assert (speed.tflops, speed.low_tflops, speed.high_tflops) == (762.2, 730.0, 794.5)
    assert speed.kind == "measured"


def test_typical_shapes_count_and_the_best_shape_bounds_them() -> None:
    rows = [
        bench("Tesla T4", "fp16", "39.14", "baidu-research/DeepBench", "median over GEMMs"),
        bench("Tesla T4", "fp16", "46.52", "baidu-research/DeepBench", "max over DeepBench"),
    ]
    (speed,) = achieved.measured_rows(rows, SourceBook())
    assert (speed.tflops, speed.high_tflops) == (39.1, 46.52)


def test_a_lone_figure_still_has_a_range() -> None:
    rows = [bench("MI300X", "bf16", "668.4", "stas00/ml-engineering MAMF table")]
    (speed,) = achieved.measured_rows(rows, SourceBook())
    assert speed.low_tflops < speed.tflops < speed.high_tflops


@pytest.mark.parametrize(
    ("watts", "precision", "vendor", "share"),
    [
        (350, "bf16", "nvidia", 0.8),
        (72, "bf16", "nvidia", 0.6),
        (None, "bf16", "aws", 0.6),
        (350, "fp32", "nvidia", 0.9),
        (72, "fp32", "nvidia", 0.55),
        (750, "bf16", "amd", 0.5),
    ],
)
def test_an_unmeasured_rate_is_a_share_of_the_peak(
    watts: int | None, precision: str, vendor: str, share: float
) -> None:
    card = small.gpu(gpu="new", watts=watts, vendor=vendor)
    speed = achieved.fallback_row(card, precision, 100.0, 1)
    assert (speed.tflops, speed.kind) == (pytest.approx(100 * share), "fallback")
    assert speed.low_tflops < speed.tflops < speed.high_tflops


def test_cards_before_pascal_reach_less_of_their_peak() -> None:
    card = small.gpu(gpu="K80", watts=175, released=2014)
    assert achieved.fallback_row(card, "fp32", 100.0, 1).tflops == pytest.approx(62.0)
