"""Plans as rows of plain cells, for CSV and Markdown."""

from recommender.plan import Answer, Plan
from recommender.report import cells, text
from recommender.report.launch import launch_line

COLUMNS = (
    "rank",
    "status",
    "machines",
    "market",
    "provider",
    "region",
    "gpus",
    "cost_usd",
    "cost_usd_p05",
    "cost_usd_p95",
    "time_h",
    "time_h_p05",
    "time_h_p95",
    "chance",
    "usd_per_hour",
    "interruptions",
    "checkpoint_path",
    "checkpoint_interval_s",
    "overhead",
    "flop_per_usd",
    "saving",
    "price_as_of",
    "labels",
    "launch",
)


def rows(answer: Answer) -> list[tuple[str, ...]]:
    """Every plan of an answer as cells; an infeasible one gives its nearest plans."""
    numbered = [(str(i), "ok", plan) for i, plan in enumerate(answer.plans, 1)]
    if answer.compared is not None:
        numbered.append(("now", "compared", answer.compared))
    if answer.infeasible is not None:
        nearest = [s for s in answer.infeasible.nearest if s.plan is not None]
        numbered += [("", f"infeasible: {s.change}", s.plan) for s in nearest if s.plan]
    return [_row(rank, status, plan) for rank, status, plan in numbered]


def _row(rank: str, status: str, plan: Plan) -> tuple[str, ...]:
    estimate, first = plan.estimate, plan.machines[0]
    cost, time = estimate.cost, estimate.time
    markets = dict.fromkeys(text.market(m.market) for m in plan.machines)
    return (
        rank,
        text.clean(status),
        " + ".join(f"{m.count}x {text.clean(m.instance_type)}" for m in plan.machines),
        " + ".join(markets),
        text.clean(first.provider),
        text.clean(plan.sites[0].region if plan.sites else first.region),
        cells.gpus(plan.machines),
        *(_number(x) for x in (cost.mean, cost.p05, cost.p95)),
        *(_number(x / 3600) for x in (time.typical, time.p05, time.p95)),
        _number(estimate.chance),
        _number(plan.usd_per_hour),
        _number(estimate.interruptions),
        plan.checkpointing.path,
        _number(plan.checkpointing.interval_s),
        _number(estimate.overhead),
        _number(plan.flopp),
        "" if plan.saving is None else _number(plan.saving),
        min(text.clean(m.as_of) for m in plan.machines),
        "; ".join(text.clean(label) for label in plan.labels),
        launch_line(plan),
    )


def _number(x: float) -> str:
    return f"{x:.6g}" if x == x and abs(x) != float("inf") else ""
