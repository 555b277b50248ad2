"""Runs the accuracy studies: `python -P tests/run.py tests.research.accuracy [STUDY]...`.

`make pages` writes the page and the committed table, both from one run of all studies.
"""

import argparse
import os
from pathlib import Path

from recommender.report.accuracy import render
from recommender.report.layout import drawn
from tests.research.accuracy.studies import chosen

WIDTH = 100


def main() -> None:
    """Print what the studies find."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", nargs="*", help="by key or how it begins; all without")
    parser.add_argument("--reference", default=os.environ.get("RECOMMEND_REFERENCE_DATA"))
    given = parser.parse_args()
    folder = Path(given.reference) if given.reference else None
    findings = [study.finding(folder) for study in chosen(given.study)]
    print(drawn(render(findings, WIDTH, str(folder or "")), WIDTH), end="")


if __name__ == "__main__":
    main()
