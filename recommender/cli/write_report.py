"""Writes an answer with its pictures into one HTML file, and says where it is."""

import sys
from pathlib import Path

from recommender.catalogs.files import replace_file
from recommender.cli.open_catalog import store_at
from recommender.cli.screen import write_text
from recommender.inputs.files import writing
from recommender.plan.answer import Answer
from recommender.report.answer_frame import PlanRequest
from recommender.text import shown_path

VERSIONS = 8  # of a store that prices of the past are read from: 0.1 s each


def write_report(answer: Answer, request: PlanRequest, file: str, catalog: str | None) -> None:
    """Write the report of an answer, if requested; an existing file is replaced.

    `catalog` is where its prices are from: a store keeps older ones.

    Raises:
        UsageError: it cannot be written there.
    """
    from recommender.catalogs.history import recent_prices
    from recommender.report.html.page import render
    from recommender.report.html.prices import offers_of

    path, store = Path(file), store_at(None if catalog and "://" in catalog else catalog)
    known = recent_prices(store, offers_of(answer), VERSIONS)
    with writing(f"--report {shown_path(path)}"):
        replace_file(path, render(answer, request, prices=known).encode("utf-8"))
    write_text(f"wrote {shown_path(path)}; open it with a browser\n", sys.stderr)
