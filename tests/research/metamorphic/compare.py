"""Whether a relation holds between two answers, and how that is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from recommender.catalogs.catalog import Catalog
from recommender.planner.ranking import ranked_plans
from tests.research.leads import Lead
from tests.research.metamorphic.questions import Asking, random_question
from tests.research.metamorphic.relations import RELATIONS, Pair

TOLERANCE = 0.002  # share by which goals may differ: near-ties go to the simplest plan
INF = float("inf")
TOP = "top"
NAMES = (*RELATIONS, TOP)

# holds; violated; open: worse, but nothing better was said to be impossible; derived: worse than a
# plan at prices that nobody quoted, which does not lead a quoted one; moot: no plan on either side.
Verdict = Literal["holds", "violated", "open", "derived", "moot"]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison."""

    number: int  # of the random question
    relation: str
    drawn: str
    verdict: Verdict
    worse: float  # share by which the first question's answer is
    first: str
    second: str
    first_plan: str
    second_plan: str


def rows_of(number: int, seed: int, catalog: Catalog) -> Iterator[Row]:
    """A random question under the relation whose turn it is; the same for the same numbers."""
    relation = relation_of(number)
    random = Random(f"{seed} {number}")
    asked = random_question(random, catalog)
    if relation == TOP:
        yield shorter_table(number, asked, *sorted(random.sample(range(1, 9), 2)))
        return
    for pair in RELATIONS[relation](asked, random):
        yield compared(number, relation, pair)


def relation_of(number: int) -> str:
    """The relations take turns."""
    return NAMES[number % len(NAMES)]


def shorter_table(number: int, asked: Asking, few: int, many: int) -> Row:
    """A shorter table holds some plans of a longer one, in their order, and the first of it.

    No prefix: the best plan without spot machines and that of each provider stand in both.
    """
    short, long = (
        [(each.plan.machines, each.cost_usd) for each in ranked_plans(asked.search, top).plans]
        for top in (few, many)
    )
    within = [plan for plan in long if plan in short] == short and short[:1] == long[:1]
    verdict: Verdict = "moot" if not long else "holds" if within else "violated"
    reported = [
        "; ".join(f"{machines[0].instance_type} {usd:.6g}" for machines, usd in table)
        for table in (short, long)
    ]
    return Row(number, TOP, f"{few} and {many}", verdict, 0.0, asked.words, asked.words, *reported)


def compared(number: int, relation: str, pair: Pair) -> Row:
    """How the answers of a pair compare."""
    one, other = pair.first.lead, pair.second.lead
    goal, most = pair.times * _goal(one), _goal(other) if pair.most is None else pair.most
    worse = _worse(goal, most)
    if pair.equal:
        worse = max(worse, _worse(most, goal))
    return Row(
        number,
        relation,
        pair.drawn,
        _verdict(pair, worse, one, other),
        worse,
        pair.first.words,
        pair.second.words,
        _lead_line(one),
        _lead_line(other),
    )


def _goal(lead: Lead | None) -> float:
    return INF if lead is None else lead.goal


def _worse(goal: float, most: float) -> float:
    return 0.0 if goal == most else goal / most - 1.0


def _verdict(pair: Pair, worse: float, one: Lead | None, other: Lead | None) -> Verdict:
    if other is None and (one is None or not pair.equal):
        return "moot"
    if worse <= TOLERANCE:
        return "holds"
    if pair.equal:
        return "violated"
    if other is not None and other.derived and not (one is not None and one.derived):
        return "derived"
    mixed = other is not None and other.mixed
    return "violated" if pair.first.proven and not mixed else "open"


def _lead_line(lead: Lead | None) -> str:
    if lead is None:
        return "none"
    return f"{lead.plan}: {lead.usd:.6g} USD, {lead.time_s / 3600:.4g} h, {lead.chance:.1%}"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """What was found, as Markdown, and each violation in words."""
    verdicts: tuple[Verdict, ...] = ("holds", "violated", "open", "derived", "moot")
    yield "| relation | compared | violated | open | derived prices | no plan |"
    yield "| :-- | --: | --: | --: | --: | --: |"
    for name in (*NAMES, "all"):
        some = [row for row in rows if name in (row.relation, "all")]
        held, wrong, left, derived, moot = (
            sum(row.verdict == verdict for row in some) for verdict in verdicts
        )
        counts = (name.replace("_", " "), held + wrong, wrong, left, derived, moot)
        yield f"| {' | '.join(map(str, counts))} |"
    for row in rows:
        if row.verdict in ("violated", "open"):
            yield ""
            yield f"{row.verdict} by {row.worse:.2%}: {row.number} {row.relation}, {row.drawn}"
            yield f"  {row.first}\n    {row.first_plan}"
            yield f"  {row.second}\n    {row.second_plan}"
