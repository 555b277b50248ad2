"""The tool's own format: what is written is read back; every mistake is named."""

import gzip
import os
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.errors import UsageError
from recommender.traces.own_format import parse, write, write_file
from recommender.traces.read import read_trace, read_traces
from recommender.traces.trace import ADDED, GIVEN_BACK, TAKEN, Place, Trace
from tests.recommender.traces.made import START, trace

ZONE = """series,t_s,event,value,node,zone,provider,kind,start,step_s,capacity
a,0,machines,0,,us-central1-a,gcp,probe,2026-03-01T01:00+01:00,600,4
a,0,price,2.5,,,,,,,
a,600,machines,4,,,,,,,
a,1800,price,2.75,,,,,,,
a,3600,machines,3,,,,,,,
a,7200,end,,,,,,,,
b,0,machines,1,,us-east1-b,gcp,hold,,,
b,60,end,,,,,,,,
"""
NODES = """t_s,event,node
0,add,n1
60,add,n2
120,remove,n1
180,stop,n2
240,add,n1
300,end,
"""


def problems(text: str) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse(text, "x.csv")
    return list(caught.value.problems)


def test_series_of_a_file_with_what_is_known_of_them() -> None:
    a, b = parse(ZONE, "x.csv")
    assert (a.name, a.end_s, a.capacity, a.kind, a.step_s) == ("a", 7200.0, 4, "probe", 600.0)
    assert a.place == Place(provider="gcp", zone="us-central1-a")
    assert a.start is not None
    assert a.start.isoformat() == "2026-03-01T00:00:00+00:00"
    assert a.t_s.tolist() == [0.0, 600.0, 3600.0]
    assert a.machines.tolist() == [0, 4, 3]
    assert (a.price_t_s.tolist(), a.usd_per_hour.tolist()) == ([0.0, 1800.0], [2.5, 2.75])
    assert (b.name, b.capacity, b.kind, b.start) == ("b", 1, "hold", None)


def test_named_machines_are_counted() -> None:
    (only,) = parse(NODES, "x.csv")
    assert only.name == "x"
    assert only.t_s.tolist() == [0.0, 60.0, 120.0, 180.0, 240.0]
    assert only.machines.tolist() == [1, 2, 1, 0, 1]
    assert only.events.change.tolist() == [ADDED, ADDED, TAKEN, GIVEN_BACK, ADDED]
    assert [only.events.names[i] for i in only.events.node] == ["n1", "n2", "n1", "n2", "n1"]


@pytest.mark.parametrize("text", [ZONE, NODES])
def test_what_is_written_is_read_back(text: str) -> None:
    once = write(parse(text, "x.csv"))
    assert write(parse(once, "x.csv")) == once


@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 64)), max_size=30),
    st.sampled_from(["", "probe", "hold"]),
    st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=9),
)
def test_any_series_survives(steps: list[tuple[int, int]], kind: str, name: str) -> None:
    t_s = np.cumsum([0, *(t for t, _ in steps)]).astype(float)
    machines = np.array([7, *(n for _, n in steps)])
    new = np.append(True, machines[1:] != machines[:-1])
    made = Trace(
        name=name,
        end_s=float(t_s[-1]) + 1.5,
        t_s=t_s[new],
        machines=machines[new],
        capacity=64,
        kind=kind,  # type: ignore[arg-type]
        start=START,
    )
    (back,) = parse(write([made]), "x.csv")
    assert (back.name, back.end_s, back.kind, back.start) == (name, made.end_s, kind, START)
    np.testing.assert_array_equal(back.t_s, made.t_s)
    np.testing.assert_array_equal(back.machines, made.machines)


