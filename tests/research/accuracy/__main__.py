"""Runs the accuracy studies: `python -m tests.research.accuracy [STUDY]... [--reference DIR]`.

With --write the committed table is replaced, which needs the large reference tables.
"""

import argparse
import os
from pathlib import Path

from recommender.plan.accuracy import TABLE, table_text
from recommender.report.accuracy import render
from recommender.report.layout import plain
from tests.research import SOURCES
from tests.research.accuracy.studies import chosen

WIDTH = 100


def main() -> None:
    """Print what the studies find, or keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", nargs="*", help="by key or how it begins; all without")
    parser.add_argument("--reference", default=os.environ.get("RECOMMEND_REFERENCE_DATA"))
    parser.add_argument("--write", action="store_true", help="replace the committed table")
    given = parser.parse_args()
    folder = Path(given.reference) if given.reference else None
    findings = [study.finding(folder) for study in chosen(given.study)]
    print(plain(render(findings, WIDTH, str(folder or ""))), end="")
    if given.write:
        if given.study or any(each.score is None for each in findings):
            parser.error("--write needs all studies, and the reference tables")
        (SOURCES / "plan" / TABLE).write_text(table_text(findings), "utf-8")


if __name__ == "__main__":
    main()
