"""Configurations of Terraform say what the plan decides; `tests/export_tools` runs Terraform."""

import re
from dataclasses import replace

import pytest

from recommender.errors import UsageError
from recommender.export.description import RunDescription
from recommender.export.targets import export_files
from recommender.export.terraform import quoted
from tests.recommender import answers
from tests.recommender.export.runs import AWS, AZURE, GCP, MIXED, ON_DEMAND, described

CASES = {"aws": AWS, "gcp": GCP, "azure": AZURE}


def main(run: RunDescription) -> str:
    return export_files(run, "terraform", "run")[0].text


@pytest.mark.parametrize("name", CASES)
def test_locations_are_listed_in_the_order_of_the_plan(name: str):
    run = CASES[name]
    listed = main(run).partition("places = [")[2].partition("]")[0]
    assert re.findall(r'region = "([^"]*)"', listed) == [site.region for site in run.plan.sites]
    assert f"var.place <= {len(run.plan.sites) - 1}" in main(run)


def test_the_fallback_is_a_variable_that_the_user_has_to_set():
    text = " ".join(main(GCP).replace("\n#", "").split())
    assert "You make the switch: terraform apply -var on_demand=true." in text
    assert "Left to Terraform: 61 USD on average, 9 h, limits met with 91 % chance" in text
    assert 'machine_type = var.on_demand ? "a3-highgpu-8g" : "a3-highgpu-8g"' in text
    assert "on_demand" not in main(ON_DEMAND)
    assert "spot = false" in " ".join(main(ON_DEMAND).split())


def test_the_cap_is_that_of_the_plan():
    assert "longest_run_s = 86400 #" in main(GCP)


def test_what_a_name_holds_is_never_evaluated():
    assert quoted('a"${file("/etc/passwd")}%{if true}') == (
        '"a\\"$${file(\\"/etc/passwd\\")}%%{if true}"'
    )
    hostile = replace(answers.AWS_H100.machines[0], instance_type="${var.checkpoint_bucket}")
    assert '"$${var.checkpoint_bucket}"' in main(
        described(replace(answers.AWS_H100, machines=(hostile,)))
    )


def test_mixes_own_machines_and_confidential_ones_go_elsewhere():
    own = replace(answers.ON_DEMAND.machines[0], provider="own")
    confidential = replace(answers.AZURE.machines[0], confidential=True)
    for run, said in (
        (MIXED, "this plan mixes them"),
        (described(replace(answers.ON_DEMAND, machines=(own,))), "not for own"),
        (described(replace(answers.AZURE, machines=(confidential,))), "no confidential VMs"),
    ):
        with pytest.raises(UsageError, match=said):
            export_files(run, "terraform", "run")
