"""How many questions a search proves, with and without `--prove`, and how soon. By hand:

    python -P tests/run.py tests.research.proofs --out proofs.jsonl --seconds 6 --most 100
    python -P tests/run.py tests.research.proofs --out proofs.jsonl --table

Presets under three limits and no quotas, 96 or 192 vCPU of every family, in a shuffled order that
is always the same. A proof is stopped after so many seconds of the processor. Rows are appended, so
a run that was cut off goes on where it was.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import median
from threading import Event, Thread
from time import process_time

from recommender.catalogs.catalog import Catalog
from recommender.optimize.search_state import Watch
from recommender.plan.limits import Progress
from recommender.planner.problem import Problem, planning_problem
from recommender.planner.search import PlanSearch
from tests.research.mixes.questions import Question, choice_of, job_of, limits_of, questions
from tests.shipped import snapshot

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SEED = 7
QUOTAS = ("none", "96 vCPU", "192 vCPU")
LOOKS_S = 0.05  # between two looks at the processor's clock


@dataclass(frozen=True, slots=True)
class Row:
    """One question: the gap of its answer, and that of its proof."""

    key: str
    limits: str
    quotas: str
    found: bool  # a plan
    one_type_gap: float  # clusters of one type alone
    answer_gap: float  # of the answer without --prove; mixes count where it searches them
    answer_s: float  # seconds of the processor, of the search alone
    proof_gap: float  # mixes of all regions included
    proof_s: float
    plans: int
    sets: int  # of types
    better: float  # by which share the proof's plan is better than the answer's


def asked(problem: Problem, seconds: float | None) -> tuple[PlanSearch, float]:
    """A search, and what it took; with a limit of time it is a proof."""
    watch, over, began = Watch(), Event(), process_time()

    def stop() -> None:
        while seconds is not None and not over.wait(LOOKS_S):
            if process_time() - began > seconds and watch.stop():
                return

    clock = Thread(target=stop, daemon=True)
    clock.start()
    search = PlanSearch(problem, prove=seconds is not None, watch=watch)
    assert search.best is not None
    over.set()
    clock.join()
    return search, process_time() - began


def row_of(question: Question, catalog: Catalog, seconds: float) -> Row:
    """Ask a question twice."""
    choice = choice_of(question, catalog)

    def problem() -> Problem:
        return planning_problem(
            job_of(question), limits_of(question), choice, catalog, Progress(), NOW, SEED
        )

    answer, answer_s = asked(problem(), None)
    proof, proof_s = asked(problem(), seconds)
    state, goal = proof.best, answer.best.best_goal
    return Row(
        question.key,
        question.limits,
        question.quotas,
        bool(state.incumbents),
        answer.single_type.own.gap(),
        answer.best.gap(),
        round(answer_s, 2),
        state.gap(),
        round(proof_s, 2),
        state.plans_evaluated,
        state.supports_expanded,
        1.0 - state.best_goal / goal if state.incumbents and goal < float("inf") else 0.0,
    )


def kept(out: Path) -> list[Row]:
    """What earlier runs found."""
    lines = out.read_text("utf-8").splitlines() if out.exists() else []
    return [Row(**json.loads(line)) for line in lines]


def shuffled() -> list[Question]:
    """The questions in an order in which any first part stands for all."""
    found = [q for q in questions(("gang",)) if q.quotas in QUOTAS]
    Random(SEED).shuffle(found)
    return found


def table(rows: list[Row]) -> Iterator[str]:
    """Shares proven by class, as Markdown."""
    yield (
        "| limit, quota | questions | one type proven | proven with mixes "
        "| median gap of the rest | median s |"
    )
    yield "| :-- | --: | --: | --: | --: | --: |"
    classes: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        classes[row.limits, row.quotas].append(row)
        classes["all", "all"].append(row)
    for (limits, quotas), some in sorted(classes.items()):
        one = sum(row.one_type_gap == 0.0 for row in some)
        proven = sum(row.proof_gap == 0.0 for row in some)
        left = [row.proof_gap for row in some if row.proof_gap > 0.0]
        gap = f"{median(left):.0%}" if left else ""
        seconds = median(row.proof_s for row in some)
        yield f"| {limits}, {quotas} | {len(some)} | {one} | {proven} | {gap} | {seconds:.1f} |"


def main() -> None:
    """Ask what was not asked yet, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--table", action="store_true")
    asks = parser.parse_args()
    rows, catalog = kept(asks.out), snapshot()
    if asks.table:
        print("\n".join(table(rows)))
        return
    done = {row.key for row in rows}
    for question in shuffled()[: asks.most]:
        if question.key not in done:
            row = row_of(question, catalog, asks.seconds)
            with asks.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")


if __name__ == "__main__":
    main()
