"""The guards name each thing that is wrong, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recommender.catalogs.errors import CatalogError
from recommender.catalogs.load import load
from tests.catalogs import small

Tables = dict[str, list[Any]]


def replace_offer(**changed: Any) -> Callable[[Tables], None]:
    """Change the on-demand offer of the small catalog."""
    return lambda tables: tables.update(offers=[small.offer(**changed)])


def replace_machine(**changed: Any) -> Callable[[Tables], None]:
    """Change the machine of the small catalog."""
    return lambda tables: tables.update(instance_types=[small.machine(**changed)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (replace_offer(usd_per_hour=0.0), "price 0.0 is not a positive number"),
        (replace_offer(usd_per_hour=-1.0), "price -1.0 is not a positive number"),
        (replace_offer(usd_per_hour=float("nan")), "usd_per_hour: .* is not finite"),
        (replace_offer(usd_per_hour=float("inf")), "usd_per_hour: .* is not finite"),
        (replace_offer(uncertainty=1.5), r"uncertainty 1.5 is not in \[0, 1\)"),
        (replace_offer(instance_type="g9.huge"), "g9.huge: offered, but no such instance type"),
        (replace_offer(source=7), "names source 7, which is not listed"),
        (replace_machine(gpus=0), "all set or all unset"),
        (replace_machine(gpu=""), "all set or all unset"),
        (replace_machine(gpu_memory_mib=0), "all set or all unset"),
        (replace_machine(gpu="H1000"), "no facts about its GPU 'H1000'"),
        (replace_machine(vcpus=0), "needs vCPUs and memory"),
        (replace_machine(network_gbit_per_s=0.0), "rates must be positive"),
        (replace_machine(host_gb_per_s=0.0), "rates must be positive"),
        (
            lambda tables: tables.update(achieved=[small.achieved(low_tflops=40.0)]),
            "needs 0 < low <= achieved <= high",
        ),
        (lambda tables: tables.update(gpus=[small.gpu(memory_mib=0)]), "needs memory"),
    ],
)
def test_a_bad_figure_is_refused_by_name(
    tmp_path: Path, change: Callable[[Tables], None], words: str
) -> None:
    with pytest.raises(CatalogError, match=words):
        load(small.written(tmp_path, change))


def test_spot_more_expensive_than_on_demand_is_refused(tmp_path: Path) -> None:
    def dear(tables: Tables) -> None:
        tables["offers"] = [small.offer(), small.spot(usd_per_hour=0.53)]

    with pytest.raises(CatalogError, match="use1-az1 spot: spot is more expensive"):
        load(small.written(tmp_path, dear))


def test_spot_at_the_price_of_on_demand_is_allowed(tmp_path: Path) -> None:
    def equal(tables: Tables) -> None:
        tables["offers"] = [small.offer(), small.spot(usd_per_hour=0.526)]

    assert len(load(small.written(tmp_path, equal)).offers) == 2


def test_spot_in_another_region_is_not_compared(tmp_path: Path) -> None:
    def elsewhere(tables: Tables) -> None:
        tables["offers"] = [small.offer(), small.spot(region="us-west-2", usd_per_hour=0.9)]

    assert len(load(small.written(tmp_path, elsewhere)).offers) == 2


def test_a_cpu_machine_needs_no_gpu(tmp_path: Path) -> None:
    cpu = {"gpu": "", "gpus": 0, "gpu_memory_mib": 0, "host_gb_per_s": 0.0}
    assert load(small.written(tmp_path, replace_machine(**cpu))).gpus


def test_unknown_rates_are_allowed(tmp_path: Path) -> None:
    unknown = replace_machine(network_gbit_per_s=None, network_basis="unknown")
    machine = load(small.written(tmp_path, unknown)).instance_types["aws", "g4dn.xlarge"]
    assert machine.network_gbit_per_s is None


def test_many_problems_are_counted_not_listed(tmp_path: Path) -> None:
    def all_bad(tables: Tables) -> None:
        tables["offers"] = [small.offer(region=f"r-{i}", usd_per_hour=0.0) for i in range(9)]

    with pytest.raises(CatalogError, match="and 4 more"):
        load(small.written(tmp_path, all_bad))
