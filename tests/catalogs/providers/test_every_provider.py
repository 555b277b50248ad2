"""Every provider: its recorded answer, faults that the guards hold, a plan on it, its launcher.

All of it runs with `pytest -m slow` on this file, and `tests/research/provider_faults` counts it; a
part runs by default.
"""

import subprocess
from datetime import date
from pathlib import Path

import jsonschema
import pytest
import yaml

from recommender.api.calls import recommend
from recommender.catalogs.provider_info import ANY_REGION
from recommender.catalogs.registry import CLOUDS
from recommender.export.description import RunDescription, description_of
from recommender.export.start import usual_target
from recommender.export.targets import export_files
from recommender.job.jobfile import find_job
from recommender.plan.limits import Choice, Limits
from tests.catalogs.providers import every
from tests.recommender.optimize.samples import sampled, thinned
from tests.recommender.planning import HOUR, NOW
from tests.shipped import every_cloud

JOB, LIMITS = "resnet50-imagenet", Limits(deadline_s=200 * HOUR, max_machines=1)
# Of `resources` in a task of SkyPilot 0.14.1 (sky.utils.schemas, read 2026-11-29), what a line of
# `ordered` may hold here; its clouds that this program writes, by the names of `sky check`.
SKY_CLOUDS = ("aws", "gcp", "azure", "lambda", "nebius", "runpod", "verda", "oci", "do", "seeweb",
              "vast")  # fmt: skip
SKY_LINE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["infra", "use_spot"],
    "properties": {
        "infra": {"type": "string", "pattern": rf"^({'|'.join(SKY_CLOUDS)})(/[\w-]+){{0,2}}$"},
        "instance_type": {"type": "string", "minLength": 1},
        "accelerators": {"type": "string"},
        "use_spot": {"type": "boolean"},
        "network_tier": {"enum": ["best", "standard"]},
    },
}


@pytest.mark.parametrize("name", thinned(every.NAMES, 4))
def test_a_recorded_answer_is_believed(name: str, tmp_path: Path) -> None:
    found = every.night(name, every.Fault("none"), tmp_path / "night")
    (report,) = found.report.providers
    assert (report.result, report.reasons, found.worst) == ("published", (), 0.0)


FAULTS = [(name, number) for name in every.NAMES for number in range(50)]


@pytest.mark.parametrize(
    "named", sampled(FAULTS, {(name, n) for n, name in enumerate(every.NAMES[::3])})
)
def test_fifty_faults_of_every_provider_are_held_and_told(
    named: tuple[str, int], tmp_path: Path
) -> None:
    name, number = named
    fault = every.faults(name)[number]
    found = every.night(name, fault, tmp_path / "night")
    assert found.held, (fault.name, found.worst)
    assert found.told, fault.name


@pytest.mark.parametrize("name", sampled(CLOUDS, {"crusoe", "vast"}))
def test_a_plan_uses_every_provider_and_its_launcher_accepts_the_export(
    name: str, tmp_path: Path
) -> None:
    answer = recommend(JOB, LIMITS, Choice(providers=(name,)), catalog=every_cloud(), now=NOW)
    plan = answer.plans[0]
    assert {m.provider for m in plan.machines} == {name}
    run = description_of(plan, "plan 1", find_job(JOB), LIMITS, tool="recommend", catalog="c")
    target = usual_target(plan)
    assert (target == "skypilot") == bool(CLOUDS[name].sky_name)
    assert _refused(run, target, tmp_path) == ""


def _refused(run: RunDescription, target: str, folder: Path) -> str:
    """What the launcher of a target says of its files; nothing where it takes them."""
    files = {file.name: file.text for file in export_files(run, target, "run")}
    if target == "skypilot":
        for line in yaml.safe_load(files["train.yaml"])["resources"]["ordered"]:
            jsonschema.validate(line, SKY_LINE)
            assert ANY_REGION not in line["infra"]
        return ""
    script = next(text for name, text in files.items() if name.endswith(".sh"))
    (folder / "run.sh").write_text(script)
    checked = subprocess.run(["bash", "-n", str(folder / "run.sh")], capture_output=True, text=True)
    return checked.stderr


def test_every_provider_has_fifty_faults_and_no_two_alike() -> None:
    for name in every.NAMES:
        names = [fault.name for fault in every.faults(name)]
        assert len(names) == len(set(names)) >= 50
        assert names == [fault.name for fault in every.faults(name)]  # the same in every run
    assert date.fromisoformat("2026-11-21") == every.NOW.date()
