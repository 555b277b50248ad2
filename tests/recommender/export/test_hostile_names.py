"""Whatever stands in an answer's names, nothing of it is run, and it is read back as it was."""

import re
import subprocess
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from recommender.errors import UsageError
from recommender.export.description import RunDescription, safe_name
from recommender.export.start import TARGETS
from recommender.export.targets import export_files
from recommender.export.train_command import variables
from recommender.text import has_control
from tests.recommender.export.replayed import NAMED
from tests.recommender.export.replayed_job import STANDS_IN, commands_of
from tests.recommender.export.runs import AWS, AZURE, GCP

TEXTS = (
    "a$(touch ran)`touch ran`",
    "a';touch ran;'\" ; touch ran #",
    "a\ntouch ran\n- x: {y}\u2028${file(ran)}%{if true}\x1b[0m\r",
    'EOF\n"; touch ran; "\n',
)
# They choose code, and have no other values; or are compared with what the cloud says.
CHOSEN = ("provider", "market", "path", "software", "stack", "kind")
RUNS = {"aws-cli": AWS, "azure-cli": AZURE, "torchrun": AZURE, "slurm": AZURE}


def hostile(value: Any, text: str) -> Any:
    """A record with that text in all of its free texts."""
    if isinstance(value, tuple):
        return tuple(hostile(each, text) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed: dict[str, Any] = {}
    for each in fields(value):
        held = getattr(value, each.name)
        if each.type in (str, "str") and each.name not in CHOSEN:
            changed[each.name] = f"{held}{text}"
        elif is_dataclass(held) or isinstance(held, tuple):
            changed[each.name] = hostile(held, text)
    return replace(value, **changed)


def attacked(target: str, text: str) -> RunDescription:
    """A run with hostile names, whose fallback has another layout with such a name."""
    run = RUNS.get(target, GCP)
    if run.plan.fallback is not None:
        step = replace(run.plan.estimate.step, sharding="ddp", micro_batch=2)
        late = replace(run.plan.fallback, step=step)
        run = replace(run, plan=replace(run.plan, fallback=late))
    made: RunDescription = hostile(run, text)
    return replace(made, name=safe_name(made.job.name))


def run_by(folder: Path, script: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a script for which every tool is made up; all of it is over at once."""
    names = ("aws", "gcloud", "az", "sky", "azcopy", "xargs", "nvidia-smi", "scontrol", "curl")
    tools = "".join(f"{name}() {{ echo done; }}\n" for name in names)
    tools += "sleep() { exit 0; }\npython3() { echo SUCCEEDED; }\n"
    (folder / "tools").write_text(tools, encoding="utf-8")
    return subprocess.run(
        ["bash", "-c", script, f"{folder}/launch.sh"], cwd=folder, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "BASH_ENV": str(folder / "tools"), "HOME": str(folder),
             **NAMED, "AWS_ENDPOINT_URL": "there", **given},
    )  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_of_a_name_is_run(tmp_path: Path, target: str, text: str) -> None:
    run = attacked(target, text)
    try:
        files = export_files(run, target, "run")
    except UsageError:  # no machine type of the cloud
        return
    for each in files:
        assert not any(has_control(c) for c in each.text if c != "\n")
        if each.name.endswith((".yaml", ".yml")):
            made = yaml.safe_load(each.text)
            if each.name == "train.yaml":
                own = {v.name: v.value for v in variables(run, made["envs"]["CHECKPOINT_DIR"])}
                assert own.items() <= made["envs"].items()
        if each.name.endswith((".sh", ".sbatch")):
            checked = subprocess.run(
                ["bash", "-n"], input=each.text, capture_output=True, text=True
            )
            assert not checked.stderr
        if each.name == "launch.sh":
            assert run_by(tmp_path, each.text).returncode == 0
    if target not in ("aws-cli", "gcloud", "azure-cli"):
        script = commands_of(run, target).replace("/checkpoints", str(tmp_path / "disk"))
        run_by(tmp_path, STANDS_IN + script.replace("/tmp/", f"{tmp_path}/"), HERE=str(tmp_path))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("target", ["gcloud", "terraform"])
def test_what_changes_on_the_fallback_arrives_as_it_was(
    tmp_path: Path, target: str, text: str
) -> None:
    """Through launch.sh into the lines before machine.sh, and past the plan's own value there."""
    run = attacked(target, text)
    machines = tuple(replace(m, instance_type="a3-highgpu-8g") for m in run.plan.machines)
    assert run.plan.fallback is not None
    late = replace(run.plan.fallback, machines=machines)
    run = replace(run, plan=replace(run.plan, machines=machines, fallback=late))
    texts = {each.name: each.text for each in export_files(run, target, "run")}
    asks = "boot_file=/dev/stdout here=. began=1 run_tag=t CHECKPOINT_BUCKET=b\nleft_s() { :; }\n"
    if target == "gcloud":
        body = re.search(r"^write_boot_file\(\) {\n.*?^}", texts["launch.sh"], re.M | re.S)
        calls = re.findall(r"^  (write_boot_file .*)", texts["launch.sh"], re.MULTILINE)
        assert body is not None
        (tmp_path / "machine.sh").write_text("\n", encoding="utf-8")
        head = run_by(tmp_path, f"{asks}count=1\n{body[0]}\n{calls[-1]}").stdout
    else:
        found = re.search(r'var.on_demand \? "(export .*)" : ""', texts["main.tf"])
        assert found is not None
        plain = found[1].replace("$${", "${").replace("%%{", "%{")
        head = re.sub(r'\\(["\\])', r"\1", plain)
    lines = texts["machine.sh"].splitlines()
    own = "\n".join(line for line in lines if "SHARDING" in line and not line.startswith("#"))
    told = run_by(tmp_path, f'{head}\n{own}\nprintf %s "$SHARDING"').stdout
    assert run.on_fallback is not None
    (wanted,) = (v.value for v in variables(run.on_fallback, "") if v.name == "SHARDING")
    assert told == wanted or has_control(wanted)
    assert not (tmp_path / "ran").exists()
