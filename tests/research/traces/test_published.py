"""Published formats, each on a small file of its real shape; and the trap of what 1 means."""

from pathlib import Path
from typing import Any

import pytest

from recommender.errors import UsageError
from recommender.traces.read import read_traces
from recommender.traces.trace import Place
from tests.recommender.traces.test_cloud_records import file
from tests.research.traces.published import main, read

TICKS = [0, 0, 1, 1, 1, 0, 1]


def ticks(**more: Any) -> dict[str, Any]:
    return {"metadata": {"gap_seconds": 300, **more.pop("metadata", {})}, "data": TICKS, **more}


def test_spot_traces_hold_machines_up(tmp_path: Path) -> None:
    path = file(tmp_path, "availability/1-node/us-east-1a_v100_1.json", ticks())
    found = read("spot-traces", path)[0]
    assert found.machines.tolist() == [0, 1, 0, 1]
    assert found.t_s.tolist() == [0.0, 600.0, 1500.0, 1800.0]
    assert (found.end_s, found.step_s, found.kind) == (2100.0, 300.0, "probe")
    assert found.place == Place("aws", "us-east-1", "us-east-1a", "", "V100", 1)
    (held,) = read("spot-traces", file(tmp_path, "preemption/1-node/z.json", ticks()))
    assert held.kind == "hold"


def test_counts_of_machines_are_kept(tmp_path: Path) -> None:
    content = {"metadata": {"gap_seconds": 300}, "data": [4, 4, 0, 3]}
    (found,) = read("spot-traces", file(tmp_path, "us-west-2c_v100_1.json", content))
    assert (found.machines.tolist(), found.capacity) == ([4, 0, 3], 4)


def test_converted_files_with_prices_hold_preemptions(tmp_path: Path) -> None:
    """SkyNomad's converted files: 1 is preempted, and prices stand next to."""
    content = ticks(
        metadata={
            "start_time": "2025-10-04T00:10:00+00:00",
            "zone": "us-central1-a",
            "price_info": {"price": 18.98, "on_demand_price": 82.53},
        },
        prices=[18.98] * 4 + [19.5] * 3,
    )
    (found,) = read("preempted", file(tmp_path, "us-central1-a_h100_16/full.json", content))
    assert found.machines.tolist() == [1, 0, 1, 0]
    assert (found.price_t_s.tolist(), found.usd_per_hour.tolist()) == ([0.0, 1200.0], [18.98, 19.5])
    assert found.name == "us-central1-a_h100_16"
    assert found.place == Place("gcp", "us-central1", "us-central1-a", "", "H100", 0)
    assert found.start is not None


def test_ones_mean_up_in_one_format_and_preempted_in_the_other(tmp_path: Path) -> None:
    path = file(tmp_path, "us-west-2a_k80_1.json", ticks())
    (up,), (down,) = read("spot-traces", path), read("preempted", path)
    assert (up.machines + down.machines == 1).all()


def test_a_published_file_becomes_one_that_every_command_reads(tmp_path: Path) -> None:
    path, out = file(tmp_path, "us-east-1a_v100_1.json", ticks()), tmp_path / "out.csv"
    main("spot-traces", str(out), str(path))
    (found,), (same,) = read_traces(out), read("spot-traces", path)
    assert (found.t_s == same.t_s).all()
    assert (found.machines == same.machines).all()
    assert (found.place, found.kind, found.step_s) == (same.place, same.kind, same.step_s)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"metadata": {}, "data": [2]}, "metadata.gap_seconds None is not a number of seconds"),
        ({"metadata": {"gap_seconds": 60}, "data": [2, -1]}, "data[1] is -1"),
        ({"metadata": {"gap_seconds": 60}, "data": [2, "x"]}, "data[1] is x"),
        ({"metadata": {"gap_seconds": 60}, "data": []}, "data is not a list of numbers"),
        ({"metadata": {"gap_seconds": 60}, "data": [2], "prices": [1, 2]}, "prices do not hold"),
        ('{"metadata": {"gap_seconds": NaN}, "data": [2]}', "NaN is not a number"),
        ("{", "not JSON"),
    ],
)
def test_a_wrong_series_of_ticks_is_named(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read("spot-traces", file(tmp_path, "x.json", content))
    assert said in str(caught.value)


def test_counts_are_no_preemptions(tmp_path: Path) -> None:
    content = {"metadata": {"gap_seconds": 300}, "data": [4, 0]}
    with pytest.raises(UsageError, match="a preempted series holds 0 and 1 only"):
        read("preempted", file(tmp_path, "x.json", content))


def test_probe_rounds_hold_machines_got_by_zone(tmp_path: Path) -> None:
    rounds = [
        {
            "interval_sec": 600,
            "scheduled_at": f"2025-10-03T17:{minute}:00.002281-07:00",
            "zone_results": {
                zone: {"instances_created": got, "instances_requested": 16}
                for zone, got in (("us-east4-a", created), ("us-west1-b", 3))
            },
        }
        for minute, created in ((30, 0), (10, 16), (20, 16))
    ]
    east, west = read("skynomad-probes", file(tmp_path, "rounds.json", rounds))
    assert (east.t_s.tolist(), east.machines.tolist()) == ([0.0, 1200.0], [16, 0])
    assert (east.end_s, east.step_s, east.capacity, east.kind) == (1800.0, 600.0, 16, "probe")
    assert east.place == Place("gcp", "us-east4", "us-east4-a")
    assert west.machines.tolist() == [3]
    del rounds[0]["zone_results"]
    with pytest.raises(UsageError, match="round 1: zone_results is not a table of zones"):
        read("skynomad-probes", file(tmp_path, "wrong.json", rounds))


def test_bamboo_events_are_in_milliseconds(tmp_path: Path) -> None:
    text = "480000,add,node1\n540000,add,node2\n600000,remove,node1\n720000,add,node3\n"
    (found,) = read("bamboo", file(tmp_path, "p3-trace.csv", text))
    assert (found.t_s.tolist(), found.machines.tolist()) == (
        [0.0, 480.0, 540.0, 600.0, 720.0],
        [0, 1, 2, 1, 2],
    )
    assert (found.kind, found.start, found.end_s) == ("hold", None, 720.0)
    wrong = file(tmp_path, "w.csv", "480000,add,node1\n500000,add,node1\n5,drop,x\n")
    with pytest.raises(UsageError, match="line 3: '5,drop,x' is not milliseconds"):
        read("bamboo", wrong)
    with pytest.raises(UsageError, match="'node1' is up already at 500 s"):
        read("bamboo", file(tmp_path, "v.csv", "480000,add,node1\n500000,add,node1\n"))
