"""What the clouds' tools print, each on a small file of its real shape."""

import json
from pathlib import Path
from typing import Any

import pytest

from recommender.errors import UsageError
from recommender.traces.read import read_all, read_trace, read_traces
from recommender.traces.trace import Place

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
    with pytest.raises(UsageError, match="column availabilityzone is missing"):
        read_traces(file(tmp_path, "y.csv", "Timestamp,SpotPrice\n"))
    windows = CSV + "us-east-1a,p3.2xlarge,Windows,3,2026-03-01T00:00:00Z\n"
    with pytest.raises(UsageError, match="no prices of Linux"):
        read_traces(file(tmp_path, "z.csv", windows))


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
    with pytest.raises(UsageError, match="no known trace format; known: recommend.trace/v1"):
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
    one, two = (file(tmp_path, f"{name}/z.json", AWS) for name in "ab")
    with pytest.raises(UsageError, match="series 'us-east-1a p3.2xlarge' occurs twice"):
        read_all([one, two])
