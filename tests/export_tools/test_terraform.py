"""Terraform itself reads the exported configurations; python-hcl2 tells their arguments.

RECOMMEND_TERRAFORM names Terraform or OpenTofu, RECOMMEND_HCL2 a Python that has python-hcl2, and
RECOMMEND_PULUMI one that has pulumi-aws, pulumi-gcp and pulumi-azure, whose classes are made from
the schemas of the same providers; without them these tests are skipped.
"""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recommender.export.targets import export_files
from tests.export_tools.test_loaders import tool
from tests.recommender.export.runs import AWS, AZURE, GCP, TWO_MACHINES

HERE = Path(__file__).parent
RUNS = {"gcp": GCP, "aws": AWS, "azure": AZURE, "two": TWO_MACHINES}


def written(folder: Path, name: str) -> Path:
    for each in export_files(RUNS[name], "terraform", ""):
        (folder / each.name).write_text(each.text, encoding="utf-8")
    return folder / "main.tf"


def terraform(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Terraform in a folder, without settings of the user's own."""
    settings = folder / "settings.tfrc"
    settings.touch()
    return subprocess.run(
        [tool("RECOMMEND_TERRAFORM"), *words, "-no-color"],
        cwd=folder,
        env={**os.environ, "TF_CLI_CONFIG_FILE": str(settings)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", RUNS)
def test_terraform_parses_it_and_would_not_write_it_otherwise(tmp_path: Path, name: str):
    written(tmp_path, name)
    reported = terraform(tmp_path, "fmt", "-check", "-diff")
    assert reported.returncode == 0, reported.stdout + reported.stderr


def decided(folder: Path, *words: str) -> dict[str, Any]:
    """What the plan decides, evaluated by Terraform: the part that needs no provider."""
    found = terraform(folder, "apply", "-auto-approve", "-var", "checkpoint_bucket=ours", *words)
    assert found.returncode == 0, found.stdout + found.stderr
    made: dict[str, Any] = json.loads(terraform(folder, "output", "-json").stdout)["all"]["value"]
    return made


def test_terraform_evaluates_what_the_plan_decides(tmp_path: Path):
    path = written(tmp_path, "gcp")
    own = path.read_text("utf-8").partition("\nterraform {")[0]
    names = ("place", "machine_type", "nodes", "spot", "code", "head")
    reported = ", ".join(f"{name} = local.{name}" for name in names)
    path.write_text(f'{own}\noutput "all" {{ value = {{ {reported} }} }}\n', encoding="utf-8")
    for name in ("train.py", ".git/config", "data/a.csv", "terraform.tfstate.backup"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    assert terraform(tmp_path, "init").returncode == 0
    first = decided(tmp_path)
    assert first["place"] == {"region": "europe-north1", "zone": "europe-north1-a"}
    assert (first["machine_type"], first["nodes"], first["spot"]) == ("a3-highgpu-8g", 1, True)
    assert sorted(first["code"]) == ["data/a.csv", "machine.sh", "settings.tfrc", "train.py"]
    late = decided(tmp_path, "-var", "on_demand=true")
    assert (late["nodes"], late["spot"]) == (1, False)
    # The first start stays the first; the script is told what the fallback changes.
    assert late["head"].startswith(first["head"].rstrip())
    assert late["head"].endswith(" USD_PER_HOUR=97")
    third = decided(tmp_path, "-var", "place=2")
    assert third["place"]["region"] == "asia-south2"
    refused = terraform(tmp_path, "plan", "-var", "checkpoint_bucket=ours", "-var", "place=3")
    assert "The plan has places 0 to 2." in refused.stderr
    script = f'date() {{ if [ "$1" = +%s ]; then echo 1000; else echo 400; fi; }}\n{first["head"]}'
    ran = subprocess.run(
        ["bash", "-euc", f"{script}\necho $RUN_ID $LEFT_S $NNODES $CHECKPOINT_BUCKET"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.split() == ["400", f"{400 + 86400 - 1000}", "1", "ours"]


@pytest.mark.parametrize(
    ("count", "cards", "most", "devices"),
    [
        (4, 32, 32, [(0, 0), (0, 1), *((card, 0) for card in range(1, 32))]),  # p5.48xlarge
        (4, 17, 16, [(0, 0), *((card, 0) for card in range(1, 17))]),  # p6-b300.48xlarge
        (4, 1, 1, [(0, 0), (0, 1)]),  # g6e.12xlarge
        (4, 1, 0, None),  # a type without EFA
        (1, 32, 32, None),
    ],
)
def test_terraform_gives_several_machines_of_aws_efa_on_each_card_that_has_it(
    tmp_path: Path, count: int, cards: int, most: int, devices: list[tuple[int, int]] | None
):
    """The values that need no provider, for a type whose figures are given here."""
    machines = replace(AWS.plan.machines[0], count=count)
    run = replace(AWS, plan=replace(AWS.plan, machines=(machines,)))
    text = next(each.text for each in export_files(run, "terraform", ""))
    network = text[text.index("\nlocals {\n  efa ") :].partition("\n}\n")[0] + "\n}\n"
    figures = {
        "efa_supported": str(most > 0).lower(),
        "maximum_network_cards": cards,
        "efa_maximum_interfaces": most,
    }
    for name, figure in figures.items():
        network = network.replace(f"data.aws_ec2_instance_type.train.{name}", str(figure))
    own = text.partition("\nterraform {")[0]
    reported = 'output "all" { value = { efa = local.efa, interfaces = local.interfaces } }'
    (tmp_path / "main.tf").write_text(f"{own}\n{network}\n{reported}\n", encoding="utf-8")
    (tmp_path / "machine.sh").touch()
    assert terraform(tmp_path, "init").returncode == 0
    found = decided(tmp_path)
    assert found["efa"] == (devices is not None)
    if devices is not None:
        assert [(each["card"], each["device"]) for each in found["interfaces"]] == devices
        assert [each["type"] for each in found["interfaces"]] == [
            "interface", *["efa-only"] * (len(devices) - 1),
        ]  # fmt: skip


def parsed(path: Path) -> dict[str, Any]:
    """The configuration as python-hcl2 reads it."""
    load = "import sys, json, hcl2; print(json.dumps(hcl2.load(open(sys.argv[1]))))"
    reported = subprocess.run(
        [tool("RECOMMEND_HCL2"), "-c", load, str(path)], capture_output=True, text=True
    )
    assert reported.returncode == 0, reported.stderr[-2000:]
    made: dict[str, Any] = json.loads(reported.stdout)
    return made


@pytest.mark.parametrize("name", RUNS)
def test_resources_have_the_arguments_of_their_providers_and_those_they_require(
    tmp_path: Path, name: str
):
    python = tool("RECOMMEND_PULUMI")
    (tmp_path / "parsed.json").write_text(json.dumps(parsed(written(tmp_path, name))))
    reported = subprocess.run(
        [python, str(HERE / "provider_arguments.py"), str(tmp_path / "parsed.json")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert reported.returncode == 0, reported.stdout + reported.stderr[-2000:]
    assert len(reported.stdout.splitlines()) >= 2  # resources that were looked up
