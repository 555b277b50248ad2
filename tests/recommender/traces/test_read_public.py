"""Public formats, each on a small file of its real shape; and the trap of what 1 means."""

import json
from pathlib import Path
from typing import Any

import pytest

from recommender.errors import UsageError
from recommender.traces.read import read_all, read_trace, read_traces
from recommender.traces.trace import Place

TICKS = [0, 0, 1, 1, 1, 0, 1]
AWS = {
    "SpotPriceHistory": [
        {
            "AvailabilityZone": zone,
            "InstanceType": kind,
            "ProductDescription": product,
            "SpotPrice": usd,
            "Timestamp": when,
        }
        for zone, kind, product, usd, when in [
            ("us-east-1a", "p3.2xlarge", "Linux/UNIX", "1.0500", "2026-03-02T00:00:00+00:00"),
            ("us-east-1a", "p3.2xlarge", "Windows", "3.0000", "2026-03-01T12:00:00+00:00"),
            ("us-east-1b", "p3.2xlarge", "Linux/UNIX", "0.9180", "2026-03-01T06:00:00+00:00"),
            ("us-east-1a", "p3.2xlarge", "Linux/UNIX", "1.0000", "2026-03-01T00:00:00+00:00"),
        ]
    ]
}
GCP = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a"


def operation(kind: str, node: str, minute: int, **more: Any) -> dict[str, Any]:
    return {
        "operationType": kind,
        "targetLink": f"{GCP}/instances/{node}",
        "insertTime": f"2026-03-01T{minute // 60:02d}:{minute % 60:02d}:00.000-08:00",
        "endTime": f"2026-03-01T{minute // 60:02d}:{minute % 60:02d}:30.000-08:00",
        "zone": GCP,
        "status": "DONE",
        **more,
    }


OPERATIONS = [
    operation("delete", "n1", 130),
    operation("compute.instances.preempted", "n1", 120),
    operation("insert", "n1", 0),
    operation("compute.instances.preempted", "old", 60),
    operation("insert", "n2", 10),
    operation("stop", "n2", 70),
    operation("insert", "n3", 20, error={"errors": []}),
    {"operationType": "insert", "targetLink": f"{GCP}/disks/d", "insertTime": "x"},
]


