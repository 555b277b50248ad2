"""Prints first answers: `python -P tests/run.py tests.research.first_answers`.

Presets may be named; without any, all are asked, in some minutes, and `--write` keeps them in
answers.csv. `--page` writes docs/first-answers.md from what is kept and from verdicts.csv.
"""

import argparse

from tests.research.first_answers.answers import FirstAnswer, first_answers, objections, words
from tests.research.first_answers.page import PAGE, keep, tables, written
from tests.shipped import every_cloud, snapshot


def main() -> None:
    """The leading plans of every question and what speaks against each, or the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--write", action="store_true", help="write answers.csv")
    parser.add_argument("--page", action="store_true", help="write docs/first-answers.md")
    call = parser.parse_args()
    if not call.page:
        found = []
        for first in first_answers(every_cloud(), tuple(call.presets)):
            _print(first)
            found.append(first)
            if call.write:
                keep(found)
    else:
        PAGE.write_text(written(tables(snapshot())), "utf-8")


def _print(first: FirstAnswer) -> None:
    print(f"{first.question.section}, {first.question.name}: {first.answer.status}")
    for pick in first.answer.picks:
        against = "; ".join(objections(pick.plan)) or "nothing against it"
        print(f"  {pick.role}: {words(pick.plan)}; {against}", flush=True)


if __name__ == "__main__":
    main()
