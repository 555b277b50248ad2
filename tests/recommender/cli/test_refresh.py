"""The commands of the store, from a first refresh to a rollback."""

import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copytree

import jsonschema
import pytest

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.fetch import Notify
from recommender.catalogs.providers.contract import Failed, Fetched, Quarantined, UnknownType
from recommender.catalogs.registry import OWN_CLIENTS
from recommender.catalogs.store import Store, default_root, write_lock
from recommender.cli import main
from recommender.cli.open_catalog import catalog_mark, load_catalog
from recommender.inputs.quota_file import read_quotas
from recommender.plan.limits import QuotaLimit
from recommender.serve.catalog_source import CatalogSource
from tests.recommender.cli import clients
from tests.recommender.cli.conftest import Run
from tests.recommender.optimize.samples import sampled

JOB = ["--deadline", "24h", "resnet50-imagenet"]


@pytest.fixture
def clouds(monkeypatch: pytest.MonkeyPatch) -> None:
    clients.install(monkeypatch)


def at(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    monkeypatch.setenv("RECOMMEND_NOW", f"{day}T03:00Z")


def dearer(fetched: Fetched) -> Fetched:
    """Spot machines with A100 and H100 cost more, in each region by another step."""
    steps = {"us-central1": 1.1}
    offers = (
        replace(o, usd_per_hour=steps.get(o.region, 1.04 + len(o.region) % 4 / 50) * o.usd_per_hour)
        if o.market == "spot" and o.instance_type.startswith("a")
        else o
        for o in fetched.offers
    )
    return replace(fetched, offers=tuple(offers))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores after one night and after two; in the second GCP's A100 and H100 cost more."""
    kept = tmp_path_factory.mktemp("nights")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(kept / "two"))
        patch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
        clients.install(patch)
        assert main(["catalog", "refresh"]) == 0
        copytree(kept / "two", kept / "one")
        at(patch, "2026-11-21")
        clients.install(patch, faults={"gcp": dearer})
        assert main(["catalog", "refresh"]) == 0
    return kept


@pytest.fixture
def refreshed(run: Run, clouds: None, nights: Path, tmp_path: Path) -> None:
    copytree(nights / "one", tmp_path / "data")


