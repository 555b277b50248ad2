"""The contract of an offer: every term of an offers file is in plans, bills and JSON."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog, extended
from recommender.catalogs.load import load
from recommender.catalogs.serialize import write_catalog
from recommender.catalogs.tables import TABLES
from recommender.errors import UsageError
from recommender.export.description import description_of
from recommender.export.start import usual_target
from recommender.export.targets import export_files
from recommender.inputs.offers_file import OwnMachines, read_offers
from recommender.job.jobfile import find_job
from recommender.market.account_quotas import quotas_of_account
from recommender.market.contract import terms_of
from recommender.market.offer_facts import BOOT_DISK_GIB, HOURS_PER_MONTH, Facts
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import Plan, Terms
from recommender.report.json_output import plain
from tests.recommender.planning import HOUR, NOW
from tests.shipped import every_cloud, snapshot

HEAD = "label,gpu,gpus,usd_per_hour"
TODAY = date(2026, 11, 20)
OWN = Choice(providers=("own",))


def read(folder: Path, **columns: str) -> OwnMachines:
    """One machine with these columns."""
    (folder / "o.csv").write_text(
        f"{','.join([HEAD, *columns])}\n{','.join(['lab,H100,8,20', *columns.values()])}\n"
    )
    return read_file(folder / "o.csv")


def read_file(path: Path) -> OwnMachines:
    memory = {name: gpu.memory_mib for name, gpu in snapshot().gpus.items()}
    return read_offers(path, memory, snapshot().instance_types.values(), TODAY)


def world(own: OwnMachines) -> Catalog:
    return extended(snapshot(), own.hardware, own.offers, own.terms)


def asked(own: OwnMachines, **choice: Any) -> Answer:
    """A plan on these machines only."""
    found = replace(OWN, quotas=own.limits, **choice)
    limits = Limits(deadline_s=1000 * HOUR, max_machines=2)
    return recommend("llama3-8b-sft", limits, found, catalog=world(own), now=NOW)


def plan_of(own: OwnMachines, **choice: Any) -> Plan:
    return asked(own, **choice).plans[0]


def bill(plan: Plan) -> dict[str, float]:
    return {item.item: item.usd for item in plan.estimate.bill}


@pytest.mark.parametrize(
    ("column", "cell", "field", "value"),
    [
        ("minimum_h", "24", "minimum_s", 86400.0),
        ("step_h", "2", "step_s", 7200.0),
        ("maximum_h", "90", "maximum_s", 90 * 3600.0),
        ("notice_s", "45", "notice_s", 45.0),
        ("upfront", "yes", "upfront", True),
        ("egress_per_gb", "0.05", "egress_usd_per_gb", 0.05),
        ("disk_per_gb_month", "1", "disk_usd_per_gib_month", 2**30 / 1e9),
        ("currency", "EUR=0.8@2026-11-27", "currency", "EUR=0.8@2026-11-27"),
        ("country", "DE FR", "countries", ("DE", "FR")),
        ("one_host", "yes", "one_host", True),
        ("network", "rdma", "rdma", True),
        ("new_account", "0", "new_account", 0.0),
        ("launcher", "lambda", "launcher", "lambda"),
        ("instance_type", "gpu_8x", "rented_as", "gpu_8x"),
    ],
)
def test_every_term_of_a_row_is_in_the_plan_and_its_json(
    tmp_path: Path, column: str, cell: str, field: str, value: object
) -> None:
    plan = plan_of(read(tmp_path, **{column: cell, "notice_s": "45"}))
    (machines, *_) = plan.machines
    assert machines.terms
    assert getattr(machines.terms, field) == value
    assert plain(plan)["machines"][0]["terms"][field] == plain(value)


def test_an_older_date_gives_way_to_a_newer_one_of_the_same_machine(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text(
        f"{HEAD},region,as_of\nlab,H100,8,20,a,2026-11-01\nlab,H100,8,25,a,2026-11-09\n"
        "lab,H100,8,22,b,2026-11-02\n"
    )
    own = read_offers(
        tmp_path / "o.csv", {"H100": 81559}, snapshot().instance_types.values(), TODAY
    )
    assert [(o.region, o.usd_per_hour) for o in own.offers] == [("a", 25.0), ("b", 22.0)]
    assert own.older == 1


def test_amounts_are_converted_at_the_row_s_own_rate(tmp_path: Path) -> None:
    columns = {"currency": "EUR=0.8@2026-11-27", "egress_per_gb": "0.04"}
    own = read(tmp_path, **columns)
    (offer,) = own.offers
    assert offer.usd_per_hour == pytest.approx(20 / 0.8)
    (terms,) = own.terms
    assert terms.egress_usd_per_gb == pytest.approx(0.05)


def test_disks_and_egress_are_in_the_bill(tmp_path: Path) -> None:
    free, paid = (
        plan_of(read(tmp_path, **columns))
        for columns in ({}, {"egress_per_gb": "0.05", "disk_per_gb_month": "7.3"})
    )
    assert "disks and addresses" not in bill(free)
    hours = bill(paid)["1x lab on-demand"] / 20
    disk = 7.3 * 2**30 / 1e9 * BOOT_DISK_GIB / HOURS_PER_MONTH
    assert bill(paid)["disks and addresses"] == pytest.approx(disk * hours, rel=1e-3)
    # One copy of the trained model leaves; without spot nothing else is saved for the plan.
    leaves = find_job("llama3-8b-sft").checkpoint_bytes / 1e9 * 0.05
    assert bill(paid)["egress of checkpoints and the trained model"] == pytest.approx(leaves)
    assert sum(bill(paid).values()) == pytest.approx(paid.estimate.cost.mean, rel=0.02)


def test_every_checkpoint_of_a_spot_machine_leaves(tmp_path: Path) -> None:
    plan = plan_of(read(tmp_path, market="spot", egress_per_gb="0.01"))
    once = find_job("llama3-8b-sft").checkpoint_bytes / 1e9 * 0.01
    saves = plan.estimate.split.work_s / plan.checkpointing.interval_s
    paid = bill(plan)["egress of checkpoints and the trained model"]
    assert paid == pytest.approx(once * (1 + saves), rel=0.2)
    assert paid > 2 * once


def test_a_single_host_is_one_box_that_is_not_there_at_once(tmp_path: Path) -> None:
    own = read(tmp_path, one_host="yes")
    assert [limit.amount for limit in own.limits] == [1]
    assert {sum(m.count for m in plan.machines) for plan in asked(own).plans} == {1}
    facts = Facts(world(own), Choice(quotas=own.limits), find_job("gpt2-124m"), NOW)
    t = facts.catalog.instance_types["own", "lab"]
    assert facts.wait(t)[0] < 1.0
    with pytest.raises(UsageError, match="column one_host: yes, but network_gbit_per_s"):
        read(tmp_path, one_host="yes", network_gbit_per_s="400")


def test_a_new_account_may_rent_what_the_offer_says(tmp_path: Path) -> None:
    own = read(tmp_path, new_account="0")
    mine = tuple(q for q in quotas_of_account("default-new", world(own)) if q.provider == "own")
    assert [(q.quota_family, q.amount) for q in mine] == [("lab", 0.0)]
    assert not asked(replace(own, limits=mine)).plans
    assert plan_of(own).on_request
    assert not plan_of(own).startable
    assert plan_of(read(tmp_path)).startable
    own = read(tmp_path, new_account="0")
    assert asked(own).plans
    shipped = {
        q.provider for q in quotas_of_account("default-new", every_cloud()) if q.amount == 0.0
    }
    assert "digitalocean" in shipped


@pytest.mark.parametrize(("country", "planned"), [("DE", True), ("DE FR", False), ("", True)])
def test_a_stated_country_is_kept(tmp_path: Path, country: str, planned: bool) -> None:
    own = read(tmp_path, country=country)
    assert bool(asked(own, countries=("DE",)).plans) == planned


@pytest.mark.parametrize(
    ("named", "hardware"),
    [("gpu_8x_h100", {"instance_type": "gpu_8x_h100"}), ("", {"accelerators": "H100:8"})],
)
def test_a_launcher_s_name_makes_an_own_offer_one_of_skypilot(
    tmp_path: Path, named: str, hardware: dict[str, str]
) -> None:
    columns = {"instance_type": named, "region": "us-east-1", "currency": "EUR=0.8@2026-11-27"}
    own = read(tmp_path, launcher="lambda", **columns)
    plan = plan_of(own)
    assert usual_target(plan) == "skypilot"
    job, limits = find_job("llama3-8b-sft"), Limits(deadline_s=100 * HOUR)
    run = description_of(plan, "plan 1", job, limits, tool="recommend", catalog="c")
    (task, *_) = export_files(run, "skypilot", "run")
    assert "EUR (1 USD was 0.8, 2026-11-27)" in task.text
    (entry,) = yaml.safe_load(task.text)["resources"]["ordered"]
    assert entry == {"infra": "lambda/us-east-1", **hardware, "use_spot": False}


def test_a_sunk_price_is_nothing_and_an_advance_is_paid_whole(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text(f"{HEAD},minimum_h,upfront\nmonth,H100,8,6.85,730,yes\n")
    own = read_offers(
        tmp_path / "o.csv", {"H100": 81559}, snapshot().instance_types.values(), TODAY
    )
    plan = plan_of(own)
    assert plan.estimate.cost.p05 == pytest.approx(730 * 6.85, rel=0.01)


@pytest.mark.parametrize(
    ("column", "cell"),
    [("upfront", "maybe"), ("country", "Germany"), ("launcher", "Lambda Cloud!"),
     ("currency", "EUR"), ("egress_per_gb", "cheap"), ("new_account", "-1"), ("one_host", "2")],
)  # fmt: skip
def test_a_term_of_no_known_form_is_refused_by_its_column(
    tmp_path: Path, column: str, cell: str
) -> None:
    with pytest.raises(UsageError, match=f"line 2, column {column}"):
        read(tmp_path, **{column: cell})


def test_the_same_terms_come_back_from_a_written_catalog(tmp_path: Path) -> None:
    """Refreshed, published and exported catalogs are such folders."""
    whole = every_cloud()
    stated = replace(
        whole.billing[0], egress_usd_per_gb=0.02, countries=("DE", "FR"), new_account=3.0,
        currency="EUR=0.8@2026-11-27", launcher="lambda", upfront=True,
    )  # fmt: skip
    catalog = replace(whole, billing=(stated, *whole.billing[1:]))
    tables = {
        name: list(rows.values()) if isinstance(rows, dict) else list(rows)
        for name, rows in ((name, getattr(catalog, name)) for name in TABLES)
    }
    assert load(write_catalog(tmp_path / "c", tables)).billing[0] == stated


def test_every_shipped_offer_has_the_whole_contract() -> None:
    catalog = every_cloud()
    facts = Facts(catalog, Choice(), find_job("gpt2-124m"), NOW)
    found = {(o.provider, o.market): terms_of(facts, o) for o in catalog.offers}
    assert all(isinstance(terms, Terms) for terms in found.values())
    assert found["scaleway", "on_demand"].currency == "EUR=0.8807@2026-10-01"
    assert found["vast", "on_demand"].one_host
    assert found["vast", "on_demand"].launcher == "vast"
    assert found["vultr", "on_demand"].egress_usd_per_gb == 0.01
    assert found["seeweb", "on_demand"].egress_usd_per_gb is None
    assert found["cloudrift", "on_demand"].egress_usd_per_gb == 0.0
    assert found["ovh", "on_demand"].disk_usd_per_gib_month is None
    assert found["aws", "reserved_block"].upfront
    assert found["verda", "spot"].countries == ("FI", "IS")
