"""The files in deploy/ are well-formed, hold no secret, and call commands that exist."""

import configparser
import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from recommender.cli.app import app
from recommender.cli.strict import check_words, options_of

DEPLOY = Path(__file__).parents[1] / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
CRON = re.compile(r"(\S+ \S+ \S+ \S+ \S+) (\w+) (.*)")
CRON_CALL = re.compile(r"said=\$\(timeout 25m (recommend .*) 2>&1\);")
DAILY = "17 2 * * *"


def unit(name: str) -> configparser.ConfigParser:
    """A systemd unit; its keys keep their case."""
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "systemd" / name).read_text("utf-8"))
    return parser


def cronjob() -> Any:
    return yaml.safe_load((DEPLOY / "kubernetes" / "cronjob.yaml").read_text("utf-8"))


def workflow() -> Any:
    # YAML 1.1 reads the key `on` as a truth value.
    return yaml.safe_load((DEPLOY / "github" / "refresh-catalog.yml").read_text("utf-8"))


def cron_line() -> re.Match[str]:
    lines = (DEPLOY / "cron" / "recommend-refresh").read_text("utf-8").splitlines()
    (line,) = [line for line in lines if line and not line.startswith("#") and "=" not in
               line.partition(" ")[0]]  # fmt: skip
    found = CRON.fullmatch(line)
    assert found
    return found


def pod() -> Any:
    return cronjob()["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = workflow()["jobs"]["refresh"]["steps"]
    return found


def calls() -> Iterator[tuple[str, list[str]]]:
    """Every call of the tool, with the file it stands in."""
    command = CRON_CALL.match(cron_line()[3])
    assert command
    yield "cron", shlex.split(command[1])
    yield "systemd", shlex.split(unit("recommend-refresh.service")["Service"]["ExecStart"])
    yield "kubernetes", pod()["containers"][0]["command"]
    for step in steps():
        for line in step.get("run", "").splitlines():
            words = shlex.split(line.partition(" > ")[0])
            if words[:1] == ["recommend"]:
                yield "github", words


def problems_of(words: Sequence[str]) -> list[str]:
    """What the command line says of a call, without running it."""
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "get_command"):
        found = command.get_command(None, rest[0])
        assert found, f"no command {rest[0]}"
        command = found
        del rest[0]
    _, problems = check_words(rest, options_of(command.params))
    if not problems:
        command.make_context("recommend", list(rest))
    return problems


@pytest.mark.parametrize(("where", "words"), list(calls()))
def test_a_call_is_one_that_the_command_line_takes(where: str, words: list[str]) -> None:
    assert words[0].rpartition("/")[2] == "recommend"
    assert problems_of(words[1:]) == []


def test_every_way_refreshes() -> None:
    refreshing = {where for where, words in calls() if words[1:3] == ["catalog", "refresh"]}
    assert refreshing == {"cron", "systemd", "kubernetes", "github"}


def test_a_misspelt_flag_would_be_found() -> None:
    assert problems_of(["catalog", "refresh", "--stroe", "x"])


def test_cron_runs_daily_as_its_own_user() -> None:
    assert cron_line()[1] == DAILY
    assert cron_line()[2] == "recommend"


def test_systemd_waits_for_missed_nights_and_spreads_the_load() -> None:
    timer = unit("recommend-refresh.timer")
    assert timer["Timer"]["OnCalendar"] == "*-*-* 02:17:00 UTC"
    assert timer["Timer"]["Persistent"] == "true"
    assert timer["Timer"]["RandomizedDelaySec"] == "30min"
    assert timer["Install"]["WantedBy"] == "timers.target"
    service = unit("recommend-refresh.service")["Service"]
    assert service["Type"] == "oneshot"
    assert service["SuccessExitStatus"] == "5"
    assert service["StateDirectory"] == "recommend"
    assert "/var/lib/recommend/" in service["ExecStart"]


