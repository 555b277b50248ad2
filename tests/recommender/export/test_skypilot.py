"""Managed jobs of SkyPilot do what the plan counts."""

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from recommender.errors import UsageError
from recommender.export.description import RunDescription
from recommender.export.start import start_line
from recommender.export.targets import export_files
from recommender.plan.limits import Limits
from recommender.plan.plan import Need, Terms
from recommender.report import formatting as fmt
from tests.recommender import answers
from tests.recommender.export.runs import ALL, AWS, GCP, MIXED, ON_DEMAND, described


def job(run: RunDescription, name: str = "train.yaml") -> dict[str, Any]:
    files = {each.name: each.text for each in export_files(run, "skypilot", "run")}
    made: dict[str, Any] = yaml.safe_load(files[name])
    return made


@pytest.mark.parametrize("run", ALL.values(), ids=ALL)
def test_what_is_exported_and_read_back_is_the_plan(run: RunDescription):
    made, plan = job(run), run.plan
    places = made["resources"]["ordered"]
    assert {place["instance_type"] for place in places} == {plan.machines[0].instance_type}
    assert {place["use_spot"] for place in places} == {plan.machines[0].market == "spot"}
    named = [place["infra"].split("/")[:2] for place in places]
    listed = [site.region for site in plan.sites] or [plan.machines[0].region]
    assert named == [[plan.machines[0].provider, region] for region in listed]
    assert made["num_nodes"] == sum(m.count for m in plan.machines)


def test_zones_can_be_typed_in_any_account():
    infra = [place["infra"] for place in job(AWS)["resources"]["ordered"]]
    assert infra == ["aws/us-east-2", "aws/us-east-1", "aws/us-west-2", "aws/eu-north-1"]
    assert job(GCP)["resources"]["ordered"][0]["infra"] == "gcp/europe-north1/europe-north1-a"


def test_checkpoints_go_to_a_bucket_that_has_to_be_named():
    made = job(GCP)
    assert made["envs"]["CHECKPOINT_BUCKET"] is None  # SkyPilot refuses it until it is given
    assert made["envs"]["CHECKPOINT_INTERVAL_S"] == "900"
    assert "file_mounts" not in made  # no mount moves a checkpoint
    assert "--resume_from_checkpoint" in made["run"]


def test_what_a_plan_without_checkpoints_has_trained_is_in_the_bucket_at_the_end():
    assert ON_DEMAND.plan.checkpointing.path == "none"
    made = job(ON_DEMAND)
    assert made["run"].splitlines()[-2].startswith('put_folder "$NAME"')
    assert made["envs"]["CHECKPOINT_DIR"].startswith("/checkpoints/")
    assert start_line(ON_DEMAND.plan, "skypilot", "run") == (
        "sky jobs launch --env CHECKPOINT_BUCKET=YOUR-BUCKET run/train.yaml"
    )


def test_the_fallback_is_a_job_of_its_own_and_the_script_makes_the_switch():
    made = job(GCP, "on-demand.yaml")
    assert made["resources"]["ordered"] == [
        {"infra": "gcp/europe-north1", "instance_type": "a3-highgpu-8g", "use_spot": False}
    ]
    assert start_line(GCP.plan, "skypilot", "run") == (
        "CHECKPOINT_BUCKET=YOUR-BUCKET bash run/launch.sh"
    )


def test_the_end_of_the_list_can_be_on_demand_at_the_figures_it_then_has():
    text = export_files(GCP, "skypilot", "run")[0].text
    assert "97 USD on average, 7 h, limits met with 99 % chance" in re.sub(r"\n\s*# ", " ", text)
    undone = re.sub(r"^    # - \{", "    - {", text, flags=re.MULTILINE)
    places = yaml.safe_load(undone)["resources"]["ordered"]
    assert [place["use_spot"] for place in places] == [True, True, True, False]


def test_a_fallback_of_other_size_cannot_end_the_list():
    assert GCP.fallback is not None
    two = replace(GCP.fallback.machines[0], count=2)
    run = described(replace(GCP.plan, fallback=replace(GCP.fallback, machines=(two,))))
    assert "Instead of launch.sh" not in export_files(run, "skypilot", "run")[0].text


def test_mixes_own_machines_and_confidential_ones_go_elsewhere():
    own = replace(answers.ON_DEMAND.machines[0], provider="own")
    confidential = replace(answers.AZURE.machines[0], confidential=True)
    for run, said in (
        (MIXED, "one machine type"),
        (described(replace(answers.ON_DEMAND, machines=(own,))), "export --to torchrun"),
        (described(replace(answers.AZURE, machines=(confidential,))), "sets no security type"),
    ):
        with pytest.raises(UsageError, match=said):
            export_files(run, "skypilot", "run")


@pytest.mark.parametrize("name", ["a: b # c", "x\n- y", "`id`", "$(id)", "'\"", "{a: 1}"])
def test_hostile_names_stay_text(name: str):
    run = described(
        replace(
            answers.AWS_H100, machines=(replace(answers.AWS_H100.machines[0], instance_type=name),)
        )
    )
    for place in job(run)["resources"]["ordered"]:
        assert place["instance_type"] == name


