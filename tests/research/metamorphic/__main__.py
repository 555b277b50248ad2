"""Asks pairs of related questions: `python -P tests/run.py tests.research.metamorphic --count 500`.

--count N    random questions, each under one relation, which may be several pairs
--seed N     of the questions
--from N     the first number; with --count 1 one question again
--only WORD  one relation
--out FILE   rows as JSON lines; what it holds already is not asked again
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.research.metamorphic.compare import NAMES, Row, relation_of, rows_of, table
from tests.shipped import snapshot


def asked(asks: argparse.Namespace, done: set[int]) -> Iterator[Row]:
    """The rows of the questions that are not done yet."""
    catalog = snapshot()
    for number in range(asks.start, asks.start + asks.count):
        if number not in done and asks.only in (None, relation_of(number)):
            yield from rows_of(number, asks.seed, catalog)


def main() -> None:
    """Ask, keep and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="start")
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--out", type=Path)
    asks = parser.parse_args()
    known = asks.out.read_text("utf-8").splitlines() if asks.out and asks.out.exists() else []
    rows = [Row(**json.loads(line)) for line in known]
    for row in asked(asks, {row.number for row in rows}):
        rows.append(row)
        if asks.out:
            with asks.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")
    print(f"seed {asks.seed}")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
