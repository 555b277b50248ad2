"""`recommend offers` from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.cli.conftest import Planner, Run


def test_a_new_file_is_printed_or_written_and_plans_read_it(
    run: Run, planner: Planner, tmp_path: Path
) -> None:
    printed = run("offers", "new")
    assert (printed.code, printed.err) == (0, "")
    written = run("offers", "new", "-o", "offers.csv")
    assert (written.code, written.out) == (0, "")
    assert (tmp_path / "offers.csv").read_text("utf-8") == printed.out
    assert run("resnet50-imagenet", "--offers", "offers.csv", "--provider", "own").code == 0
    assert ("own", "lab") in planner.calls[0]["catalog"].instance_types


def test_a_file_that_exists_or_cannot_be_written_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    for name, said in (("mine.csv", "exists; name another"), ("no/o.csv", "cannot be written")):
        found = run("offers", "new", "-o", name)
        assert (found.code, found.out) == (2, "")
        assert said in found.err
    assert (tmp_path / "mine.csv").read_text() == "mine"


def test_a_gpu_under_its_vendors_name_is_answered_with_the_catalogs(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "o.csv").write_text("label,gpu,gpus,usd_per_hour\nlab,A100-40GB,8,9\n")
    found = run("resnet50-imagenet", "--offers", "o.csv")
    assert found.err.endswith("unknown GPU 'A100-40GB'; did you mean A100?\n")


def test_lines_of_remarks_are_passed_over_and_still_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text(
        '# ours, "as bought"\n\nlabel,gpu,gpus,usd_per_hour\n# the old one, 8\nlab,H10,8,9\n'
    )
    found = run("resnet50-imagenet", "--offers", "o.csv")
    assert found.err == (
        "error: o.csv, line 5, column gpu: unknown GPU 'H10'; did you mean H100?\n"
    )


def answered(run: Run, folder: Path, offers: str, *words: str) -> Any:
    """The JSON of an answer on machines of one's own alone."""
    (folder / "own.csv").write_text(offers)
    found = run(*words, "--provider", "own", "--offers", "own.csv", "--json")
    assert (found.code, found.err) == (0, "")
    return json.loads(found.out)


def test_the_cheapest_is_found_where_the_fastest_costs_far_more(
    run_with_planner: Run, tmp_path: Path
) -> None:
    """The fastest at any price, which no row of the table holds, was looked up in it."""
    offers = (
        "label,gpu,gpus,usd_per_hour,count\none,H100,1,2,1\neight,H100,8,20,1\nnew,B200,8,300,1\n"
    )
    reported = answered(
        run_with_planner, tmp_path, offers, "llama3-8b-sft", "--objective", "cost", "--top", "1"
    )
    assert reported["plans"][reported["best"] - 1]["machines"][0]["instance_type"] == "eight"


@pytest.mark.parametrize("usd", ["0.3", "0.3001"])
def test_three_machines_of_ten_cents_meet_a_limit_of_thirty(
    run_with_planner: Run, tmp_path: Path, usd: str
) -> None:
    """3 × 0.1 is a little more than 0.3 to a computer: the search kept it, the table did not."""
    offers = "label,gpu,gpus,usd_per_hour,count,network_gbit_per_s\nlab,H100,1,0.1,3,100\n"
    for words in (("--machines", "3"), ()):
        reported = answered(
            run_with_planner, tmp_path, offers, "llama3-8b-lora", "--hourly", usd, *words
        )
        assert reported["plans"][reported["best"] - 1]["machines"][0]["count"] == 3
