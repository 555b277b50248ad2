"""Own machines from files: typed rows, or every mistake with its line."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recommender.catalogs.catalog import extended
from recommender.errors import UsageError
from recommender.inputs.offers_file import OwnMachines, read_offers
from recommender.job.jobfile import find_job
from recommender.market.offer_facts import Facts
from recommender.plan.limits import Choice, QuotaLimit
from tests.recommender.planning import NOW
from tests.shipped import snapshot

GPUS = {"H100": 81559, "A100-80GB": 81920, "L4": 23034}
KNOWN = snapshot().instance_types.values()
TODAY = date(2026, 11, 20)
OFFERS = "label,gpu,gpus,usd_per_hour\n"


def test_own_machines(tmp_path: Path) -> None:
    own = _offers(tmp_path, OFFERS + "lab,h100,8,12.50\n")
    (machine,), (offer,) = own.hardware.values(), own.offers
    assert (machine.provider, machine.instance_type, machine.gpu) == ("own", "lab", "H100")
    assert (machine.gpus, machine.gpu_memory_mib) == (8, 81559)
    assert (machine.like, machine.vcpus, machine.intra_kind) == (
        "gcp a3-highgpu-8g",
        208,
        "nvswitch",
    )
    assert (machine.status, machine.kind, machine.as_of) == ("open", "quote", "2026-11-20")
    assert (offer.provider, offer.region, offer.market) == ("own", "own", "on_demand")
    assert (offer.usd_per_hour, offer.flag, offer.obtainable) == (12.5, "imported", "open")
    assert own.limits == ()


def test_own_machines_in_full(tmp_path: Path) -> None:
    own = _offers(
        tmp_path,
        "provider,instance_type,gpu,gpus,price,region,market,vcpus,memory_gib,network_gbit_per_s,"
        "network,intra,gpu_memory_gib,count,as_of\n"
        "lambda,8x,A100-80GB,8,$14.32,us-west-1,spot,124,1800,100,InfiniBand,nvswitch,80,4,2026-11-01\n",
    )
    (machine,), (offer,) = own.hardware.values(), own.offers
    assert machine.instance_type == offer.instance_type == "lambda/8x"
    assert (machine.network_gbit_per_s, machine.network_kind) == (100, "rdma")
    assert (machine.intra_kind, machine.memory_gib, machine.vcpus) == ("nvswitch", 1800, 124)
    assert (offer.market, offer.region, offer.as_of) == ("spot", "us-west-1", "2026-11-01")
    assert own.limits == (QuotaLimit("own", "lambda/8x", "any", "us-west-1", "machine", 4),)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("lab,H1000,8,12", "line 2, column gpu: unknown GPU 'H1000'; did you mean H100?"),
        ("lab,H100,0,12", "line 2, column gpus: 0 is zero"),
        ("lab,H100,1.5,12", "column gpus: 1.5 is not a whole number"),
        ("lab,H100,8,free", "column usd_per_hour: free is not an amount"),
        ("lab,H100,8,nan", "column usd_per_hour: nan is not a finite number"),
        ("=cmd(),H100,8,12", "column label: '=cmd()' looks like a formula"),
        ("lab,H100,8,1\nlab,L4,1,2", "'lab' describes two different machines"),
    ],
)
def test_bad_offers(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        _offers(tmp_path, OFFERS + row + "\n")
    assert reason in str(error.value)


def test_one_machine_may_have_prices_of_several_dates(tmp_path: Path) -> None:
    head = OFFERS.strip() + ",region,as_of\n"
    own = _offers(tmp_path, head + "lab,H100,8,12,a,2026-11-01\nlab,H100,8,13,b,2026-11-10\n")
    assert list(own.hardware) == ["lab"]
    assert [(o.usd_per_hour, o.as_of) for o in own.offers] == [
        (12, "2026-11-01"), (13, "2026-11-10"),
    ]  # fmt: skip


def test_a_machine_that_is_paid_anyway_costs_next_to_nothing_and_is_one(tmp_path: Path) -> None:
    own = _offers(tmp_path, OFFERS + "lab,H100,8,0\n")
    (offer,) = own.offers
    assert 0 < offer.usd_per_hour < 1e-6
    assert own.limits == (QuotaLimit("own", "lab", "any", "own", "machine", 1),)


def test_a_bad_date(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="yesterday is not a date; write 2026-11-20"):
        _offers(tmp_path, OFFERS.strip() + ",as_of\nlab,H100,8,12,yesterday\n")


def test_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="larger than 10 MiB"):
        _offers(tmp_path, OFFERS + "x" * (10 * 2**20))


@given(st.text(max_size=120) | st.text('",=\n\r;abc0H\x1b', max_size=60))
@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    for body in (text, OFFERS + text):
        try:
            own = _offers(tmp_path, body)
        except UsageError:
            continue
        assert own.hardware


def _offers(folder: Path, text: str) -> OwnMachines:
    (folder / "o.csv").write_bytes(text.encode("utf-8", "surrogatepass"))
    return read_offers(folder / "o.csv", GPUS, KNOWN, TODAY)


def test_what_is_wrong_with_every_row_is_counted_up_to_a_thousand(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        _offers(tmp_path, OFFERS + "lab,H1000,8,12\n" * 3000)
    assert error.value.problems[-1] == "and 980 more at least"


TERMS = OFFERS.strip() + ",market,minimum_h,step_h,maximum_h,start_h,notice_s\n"


def test_terms_of_a_row_hold_for_its_machine_in_its_market(tmp_path: Path) -> None:
    own = _offers(tmp_path, TERMS + "a,H100,8,12,reserved,24,12,336,6,\nb,L4,1,2,spot,,,,,300\n")
    block, spot = own.terms
    assert (block.instance_type, block.market) == ("a", "reserved_block")
    assert (block.minimum_s, block.step_s, block.maximum_s) == (86400.0, 43200.0, 1209600.0)
    assert (block.wait_s, block.lead_s, spot.notice_s) == (21600.0, 21600.0, 300.0)
    catalog = extended(snapshot(), own.hardware, own.offers, own.terms)
    facts = Facts(catalog, Choice(), find_job("gpt2-124m"), NOW)
    t = catalog.instance_types["own", "a"]
    assert facts.wait(t, "reserved_block") == (0.0, 21600.0, 0.0)
    assert facts.terms(t, "reserved_block") == block
    assert facts.terms(t, "on_demand").step_s == 1.0  # the provider's


def test_own_machines_wait_only_if_a_queue_is_stated(tmp_path: Path) -> None:
    head = OFFERS.strip() + ",count,start_h\n"
    own = _offers(tmp_path, head + "a,H100,8,12,4,\nb,H100,8,12,4,2\nd,H100,8,12,,\n")
    catalog = extended(snapshot(), own.hardware, own.offers, own.terms)
    facts = Facts(catalog, Choice(quotas=own.limits), find_job("gpt2-124m"), NOW)
    waits = [facts.wait(catalog.instance_types["own", name])[:2] for name in "abd"]
    assert waits[:2] == [(1.0, 0.0), (0.0, 7200.0)]
    assert 0.0 < waits[2][0] < 1.0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("a,H100,8,12,,24,,12,,\n", "line 2, column maximum_h: is less than minimum_h"),
        ("a,H100,8,12,,x,,,,\n", "line 2, column minimum_h: x is not a number"),
        ("a,H100,8,12,,24,,,,\na,H100,8,13,,12,,,,\n", "'a' has two sets of terms"),
    ],
)
def test_terms_that_contradict_each_other_are_refused(
    tmp_path: Path, rows: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        _offers(tmp_path, TERMS + rows)


def test_rows_of_one_machine_share_it(tmp_path: Path) -> None:
    body = "lab,H100,8,12,a\nlab,H100,8,13,b\nlab,h100,8,14,c\n"  # written in other words, too
    own = _offers(tmp_path, OFFERS.strip() + ",region\n" + body)
    assert list(own.hardware) == ["lab"]
    assert [(offer.instance_type, offer.region) for offer in own.offers] == [
        ("lab", "a"),
        ("lab", "b"),
        ("lab", "c"),
    ]


def test_machines_that_differ_by_name_alone_are_reported_by_one_of_them(tmp_path: Path) -> None:
    own = _offers(tmp_path, OFFERS + "a,H100,8,12\nb,h100,8,13\nc,H100,4,14\n")
    assert own.hardware["a"] is own.hardware["b"]
    catalog = extended(snapshot(), own.hardware, own.offers)
    a, b, c = (catalog.instance_types["own", name] for name in "abc")
    assert (a.instance_type, b.instance_type, c.instance_type) == ("a", "b", "c")
    assert b == replace(a, instance_type="b", family="b", quota_family="b")
    assert b.gpus != c.gpus
    assert [catalog.like(key) for key in (("own", "b"), ("own", "c"), ("aws", "p5.48xlarge"))] == [
        ("own", "a"),
        ("own", "c"),
        ("aws", "p5.48xlarge"),
    ]
    assert {*catalog.instance_types} - {*snapshot().instance_types} == {
        ("own", name) for name in "abc"
    }
    assert ("own", "d") not in catalog.instance_types


def test_every_line_is_refused_with_its_first_mistake(tmp_path: Path) -> None:
    rows = ["a,H1000,8,free", "b,L4,1,0.7", ",H100,8,12", "c,L4,1,free", "a,L4,x,0.7", "d,L4,1,1"]
    with pytest.raises(UsageError) as error:
        _offers(tmp_path, OFFERS + "\n".join(rows) + "\n")
    lines = [problem.partition(":")[0] for problem in error.value.problems]
    assert lines == [
        "o.csv, line 2, column gpu",
        "o.csv, line 4, column label",
        "o.csv, line 5, column usd_per_hour",
        "o.csv, line 6, column gpus",
    ]


def test_every_count_that_is_wrong_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        _offers(tmp_path, OFFERS.strip() + ",count\na,L4,1,1,0\n\nb,L4,1,1,2\nc,L4,1,1,many\n")
    assert [problem.partition(":")[0] for problem in error.value.problems] == [
        "o.csv, line 2, column count",
        "o.csv, line 5, column count",
    ]


@pytest.mark.parametrize("odd", ['"=1+1"', "  =cmd()", "@x", "a\x1bb", '"a\nb"', "x" * 1001])
@pytest.mark.parametrize("place", ["{},H100,8,12", "a,H100,8,12\n{},H100,8,12", "a,{},8,12"])
def test_an_invalid_cell_is_found_in_any_column(tmp_path: Path, odd: str, place: str) -> None:
    with pytest.raises(UsageError, match="looks like a formula|holds control characters"):
        _offers(tmp_path, OFFERS + place.format(odd) + "\n")
