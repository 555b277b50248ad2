"""What the GPU clouds change: the same questions with the three large clouds, and with all.

    python -P tests/run.py tests.research.gpu_clouds [PRESET ...]

Prints the table of docs/markets.md. The deadline of a job is twice the time of one p5.48xlarge,
its budget 1.8 times the cheapest plan of at most 30 days, rounded to two digits.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from statistics import median

from recommender.api.calls import recommend
from recommender.catalogs.load import load_snapshot
from recommender.catalogs.registry import CLOUDS
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits
from recommender.plan.plan import Plan
from tests.research.leads import NOW

PRESETS = (
    "resnet50-imagenet", "resnet152-imagenet", "vit-b-imagenet", "vit-l-imagenet",
    "bert-large-pretrain", "gpt2-124m", "gpt2-medium", "gpt2-xl", "llama3-8b-lora",
    "llama3-8b-sft", "llama3-70b-qlora", "t5-3b",
)  # fmt: skip
LARGE = tuple(name for name, info in CLOUDS.items() if info.has_client)
MONTH_S = 30 * 86400.0  # a budget that only longer plans keep is refused
ONE_BOX = Choice(instances=("p5.48xlarge",), market="on_demand", providers=("aws",))


@dataclass(frozen=True, slots=True)
class Row:
    """A question, and its leading plan with the large clouds and with all."""

    preset: str
    question: str
    before: Plan | None  # None: no plan meets the limits
    after: Plan | None

    @property
    def times(self) -> float:
        """The cost of the leading plan with all clouds, times that with the large ones."""
        costs = [nan if p is None else p.estimate.cost.mean for p in (self.before, self.after)]
        return costs[1] / costs[0]


def ask(preset: str, limits: Limits, choice: Choice) -> Answer:
    """The answer from the shipped catalog."""
    return recommend(preset, limits, choice, catalog=load_snapshot(), now=NOW)


def lead(answer: Answer) -> Plan | None:
    """The plan that is described first; None where no plan meets the limits."""
    return answer.plans[answer.lead - 1] if answer.plans else None


def rows_of(preset: str) -> list[Row]:
    """The three questions of a preset."""
    box = ask(preset, Limits(max_machines=1), ONE_BOX).plans[0].estimate.time.p50
    deadline = Limits(deadline_s=rounded(2.0 * box))
    free = ask(preset, Limits(), Choice(providers=LARGE)).plans
    least = min(p.estimate.cost.mean for p in free if p.estimate.time.p95 <= MONTH_S)
    questions = (
        ("deadline, no spot", deadline, Choice(market="on_demand")),
        ("deadline", deadline, Choice()),
        ("budget", Limits(budget_usd=rounded(1.8 * least), objective="time"), Choice()),
    )
    return [
        Row(
            preset,
            name,
            lead(ask(preset, limits, replace(choice, providers=LARGE))),
            lead(ask(preset, limits, choice)),
        )
        for name, limits, choice in questions
    ]


def rounded(x: float) -> float:
    """A limit as people state it: two digits."""
    return float(f"{x:.1e}")


def words(plan: Plan) -> str:
    """What a plan rents: machines, market, cloud."""
    first = plan.machines[0]
    label = CLOUDS[first.provider].label
    market = "spot" if first.market == "spot" else "on demand"
    return f"{first.count}× {first.instance_type} {market}, {label}"


def grade(plan: Plan) -> str:
    """How well founded a plan is: A measured and fresh, B carried over or old, C partly a guess."""
    known = plan.evidence
    if known is None or known.speed == "guessed" or known.guesses:
        return "C"
    return "B" if known.weakest else "A"


def shown(plan: Plan) -> list[str]:
    """The cells of a plan: what it rents, USD, hours, grade."""
    found = plan.estimate
    hours = f"{found.time.p50 / 3600:.1f}"
    return [words(plan), f"{found.cost.mean:.0f}", hours, grade(plan)]


def main(presets: Sequence[str]) -> int:
    """Print one row per question, and the medians."""
    print("| job | question | three large clouds | USD | h | | all clouds | USD | h | | cost × |")
    print("|:--|:--|:--|--:|--:|:--|:--|--:|--:|:--|--:|", flush=True)
    rows: list[Row] = []
    for row in (row for preset in presets or PRESETS for row in rows_of(preset)):
        rows.append(row)
        cells = [row.preset, row.question]
        for plan in (row.before, row.after):
            cells += ["none", "", "", ""] if plan is None else shown(plan)
        print(f"| {' | '.join(cells)} | {row.times:.2f} |", flush=True)
    for question in dict.fromkeys(row.question for row in rows):
        some = [r.times for r in rows if r.question == question and isfinite(r.times)]
        if some:
            print(f"{question}: {median(some):.2f} ({min(some):.2f}-{max(some):.2f})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
