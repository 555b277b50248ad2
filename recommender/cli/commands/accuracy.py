"""`recommend accuracy`: how far predictions are from what others measured."""

from collections.abc import Sequence

from recommender.cli.flags import Words, argument
from recommender.cli.groups import command_app
from recommender.cli.options import PageFlags
from recommender.cli.output import show_page
from recommender.errors import UsageError
from recommender.plan.accuracy import Finding, committed_findings
from recommender.text import unknown

RUNS = "runs"


def accuracy(
    flags: PageFlags,
    studies: Words = argument(
        "[STUDY]...", "Keys of studies, or how they begin; runs: published runs one by one.", None
    ),
) -> None:
    """Show the errors of the models on published measurements that they were not fitted on.

    A line for each group of studies, or the studies that are named. They are in the repository and
    not installed.

    \b
    recommend accuracy
    recommend accuracy cmdare
    recommend accuracy runs
    """
    from recommender.plan.accuracy import published_runs
    from recommender.report.accuracy import accuracy_page

    keys = [word for word in studies or () if word.lower() != RUNS]
    runs = published_runs() if RUNS in map(str.lower, studies or ()) else ()
    findings = _chosen(committed_findings(), keys) if keys or not runs else []
    show_page(accuracy_page(findings, runs, by_group=not studies), flags)


def _chosen(findings: "Sequence[Finding]", words: Sequence[str]) -> "list[Finding]":
    """Findings whose key begins with one of the words; all without words."""
    keys = [each.key for each in findings]
    wrong = [word for word in words if not any(key.startswith(word.lower()) for key in keys)]
    if wrong:
        raise UsageError("\n".join(unknown("study", word, keys) for word in wrong))
    begins = tuple(word.lower() for word in words)
    return [each for each in findings if not words or each.key.startswith(begins)]


command = command_app("accuracy", accuracy)
