"""Asks the contract's questions: `python -P tests/run.py tests.research.contract --out FILE`.

One row of CSV a question, sorted at the end; what FILE holds already is not asked again. Processor
seconds stand in a file beside it, FILE with the ending .cpu.csv.

--classes A,B        questions of these classes: deadline, hourly, budget, no_limit, overhead,
                     filter, mix, quota, metamorphic, refusal, own_job, elastic, edge
--every N            every N-th question of each class
--also WORDS         typed with every question: "--seed 3"
--wide               with several times as many plans simulated: what the pool is measured against
--jobs N             processes
--compare A B        no questions; how the answers of B differ from those of A
--edges              no questions; print edges.csv, deadlines near the least, anew
"""

import argparse
import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from recommender.job.preset_files import presets
from recommender.optimize import pool
from tests.research.contract.ask import COLUMNS, Row, alone, ask, file_beside
from tests.research.contract.compare import read, report, seconds
from tests.research.contract.questions import PROVIDERS, Question, questions

T = TypeVar("T")
CPU = ("words", "cpu_s")
WIDE = {"ROUNDS": 6, "REFINED": 12, "ALL_FALLBACKS": 8, "CONFIRMED": 32, "MOST_CONFIRMED": 256}
WIDE_ERRORS = {"RATES_ERROR": 0.4, "SWITCH_ERROR": 0.6}


def main() -> None:
    """Ask what is left, or compare."""
    given = _arguments()
    if given.compare:
        print("\n".join(report(*given.compare)))
    elif given.edges:
        _print_edges()
    elif given.wide:
        with patch.multiple(pool, **WIDE, **WIDE_ERRORS):
            _ask(given, given.out.absolute())
    else:
        _ask(given, given.out.absolute())


def _ask(given: argparse.Namespace, out: Path) -> None:
    known = {each.words for each in questions()}
    rows, cpu = (_of(known, found) for found in (read(out), seconds(out)))
    kinds = tuple(filter(None, given.classes.split(",")))
    left = [each for each in questions(kinds, given.every) if each.words not in rows]
    with _answers(left, given.also, given.jobs) as answers:
        for row, seconds_of in answers:
            rows[row.words], cpu[row.words] = row, seconds_of
            _append(out, COLUMNS, astuple(row))
            _append(file_beside(out), CPU, (row.words, f"{seconds_of:.3f}"))
            print(f"{len(rows):5} {seconds_of:6.2f} s  {row.words}  {row.machines}", flush=True)
    _write(out, COLUMNS, [astuple(each) for each in rows.values()])
    _write(file_beside(out), CPU, [(words, f"{each:.3f}") for words, each in cpu.items()])
    print(f"{len(rows)} questions, {sum(cpu.values()):,.0f} s of processor time")


def _of(known: set[str], found: dict[str, T]) -> dict[str, T]:
    """Without those of questions that are asked no more."""
    return {words: each for words, each in found.items() if words in known}


@contextmanager
def _answers(asked: list[Question], also: str, jobs: int) -> Iterator[Iterable[tuple[Row, float]]]:
    """Rows as they come, of one process or of several."""
    if jobs == 1:
        alone()
        yield (ask(each, also) for each in asked)
        return
    with Pool(jobs, alone) as pool:
        yield pool.imap_unordered(partial(ask, also=also), asked)


def _append(path: Path, head: tuple[str, ...], cells: tuple[str, ...]) -> None:
    if not path.exists():
        _write(path, head, [])
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(cells)


def _write(path: Path, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *sorted(rows)])


def _print_edges() -> None:
    """The least deadline of every preset, and what its cheapest spot plan of a provider needs."""
    alone()
    print("preset,provider,hours")
    for name in presets():
        asked = {"": f"--deadline 10m {name}"}
        asked |= {
            each: f"--market spot --objective cost --provider {each} {name}" for each in PROVIDERS
        }
        for provider, words in asked.items():
            hours = ask(Question("edge", words))[0].hours_p95
            if hours:
                print(f"{name},{provider},{hours}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("contract.csv"))
    parser.add_argument("--classes", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--also", default="")
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--compare", type=Path, nargs=2)
    parser.add_argument("--edges", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