def test_kubernetes_never_overlaps_and_runs_without_rights() -> None:
    job = cronjob()
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["schedule"] == DAILY
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] <= 1800
    (container,) = pod()["containers"]
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["restartPolicy"] == "Never"  # what a failure policy requires
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod()["volumes"]}
    assert "/catalog" in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_github_workflow_pins_its_actions_and_has_the_least_permissions() -> None:
    found = workflow()
    assert found[True]["schedule"] == [{"cron": DAILY}]
    assert found["permissions"] == {}
    assert found["jobs"]["refresh"]["permissions"] == {"contents": "read", "id-token": "write"}


def test_github_keeps_the_versions_of_a_night_that_renewed_some_providers_only() -> None:
    """`actions/cache` saves after runs that succeed; a partial night is told by one that fails."""
    used = [step.get("uses", step.get("run", "")).partition("@")[0] for step in steps()]
    assert "actions/cache" not in used
    assert used.index("actions/cache/restore") < used.index("actions/cache/save")
    before_saving = steps()[: used.index("actions/cache/save")]
    assert "exit 5" not in [step.get("run") for step in before_saving]
    assert steps()[-1]["run"] == "exit 5"
    assert "-eq 5" in before_saving[-1]["run"]


@pytest.mark.parametrize("code", [0, 5, 6])
def test_cron_mails_a_line_on_nights_that_fail_and_nothing_else(tmp_path: Path, code: int) -> None:
    refresh = f"echo report; echo progress >&2; exit {code}"
    stubs = {"timeout": refresh, "logger": f"cat >{tmp_path}/log"}
    for name, script in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    assert "%" not in cron_line()[3]  # cron would read it as the end of the line
    done = subprocess.run(
        ["/bin/sh", "-c", cron_line()[3]], capture_output=True, text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )  # fmt: skip
    assert (tmp_path / "log").read_text().splitlines() == ["report", "progress"]
    assert (f"exit code {code}" in done.stdout) == (code != 0)
    assert done.stderr == ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_holds_a_secret(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"AKIA|AIza|BEGIN [A-Z ]*KEY|(?i:secret_access_key|api_key)\s*[:=]", text)
    # The signature's key is named in one step, which writes it where nobody else may read.
    assert set(re.findall(r"secrets\.\w+", text)) <= {"secrets.CATALOG_KEY"}
    assert ("secrets." in text) == (path.name == "publish-catalog.yml")
    assert text.endswith("\n")
    assert "\t" not in text


IMAGES = sorted((DEPLOY / "container").glob("*Dockerfile"))


def instructions(path: Path) -> list[tuple[str, str]]:
    """The instructions of a container file, each on one line."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_what_an_image_copies_is_there_and_not_ignored(path: Path) -> None:
    """No engine builds it here: what can be checked without one is."""
    ignored = (DEPLOY.parent / ".dockerignore").read_text("utf-8").splitlines()
    copied = [rest.split() for word, rest in instructions(path) if word == "COPY"]
    sources = [name for words in copied if words[0][:2] != "--" for name in words[:-1]]
    assert sources
    for name in sources:
        assert (DEPLOY.parent / name).exists()
        assert not any(fnmatch(name, pattern) for pattern in ignored)
    text = path.read_text("utf-8")
    needed = re.findall(r"-r (\S+)", text)
    placed = {f"{words[-1]}{Path(words[0]).name}" for words in copied if words[-1].endswith("/")}
    assert needed
    assert set(needed) <= placed  # before all else is copied, so that a layer is kept


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.name)
def test_an_image_runs_a_command_that_exists_without_rights(path: Path) -> None:
    found = instructions(path)
    (entry,) = [json.loads(rest) for word, rest in found if word == "ENTRYPOINT"]
    assert entry[0] == "recommend"
    assert problems_of(entry[1:] or ["catalog", "status"]) == []
    words = [word for word, _ in found]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert dict(found)["USER"].split(":")[0].isdecimal()


def test_the_health_check_of_the_servers_image_uses_its_port() -> None:
    found = dict(instructions(DEPLOY / "container" / "serve.Dockerfile"))
    asked = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", found["HEALTHCHECK"])
    assert asked
    assert asked[1] == found["EXPOSE"]
    served = (DEPLOY.parent / "recommender" / "serve" / "app.py").read_text("utf-8")
    assert f'"{asked[2]}"' in served
