"""Prints first answers and published runs: `python -P tests/run.py tests.research.first_answers`.

Presets may be named; without any, all are asked, in about two minutes.
"""

import argparse

from recommender.catalogs.load import load_snapshot
from tests.research.first_answers.answers import first_answers, objections, words
from tests.research.first_answers.published import published_runs, told


def main() -> None:
    """The runs, then three plans of every question and what speaks against each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presets", nargs="*")
    catalog = load_snapshot()
    for run in published_runs():
        found = told(run, catalog)
        span = f"{found.hours_p05:.3g}-{found.hours_p95:.3g}"
        print(f"{run.job} on {run.gpus}: {run.hours:g} h, told {found.hours:.3g} h ({span})")
    for first in first_answers(catalog, tuple(parser.parse_args().presets)):
        trio = first.answer.trio
        print(f"{first.preset}, {first.question}: {first.answer.status}")
        for pick in () if trio is None else (trio.sensible, trio.cheapest, trio.third):
            against = "; ".join(objections(pick.plan)) or "nothing against it"
            print(f"  {pick.role}: {words(pick)}; {against}")


if __name__ == "__main__":
    main()
