"""Links of instance types come from records, as the catalog counts them."""

from dataclasses import replace

import pytest

from recommender.benchmarks.collectives import Line
from recommender.benchmarks.metadata import Place
from recommender.benchmarks.method import Result
from recommender.benchmarks.record import Record
from recommender.performance.machines import listed_gbit
from recommender.performance.measurements.pool import StoredRecord, link_rates, links_of
from recommender.performance.measurements.store import with_own_speeds, write_links, write_speeds
from tests.benchmarks.machines import record
from tests.shipped import snapshot

CATALOG = snapshot()
P5 = CATALOG.instance_types["aws", "p5.48xlarge"]
P3 = CATALOG.instance_types["aws", "p3.2xlarge"]


def exchange(
    own: Record, processes: int, machines: int, gb_per_s: float, r2: float = 0.99
) -> Record:
    how = f"{processes} nccl" + (f" on {machines} machines" if machines > 1 else "")
    facts = (
        ("collective", "all_reduce"), ("how", how), ("processes", processes),
        ("machines", machines), ("bytes", 2**28),
    )  # fmt: skip
    one = Result("collectives", "all_reduce", "GB/s", 0.5, (0.001,) * 3, 0.0, facts=facts)
    line = Line(3e-5, gb_per_s * 1e9, r2, (0.0, 0.0, 0.0))
    links = (*own.links, (f"all_reduce {how}", line))
    return replace(own, results=(*own.results, one), links=links)


def bare(instance: str = "p5.48xlarge", machine: str = "a", day: int = 20) -> Record:
    place = Place("aws", instance, "us-east-1", "", "on_demand")
    taken = f"2026-11-{day}T10:00:00+00:00"
    return replace(record(place=place, machine=machine, taken_at=taken), links=())


def test_an_all_reduce_of_all_gpus_is_the_inside():
    assert link_rates(exchange(bare(), 8, 1, 360.0), P5) == {"intra": 360.0}
    assert link_rates(exchange(bare(), 4, 1, 360.0), P5) == {}
    assert link_rates(exchange(bare(), 8, 1, 360.0, r2=0.9), P5) == {}


def test_between_machines_the_inside_is_taken_off_by_hand():
    """Two machines of eight: 2·15/16/90 s a GB, of which 2·7/8/360 inside; 2·1/2 cross over."""
    own = exchange(exchange(bare(), 8, 1, 360.0), 16, 2, 90.0)
    hand = 1.0 / (1.875 / 90.0 - 1.75 / 360.0)
    assert link_rates(own, P5)["network"] == pytest.approx(hand)
    assert 62 < hand < 63


def test_one_gpu_per_machine_has_no_inside():
    own = exchange(bare("p3.2xlarge"), 4, 4, 0.9)
    assert link_rates(own, P3)["network"] == pytest.approx(0.9)


def test_no_network_rate_is_derived_if_the_inside_takes_longer_than_the_whole():
    own = exchange(exchange(bare(), 8, 1, 50.0), 16, 2, 90.0)
    assert "network" not in link_rates(own, P5)


def test_records_of_one_machine_add_up_and_the_newest_of_each_link_counts():
    kept = [
        StoredRecord("H100", exchange(bare(day=18), 8, 1, 300.0)),
        StoredRecord("H100", exchange(bare(day=19), 8, 1, 360.0)),
        StoredRecord("H100", exchange(bare(day=20), 16, 2, 90.0)),
        StoredRecord("H100", exchange(bare(machine="b"), 8, 1, 380.0)),
    ]
    (found,) = links_of(kept, CATALOG)
    assert found.intra_gb_per_s == pytest.approx(370.0)
    assert found.network_gb_per_s is not None
    assert found.host_gb_per_s is None
    assert found.as_of == "2026-11-20"


def test_a_copy_from_the_gpu_to_pinned_memory_is_the_host_link():
    one = Result("transfer", "from GPU pinned 256 MiB", "GB/s", 0.268, (0.01,) * 3, 0.0)
    own = replace(bare(), results=(*bare().results, one))
    assert link_rates(own, P5)["host"] == pytest.approx(26.8)


def test_plans_read_the_links_and_what_was_not_measured_stays(tmp_path):
    kept = [StoredRecord("", exchange(bare("p3.2xlarge"), 4, 4, 0.9))]
    assert links_of(kept, CATALOG) == ()
    kept = [StoredRecord("V100", exchange(bare("p3.2xlarge"), 4, 4, 0.9))]
    write_links(tmp_path, links_of(kept, CATALOG))
    write_speeds(tmp_path, ())
    own = with_own_speeds(CATALOG, tmp_path)
    found = own.instance_types["aws", "p3.2xlarge"]
    # 0.9 GB/s are 0.85 of 8.47 Gbit/s over TCP
    assert found.network_gbit_per_s == pytest.approx(0.9 * 8 / 0.85, rel=1e-5)
    assert (found.network_basis, found.source) == ("measured", -1)
    assert found.host_gb_per_s == P3.host_gb_per_s
    assert own.source_by_key[-1].name == "your own benchmarks"
    assert own.instance_types["aws", "p5.48xlarge"] == P5


def test_what_the_model_exchanges_is_what_was_measured():
    for machine in (P3, P5):
        gbit = listed_gbit(machine, 1e9)
        assert gbit * 1e9 / 8 * (1.0 if machine.network_kind == "rdma" else 0.85) == pytest.approx(
            1e9
        )
