"""Files, folders, stores and settings that are not what a call needs: reported in one line."""

import os
from pathlib import Path
from shutil import copytree

import pytest

from recommender.catalogs.load import SNAPSHOT
from recommender.cli.open_catalog import catalog_mark
from recommender.inputs import settings
from tests.recommender.cli.conftest import Planner, Run

JOB = "resnet50-imagenet"


def test_the_mark_of_a_catalog_folder_changes_with_its_manifest(tmp_path: Path) -> None:
    copytree(SNAPSHOT, tmp_path / "own")
    mark = catalog_mark(str(tmp_path / "own"))
    assert catalog_mark(str(tmp_path / "own" / "manifest.json")) == mark
    os.utime(tmp_path / "own" / "manifest.json", ns=(0, 1))
    assert catalog_mark(str(tmp_path / "own")) not in ("", mark)
    assert catalog_mark(str(tmp_path / "none")) == ""


@pytest.mark.parametrize(
    "words",
    [
        ("./folder",),
        (JOB, "--quota", "folder"),
        (JOB, "--offers", "folder"),
        ("simulate", JOB, "--market", "spot", "--trace", "folder"),
        ("calibrate", JOB, "folder"),
        ("trace", "show", "folder"),
        ("jobs", "show", "./folder"),
        ("bench", "import", "folder"),
    ],
)
def test_a_folder_in_the_place_of_a_file_is_called_a_folder(
    run: Run, words: tuple[str, ...]
) -> None:
    Path("folder").mkdir()
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err == "error: folder: is a folder; name a file in it\n"


def test_a_job_may_come_through_a_pipe(run: Run, planner: Planner) -> None:
    os.mkfifo("pipe")
    if os.fork() == 0:
        Path("pipe").write_text("schema: recommend.job/v1\nlike: dlrm\nname: piped\n", "utf-8")
        os._exit(0)
    assert run("./pipe").code == 0
    os.wait()
    assert planner.calls[-1]["job"].name == "piped"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("import", "empty"), "empty: not a catalog archive (empty file); name a file or folder"),
        (("import", "none"), "none: no such file or folder"),
        (("import", "."), ".: holds 'empty', which no catalog has; name a file or folder that"),
        (("diff",), "no version is kept yet; recommend catalog refresh fetches the first"),
        (("export", "x.tar"), "no version is kept yet; recommend catalog refresh fetches the"),
        (("rollback",), "no version is kept yet; recommend catalog refresh fetches the first"),
        (
            ("history", "p5.48xlarge", "--region", "moon"),
            "no price of p5.48xlarge in moon is shipped",
        ),
        (("status", "--catalog", "empty"), "empty: is a file; name a catalog folder or a store"),
    ],
)
def test_a_catalog_that_is_not_there_is_one_line_with_what_to_do(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    Path("empty").touch()
    result = run("catalog", *words)
    assert (result.code, result.out, len(result.err.splitlines())) == (4, "", 1)
    assert said in result.err


def test_the_shipped_snapshot_can_be_imported(run: Run) -> None:
    result = run("catalog", "import", str(SNAPSHOT))
    assert result.code == 0
    assert "holds" in result.out
    assert "imported" in run("catalog", "status").out


def test_an_unknown_quota_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    from recommender.api.calls import recommend
    from recommender.errors import UsageError
    from recommender.inputs.quota_file import read_quotas
    from recommender.job.jobfile import find_job
    from recommender.plan.limits import Choice, Limits
    from tests.shipped import snapshot  # the planner itself

    file = tmp_path / "quotas.csv"
    file.write_text("provider,family,amount\naws,p5,192\naws,pp5,8\ngcp,NVIDIA_H100_GPU,8\n")
    choice = Choice(quotas=read_quotas(file), quotas_known=True)
    with pytest.raises(UsageError) as error:
        recommend(find_job(JOB), Limits(), choice, catalog=snapshot())
    first, second = error.value.problems
    assert first.startswith("quotas.csv, line 3: unknown aws quota 'pp5'; ")
    assert second.startswith("quotas.csv, line 4: unknown gcp quota 'NVIDIA_H100_GPU'; did you")


def test_a_setting_can_be_taken_back(run: Run) -> None:
    run("config", "set", "max_age", "30d")
    run("config", "set", "confidence", "90%")
    assert "removed from" in run("config", "unset", "max-age").out
    assert "is not kept in" in run("config", "unset", "max_age").out
    found = settings.load({}, Path())
    assert (found["max_age"].origin, found["confidence"].value) == ("default", "90%")


def test_an_empty_value_is_refused_with_the_way_to_take_it_back(run: Run) -> None:
    result = run("config", "set", "max_age", "")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "error: max_age: is empty; recommend config unset max_age takes it back\n"
    )


def test_a_value_over_several_lines_is_left_to_its_writer(run: Run) -> None:
    path = settings.user_path()
    path.parent.mkdir(parents=True)
    whole = 'providers = [\n  "aws",\n]\n'
    path.write_text(whole, "utf-8")
    for words in (("set", "providers", "gcp"), ("unset", "providers")):
        result = run("config", *words)
        assert (result.code, result.out) == (2, "")
        assert "providers cannot be changed from here; edit the file" in result.err
    assert path.read_text("utf-8") == whole