@pytest.fixture
def two_nights(run: Run, nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copytree(nights / "two", tmp_path / "data")
    at(monkeypatch, "2026-11-21")
    clients.install(monkeypatch, faults={"gcp": dearer})


def test_a_first_refresh_publishes_what_the_tool_then_uses(run: Run, clouds: None) -> None:
    result = run("catalog", "refresh", "--json")
    report = json.loads(result.out)
    assert (result.code, report["outcome"]) == (0, "published")
    assert [p["result"] for p in report["providers"]] == ["published"] * 3
    assert "aws: page 1 of 1\n" in result.err
    assert "publishing\n" in result.err
    status = run("catalog", "status")
    assert f"Catalog: version {report['version']}" in status.out
    assert "fetched just now" in status.out
    assert "0 d" in status.out
    assert status.err == ""
    assert "2026-11-20" in run("--version").out
    assert "refreshed: AWS 2026-11-20" in run().out.replace("\n          ", " ")
    assert "version 000001-" in run("doctor").out


def test_plans_use_the_newest_version(run: Run, refreshed: None, planner) -> None:  # type: ignore[no-untyped-def]
    assert run(*JOB, "--max-age", "1d").code == 0
    assert planner.calls[-1]["catalog"].version.startswith("2026-11-20-")


def test_old_prices_are_refused_whatever_the_store_holds(
    run: Run, refreshed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "2026-11-25")
    result = run(*JOB, "--max-age", "2d")
    assert result.code == 4
    assert "older than --max-age" in result.err


def test_shipped_prices_that_rot_say_so_autoscaler_6536(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "2028-01-01")
    status = run("catalog", "status")
    assert "shipped snapshot" in status.out
    assert "448 d" in status.out  # since 2026-10-10
    assert run(*JOB, "--max-age", "30d").code == 4


def test_a_damaged_version_costs_a_warning_not_the_answer(
    run: Run, refreshed: None, planner  # type: ignore[no-untyped-def]
) -> None:  # fmt: skip
    store = Store(default_root())
    (store.path(store.names()[0]) / "offers-gcp.csv.gz").write_bytes(b"")
    result = run(*JOB)
    assert result.code == 0
    assert result.err.startswith("warning: version 000001-")
    assert planner.calls[-1]["catalog"].version.startswith("2026-11-09-")


def test_status_shows_the_ages_of_the_version_in_use(
    run: Run, refreshed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "2026-11-30")
    run("catalog", "refresh")
    store = Store(default_root())
    first, second = store.names()
    (store.path(second) / "offers-gcp.csv.gz").write_bytes(b"")
    status = run("catalog", "status")
    assert f"Catalog: version {first}" in status.out
    assert "fetched 9.6 d ago" in status.out
    document = json.loads(run("catalog", "status", "--json").out)
    assert document["held"] == first
    rows = [row for row in document["fetched"] if row["provider"] in OWN_CLIENTS]
    asked = [row for row in rows if row["market"] in ("on_demand", "spot")]
    assert {row["fetched_at"][:10] for row in asked} == {"2026-11-20"}
    others = {row["reason"] for row in rows if row not in asked}  # booked capacity
    assert others == {"from the shipped snapshot"}


def test_single_old_prices_are_left_out_by_max_age(
    run: Run, refreshed: None, monkeypatch: pytest.MonkeyPatch, planner  # type: ignore[no-untyped-def]
) -> None:  # fmt: skip
    """One region that cannot be read for long: the others are new, so its market is."""
    at(monkeypatch, "2026-11-30")

    def without_one(fetched: Fetched) -> Fetched:
        offers = tuple(o for o in fetched.offers if o.region != "us-east-1")
        lost = Failed("us-east-1", "", "no answer")
        return replace(fetched, offers=offers, failed=(lost,))

    clients.install(monkeypatch, faults={"aws": without_one})
    assert run("catalog", "refresh").code == 5
    result = run(*JOB, "--max-age", "2d")
    assert result.code == 0
    assert "offers whose price is older than --max-age 2d are left out" in result.err
    offers = planner.calls[-1]["catalog"].offers
    assert {o.as_of for o in offers} == {"2026-11-30"}
    assert "us-east-1" not in offers.region
    assert "us-east-1" in load_catalog(None).offers.region


def test_a_server_notices_the_night_that_was_published(
    nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(root))
    copytree(nights / "one", root)
    source = CatalogSource(partial(catalog_mark, None), partial(load_catalog, None))
    first = source.catalog
    assert not source.renewed()
    copytree(nights / "two", root, dirs_exist_ok=True)
    assert source.renewed()
    assert source.catalog.version != first.version
    assert source.catalog.version == load_catalog(None).version


def test_a_partial_refresh_ends_with_5_and_says_why(
    run: Run, refreshed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "2026-11-23")
    clients.install(monkeypatch, errors={"gcp": ProviderError("gcp", "credentials", "no key")})
    result = run("catalog", "refresh")
    assert result.code == 5
    assert "some providers updated" in result.out
    assert "credentials: no key" in result.out
    status = " ".join(run("catalog", "status").out.split())
    assert "GCP spot 63 h ago: credentials: no key" in status
    assert "last refresh 2026-11-23T03:00:00Z: some providers updated" in status


def test_nothing_published_ends_with_6(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: dict[str, BaseException] = {
        name: ProviderError(name, "network", "no route") for name in ("aws", "gcp", "azure")
    }
    clients.install(monkeypatch, errors=errors)
    result = run("catalog", "refresh", "-o", "json")
    assert result.code == 6
    assert json.loads(result.out)["version"] is None
    assert "shipped snapshot" in run("catalog", "status").out


def test_a_store_in_use_ends_with_6(
    run: Run, clouds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(default_root())
    monkeypatch.setattr(
        "recommender.catalogs.refresh.run.write_lock", partial(write_lock, wait_s=0)
    )
    with write_lock(store):
        result = run("catalog", "refresh", "--provider", "azure", "-o", "json")
    assert result.code == 6
    assert "another refresh" in result.err
    assert json.loads(result.err)["code"] == "CATALOG"


def test_without_a_client_the_report_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "recommender.catalogs.providers.azure.provider", None)
    result = run("catalog", "refresh", "--provider", "azure")
    assert result.code == 6
    assert "its client cannot be loaded" in result.err


def test_a_dry_run_writes_nothing(run: Run, clouds: None) -> None:
    result = run("catalog", "refresh", "--dry-run")
    assert (result.code, result.err.count("publishing")) == (0, 0)
    assert "dry run" in result.out
    assert Store(default_root()).names() == ()


@pytest.mark.parametrize("columns", sampled(("40", "80", "140"), ("40",)))
def test_the_report_names_what_was_not_believed(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    def strange(fetched: Fetched) -> Fetched:
        return replace(
            fetched,
            quarantined=tuple(
                Quarantined("gcp", f"SKU {n} \x1b[31mB300", "no such text", "unknown_description")
                for n in range(7)
            ),
            failed=(Failed("us-west8", "spot", "HTTP 503"),),
            unknown_types=(UnknownType("a5-highgpu-8g", "nvidia-x", 8, 3, "GPU not known"),),
        )

    clients.install(monkeypatch, faults={"gcp": strange})
    monkeypatch.setenv("COLUMNS", columns)
    result = run("catalog", "refresh")
    said = " ".join(result.out.split())
    assert result.code == 5
    assert "GCP quarantined: 7 unknown description" in said
    assert "SKU 0 B300: no such text" in said
    assert "and 2 more, all in the JSON report" in said
    assert "GCP us-west8 spot not read: HTTP 503" in said
    assert "a5-highgpu-8g (nvidia-x): GPU not known" in said
    assert "\x1b" not in result.out


def test_diff_shows_what_changed(run: Run, two_nights: None) -> None:
    result = run("catalog", "diff")
    assert result.code == 0
    assert "From 000001-" in result.out
    assert "GCP" in result.out
    assert "(+10%)" in result.out
    facts = json.loads(run("catalog", "diff", "1", "2", "--json").out)
    assert len(facts["changed"]) > 250
    assert {row["market"] for row in facts["changed"]} == {"spot"}
    assert "From shipped to 000002-" in run("catalog", "diff", "shipped").out
    assert "nothing changed" in run("catalog", "diff", "2", "2").out
    assert run("catalog", "diff", "7").code == 4


def test_the_price_history_is_drawn_as_a_line(run: Run, two_nights: None, tmp_path: Path) -> None:
    words = ["catalog", "history", "a2-highgpu-1g", "--region", "us-central1"]
    result = run(*words)
    assert result.code == 0
    assert "▁▇" in result.out
    drawn = run(*words, "--plot", "out.svg")
    if drawn.code == 0:
        assert ElementTree.parse(tmp_path / "out.svg").getroot().tag.endswith("svg")
    else:
        assert "pip install vl-convert-python" in drawn.err
    facts = json.loads(run(*words, "--json").out)
    assert {row["date"] for row in facts["prices"]} >= {"2026-11-20", "2026-11-21"}
    assert run("catalog", "history", "nothing", "--region", "here").code == 4


@pytest.mark.parametrize("columns", sampled(("40", "80", "140"), ("40",)))
def test_every_page_fits_the_terminal(
    run: Run, two_nights: None, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for words in (
        ["refresh", "--dry-run"],
        ["status"],
        ["diff"],
        ["diff", "shipped"],
        ["history", "p5.48xlarge", "--region", "us-east-1"],
    ):
        result = run("catalog", *words)
        assert result.code == 0
        long = [line for line in result.out.splitlines() if len(line) > int(columns)]
        assert not [line for line in long if " " in line.strip().replace(" · ", "")]


def test_a_catalog_is_read_from_an_address(
    run: Run, refreshed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run("catalog", "export", "served")
    bucket = "https://bucket.example.org/served"

    def get(address: str, most: int, within_s: float, notify: Notify) -> bytes:
        return (tmp_path / address.replace(bucket, "served").partition("?")[0]).read_bytes()

    monkeypatch.setattr("recommender.catalogs.fetch.fetch", get)
    address = f"{bucket}/manifest.json"
    result = run("catalog", "status", "--catalog", f"{address}?sig=canary")
    assert (result.code, result.err) == (0, "")
    assert address in result.out.replace("\n ", "")
    assert "canary" not in result.out
    assert run(*JOB, "--catalog", address).code == 0

    def down(address: str, most: int, within_s: float, notify: Notify) -> bytes:
        raise TimeoutError("timed out")

    monkeypatch.setattr("recommender.catalogs.fetch.fetch", down)
    result = run(*JOB, "--catalog", address)
    assert result.code == 0
    assert "its last copy is used" in result.err
    assert run(*JOB, "--catalog", "https://else.example.org/manifest.json").code == 4


def test_a_rollback_brings_the_older_prices_back(run: Run, two_nights: None) -> None:
    assert run("catalog", "rollback").out.startswith("version 000001-")
    assert "version 000001-" in run("catalog", "status").out
    assert run("catalog", "rollback").code == 4
    assert run("catalog", "rollback", "2").out.startswith("version 000002-")


def test_an_export_is_imported_elsewhere(run: Run, clouds: None, tmp_path: Path) -> None:
    assert run("catalog", "export", "c.tar.gz").code == 4  # nothing to export yet
    run("catalog", "refresh")
    assert run("catalog", "export", "c.tar.gz").out == "c.tar.gz\n"
    assert run("catalog", "export", "c.tar.gz").code == 4
    result = run("catalog", "import", "c.tar.gz", "--store", "other")
    assert (result.code, result.err) == (0, "")
    assert "imported" in run("catalog", "show", "H100", "--catalog", "other").out
    assert "version 000001-" in run("catalog", "status", "--store", "other").out
    run("catalog", "export", "folder")
    assert run(*JOB, "--catalog", "folder").code == 0
    assert run(*JOB, "--catalog", "folder/manifest.json").code == 0


def test_quotas_are_the_file_that_the_planner_reads(run: Run, clouds: None, tmp_path: Path) -> None:
    result = run("catalog", "quotas", "--provider", "aws", "--region", "us-east-1")
    (tmp_path / "quotas.csv").write_text(result.out)
    assert read_quotas(tmp_path / "quotas.csv") == (
        QuotaLimit(
            provider="aws",
            quota_family="Running On-Demand P instances",
            market="on_demand",
            region="us-east-1",
            unit="vcpu",
            amount=192.0,
        ),
    )


def test_quotas_of_regions_without_an_offer_are_left_out_and_reported(
    run: Run, clouds: None, tmp_path: Path
) -> None:
    """Else `--quota` would refuse the file for naming an unknown region."""
    words = ("--provider", "aws", "--region", "us-east-1", "--region", "us-north-9")
    result = run("catalog", "quotas", *words)
    (tmp_path / "quotas.csv").write_text(result.out)
    assert {q.region for q in read_quotas(tmp_path / "quotas.csv")} == {"us-east-1"}
    assert "aws us-north-9: no offer there is known; its quotas are left out\n" in result.err
    assert run(*JOB, "--quota", "quotas.csv").code == 0


def test_quotas_that_cannot_be_read_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    clients.install(monkeypatch, errors={"aws": ProviderError("aws", "credentials", "none")})
    result = run("catalog", "quotas", "--provider", "aws")
    assert (result.code, result.out) == (4, "")
    assert "no quota could be read: aws: credentials: none" in result.err


def test_an_unknown_provider_is_refused(run: Run) -> None:
    result = run("catalog", "refresh", "--provider", "asw")
    assert result.code == 2
    assert "did you mean aws?" in result.err


def test_the_store_of_another_user_is_read_without_writing(
    run: Run, clouds: None, tmp_path: Path
) -> None:
    run("catalog", "refresh", "--store", "shared")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "shared").rglob("*")}
    assert run(*JOB, "--catalog", "shared").code == 0
    assert run("catalog", "status", "--catalog", "shared").code == 0
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "shared").rglob("*")} == before


def test_no_secret_is_in_any_output_or_file(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Clients that put their credentials into every message they can."""
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, f"{clients.SECRET}{name}")
    key = os.environ["GOOGLE_API_KEY"]

    def talkative(fetched: Fetched) -> Fetched:
        return replace(
            fetched,
            warnings=(f"signed with {clients.SECRET}AWS_SECRET_ACCESS_KEY",),
            quarantined=(Quarantined("gcp", f"https://x/?key={key}", f"Bearer {key}", "odd"),),
            failed=(Failed("us-east-9", "", f"403 for token {clients.SECRET}AWS_SESSION_TOKEN"),),
            unknown_types=(UnknownType(key, key, 1, 1, key),),
        )

    errors: dict[str, BaseException] = {
        "aws": RuntimeError(f"{clients.SECRET}AWS_SECRET_ACCESS_KEY refused"),
        "azure": ProviderError("azure", "server", f"GET https://x/?token={key} failed"),
    }
    clients.install(monkeypatch, faults={"gcp": talkative}, errors=errors)
    results = [
        run("catalog", "refresh"),
        run("catalog", "refresh", "--json"),
        run("catalog", "status"),
        run("catalog", "status", "--json"),
        run("catalog", "diff", "--json"),
        run("catalog", "quotas", "--provider", "aws"),
        run("catalog", "export", "exported"),
        run("doctor"),
    ]
    said = "".join(result.out + result.err for result in results)
    assert "403 for token [hidden]" in said
    assert clients.SECRET not in said
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 30
    assert [path for path in files if clients.SECRET.encode() in path.read_bytes()] == []


def test_the_json_report_keeps_its_schema(run: Run, clouds: None) -> None:
    report = json.loads(run("catalog", "refresh", "--json").out)
    jsonschema.validate(report, _SCHEMA)
    assert report["schema"] == "recommend.catalog-refresh/v1"


_COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_SCHEMA = {
    "type": "object",
    "required": ["schema", "outcome", "dry_run", "started", "finished", "before", "version",
                 "problems", "notes", "providers"],
    "additionalProperties": False,
    "properties": {
        "schema": {"type": "string"},
        "outcome": {"enum": ["published", "partial", "nothing"]},
        "dry_run": {"type": "boolean"},
        "started": {"type": "string"},
        "finished": {"type": "string"},
        "before": {"type": ["string", "null"]},
        "version": {"type": ["string", "null"]},
        "problems": _TEXTS,
        "notes": _TEXTS,
        "providers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["provider", "result", "reasons", "seconds", "offers", "kept",
                             "counters", "failed", "alerts", "warnings", "ignored",
                             "unknown_types", "quarantined", "gone", "rules"],
                "additionalProperties": False,
                "properties": {
                    "provider": {"type": "string"},
                    "result": {"enum": ["published", "partial", "kept"]},
                    "reasons": _TEXTS,
                    "seconds": {"type": "number"},
                    "offers": _COUNTS,
                    "kept": {"type": "integer"},
                    "counters": _COUNTS,
                    "failed": {"type": "array"},
                    "alerts": _TEXTS,
                    "warnings": _TEXTS,
                    "ignored": _COUNTS,
                    "unknown_types": {"type": "array"},
                    "quarantined": {"type": "array"},
                    "gone": _TEXTS,
                    "rules": _COUNTS,
                },
            },
        },
    },
}  # fmt: skip
