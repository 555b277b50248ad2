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

STUDIES = "python -P tests/run.py tests.research.accuracy"


def accuracy(
    flags: PageFlags,
    studies: Annotated[
        Words,
        typer.Argument(
            metavar="[STUDY]...",
            help="Keys of studies, or how they begin (all).",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        Word, typer.Option(hidden=True, help="No more: studies stay behind.")
    ] = None,
) -> None:
    """Show the errors of the models on published measurements that they were not fitted on.

    The table is that of the studies in the repository, which are not installed.

    \b
    recommend accuracy
    recommend accuracy cmdare
    """
    from recommender.plan.accuracy import committed_findings
    from recommender.report import accuracy as accuracy_view

    if reference is not None:
        raise UsageError(
            "--reference: the studies are no part of what is installed; "
            f"in the repository: {STUDIES} --reference DIR"
        )
    findings = _chosen(committed_findings(), studies or ())
    if as_json(flags):
        put_json(accuracy_view.facts(findings))
        return
    on = screen(flags.color or "auto")
    write_blocks(accuracy_view.render(findings, on.width), on)


def _chosen(findings: "Sequence[Finding]", words: Sequence[str]) -> "list[Finding]":
    """Findings whose key begins with one of the words; all without words."""
    keys = [each.key for each in findings]
    wrong = [word for word in words if not any(key.startswith(word.lower()) for key in keys)]
    if wrong:
        raise UsageError("\n".join(unknown("study", word, keys) for word in wrong))
    begins = tuple(word.lower() for word in words)
    return [each for each in findings if not words or each.key.startswith(begins)]


command = command_app("accuracy", accuracy)
