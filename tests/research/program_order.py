"""What the linear program knows of the plan that the search finds. By hand:

    python -P tests/run.py tests.research.program_order --most 130

A sample of the questions of the mixes study, without quotas and with 96 or 192 vCPU per family. Of
each: the place of the best plan's cluster in the program's order, and after the search the share of
the work that the reported program gives to the plan.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from recommender.optimize.columns import Cluster
from recommender.planner.reported_program import reported_program
from recommender.planner.search import PlanSearch
from recommender.planner.selection import ranked_plans
from tests.research.mixes.ask import problem_of
from tests.research.mixes.questions import Question, choice_of, questions, sample
from tests.shipped import snapshot

QUOTAS = ("none", "96 vCPU", "192 vCPU")
FIRST, JUDGED = 8, 40  # places
LAST = 10**6  # the place of a cluster that the program does not have


@dataclass(frozen=True, slots=True)
class Row:
    """One question that has a plan."""

    question: Question
    place: int  # of the best plan's cluster among those that the program would judge, from 1
    optimal: bool  # whether the reported program has a solution
    share: float  # of the work that it gives to the plan
    saving: float  # by which share its division of the work is better
    spot: float  # share of the work on spot: of the program,
    plan_spot: float  # and of the plan


def row_of(question: Question) -> Row | None:
    """Ask a question; None if it has no plan."""
    catalog = snapshot()
    search = PlanSearch(problem_of(question, catalog, choice_of(question, catalog)))
    program, plans = search.single_type.program, ranked_plans(search, 1).plans
    if program is None or not plans:
        return None
    best = plans[0].candidate
    cluster = Cluster(best.site, best.entries, best.counts)
    reported = reported_program(program, search.builder, plans[0])
    return Row(
        question,
        program.first.index(cluster) + 1 if cluster in program.first else LAST,
        reported.program.solution.status == "optimal",
        reported.plan_share,
        reported.saving,
        reported.program.spot_share,
        sum((share for (_, spot), share in reported.plan_work.items() if spot), 0.0),
    )


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Figures by class of limits, as Markdown."""
    yield (
        "| limits | questions | first 8 | first 40 | solved | share > 0 | share > half "
        "| spot differs, mean | program better, median |"
    )
    yield "| :-- |" + " --: |" * 8
    classes: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        classes[row.question.limits].append(row)
    for name, some in [*sorted(classes.items()), ("all", list(rows))]:
        counts = (
            sum(row.place <= FIRST for row in some),
            sum(row.place <= JUDGED for row in some),
            sum(row.optimal for row in some),
            sum(row.share > 0.01 for row in some),
            sum(row.share > 0.5 for row in some),
        )
        differs = mean(abs(row.spot - row.plan_spot) for row in some)
        saving = median(row.saving for row in some)
        cells = " | ".join(map(str, (name, len(some), *counts)))
        yield f"| {cells} | {100 * differs:.1f} points | {saving:.1%} |"


def main() -> None:
    """Ask a sample, and print each row and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=130)
    asked = (q for q in questions(("default",)) if q.quotas in QUOTAS)
    rows = []
    for question in sample(asked, parser.parse_args().most):
        row = row_of(question)
        if row is not None:
            rows.append(row)
            print(row, flush=True)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
