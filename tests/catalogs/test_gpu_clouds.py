"""GPU clouds in the shipped catalog: bounds of their own, clusters, and files that launch them."""

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
import yaml

from recommender.api.calls import recommend
from recommender.catalogs.catalog import Catalog
from recommender.catalogs.rentable import sold_as
from recommender.catalogs.validation import odd_between_clouds, on_demand_prices
from recommender.cli import main
from recommender.market.allowed import allowed_offers
from recommender.plan.limits import Choice, Limits
from tests.recommender.planning import HOUR, NOW
from tests.shipped import every_cloud

H100 = "n3-H100-SXM5x8"


def repriced(name: str, factor: float) -> Catalog:
    """The catalog with the price of a machine times a factor."""
    whole = every_cloud()
    usd = whole.offers.usd_per_hour[:]
    for at, instance_type in enumerate(whole.offers.instance_type):
        usd[at] *= factor if instance_type == name else 1.0
    return replace(whole, offers=replace(whole.offers, usd_per_hour=usd))


@pytest.mark.parametrize(("factor", "odd"), [(1.0, False), (2.49 / 3.2, False), (0.125, True)])
def test_a_cloud_may_be_cheaper_than_others_but_not_by_a_wrong_unit(
    factor: float, odd: bool
) -> None:
    catalog = repriced(H100, factor)
    said = [line for line in odd_between_clouds(catalog, on_demand_prices(catalog))]
    assert any(line.startswith("H100 at hyperstack") for line in said) == odd


@pytest.mark.parametrize("provider", ["lambda", "runpod", "verda", "jarvislabs", "vultr", "vast"])
def test_machines_that_no_network_joins_are_rented_one_by_one(provider: str) -> None:
    answer = recommend(
        "resnet50-imagenet",
        Limits(deadline_s=100 * HOUR, max_machines=4),
        Choice(providers=(provider,)),
        catalog=every_cloud(),
        now=NOW,
    )
    assert answer.plans
    assert {sum(m.count for m in plan.machines) for plan in answer.plans} == {1}


def test_machines_in_one_fabric_train_together() -> None:
    choice = Choice(providers=("nebius",), gpus=(), instances=("gpu-h200-sxm_8gpu*",))
    fast = Limits(max_machines=4, objective="time")
    answer = recommend("llama3-8b-sft", fast, choice, catalog=every_cloud(), now=NOW)
    assert max(sum(m.count for m in plan.machines) for plan in answer.plans) > 1


def test_a_listed_machine_that_nobody_rents_is_not_open_there_and_is_elsewhere() -> None:
    assert sold_as("aws", "p5.4xlarge", "on_demand", "us-east-1") == "unknown"
    assert sold_as("aws", "p5.4xlarge", "on_demand", "ap-south-1") is None
    assert sold_as("aws", "p6-b300.48xlarge", "on_demand", "sa-east-1") == "unknown"
    assert sold_as("aws", "p6-b300.48xlarge", "spot", "us-east-1") is None


@pytest.mark.parametrize(
    ("provider", "pattern", "market", "regions"),
    [
        ("aws", "p5.4xlarge", "on_demand", "us-*"),
        ("aws", "p5.4xlarge", "spot", "us-*"),
        ("aws", "p5e.48xlarge", "on_demand", "*"),
        ("aws", "p6-b300.48xlarge", "on_demand", "*"),
        ("aws", "trn2*", "on_demand", "*"),
        ("gcp", "a3-highgpu-[124]g", "on_demand", "*"),
        ("gcp", "a3-ultragpu-8g", "on_demand", "*"),
        ("gcp", "a4-highgpu-8g", "on_demand", "*"),
        ("gcp", "a4x*", "*", "*"),
        ("azure", "Standard_ND128isr_NDR_GB200_v6", "*", "*"),
        ("azure", "Standard_ND96isr_H200_v5", "spot", "*"),
        ("crusoe", "*-sxm-ib.8x", "*", "*"),
        ("oci", "BM.GPU.GB200.4", "*", "*"),
    ],
)
def test_what_nobody_can_rent_is_in_no_plan(
    provider: str, pattern: str, market: str, regions: str
) -> None:
    """The facts of rentable.csv (2026-10 and 2026-11), asked of the offers that plans may use."""
    o = every_cloud().offers
    named = [
        (o.provider[r], o.instance_type[r], o.region[r])
        for r in allowed_offers(every_cloud(), Choice()).rows
        if o.provider[r] == provider and fnmatchcase(o.market[r], market)
    ]
    assert not [
        each for each in named if fnmatchcase(each[1], pattern) and fnmatchcase(each[2], regions)
    ]


def test_every_spot_machine_has_a_law_and_every_machine_a_wait() -> None:
    catalog = every_cloud()
    laws = {gpu for law in catalog.spot_classes for gpu in law.gpus}
    waits = {gpu for row in catalog.obtainability for gpu in row.gpus}
    for offer in catalog.offers:
        gpu = catalog.type_of(offer).gpu
        if gpu and offer.obtainable in ("open", "spot_only"):
            assert gpu in (laws if offer.market == "spot" else waits), offer


def test_prices_of_gpu_clouds_drift_and_their_bills_have_a_minimum() -> None:
    catalog = every_cloud()
    drift = {(d.provider, d.market) for d in catalog.price_drift}
    bills = {(b.provider, b.market): b.minimum_s for b in catalog.billing}
    sold = set(zip(catalog.offers.provider, catalog.offers.market, strict=True))
    sold = {(provider, market) for provider, market in sold if market != "committed"}
    assert sold <= drift
    assert sold <= bills.keys()
    assert bills["vultr", "on_demand"] == 3600.0
    assert np.all(np.array(list(bills.values())) >= 0.0)


@pytest.mark.parametrize(
    ("provider", "infra"),
    [("lambda", "lambda"), ("nebius", "nebius/eu-north1"), ("verda", "verda")],
)
def test_a_plan_is_written_for_skypilot_with_a_bucket_that_speaks_s3(
    provider: str, infra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--deadline", "100h", "resnet50-imagenet", "--provider", provider, "--no-spot"]
    assert main([*words, "--write", "run"]) == 0
    task = yaml.safe_load((tmp_path / "run" / "train.yaml").read_text())
    (entry, *_) = task["resources"]["ordered"]
    assert entry["infra"] == infra
    assert (provider, entry["instance_type"]) in every_cloud().instance_types
    assert {"CHECKPOINT_BUCKET", "AWS_ENDPOINT_URL"} <= task["envs"].keys()
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= task["secrets"].keys()


@pytest.mark.parametrize(("provider", "guesses"), [("vast", ("asked", "host")), ("together", ())])
def test_what_nobody_published_of_a_cloud_counts_against_its_plans(
    provider: str, guesses: tuple[str, ...]
) -> None:
    limits, choice = Limits(deadline_s=100 * HOUR, max_machines=1), Choice(providers=(provider,))
    answer = recommend("resnet50-imagenet", limits, choice, catalog=every_cloud(), now=NOW)
    for plan in answer.plans:
        assert plan.evidence
        assert plan.evidence.guesses == guesses
