"""Laws saved for offers: written in one step, checked when read, replaced, forgotten."""

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.plan.limits import OfferLaw
from recommender.traces.fit import fit
from recommender.traces.law_store import (
    forget,
    laws_for,
    parse_offer,
    save_laws,
    store_path,
    stored,
)
from tests.recommender.traces.made import drawn

LAW = OfferLaw(
    provider="gcp",
    place="us-central1",
    machine="a3-highgpu-8g",
    run_mean_s=7200.0,
    run_sigma=1.5,
    outage_sigma=1.2,
    availability=0.7,
    zone_sd=None,
    availability_slope=None,
    co_interruption=0.9,
    short_runs=None,
    held=False,
    trace="zone a",
    seen="2026-03-01 to 2026-03-15",
    hours=336.0,
    interruptions=40,
    fitted="2026-03-16",
)


def test_nothing_is_kept_and_nothing_read_at_first(tmp_path: Path) -> None:
    assert stored(tmp_path / "none.json") == ()


def test_what_is_kept_comes_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "laws.json"
    other = replace(LAW, provider="aws", place="*")
    save_laws([LAW, other], path)
    assert stored(path) == (other, LAW)
    save_laws([replace(LAW, run_mean_s=9000.0, machine="A3-HIGHGPU-8G")], path)
    assert [law.run_mean_s for law in stored(path)] == [7200.0, 9000.0]
    assert not [p for p in path.parent.iterdir() if p.name.startswith(".")]


def test_laws_of_another_unit_of_slope_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "laws.json"
    save_laws([LAW], path)
    path.write_text(path.read_text().replace("spot-laws/v2", "spot-laws/v1"))
    with pytest.raises(UsageError, match="older version.*remove it and fit the traces again"):
        stored(path)


def test_a_law_is_forgotten_by_its_offer(tmp_path: Path) -> None:
    path = tmp_path / "laws.json"
    save_laws([LAW], path)
    with pytest.raises(UsageError, match=r"no law is saved for 'gcp:x:y'; saved: gcp:us-central1"):
        forget(["gcp:x:y"], path)
    forget([LAW.offer.upper()], path)
    assert stored(path) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run_mean_s": -1}, "run_mean_s -1 is not a number of 1 to 1e+09"),
        ({"availability": 1.0}, "availability 1.0 is not a number of"),
        ({"availability": None}, "availability None is not a number of"),
        ({"held": "no"}, "held no is no"),
        ({"more": 1}, "unknown key 'more'"),
        ({"provider": 5}, "provider 5 is no"),
    ],
)
def test_a_damaged_law_is_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = tmp_path / "laws.json"
    save_laws([LAW], path)
    tree = json.loads(path.read_text())
    tree["laws"][0] |= change
    path.write_text(json.dumps(tree))
    with pytest.raises(UsageError) as caught:
        stored(path)
    assert said in str(caught.value)
    assert "fit again with recommend trace fit --store" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": "x"}', '{"laws": []}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "laws.json").write_text(text)
    with pytest.raises(UsageError, match="laws.json"):
        stored(tmp_path / "laws.json")


def test_the_file_lies_with_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert store_path().name == "spot-laws.json"


def test_offers_are_read() -> None:
    assert parse_offer("aws:*:H100:8", "--store") == ("aws", "*", "H100:8")
    for wrong in ("aws:us-east-1", "::", "asw:*:H100"):
        with pytest.raises(UsageError, match="--store"):
            parse_offer(wrong, "--store")


def test_a_fit_becomes_a_law_and_says_where_from() -> None:
    found = fit([drawn(3, (3.0, 1.2), (1.0, 1.0), 200, "zone-a")])
    assert found.law is not None
    (law,) = laws_for([("gcp", "us-central1", "x")], found, date(2026, 5, 1))
    assert law.run_mean_s == found.law.run_mean_s.value
    assert (law.trace, law.fitted, law.interruptions) == ("zone-a", "2026-05-01", 199)
    assert law.seen.startswith("2026-03-01 to 2026-0")
    level = found.law.availability
    odds = [share / (1 - share) for share in (level.low, level.high)]
    unsure = math.log(odds[1] / odds[0]) / (2 * 1.959964)
    assert law.zone_sd == pytest.approx(math.hypot(found.law.zone_sd.value, unsure), rel=1e-4)
    nothing = fit([drawn(3, (3.0, 1.2), (1.0, 1.0), 2)])
    with pytest.raises(UsageError, match="gives no law: 1 interruption seen; a law needs 5"):
        laws_for([("gcp", "us-central1", "x")], nothing, date(2026, 5, 1))
