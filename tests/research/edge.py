"""Whether the best plan is found near the edge of the chance: against narrower questions. By hand:

    python -P tests/run.py tests.research.edge --out edge.jsonl --most 400
    python -P tests/run.py tests.research.edge --out edge.jsonl --table

Every preset on every provider, under deadlines just above what 95 % of the runs of its own cheapest
spot plan need. There the chance of that plan is a hair above the one requested, and a search that
counts too few paths loses it. The same question asked more narrowly (spot alone, few machines, the
instance type of that plan) allows fewer plans, so its answer is never better than the wide one's.
Rows are appended: a run that was cut off goes on where it was.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

from recommender.catalogs.catalog import Catalog
from recommender.job.preset_files import presets
from recommender.plan.limits import Choice, Limits
from tests.research.leads import Lead, lead_of
from tests.shipped import snapshot

PROVIDERS = ("aws", "gcp", "azure")
ABOVE = (1.005, 1.02, 1.05, 1.1)  # of the p95 of the cheapest spot plan
TOLERANCE = 0.002  # share by which the first plan may be more expensive
SEED = 11


@dataclass(frozen=True, slots=True)
class Question:
    """A preset on a provider, with a deadline so far above its own edge."""

    preset: str
    provider: str
    above: float

    @property
    def key(self) -> str:
        """Its name in files."""
        return f"{self.preset} | {self.provider} | {self.above:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """A question and the same asked more narrowly."""

    key: str
    narrower: str
    deadline_h: float
    usd: float
    narrow_usd: float
    plan: str
    narrow_plan: str
    proven: bool  # among clusters of one machine type
    derived: bool  # the narrower plan leads at a price that nobody quoted, the wide one does not

    @property
    def dearer(self) -> float:
        """Share by which the wide question's plan costs more."""
        return self.usd / self.narrow_usd - 1.0

    @property
    def is_wrong(self) -> bool:
        """Whether a plan leads that another of the same tool beats."""
        return not self.derived and self.dearer > TOLERANCE


def questions() -> list[Question]:
    """All questions in an order in which any first part stands for all."""
    found = [
        Question(preset, provider, above)
        for preset in presets()
        for provider in PROVIDERS
        for above in ABOVE
    ]
    Random(SEED).shuffle(found)
    return found


def rows_of(question: Question, catalog: Catalog) -> Iterator[Row]:
    """The question and its narrower ones; nothing where no spot plan exists."""
    wide = Choice(providers=(question.provider,))
    spot = replace(wide, market="spot")
    edge = lead_of(question.preset, Limits(objective="cost"), spot, catalog)
    if edge is None:
        return
    limits = Limits(deadline_s=question.above * edge.p95_s)
    first = lead_of(question.preset, limits, wide, catalog)
    narrower = {
        "spot": (limits, spot),
        "spot, 2 machines": (replace(limits, max_machines=2), spot),
        "its instance type": (limits, replace(wide, instances=edge.instances)),
        "its instance type on spot": (limits, replace(spot, instances=edge.instances)),
    }
    for name, (asked, choice) in narrower.items():
        other = lead_of(question.preset, asked, choice, catalog)
        if other is not None:
            yield _row(question, name, limits, first, other)


def _row(question: Question, name: str, limits: Limits, first: Lead | None, other: Lead) -> Row:
    assert limits.deadline_s is not None
    return Row(
        question.key,
        name,
        limits.deadline_s / 3600.0,
        float("inf") if first is None else first.usd,
        other.usd,
        "" if first is None else first.plan,
        other.plan,
        first is None or first.proven,
        other.derived and first is not None and not first.derived,
    )


def table(rows: list[Row]) -> Iterator[str]:
    """What was found, as Markdown."""
    yield "| narrower question | rows | proven | dearer by > 0.2 % | most | at derived prices |"
    yield "| :-- | --: | --: | --: | --: | --: |"
    for name in sorted({row.narrower for row in rows}):
        some = [row for row in rows if row.narrower == name]
        wrong = [row for row in some if row.is_wrong]
        most = max((row.dearer for row in some if not row.derived), default=0.0)
        derived = sum(row.derived for row in some)
        proven = sum(row.proven for row in some)
        yield f"| {name} | {len(some)} | {proven} | {len(wrong)} | {most:.2%} | {derived} |"
    yield ""
    for row in rows:
        if row.is_wrong:
            plans = f"{row.plan} ({row.dearer:+.1%} above {row.narrow_plan})"
            yield f"- {row.key}, {row.narrower}: {plans}"


def main() -> None:
    """Ask what was not asked yet, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--table", action="store_true")
    asks = parser.parse_args()
    lines = asks.out.read_text("utf-8").splitlines() if asks.out.exists() else []
    rows = [Row(**json.loads(line)) for line in lines]
    if asks.table:
        print("\n".join(table(rows)))
        return
    done, catalog = {row.key for row in rows}, snapshot()
    for question in questions()[: asks.most]:
        if question.key not in done:
            with asks.out.open("a", encoding="utf-8") as out:
                for row in rows_of(question, catalog):
                    out.write(json.dumps(asdict(row)) + "\n")


if __name__ == "__main__":
    main()
