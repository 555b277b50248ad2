"""Prints first answers and published runs: `python -P tests/run.py tests.research.first_answers`.

Presets may be named; without any, all are asked, in some minutes. `--write` puts them into
docs/first-answers.md.
"""

import argparse

from tests.research.first_answers.answers import FirstAnswer, first_answers, objections, words
from tests.research.first_answers.page import PAGE, tables, written
from tests.shipped import snapshot


def main() -> None:
    """Three plans of every question and what speaks against each; with `--write` the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--write", action="store_true", help="write docs/first-answers.md")
    call = parser.parse_args()
    catalog, found = snapshot(), []
    for first in first_answers(catalog, tuple(call.presets)):
        _print(first)
        found.append(first)
    if call.write:
        PAGE.write_text(written(tables(found, catalog)), "utf-8")


def _print(first: FirstAnswer) -> None:
    trio = first.answer.trio
    print(f"{first.preset}, {first.question}: {first.answer.status}")
    for pick in () if trio is None else trio.picks:
        against = "; ".join(objections(pick.plan)) or "nothing against it"
        print(f"  {pick.role}: {words(pick)}; {against}", flush=True)


if __name__ == "__main__":
    main()
