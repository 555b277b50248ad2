"""Asks the sweep's questions: `python -P tests/run.py tests.research.mixes --out FILE`.

One JSON line per question; what a file holds already is not asked again. One process.

    --only WORD          questions whose name holds every such word ("none", "gang", a preset)
    --sample N           so many of them, as many of each class in turn
    --answers-only       no comparison: what an earlier version is asked
    --before FILE        answers of an earlier version, evaluated again under today's law
    --table              no questions; print what the file holds, by class
    --anchors            no questions; print what presets need under the quotas, for anchors.csv:
                         questions are then asked of the limits of this day
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from recommender.catalogs.catalog import Catalog
from recommender.errors import RecommendError
from recommender.job.jobfile import find_job
from recommender.plan.limits import Limits, Progress
from recommender.planner.plan_pool import PlanPool
from recommender.planner.problem import planning_problem
from tests.research import SOURCES
from tests.research.mixes.ask import NOW, SEED, answered, ask
from tests.research.mixes.questions import (
    HOUR_S,
    QUOTAS,
    Question,
    choice_of,
    questions,
    sample,
)
from tests.research.mixes.records import Asked, PlanRecord, line, read
from tests.research.mixes.table import tables
from tests.shipped import snapshot


@dataclass(frozen=True, slots=True)
class Sweep:
    """What every question is asked with."""

    catalog: Catalog
    before: dict[str, PlanRecord | None]
    answers_only: bool
    reference: Path | None

    def asked(self, question: Question) -> Asked:
        """The answer and its comparisons; what failed is kept in words."""
        gang = Question(question.preset, question.limits, question.quotas, "default").key
        try:
            if self.answers_only:
                return answered(question, self.catalog)[0]
            before = self.before.get(gang)
            return ask(question, self.catalog, before, self.reference)
        except RecommendError as error:
            return Asked(question, 0.0, "failed", 0.0, "", None, failed=str(error))


def main() -> None:
    """Ask what is left, or print a table."""
    given = _arguments()
    if given.anchors:
        _print_anchors()
        return
    done, before = read(given.out), read(given.before) if given.before else []
    if given.table:
        print(tables(done, before))
        return
    known = {asked.question.key for asked in done}
    sweep = Sweep(
        snapshot(),
        {asked.question.key: asked.first for asked in before},
        given.answers_only,
        Path(given.reference) if given.reference else None,
    )
    asked = questions(tuple(given.only))
    for question in sample(asked, given.sample) if given.sample else asked:
        if question.key not in known:
            with given.out.open("a", encoding="utf-8") as file:
                found = sweep.asked(question)
                file.write(line(found) + "\n")
            words = found.first.words if found.first else found.failed or found.status
            print(
                f"{question.key:60}{found.seconds:7.2f} s  gap {found.gap:5.1%}  {words}",
                flush=True,
            )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("mixes.jsonl"))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--answers-only", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--anchors", action="store_true")
    parser.add_argument("--reference", default=os.environ.get("RECOMMEND_REFERENCE_DATA"))
    return parser.parse_args()


def _print_anchors() -> None:
    """The fastest and the cheapest plan of every preset, the money that suffices in 95 %."""
    print("preset,quotas,fastest_h,cheapest_usd", flush=True)
    catalog = snapshot()
    for path in sorted((SOURCES / "job" / "presets").glob("*.yaml")):
        for quotas in QUOTAS:
            choice = choice_of(Question(path.stem, "", quotas, ""), catalog)
            problem = planning_problem(
                find_job(path.stem), Limits(), choice, catalog, Progress(), NOW, SEED
            )
            search = PlanPool(problem)
            fastest, cheapest = (search.best_unconstrained(aim) for aim in ("time", "cost"))
            if fastest is not None and cheapest is not None:
                usd = cheapest.plan.estimate.cost.p95
                print(f"{path.stem},{quotas},{fastest.time_s / HOUR_S:.3g},{usd:.3g}", flush=True)


if __name__ == "__main__":
    main()
