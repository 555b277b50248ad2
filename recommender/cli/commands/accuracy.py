"""`recommend accuracy`: how far predictions are from what others measured."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from recommender.cli.groups import command_app
from recommender.cli.options import PageFlags, Word, Words
from recommender.cli.output import as_json, put_json
from recommender.cli.screen import screen, write_blocks
from recommender.errors import UsageError
from recommender.text import unknown

if TYPE_CHECKING:
    from recommender.plan.accuracy import Finding

RUNS = "runs"
STUDIES = "python -P tests/run.py tests.research.accuracy"


def accuracy(
    flags: PageFlags,
    studies: Annotated[
        Words,
        typer.Argument(
            metavar="[STUDY]...",
            help="Keys of studies, or how they begin; runs: published runs one by one.",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        Word, typer.Option(hidden=True, help="No more: studies stay behind.")
    ] = None,
) -> None:
    """Show the errors of the models on published measurements that they were not fitted on.

    A line for each group of studies, or the studies that are named. They are in the repository and
    not installed.

    \b
    recommend accuracy
    recommend accuracy cmdare
    recommend accuracy runs
    """
    from recommender.plan.accuracy import committed_findings
    from recommender.plan.published_runs import published_runs
    from recommender.report import accuracy as accuracy_view

    if reference is not None:
        raise UsageError(
            "--reference: the studies are no part of what is installed; "
            f"in the repository: {STUDIES} --reference DIR"
        )
    keys = [word for word in studies or () if word.lower() != RUNS]
    runs = published_runs() if RUNS in map(str.lower, studies or ()) else ()
    findings = _chosen(committed_findings(), keys) if keys or not runs else []
    if as_json(flags):
        put_json(accuracy_view.facts(findings, runs=runs))
        return
    on = screen(flags.color or "auto")
    if not studies:
        write_blocks(accuracy_view.render_groups(findings, on.width), on)
        return
    blocks = accuracy_view.render_runs(runs, on.width) if runs else []
    blocks += ["", *accuracy_view.render(findings, on.width)] if runs and findings else []
    write_blocks(blocks or accuracy_view.render(findings, on.width), on)


def _chosen(findings: "Sequence[Finding]", words: Sequence[str]) -> "list[Finding]":
    """Findings whose key begins with one of the words; all without words."""
    keys = [each.key for each in findings]
    wrong = [word for word in words if not any(key.startswith(word.lower()) for key in keys)]
    if wrong:
        raise UsageError("\n".join(unknown("study", word, keys) for word in wrong))
    begins = tuple(word.lower() for word in words)
    return [each for each in findings if not words or each.key.startswith(begins)]


command = command_app("accuracy", accuracy)