def file(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def ticks(**more: Any) -> dict[str, Any]:
    return {"metadata": {"gap_seconds": 300, **more.pop("metadata", {})}, "data": TICKS, **more}


def test_spot_traces_hold_machines_up(tmp_path: Path) -> None:
    path = file(tmp_path, "availability/1-node/us-east-1a_v100_1.json", ticks())
    found = read_trace(path)
    assert found.machines.tolist() == [0, 1, 0, 1]
    assert found.t_s.tolist() == [0.0, 600.0, 1500.0, 1800.0]
    assert (found.end_s, found.step_s, found.kind) == (2100.0, 300.0, "probe")
    assert found.place == Place("aws", "us-east-1", "us-east-1a", "", "V100", 1)
    assert read_trace(file(tmp_path, "preemption/1-node/z.json", ticks())).kind == "hold"


def test_counts_of_machines_can_mean_only_one_thing(tmp_path: Path) -> None:
    content = {"metadata": {"gap_seconds": 300}, "data": [4, 4, 0, 3]}
    found = read_trace(file(tmp_path, "us-west-2c_v100_1.json", content))
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
    found = read_trace(file(tmp_path, "us-central1-a_h100_16/full.json", content))
    assert found.machines.tolist() == [1, 0, 1, 0]
    assert (found.price_t_s.tolist(), found.usd_per_hour.tolist()) == ([0.0, 1200.0], [18.98, 19.5])
    assert found.name == "us-central1-a_h100_16"
    assert found.place == Place("gcp", "us-central1", "us-central1-a", "", "H100", 0)
    assert found.start is not None


def test_ones_alone_are_refused_until_their_meaning_is_stated(tmp_path: Path) -> None:
    path = file(tmp_path, "us-west-2a_k80_1.json", ticks())
    with pytest.raises(UsageError) as caught:
        read_trace(path)
    assert "--format spot-traces: up 57% of the time" in str(caught.value)
    assert "--format preempted: up 43%" in str(caught.value)
    up, down = read_trace(path, form="spot-traces"), read_trace(path, form="preempted")
    assert (up.machines + down.machines == 1).all()


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
        read_trace(file(tmp_path, "x.json", content), form="spot-traces")
    assert said in str(caught.value)


def test_counts_are_no_preemptions(tmp_path: Path) -> None:
    content = {"metadata": {"gap_seconds": 300}, "data": [4, 0]}
    with pytest.raises(UsageError, match="a preempted series holds 0 and 1 only"):
        read_trace(file(tmp_path, "x.json", content), form="preempted")


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
    east, west = read_traces(file(tmp_path, "rounds.json", rounds))
    assert (east.t_s.tolist(), east.machines.tolist()) == ([0.0, 1200.0], [16, 0])
    assert (east.end_s, east.step_s, east.capacity, east.kind) == (1800.0, 600.0, 16, "probe")
    assert east.place == Place("gcp", "us-east4", "us-east4-a")
    assert west.machines.tolist() == [3]
    del rounds[0]["zone_results"]
    with pytest.raises(UsageError, match="round 1: zone_results is not a table of zones"):
        read_traces(file(tmp_path, "wrong.json", rounds))


CSV = "AvailabilityZone,InstanceType,ProductDescription,SpotPrice,Timestamp\n"
AWS_FORMS = {
    "x.json": json.dumps(AWS),
    "x.csv": CSV + "".join(",".join(item.values()) + "\n" for item in AWS["SpotPriceHistory"]),
    "x.txt": "".join(
        "\t".join(["SPOTPRICEHISTORY", *item.values()]) + "\n" for item in AWS["SpotPriceHistory"]
    ),
}


@pytest.mark.parametrize("name", AWS_FORMS)
def test_aws_prices_of_linux_by_zone(tmp_path: Path, name: str) -> None:
    a, b = read_traces(file(tmp_path, name, AWS_FORMS[name]))
    assert (a.name, b.name) == ("us-east-1a p3.2xlarge", "us-east-1b p3.2xlarge")
    assert (a.price_t_s.tolist(), a.usd_per_hour.tolist()) == ([0.0, 86_400.0], [1.0, 1.05])
    assert a.place == Place("aws", "us-east-1", "us-east-1a", "p3.2xlarge")
    assert a.start is not None
    assert a.start.isoformat() == "2026-03-01T00:00:00+00:00"
    assert b.end_s == 18 * 3600.0  # until the last price of the file
    assert not len(a.t_s)


def test_wrong_aws_prices_are_named(tmp_path: Path) -> None:
    text = CSV + "us-east-1a,p3.2xlarge,Linux/UNIX,free,2026-03-01T00:00:00\n"
    with pytest.raises(UsageError) as caught:
        read_traces(file(tmp_path, "x.csv", text))
    assert "has no time zone" in str(caught.value)
    with pytest.raises(UsageError, match="column spotprice is missing"):
        read_traces(file(tmp_path, "y.csv", "Zone,Timestamp\n"), form="aws-prices")
    windows = CSV + "us-east-1a,p3.2xlarge,Windows,3,2026-03-01T00:00:00Z\n"
    with pytest.raises(UsageError, match="no prices of Linux"):
        read_traces(file(tmp_path, "z.csv", windows))


def test_bamboo_events_are_in_milliseconds(tmp_path: Path) -> None:
    text = "480000,add,node1\n540000,add,node2\n600000,remove,node1\n720000,add,node3\n"
    found = read_trace(file(tmp_path, "p3-trace.csv", text))
    assert (found.t_s.tolist(), found.machines.tolist()) == (
        [0.0, 480.0, 540.0, 600.0, 720.0],
        [0, 1, 2, 1, 2],
    )
    assert (found.kind, found.start, found.end_s) == ("hold", None, 720.0)
    wrong = file(tmp_path, "w.csv", "480000,add,node1\n500000,add,node1\n5,drop,x\n")
    with pytest.raises(UsageError, match="line 3: '5,drop,x' is not milliseconds"):
        read_trace(wrong)
    with pytest.raises(UsageError, match="'node1' is up already at 500 s"):
        read_trace(file(tmp_path, "v.csv", "480000,add,node1\n500000,add,node1\n"))


def test_google_operations_distinguish_preemptions_from_deleted_machines(tmp_path: Path) -> None:
    found = read_trace(file(tmp_path, "ops.json", OPERATIONS))
    assert found.place == Place("gcp", "us-central1", "us-central1-a")
    assert found.start is not None
    assert found.start.isoformat() == "2026-03-01T08:00:30+00:00"
    named = [found.events.names[i] for i in found.events.node]
    assert list(zip(named, found.events.change.tolist(), strict=True)) == [
        ("old", 1), ("n1", 1), ("n2", 1), ("old", -1), ("n2", 0), ("n1", -1),
    ]  # fmt: skip
    assert found.events.t_s.tolist() == [0.0, 0.0, 600.0, 3570.0, 4170.0, 7170.0]
    with pytest.raises(UsageError, match="holds no operation compute.instances.preempted"):
        read_trace(file(tmp_path, "o.json", [operation("insert", "n1", 0)]))


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "{}", "[1]", "", '{"data": 1}'])
def test_what_is_no_trace_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError, match="no known trace format; known: recommend, spot-traces"):
        read_trace(file(tmp_path, "x", content))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8bbroken")
    with pytest.raises(UsageError, match="cannot be read"):
        read_trace(tmp_path / "x.gz")
    (tmp_path / "y.csv").write_bytes(b"t_s,event\n\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_trace(tmp_path / "y.csv")


def test_two_series_of_one_name_are_refused(tmp_path: Path) -> None:
    one = file(tmp_path, "a/z.json", {"metadata": {"gap_seconds": 60}, "data": [2, 0]})
    two = file(tmp_path, "b/z.json", {"metadata": {"gap_seconds": 60}, "data": [2, 0]})
    with pytest.raises(UsageError, match="series 'z' occurs twice"):
        read_all([one, two])
