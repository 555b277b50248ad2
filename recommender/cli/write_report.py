"""Writes an answer with its pictures into one HTML file, and says where it is."""

import sys
from pathlib import Path

from recommender.catalogs.files import replace_file
from recommender.cli.screen import write_text
from recommender.errors import UsageError
from recommender.plan.plan import Answer
from recommender.report.answer_frame import PlanRequest
from recommender.text import shown_path


def write_report(answer: Answer, request: PlanRequest, file: str) -> None:
    """Write the report of an answer that was asked for one; a file that stands there is replaced.

    Raises:
        UsageError: it cannot be written there.
    """
    from recommender.report.html.page import render

    path = Path(file)
    try:
        replace_file(path, render(answer, request).encode("utf-8"))
    except OSError as error:
        raise UsageError(
            f"--report {shown_path(path)}: cannot be written ({error.strerror}); name another"
        ) from None
    write_text(f"wrote {shown_path(path)}; open it with a browser\n", sys.stderr)