@pytest.mark.parametrize("zone", ['a}"b', "a]", "x\u2028y", "a\x1b[0m", "a, b: c", "'"])
def test_hostile_zones_stay_text(zone: str):
    sites = tuple(replace(site, zone=zone) for site in answers.GCP.sites)
    run = described(replace(answers.GCP, sites=sites))
    text = export_files(run, "skypilot", "run")[0].text
    found = [place["infra"] for place in yaml.safe_load(text)["resources"]["ordered"]]
    assert found == [f"gcp/{site.region}/{zone}" for site in sites]
    assert not {"\u2028", "\x1b"} & set(text)


def test_several_machines_of_aws_have_their_fast_card_turned_on():
    """SkyPilot 0.14.1, sky.clouds.aws: EFA where network_tier is best and the type has it."""
    two = tuple(replace(each, count=2) for each in AWS.plan.machines)
    several = described(replace(AWS.plan, machines=two))
    tiers = {place.get("network_tier") for place in job(several)["resources"]["ordered"]}
    assert tiers == {"best"}
    assert "network_tier" not in str(job(AWS)["resources"])
    text = export_files(several, "skypilot", "run")[0].text
    assert "use_internal_ips" in text


def test_the_header_repeats_the_figures_of_the_answer():
    """Quotas to the last vCPU, chances rounded down, and limits as they were given."""
    need = Need("All P5 Spot Instance Requests", 2304, "vcpu", "us-east-2", 0)
    found = replace(answers.GCP.estimate, chance=0.967)
    run = described(replace(answers.GCP, needs=(need,), estimate=found), Limits(budget_usd=1234.5))
    text = export_files(run, "skypilot", "run")[0].text
    assert "of 2,304 vCPU in us-east-2" in text
    assert f"Met with {fmt.share(0.967)} chance: at most 1,234.5 USD." in text


def rented(provider: str, count: int = 1, **changes: Any) -> RunDescription:
    """The first plan on machines of another cloud, with a fallback there."""
    spot = replace(GCP.plan.machines[0], provider=provider, count=count, **changes)
    assert GCP.plan.fallback is not None
    late = replace(GCP.plan.fallback, machines=(replace(spot, market="on_demand"),))
    return replace(GCP, plan=replace(GCP.plan, machines=(spot,), sites=(), fallback=late))


def test_a_gpu_cloud_gets_what_skypilot_does_there():
    """Disks of a kind and clusters are refused by its own check of features."""
    assert job(rented("nebius"))["resources"]["disk_tier"] == "high"
    assert "disk_tier" not in job(rented("verda"))["resources"]
    with pytest.raises(UsageError, match="no clusters of several machines on verda"):
        export_files(rented("verda", 2), "skypilot", "")
    with pytest.raises(UsageError, match="no spot machines on lambda"):
        export_files(rented("lambda"), "skypilot", "")
    assert job(rented("nebius", 2))["num_nodes"] == 2
    assert "cannot be there" in export_files(rented("verda"), "skypilot", "")[0].text


def test_a_script_for_a_gpu_cloud_reads_the_bucket_that_its_machines_write():
    """Any that speaks S3; there was none for clouds without a bucket of their own."""
    script = export_files(rented("nebius"), "skypilot", "")[2].text
    assert "aws s3 cp --quiet" in script
    assert '"${AWS_ENDPOINT_URL:?export' in script
    assert "by aws s3, counted at 298 MB/s" in " ".join(
        export_files(rented("nebius"), "skypilot", "")[0].text.replace("\n#", "").split()
    )


def test_machines_of_ones_own_list_are_rented_where_skypilot_knows_the_cloud():
    terms = Terms(0.0, 1.0, None, 0.0, False, 0.0, 0.0, "USD", (), True, False, None, "vast", "8x")
    run = rented("own", terms=terms, region="own", zone="")
    place = {"infra": "vast", "instance_type": "8x", "use_spot": True}
    assert job(run)["resources"]["ordered"] == [place]
    assert job(run)["secrets"].keys() >= {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert "disk_tier" not in job(run)["resources"]
    with pytest.raises(UsageError, match="no clusters of several machines on vast"):
        export_files(rented("own", 2, terms=terms), "skypilot", "")
    with pytest.raises(UsageError, match="a column launcher of --offers"):
        export_files(rented("own"), "skypilot", "")


def test_what_one_run_in_a_hundred_exceeds_is_a_warning_only_before_the_cap():
    late = replace(GCP.plan.estimate, time=replace(GCP.plan.estimate.time, p99=30 * 3600.0))
    for plan, said in ((GCP.plan, True), (replace(GCP.plan, estimate=late), False)):
        text = export_files(replace(GCP, plan=plan), "skypilot", "")[0].text
        assert ("The log warns" in " ".join(text.replace("\n#", "").split())) is said
