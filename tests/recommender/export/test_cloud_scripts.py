"""Scripts for the clouds' own tools, run with a made-up tool and clock; calls checked as real."""

import ast
import fnmatch
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from botocore.validate import ParamValidator

from recommender.errors import UsageError
from recommender.export.description import RunDescription
from recommender.export.targets import export_files
from recommender.plan.limits import Limits
from recommender.plan.plan import Site
from tests.recommender import answers
from tests.recommender.export.runs import AWS, AZURE, GCP, GCP_LONG, MIXED, TWO_MACHINES, described
from tests.recommender.export.test_watch_script import DATE, SLEEP, START
from tests.shipped import snapshot

HERE = Path(__file__).parent
CASES = {"aws-cli": AWS, "gcloud": GCP, "azure-cli": AZURE}
TOOLS = {"aws-cli": "aws", "gcloud": "gcloud", "azure-cli": "az"}
NAMED = {
    "CHECKPOINT_BUCKET": "ours", "INSTANCE_PROFILE": "trainer", "RESOURCE_GROUP": "group",
    "AZURE_STORAGE_ACCOUNT": "account", "IDENTITY": "/subscriptions/s/identity",
}  # fmt: skip
SECRET = {"HF_TOKEN": "hf_it's $(touch owned)"}
STARTS = {"run-instances", "create"}


