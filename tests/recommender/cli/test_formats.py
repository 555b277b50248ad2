"""Every page is written in every format: a format that is added works in every command at once."""

import json

import pytest

from recommender.cli.app import COMMANDS
from recommender.cli.groups import load_command
from recommender.report.formats import FORMATS
from recommender.report.page import Page
from tests.recommender.cli.conftest import Planner, Run

JOB = "resnet50-imagenet"
PAGES = (
    ("plan", JOB, "--deadline", "24h"),
    ("plan", JOB, "--deadline", "24h", "--table"),
    ("plan", JOB, "--deadline", "24h", "--explain", "1"),
    ("plan", JOB, "--hourly", "1"),  # no plan
    ("frontier", JOB),
    ("jobs", "list"),
    ("jobs", "show", JOB),
    ("config", "show"),
    ("catalog", "status"),
    ("catalog", "show", "H100", "--top", "3"),
    ("sources",),
    ("accuracy",),
    ("accuracy", "cmdare", "runs"),
    ("trace", "list"),
    ("bench", "show", "H100"),
    ("doctor",),
)


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_an_added_format_works_in_every_command(
    run: Run, planner: Planner, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    given: list[Page] = []

    def kept(page: Page, width: int, colour: bool) -> str:
        given.append(page)
        return "as asked\n"

    monkeypatch.setitem(FORMATS, "added", kept)
    assert run(*words, "-o", "added").out == "as asked\n"
    (page,) = given
    made = {form: FORMATS[form](page, 80, False) for form in FORMATS}
    assert all(made.values())
    assert json.loads(made["json"])
    assert "\x1b" not in "".join(made.values())


def test_every_command_with_a_format_takes_every_format() -> None:
    """Of all commands: a page has no formats of its own."""
    for each in COMMANDS:
        found = load_command(each.location)
        for command in getattr(found, "commands", {"": found}).values():
            forms = [p.metavar for p in command.params if p.name == "output" and "|" in p.metavar]
            known = [form.removesuffix("|added") for form in forms]  # if the test above was first
            assert known in ([], ["|".join(FORMATS)]), command.name
