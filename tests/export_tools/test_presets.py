"""Every plan that leads an answer for a preset, exported to every target that can run it.

Each file is read by its own tool: SkyPilot's and dstack's loaders, Terraform, ShellCheck. Slow: one
answer per preset, kept as a document and read back as `recommend export` does.
"""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recommender.api.calls import recommend
from recommender.export.answer_file import answer_of
from recommender.export.start import TARGETS
from recommender.export.targets import export_files, target_of
from recommender.job.preset_files import presets
from tests.export_tools import sky_catalog
from tests.export_tools.test_loaders import HERE, tool
from tests.shipped import snapshot

pytestmark = pytest.mark.slow
NOW = datetime(2026, 11, 20, tzinfo=UTC)
DEADLINES = ("24h", "10d", "60d")  # the first that some plan meets


def documents() -> Iterator[tuple[str, dict[str, object]]]:
    """One answer for each preset, as JSON."""
    for name in presets():
        for deadline in DEADLINES:
            answer = recommend(name, deadline=deadline, catalog=snapshot(), now=NOW)
            if answer.status == "ok":
                yield name, json.loads(json.dumps(answer.to_dict()))
                break


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """All files by target, each under a name of its own."""
    folder = tmp_path_factory.mktemp("presets")
    found: dict[str, list[Path]] = {target: [] for target in TARGETS}
    for name, document in documents():
        answer = answer_of(document)
        for named in answer.plans:
            if not named.roles:
                continue
            run = answer.described(named)
            for target in (name for name in TARGETS if not target_of(name).why_not(run)):
                for each in export_files(run, target, "run"):
                    path = folder / f"{name}-{named.rank}-{target}-{each.name}"
                    path.write_text(each.text, encoding="utf-8")
                    found[target].append(path)
    return found


def test_every_target_gets_plans_of_many_presets(files: dict[str, list[Path]]) -> None:
    kinds = {target: len({path.name.split("-" + target)[0] for path in files[target]})
             for target in TARGETS}  # fmt: skip
    print(kinds)
    assert kinds["torchrun"] >= len(presets())
    assert all(kinds[target] > 0 for target in TARGETS)


def test_skypilot_loads_every_job(files: dict[str, list[Path]], tmp_path: Path) -> None:
    python = tool("RECOMMEND_SKYPILOT")
    sky_catalog.write(tmp_path)
    jobs = [path for path in files["skypilot"] if path.suffix == ".yaml"]
    reported = subprocess.run(
        [python, str(HERE / "load_skypilot.py"), *map(str, jobs)],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
    )  # fmt: skip
    assert reported.returncode == 0, reported.stderr[-2000:]
    assert len(json.loads(reported.stdout.splitlines()[-1])) == len(jobs)


def test_dstack_loads_every_task(files: dict[str, list[Path]]) -> None:
    python = tool("RECOMMEND_DSTACK")
    load = (
        "import sys, yaml\n"
        "from dstack._internal.core.models.configurations import parse_apply_configuration\n"
        "for path in sys.argv[1:]:\n"
        "    parse_apply_configuration(yaml.safe_load(open(path)))\n"
    )
    reported = subprocess.run(
        [python, "-c", load, *map(str, files["dstack"])], capture_output=True, text=True
    )
    assert reported.returncode == 0, reported.stderr[-2000:]


def test_terraform_reads_every_configuration(
    files: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tool("RECOMMEND_TERRAFORM")
    (tmp_path / "settings.tfrc").touch()
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(tmp_path / "settings.tfrc"))
    mains = [str(path) for path in files["terraform"] if path.suffix == ".tf"]
    reported = subprocess.run([program, "fmt", "-check", "-diff", *mains], capture_output=True)
    assert reported.returncode == 0, reported.stdout


def test_shellcheck_finds_nothing_in_any_script(files: dict[str, list[Path]]) -> None:
    program = tool("RECOMMEND_SHELLCHECK")
    scripts = [str(p) for each in files.values() for p in each if p.suffix in (".sh", ".sbatch")]
    reported = subprocess.run([program, *scripts], capture_output=True, text=True)
    assert reported.returncode == 0, reported.stdout[:3000]