def played(
    folder: Path, target: str, run: RunDescription, **files: str
) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    """Run launch.sh; what it printed, and the calls of the tool."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    tool = f"#!{sys.executable} -IS\n" + (HERE / "cloud_tool.py").read_text("utf-8")
    for name, text in ((TOOLS[target], tool), ("date", DATE), ("sleep", SLEEP)):
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(0o755)
    for name, text in {"clock": f"{START}", "ends": f"{START * 9}", **files}.items():
        (tools / name).write_text(text, encoding="utf-8")
    for each in export_files(run, target, ""):
        (folder / each.name).write_text(each.text, encoding="utf-8")
    done = subprocess.run(
        ["bash", "launch.sh"],
        cwd=folder,
        env={"PATH": f"{tools}:{os.environ['PATH']}", **NAMED, **SECRET, "TMPDIR": str(tools)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    calls = (tools / "calls").read_text("utf-8").splitlines()
    return done, [ast.literal_eval(call) for call in calls]


def starts(calls: list[list[str]]) -> list[str]:
    """The calls that ask for machines, as text."""
    return [" ".join(call) for call in calls if STARTS & set(call) and "vnet" not in call]


@pytest.mark.parametrize("target", CASES)
def test_locations_are_tried_in_the_order_of_the_plan(tmp_path: Path, target: str):
    run = CASES[target]
    first, second = run.plan.sites[0].region, run.plan.sites[1].region
    done, calls = played(
        tmp_path, target, run, full=first, home=second if target == "aws-cli" else "",
        ends=f"{START + 5 * 3600}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked = starts(calls)
    assert len(asked) == 2
    assert first in asked[0]
    assert second in asked[1]
    assert "done" in done.stdout
    words = {word for call in calls for word in call}
    assert words & {"terminate-instances", "delete"}
    assert not (tmp_path / "tools" / "machines").exists()


def test_on_demand_machines_are_requested_in_the_regions_of_their_list(tmp_path: Path) -> None:
    first, second = (Site(region, "", 1.2, "") for region in ("us-east-1", "us-west-2"))
    run = described(replace(answers.ON_DEMAND, sites=(first, second)))
    done, calls = played(
        tmp_path, "aws-cli", run, full=first.region, home=second.region, ends=f"{START + 3600}"
    )
    assert done.returncode == 0, done.stderr
    asked = starts(calls)
    assert [first.region in asked[0], second.region in asked[1], len(asked)] == [True, True, 2]
    assert not any("spot" in each for each in asked)


@pytest.mark.parametrize("target", ["gcloud", "skypilot", "terraform"])
def test_a_fallback_is_requested_in_the_regions_of_its_list(target: str) -> None:
    regions = ("us-central1", "us-west1", "us-east4")
    assert GCP.plan.fallback is not None
    listed = replace(
        GCP.plan.fallback, sites=tuple(Site(each, f"{each}-a", 88.5, "") for each in regions)
    )
    files = export_files(described(replace(GCP.plan, fallback=listed)), target, "run")
    texts = [each.text.partition(_FALLBACK[target])[2] for each in files]
    (text,) = (each for each in texts if each)
    places = [text.index(f"{each}-a" if target != "skypilot" else each) for each in regions]
    assert places == sorted(places)
    head = " ".join(files[0].text.replace("#", "").split())
    assert "on-demand in us-central1, then us-west1, then us-east4, when the time left" in head


_FALLBACK = {
    "gcloud": "FALLBACK_PLACES=(",
    "skypilot": "-on-demand\n",
    "terraform": "fallback_places = [",
}


@pytest.mark.parametrize("target", CASES)
def test_a_lost_machine_is_requested_again(tmp_path: Path, target: str):
    run = CASES[target]
    home = run.plan.sites[0].region if target == "aws-cli" else ""
    done, calls = played(tmp_path, target, run, home=home, lost="7200", ends=f"{START + 18_000}")
    assert done.returncode == 0, done.stderr
    assert len(starts(calls)) == 3  # at 0, 2 and 4 of 5 hours


def test_the_region_of_the_checkpoints_is_tried_alone_for_as_long_as_a_move_costs(
    tmp_path: Path,
) -> None:
    """Its machines are lost after an hour and it has no others; four later the next has."""
    run = replace(GCP, plan=replace(GCP.plan, fallback=None, move_after_s=4 * 3600.0))
    first, second = (site.region for site in run.plan.sites[:2])
    full, ends = f"{first} {START + 60}", f"{START + 6 * 3600}"
    done, calls = played(tmp_path, "gcloud", run, full=full, lost="3600", ends=ends)
    assert done.returncode == 0, done.stderr
    asked = [first if first in each else second for each in starts(calls)]
    assert asked == [first] * (len(asked) - 1) + [second]
    assert len(asked) == 1 + 5 + 1  # at the start, from hour 1 to 5 of the made-up clock, moved


@pytest.mark.slow
def test_on_demand_takes_over_when_no_place_has_spot(tmp_path: Path):
    ends = f"{START + 22 * 3600}"
    done, calls = played(tmp_path, "gcloud", GCP, full="SPOT", ends=ends)
    assert done.returncode == 0, done.stderr
    assert "on-demand machines take over" in done.stdout
    asked = starts(calls)
    assert all("--provisioning-model=SPOT" in each for each in asked[:-1])
    assert "SPOT" not in asked[-1]
    assert "-fallba" in asked[-1]


def test_what_hangs_is_ended_by_google_at_the_cap(tmp_path: Path):
    _, calls = played(tmp_path, "gcloud", GCP, lost="36000", ends=f"{START + 12 * 3600}")
    left = [re.search(r"--max-run-duration=(\d+)s", each) for each in starts(calls)]
    assert [int(each[1]) for each in left if each] == [86400, 86400 - 36000]


@pytest.mark.parametrize("target", CASES)
def test_secrets_reach_the_machines_and_no_log_or_boot_file(tmp_path: Path, target: str) -> None:
    """What boots a machine can be read by whoever may look at it, on AWS and Google for good."""
    done, calls = played(tmp_path, target, CASES[target], ends=f"{START + 3600}")
    assert done.returncode == 0, done.stderr
    tools = tmp_path / "tools"
    for text in ((tools / "boot").read_text("utf-8"), repr(calls), done.stdout, done.stderr):
        assert "hf_it" not in text
    told = subprocess.run(
        ["bash", "-c", f'eval "$(< {tools}/passed)"; env'], capture_output=True, text=True,
        cwd=tmp_path, env={},
    ).stdout.splitlines()  # fmt: skip
    assert f"HF_TOKEN={SECRET['HF_TOKEN']}" in told
    assert not any(line.startswith("WANDB_API_KEY") for line in told)  # of nobody
    assert not list(tmp_path.rglob("owned"))
    gone = [at for at, call in enumerate(calls) if {"rm", "delete"} & set(call)
            and any("/secrets" in word for word in call)]  # fmt: skip
    assert gone, "the bucket keeps it"
    left = [path.read_text("utf-8") for path in tools.glob("tmp.*") if path.is_file()]
    assert not any("hf_it" in text for text in left)


WITH_BUDGET = described(replace(GCP.plan, fallback=None), Limits(budget_usd=300.0))


@pytest.mark.slow
def test_the_budget_stops_machines_and_what_is_no_machine_costs_nothing(tmp_path: Path) -> None:
    """They are lost after an hour of five, and there is no other for the next three."""
    price = GCP.plan.usd_per_hour
    paid_h = 300.0 / price
    full = f"SPOT {START + 60}"
    done, calls = played(tmp_path, "gcloud", WITH_BUDGET, full=full, lost="18000")
    assert done.returncode == 124  # capacity never comes back: the time is over first
    assert "stopped for good" in done.stderr
    spent = float((tmp_path / f".{GCP.name}.state").read_text("utf-8").split()[2])
    assert spent == pytest.approx(min(300.0, 4 * price), abs=price)
    first = starts(calls)[0]
    left = re.search(r"--max-run-duration=(\d+)s", first)
    assert left is not None
    assert int(left[1]) == pytest.approx(min(paid_h * 3600, WITH_BUDGET.longest_s), abs=60)


def test_a_run_at_its_budget_ends_and_stays_ended_if_it_is_started_again(tmp_path: Path) -> None:
    hours = 300.0 / GCP.plan.usd_per_hour
    assert hours * 3600 < WITH_BUDGET.longest_s
    done, calls = played(tmp_path, "gcloud", WITH_BUDGET)
    assert done.returncode == 124
    assert len(starts(calls)) == 1
    ended = int((tmp_path / "tools" / "clock").read_text("utf-8"))
    assert (ended - START) / 3600 == pytest.approx(hours, abs=2)
    assert not (tmp_path / "tools" / "machines").exists()
    again, calls = played(tmp_path, "gcloud", WITH_BUDGET, clock=f"{ended}")
    assert again.returncode == 124
    assert len(starts(calls)) == 1  # the one of before


@pytest.mark.parametrize("target", CASES)
def test_a_machine_that_ends_at_its_cap_ends_the_run(tmp_path: Path, target: str) -> None:
    ends = f"{START + 3600}"
    done, calls = played(tmp_path, target, CASES[target], ends=ends, **{"as": "stopped"})
    assert done.returncode == 124
    assert len(starts(calls)) == 1
    later = {"as": "stopped", "clock": f"{START + 7200}"}
    again, calls = played(tmp_path, target, CASES[target], ends=ends, **later)
    assert again.returncode == 124
    assert len(starts(calls)) == 1


def test_a_region_of_aws_without_a_zone_is_asked_for_in_all_of_its_zones(tmp_path: Path) -> None:
    run = described(replace(answers.ON_DEMAND, sites=(Site("us-east-1", "", 1.2, ""),)))
    done, calls = played(
        tmp_path, "aws-cli", run, subnets="subnet-1\nsubnet-2\nsubnet-3", home="us-east-1",
        full="subnet-1", ends=f"{START + 3600}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [each.partition("--subnet-id ")[2].split()[0] for each in starts(calls)] == [
        "subnet-1", "subnet-2",
    ]  # fmt: skip


def test_machines_boot_from_disks_that_they_accept() -> None:
    """A3 refuses pd-standard; A3 Ultra, A4 and G4 take Hyperdisk alone."""
    script = next(each.text for each in export_files(GCP, "gcloud", ""))
    rule = script[script.index("local disk_type") :].partition('\n  if [ "$market"')[0]
    for kind, disk in (
        ("a3-highgpu-8g", "pd-balanced"), ("a3-megagpu-8g", "pd-balanced"),
        ("a3-ultragpu-8g", "hyperdisk-balanced"), ("a4-highgpu-8g", "hyperdisk-balanced"),
        ("g4-standard-48", "hyperdisk-balanced"), ("a2-highgpu-1g", "pd-balanced"),
        ("g2-standard-4", "pd-balanced"),
    ):  # fmt: skip
        text = f'f() {{ machine_type={kind} left_s=9; {rule}\necho "$disk_type"; }}; f'
        told = subprocess.run(
            ["bash", "-c", text],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert told.split() == [disk], kind
    assert "--boot-disk-type" in script


def parameters(words: list[str]) -> dict[str, Any]:
    """The options of a call of the AWS CLI as the parameters of its operation."""
    made: dict[str, Any] = {}
    for at, word in enumerate(words):
        if not word.startswith("--") or word in ("--region", "--output", "--query"):
            continue
        name = "".join(part.capitalize() for part in word[2:].split("-"))
        values = [each for each in words[at + 1 :]]
        stop = next((i for i, each in enumerate(values) if each.startswith("--")), len(values))
        value = values[0]
        if name == "Count":
            made |= {"MinCount": int(value), "MaxCount": int(value)}
        elif name in ("InstanceIds", "InstanceTypes", "SubnetIds"):
            made[name] = values[:stop]
        else:
            made[name] = json.loads(value) if value[0] in "[{" else value
    return made


def test_calls_to_aws_conform_to_its_service_model(tmp_path: Path):
    _, calls = played(
        tmp_path, "aws-cli", AWS, full="eu-west", home="us-east-2", ends=f"{START + 5 * 3600}"
    )
    model = botocore.session.get_session().get_service_model("ec2")
    seen = set()
    for call in calls:
        if call[1] != "ec2":
            continue
        name = "".join(part.capitalize() for part in call[2].split("-"))
        shape = model.operation_model(name).input_shape
        report = ParamValidator().validate(parameters(call), shape)
        assert not report.has_errors(), report.generate_report()
        seen.add(name)
    assert seen == {"DescribeSubnets", "RunInstances", "DescribeInstances", "TerminateInstances"}
    (asked,) = [parameters(call) for call in calls if "run-instances" in call]
    members = model.operation_model("RunInstances").input_shape.members
    assert asked["InstanceType"] in members["InstanceType"].enum
    assert asked["InstanceMarketOptions"]["MarketType"] == "spot"
    assert asked["InstanceInitiatedShutdownBehavior"] == "terminate"
    subnets = next(parameters(call) for call in calls if "describe-subnets" in call)
    assert {"Name": "availability-zone-id", "Values": ["use2-az3"]} in subnets["Filters"]


def test_the_user_data_of_aws_fits(tmp_path: Path):
    texts = [each.text for each in export_files(AWS, "aws-cli", "run")]
    assert len(texts[1].encode()) < 16 * 1024 - 512  # its limit is 16 KB


def test_other_clouds_and_mixes_go_elsewhere():
    for target, run, said in (
        ("aws-cli", GCP, "rents no machines of GCP; export --to skypilot"),
        ("gcloud", AZURE, "rents no machines of Azure; export --to skypilot"),
        ("azure-cli", GCP, "rents no machines of GCP; export --to skypilot"),
        ("aws-cli", MIXED, "this plan mixes them"),
    ):
        with pytest.raises(UsageError, match=said):
            export_files(run, target, "run")


@pytest.mark.parametrize("target", CASES)
def test_hostile_names_stay_text(tmp_path: Path, target: str):
    run = CASES[target]
    hostile = "x'; touch owned; $(touch owned) `touch owned`"
    sites = tuple(replace(site, region=hostile, zone="") for site in run.plan.sites)
    done, _ = played(
        tmp_path, target, described(replace(run.plan, sites=sites)), ends=f"{START + 3600}"
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("owned"))


def test_azure_machines_delete_what_is_theirs(tmp_path: Path):
    two = replace(AZURE.plan, machines=(replace(AZURE.plan.machines[0], count=2),))
    _, calls = played(tmp_path, "azure-cli", described(two), ends=f"{START + 3600}")
    asked = [call for call in calls if call[1:3] == ["vm", "create"]]
    assert {call[call.index("--name") + 1][-2:] for call in asked} == {"-0", "-1"}
    for call in asked:
        assert call[call.index("--priority") + 1] == "Spot"
        assert call[call.index("--eviction-policy") + 1] == "Delete"
        assert call[call.index("--size") + 1] == "Standard_ND96isr_H100_v5"
        assert call[call.index("--location") + 1] == "eastus2"
        assert {"--nic-delete-option", "--os-disk-delete-option", "--custom-data"} <= set(call)
    listed = next(" ".join(call) for call in calls if call[1:3] == ["vm", "list"])
    assert f"tags.\"recommend-run\"=='{AZURE.name}-{START}-plan'" in listed


def test_several_machines_are_named_for_their_ranks(tmp_path: Path):
    _, calls = played(tmp_path, "gcloud", TWO_MACHINES, ends=f"{START + 3600}")
    (asked,) = starts(calls)
    assert re.search(rf"create {TWO_MACHINES.name}-{START}-plan-0 \S+-plan-1 ", asked)


@pytest.mark.parametrize(("target", "ends"), [
    ("aws-cli", "shutdown -h now"),
    ("gcloud", "gcloud compute instances delete run-plan-0 --zone=run-plan-0 --quiet"),
    ("azure-cli", "az vm delete --yes --ids run-plan-0 --only-show-errors --output none"),
])  # fmt: skip
def test_a_machine_ends_itself_when_its_time_is_over(tmp_path: Path, target: str, ends: str):
    """Up to the clock that is set first; the metadata service answers one name to all."""
    text = export_files(CASES[target], target, "")[1].text
    head, clock, _ = text.partition("end_machine) &")
    (tmp_path / "curl").write_text("#!/bin/sh\necho run-plan-0\n", encoding="utf-8")
    for name in ("shutdown", "gcloud", "az"):
        call = f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\n'
        (tmp_path / name).write_text(call, encoding="utf-8")
    for each in tmp_path.iterdir():
        each.chmod(0o755)
    script = head.replace("/checkpoints", str(tmp_path / "checkpoints")) + clock + "\nwait\n"
    subprocess.run(
        ["bash", "-c", script.replace('PATH="/opt', f'PATH="{tmp_path}:/opt')],
        env={"PATH": os.environ["PATH"], "RUN_ID": "1", "LEFT_S": "0", "NNODES": "1", **NAMED},
        check=True,
    )
    assert (tmp_path / "calls").read_text("utf-8").splitlines() == [ends]


def test_the_fallbacks_machines_get_their_own_micro_batch():
    late = GCP.plan.fallback
    assert late is not None
    four = replace(late.machines[0], count=4)  # 32 GPUs for a batch of 64
    run = described(replace(GCP.plan, fallback=replace(late, machines=(four,))))
    step = replace(run.plan.estimate.step, micro_batch=8, accumulation=1)
    plan = replace(run.plan, estimate=replace(run.plan.estimate, step=step))
    run = replace(run, plan=plan, job=GCP_LONG.job)
    files = {each.name: each.text for each in export_files(run, "gcloud", "")}
    # For crashes only: such saves stop the training, so they are far apart.
    saves = f"CHECKPOINT_INTERVAL_S=7200 CHECKPOINT_INTERVAL_STEPS={int(7200 / 2.1)}"
    changed = f"MICRO_BATCH=2 {saves} USD_PER_HOUR=97"
    assert f'write_boot_file "$count" {changed}\n' in files["launch.sh"]
    assert '[ -n "${MICRO_BATCH:-}" ] || export MICRO_BATCH=8\n' in files["machine.sh"]
    text = export_files(run, "terraform", "")[0].text
    assert f'var.on_demand ? "export {changed}" : ""' in text
    late_job = yaml.safe_load(export_files(run, "skypilot", "")[1].text)["envs"]
    assert (late_job["MICRO_BATCH"], late_job["USD_PER_HOUR"]) == ("2", "97")


SEVERAL = replace(AWS, plan=replace(AWS.plan, machines=(replace(AWS.plan.machines[0], count=4),)))


@pytest.mark.parametrize(
    ("cards", "devices"),
    [
        ("32\t32", [(0, 0), (0, 1), *((card, 0) for card in range(1, 32))]),  # p5.48xlarge
        ("16\t17", [(0, 0), *((card, 0) for card in range(1, 17))]),  # p6-b300.48xlarge
        ("1\t1", [(0, 0), (0, 1)]),  # g6e.12xlarge
    ],
)
def test_several_machines_of_aws_have_efa_on_each_card_that_has_it(
    tmp_path: Path, cards: str, devices: list[tuple[int, int]]
) -> None:
    done, calls = played(
        tmp_path, "aws-cli", SEVERAL, home="us-east-2", cards=cards, ends=f"{START + 3600}"
    )
    assert done.returncode == 0, done.stderr
    model = botocore.session.get_session().get_service_model("ec2")
    for call in (call for call in calls if call[1] == "ec2"):
        name = "".join(part.capitalize() for part in call[2].split("-"))
        shape = model.operation_model(name).input_shape
        report = ParamValidator().validate(parameters(call), shape)
        assert not report.has_errors(), report.generate_report()
    (asked,) = [parameters(call) for call in calls if "run-instances" in call]
    interfaces = asked["NetworkInterfaces"]
    assert [(each["NetworkCardIndex"], each["DeviceIndex"]) for each in interfaces] == devices
    # Only one has an address: machines with several addresses get no public one.
    assert [each["InterfaceType"] for each in interfaces] == [
        "interface", *["efa-only"] * (len(devices) - 1),
    ]  # fmt: skip
    assert {tuple(each["Groups"]) for each in interfaces} == {("sg-0a1b2c3d",)}
    assert "SubnetId" not in asked
    assert asked["Placement"] == {"GroupName": SEVERAL.name}
    ways = [call[2] for call in calls if "--ip-permissions" in call]
    assert ways == ["authorize-security-group-ingress", "authorize-security-group-egress"]


@pytest.mark.parametrize(
    ("code", "begins"), [("InvalidPermission.Duplicate", True), ("UnauthorizedOperation", False)]
)
def test_a_security_group_that_is_there_gets_the_rules_that_it_lacks(
    tmp_path: Path, code: str, begins: bool
) -> None:
    refusal = f"An error occurred ({code}) when calling the operation"
    files = {"cards": "1\t1", "group": "sg-0a1b2c3d", "refusal": refusal}
    done, calls = played(
        tmp_path, "aws-cli", SEVERAL, home="us-east-2", ends=f"{START + 3600}", **files
    )
    words = {call[2] for call in calls if call[1] == "ec2"}
    assert "create-security-group" not in words
    assert "authorize-security-group-ingress" in words
    assert ("authorize-security-group-egress" in words) == begins
    assert ("run-instances" in words) == begins
    assert (refusal in done.stderr) != begins


def test_what_the_network_of_several_machines_takes_of_rights_is_named(tmp_path: Path) -> None:
    """All calls on the way to the machines, but for those that one machine takes as well."""
    _, calls = played(
        tmp_path, "aws-cli", SEVERAL, home="us-east-2", cards="1\t1", ends=f"{START + 3600}"
    )
    usual = {"describe-subnets", "run-instances", "describe-instances", "terminate-instances"}
    needed = {call[2] for call in calls if call[1] == "ec2"} - usual
    text = header_of(SEVERAL, "aws-cli")
    assert needed
    for words in needed:
        assert "".join(word.capitalize() for word in words.split("-")) in text
    assert "SecurityGroup" not in header_of(AWS, "aws-cli")


def test_a_type_without_efa_and_one_machine_have_one_card(tmp_path: Path) -> None:
    for name, run in (("several", SEVERAL), ("one", AWS)):
        folder = tmp_path / name
        folder.mkdir()
        _, calls = played(folder, "aws-cli", run, home="us-east-2", ends=f"{START + 3600}")
        (asked,) = [parameters(call) for call in calls if "run-instances" in call]
        assert asked["SubnetId"] == "subnet-0a1b2c3d"
        assert "NetworkInterfaces" not in asked


def test_efa_and_its_rights_are_named_for_the_types_that_the_snapshot_has_on_it() -> None:
    """A reader knows the type of the plan; "where the type has EFA" left it to be looked up."""
    types = [t for (p, _), t in snapshot().instance_types.items() if p == "aws" and t.gpu]
    assert {t.network_kind for t in types} == {"rdma", "tcp"}
    for each in types:
        first = replace(AWS.plan.machines[0], instance_type=each.instance_type, count=2)
        run = replace(AWS, plan=replace(AWS.plan, machines=(first,), fallback=None))
        text = header_of(run, "aws-cli")
        has_efa = each.network_kind == "rdma"
        assert (f"On {each.instance_type}, launch.sh requests EFA" in text) == has_efa
        assert ("CreateSecurityGroup" in text) == has_efa
        assert "the right to call ec2:DescribeInstanceTypes" in text


def header_of(run: RunDescription, target: str) -> str:
    """The words at the top of the first file."""
    return " ".join(export_files(run, target, "run")[0].text.replace("\n#", "").split())


@pytest.mark.parametrize(
    ("run", "instance_type", "said"),
    [
        (GCP, "a3-highgpu-8g", "four more networks with a gVNIC interface in each"),
        (GCP, "a3-megagpu-8g", "eight more networks with a gVNIC interface in each"),
        (GCP, "a4-highgpu-8g", "a network with the zone's RDMA network profile"),
        (GCP, "a2-highgpu-8g", ""),
        (AZURE, "Standard_ND96isr_H100_v5", "InfiniBand, which connects VMs of one scale set"),
        (AZURE, "Standard_NC96ads_A100_v4", ""),
    ],
)
def test_what_several_machines_lack_of_their_network_is_reported(
    run: RunDescription, instance_type: str, said: str
) -> None:
    first = replace(run.plan.machines[0], instance_type=instance_type, count=4)
    several = replace(run, plan=replace(run.plan, machines=(first,), fallback=None))
    for target in ("gcloud" if run is GCP else "azure-cli", "terraform"):
        text = header_of(several, target)
        assert ("steps take longer than estimated" in text) == bool(said)
        assert said in text
        alone = replace(several, plan=replace(several.plan, machines=(replace(first, count=1),)))
        assert "steps take longer" not in header_of(alone, target)


FOUR_LATER = {"aws": "p5.48xlarge", "gcp": "a3-highgpu-8g", "azure": "Standard_ND96isr_H100_v5"}


@pytest.mark.parametrize(
    ("run", "target", "said"),
    [
        (AWS, "aws-cli", "On p5.48xlarge, launch.sh requests EFA on every network card, and"),
        (AWS, "terraform", "On p5.48xlarge, main.tf requests EFA on every network card, and"),
        (GCP, "gcloud", "four more networks with a gVNIC interface in each"),
        (AZURE, "azure-cli", "InfiniBand, which connects VMs of one scale set"),
        (GCP, "skypilot", "Fast network cards of several machines"),
    ],
)
def test_what_only_the_fallbacks_machines_need_of_their_network_is_reported(
    run: RunDescription, target: str, said: str
) -> None:
    first, late = run.plan.machines[0], GCP.plan.fallback
    assert late is not None
    four = replace(first, count=4, market="on_demand", instance_type=FOUR_LATER[first.provider])
    plan = replace(run.plan, machines=(replace(first, count=1),))
    for count in (4, 1):
        fallback = replace(late, machines=(replace(four, count=count),), sites=())
        one = replace(run, plan=replace(plan, fallback=fallback))
        assert (said in header_of(one, target)) == one.trains_on_several == (count > 1)


CODE = ("train.py", "data/list.txt", "requirements.txt")
KEPT_BACK = (".env", ".venv/lib/torch.py", "conf/.secret", ".git/config", "a/__pycache__/b.pyc")


def _uploaded_by_azure(tmp_path: Path, lines: list[str]) -> set[str]:
    """What the script's own copy of the folder holds."""
    code, copy = tmp_path / "code", tmp_path / "copy"
    copy.mkdir()
    for name in (*CODE, *KEPT_BACK):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("x", "utf-8")
    start = next(at for at, line in enumerate(lines) if "find . -type f" in line)
    script = "\n".join(lines[start : start + 2])
    subprocess.run(
        ["bash", "-c", script], check=True, env={**os.environ, "code": str(code), "copy": str(copy)}
    )
    return {str(p.relative_to(copy)) for p in copy.rglob("*") if p.is_file()}


def test_secrets_and_environments_stay_at_home(tmp_path: Path):
    """A .venv is gigabytes, and a .env holds keys; Terraform's files left them out before."""
    scripts = {
        target: export_files(run, target, "run")[0].text
        for target, run in (("aws-cli", AWS), ("gcloud", GCP), ("azure-cli", AZURE))
    }
    globs = re.findall(r"--exclude '([^']+)'", scripts["aws-cli"])
    (rule,) = re.findall(r"--exclude='([^']+)'", scripts["gcloud"])
    azure = _uploaded_by_azure(tmp_path, scripts["azure-cli"].split("\n"))
    assert azure == set(CODE)
    for name in (*CODE, *KEPT_BACK):
        # The AWS CLI matches whole paths below the folder, and * also matches a slash.
        by_aws = any(fnmatch.fnmatchcase(f"/code/{name}", f"/code/{glob}") for glob in globs)
        assert by_aws == (name in KEPT_BACK), name
        assert (re.match(rule, name) is not None) == (name in KEPT_BACK), name
