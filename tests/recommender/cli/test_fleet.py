"""`recommend batch` and `recommend fleet` as they are typed, with the fleet of docs/fleet.md."""

import json
import re
from pathlib import Path

import pytest

from tests.recommender.cli.conftest import Run

PAGE = (Path(__file__).parents[3] / "docs" / "fleet.md").read_text("utf-8")
(FLEET,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
CALLS = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]
NARROW = ("--provider", "aws", "--gpu", "A10G", "--workers", "1")  # a tenth of the time
QUOTAS = "provider,family,market,region,unit,amount\naws,G,any,,vcpu,64\n"


@pytest.fixture
def here(run: Run) -> Path:
    """The folder of the call, with the files that the page names; one job cannot be read."""
    folder = Path.cwd()
    (folder / "fleet.yaml").write_text(FLEET, "utf-8")
    (folder / "quotas.csv").write_text(QUOTAS, "utf-8")
    (folder / "jobs").mkdir()
    (folder / "jobs" / "small.yaml").write_text("like: resnet18-cifar10\n", "utf-8")
    (folder / "jobs" / "broken.yaml").write_text("like: resnet18-cifar10\nepochs: {\n", "utf-8")
    return folder


def test_every_call_of_the_page_does_what_the_page_says(run: Run, here: Path) -> None:
    batch, fleet, again = (tuple(call.split()[1:]) for call in CALLS)
    found = run(*batch, *NARROW)
    assert found.code == 5  # one job is broken
    assert "broken.yaml, line" in found.err
    assert (here / "plans.parquet.done").is_file()
    assert [each.name for each in sorted((here / "plans.parquet").iterdir())] == [
        "deadline=1d", "deadline=3d", "deadline=6h", "deadline=none",
    ]  # fmt: skip
    shown = run(*fleet, *NARROW[2:])
    assert shown.code == 0, shown.err
    assert "vision, 2026-12" in shown.out
    answer = json.loads(run(*again, *NARROW).out)
    assert answer["schema"] == "recommend.fleet/v1"
    at = {each["name"]: each for each in answer["jobs"]}
    assert at["again"]["start"] >= at["first"]["end"]
    assert answer["gap"] == pytest.approx(0.0, abs=1e-5)
    assert (here / "plans.done").is_file()


def test_rows_of_a_batch_are_lines_of_json(run: Run, here: Path) -> None:
    found = run("batch", "jobs/small.yaml", "--deadlines", "12h,1d", "--json", *NARROW)
    rows = [json.loads(line) for line in found.out.splitlines()]
    assert (found.code, [row["deadline_s"] for row in rows]) == (0, [43_200.0, 86_400.0])
    page = run("batch", "jobs/small.yaml", "--deadlines", "12h", *NARROW)
    assert rows[0]["machines"] in " ".join(page.out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("batch", "jobs"), "write --deadlines"),
        (("batch", "jobs", "--deadlines", "6h,soon"), "soon"),
        (("batch", "jobs", "--deadlines", "6h", "--deadline", "1d"), "contradict"),
        (("batch", "jobs", "--deadlines", "6h", "-o", "plans.csv"), ".parquet or .jsonl"),
        (("batch", "nowhere/", "--deadlines", "6h"), "nowhere"),
        (("batch", "jobs", "--deadlines", "6h", "--workers", "none"), "--workers"),
        (("fleet", "nothing.yaml"), "no such file"),
        (("fleet", "fleet.yaml", "--quota", "nothing.csv"), "no such file"),
    ],
)
def test_a_wrong_call_says_what_to_write(
    run: Run, here: Path, words: tuple[str, ...], said: str
) -> None:
    found = run(*words)
    assert found.code in (2, 5)
    assert said in found.err
