"""The answer as Markdown, for issues and reports."""

from collections.abc import Sequence

from recommender.plan import Answer, Plan
from recommender.report import advice, cells, infeasible, text, titles
from recommender.report.asked import Asked
from recommender.report.checks import check_words
from recommender.report.closing import closing_facts
from recommender.report.launch import launch_line
from recommender.report.lines import Line

_WIDE = 10_000  # Markdown wraps for itself
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"})


def render(answer: Answer, asked: Asked, quiet: bool = False) -> str:
    """Title, table, and the sentences about plan 1 as a list."""
    if answer.status == "infeasible":
        return _infeasible(answer, asked)
    table = _table(answer)
    if quiet:
        return "\n".join(table) + "\n"
    parts = [
        f"**{_escape(titles.job_line(asked))}**",
        f"{_escape(titles.goal_line(answer, asked.limits))}."
        f" {_escape(titles.price_line(answer, asked))}".rstrip(),
        *(f"**Warning:** {_escape(w)}" for w in answer.warnings),
        "\n".join(table),
        _sentences(closing_facts(answer, asked), " · "),
        *_first(answer, asked),
        *_changes(answer),
        *_checks(answer),
    ]
    if answer.assumptions:
        parts.append(f"Assumed: {_sentences(answer.assumptions, '; ')}.")
    return "\n\n".join(parts) + "\n"


def _table(answer: Answer) -> list[str]:
    plans = [*answer.plans, *([answer.compared] if answer.compared else [])]
    names = [str(i) for i in range(1, len(answer.plans) + 1)] + ["now"]
    unit, name = cells.time_unit(plans)
    head = ["#", "machines", "cost USD", f"time {name}", "chance", "USD/h"]
    costs, times = cells.cost_cells(plans), cells.time_cells(plans, unit)
    rows = [
        [
            names[i],
            "<br>".join(
                _escape(line) for line in (*cells.machines_lines(plan), *cells.knee(plan, plans[0]))
            ),
            f"{costs[i][0]} ({costs[i][1]})",
            f"{times[i][0]} ({times[i][1]})",
            text.share(plan.estimate.chance),
            cells.price_cells(plans)[i][0],
        ]
        for i, plan in enumerate(plans)
    ]
    return [_row(head), "|--:|:--|--:|--:|--:|--:|", *map(_row, rows)]


def _row(given: Sequence[str]) -> str:
    return f"| {' | '.join(given)} |"


def _first(answer: Answer, asked: Asked) -> list[str]:
    if not answer.plans:
        return []
    plan = answer.plans[0]
    said = [(label, words) for label, words in advice.sentences(plan, asked) if words]
    items = "\n".join(f"* *{label}*: {_escape(words)}" for label, words in said)
    return [_escape(advice.headline(answer, asked)), items, *_code(plan)]


def _code(plan: Plan) -> list[str]:
    line = launch_line(plan)
    fence = "~~~~" if "```" in line else "```"
    return [f"{fence}sh\n{line}\n{fence}"] if line else []


def _changes(answer: Answer) -> list[str]:
    if not answer.steps:
        return []
    items = [f"* {_escape(step.change)}: {_escape(step.effect)}" for step in answer.steps]
    return ["What would change the answer:\n\n" + "\n".join(items)]


def _checks(answer: Answer) -> list[str]:
    if not answer.checks:
        return []
    items = [f"* plan {check.rank}: {_escape(check_words(check))}" for check in answer.checks]
    runs = answer.checks[0].runs
    return [f"Verified with {runs:,} other runs each:\n\n" + "\n".join(items)]


def _infeasible(answer: Answer, asked: Asked) -> str:
    """The same lines as on a terminal, set as they are."""
    lines: list[Line] = infeasible.infeasible_lines(answer, asked, 80)
    return "```text\n" + "".join(f"{line.text}\n" for line in lines) + "```\n"


def _sentences(foreign: Sequence[str], between: str) -> str:
    """Several strings in a row; each is cut where it is too long, not the whole."""
    return between.join(map(_escape, foreign))


def _escape(foreign: str) -> str:
    return text.clean(foreign).translate(_SPECIAL)