def test_files_may_be_packed(tmp_path: Path) -> None:
    traces = parse(ZONE, "x.csv")
    write_file(traces, tmp_path / "x.csv.gz")
    write_file(traces, tmp_path / "x.csv")
    packed = (tmp_path / "x.csv.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "x.csv").read_bytes()
    assert [t.name for t in read_traces(tmp_path / "x.csv.gz")] == ["a", "b"]
    write_file(traces, tmp_path / "x.csv.gz")
    assert (tmp_path / "x.csv.gz").read_bytes() == packed
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_files_may_come_through_a_pipe(tmp_path: Path, name: str) -> None:
    write_file(parse(ZONE, "x.csv"), tmp_path / name)
    pipe = tmp_path / f"pipe-{name}"
    os.mkfifo(pipe)
    Thread(target=lambda: pipe.write_bytes((tmp_path / name).read_bytes()), daemon=True).start()
    assert [t.name for t in read_traces(pipe)] == ["a", "b"]


def test_one_series_is_requested_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(ZONE)
    assert read_trace(tmp_path / "x.csv", series="b").name == "b"
    with pytest.raises(UsageError, match=r"holds 2 series \(a, b\); name one"):
        read_trace(tmp_path / "x.csv")
    with pytest.raises(UsageError, match="unknown series 'c'"):
        read_trace(tmp_path / "x.csv", series="c")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("0,machines,1.5,", "column value: '1.5' is not a number of machines"),
        ("0,machines,-1,", "column value: '-1' is not a number of machines"),
        ("0,price,0,", "column value: '0' is not a price in USD per hour"),
        ("0,price,nan,", "column value: 'nan' is not a price in USD per hour"),
        ("0,add,,", "column node: is empty; name the machine"),
        ("0,remove,,n9", "column node: 'n9' is not up"),
        ("0,machine,1,", "unknown event 'machine'; did you mean machines?"),
        ("-5,machines,1,", "column t_s: '-5' is not a number of seconds from 0 on"),
        ("soon,machines,1,", "column t_s: 'soon' is not a number of seconds from 0 on"),
    ],
)
def test_a_wrong_cell_is_named(row: str, said: str) -> None:
    found = problems(f"t_s,event,value,node\n{row}\n9,end,,\n")
    assert [p for p in found if p.startswith("x.csv, line 2, ") and said in p], found


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("0,machines,1\n", "has no end; close it with a row of event end"),
        ("0,machines,1\n5,end,\n6,machines,0\n", "comes after the end of its series"),
        ("0,machines,1\n9,machines,0\n5,machines,1\n20,end,\n", "5 is before 9; rows must ascend"),
        ("30,machines,1\n60,end,\n", "machines are known from 30 s only, not 0"),
        ("0,end,\n", "ends at 0 s; nothing was watched"),
        ("9,end,\n", "has an end and nothing before it"),
    ],
)
def test_a_wrong_series_is_named(rows: str, said: str) -> None:
    assert [p for p in problems(f"t_s,event,value\n{rows}") if said in p]


def test_every_mistake_is_reported_at_once() -> None:
    text = "t_s,event,value,kind,start,gpus\n0,machines,1,watch,2026-03-01T00:00,2.5\n9,end,,,,\n"
    found = problems(text)
    assert len(found) == 3
    assert "unknown value 'watch'; known: probe, hold" in found[0] or "kind" in " ".join(found)
    assert any("has no time zone" in p for p in found)
    assert any("'2.5' is not a whole number" in p for p in found)


def test_facts_of_a_series_must_not_change() -> None:
    text = "t_s,event,value,zone\n0,machines,1,z1\n5,machines,0,z2\n9,end,,\n"
    assert "'z2' contradicts 'z1' before" in problems(text)[0]


def test_two_ways_of_counting_exclude_each_other() -> None:
    text = "t_s,event,value,node\n0,machines,1,\n5,add,,n1\n9,end,,\n"
    assert "has both machines and named nodes" in problems(text)[0]


def test_a_column_that_is_not_known_is_named() -> None:
    assert "unknown column 'time'" in problems("time,event\n0,end\n")[0]


def test_a_trace_gives_the_machines_at_any_time() -> None:
    made = trace([0, 1, 3], [0, 2, 1], 4.0, step_s=1800.0)
    assert made.machines_at(np.array([0.0, 3599.0, 3600.0, 10_799.0, 14_000.0])).tolist() == [
        0, 0, 2, 2, 1,
    ]  # fmt: skip
    assert made.up(2).tolist() == [False, False, True, True, True, True, False, False]


@pytest.mark.parametrize("unit_s", [1.0, 1e3])
def test_a_trace_lasts_a_century_at_most(unit_s: float, tmp_path: Path) -> None:
    """Milliseconds taken for seconds, or a number that exhausts memory hour by hour."""
    path, years = tmp_path / "x.csv", 60 * 31_557_600 * unit_s
    path.write_text(f"series,t_s,event,value\na,0,machines,2\na,{years:.0f},end,\n")
    if unit_s == 1:
        assert read_traces(path)[0].end_s == years
    else:
        with pytest.raises(UsageError, match="a century"):
            read_traces(path)
