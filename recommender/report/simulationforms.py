"""A simulation as JSON, CSV and Markdown."""

import csv
import io
from typing import Any

from recommender.report import text, titles
from recommender.report.asked import Asked
from recommender.report.csvview import safe
from recommender.report.jsonview import plain, plan_object
from recommender.report.schemaname import SIMULATION_SCHEMA
from recommender.report.simulationview import (
    POLICY_TITLES,
    figure_rows,
    limit_words,
    plan_name,
    plan_words,
    policy_cells,
    policy_title,
    sentences,
)
from recommender.simulation import Quantiles, Simulation
from recommender.version import __version__

_COLUMNS = ("figure", "unit", "mean", "error", "p05", "p25", "p50", "p75", "p95", "p99", "form")
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#"})


def document(found: Simulation, asked: Asked) -> dict[str, Any]:
    """Everything as plain objects: seconds, USD, shares, six significant digits."""
    return {
        "schema": SIMULATION_SCHEMA,
        "provenance": {
            "tool": f"recommend {__version__}",
            "catalog": asked.catalog,
            "seed": found.seed,
        },
        "inputs": {
            "job": plain(asked.job),
            "limits": plain(asked.limits),
            "choice": plain(asked.choice),
            "progress": plain(asked.progress),
        },
        "simulation": {**plain(found), "plan": plan_object(found.plan)},
    }


def csv_text(found: Simulation) -> str:
    """One row per figure, state and limit, ended by CRLF."""
    made = io.StringIO(newline="")
    writer = csv.writer(made, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    writer.writerows([safe(cell) for cell in row] for row in _rows(found))
    return made.getvalue()


def _rows(found: Simulation) -> list[list[str]]:
    form = found.closed_form
    rows = [
        _figure("cost", "USD", found.cost, 1.0, form.cost_usd),
        _figure("time", "h", found.time, 3600.0, form.time_s / 3600.0),
        _typical(found),
        _figure("interruptions", "", found.interruptions, 1.0, None),
        _figure("lost work", "h", found.lost, 3600.0, None),
    ]
    chances = [(limit_words(k), k.chance) for k in found.kept]
    shares = [(f"state: {s.name}", s.share) for s in found.states]
    if found.kept:
        chances.append(("all limits", found.chance))
    shares += [(f"chance: {name}", chance) for name, chance in chances]
    shares.append(("fallback rented", found.fallback_share))
    blank = [""] * (len(_COLUMNS) - 3)
    for run in found.policies:
        rows.append(_figure(f"cost, {run.name}", "USD", run.cost, 1.0, None))
        rows.append(_figure(f"time, {run.name}", "h", run.time, 3600.0, None))
        shares.append((f"chance in time, {run.name}", run.in_time))
    return rows + [[name, "share", f"{share:.6g}", *blank] for name, share in shares]


def _figure(name: str, unit: str, q: Quantiles, scale: float, form: float | None) -> list[str]:
    values = (q.mean, q.error, q.p05, q.p25, q.p50, q.p75, q.p95, q.p99)
    last = "" if form is None else f"{form:.6g}"
    return [name, unit, *(f"{value / scale:.6g}" for value in values), last]


def _typical(found: Simulation) -> list[str]:
    values = (found.typical_time_s / 3600.0, found.typical_time_error_s / 3600.0)
    blank = [""] * (len(_COLUMNS) - 4)
    return ["time, middle nine tenths", "h", *(f"{value:.6g}" for value in values), *blank]


def markdown(found: Simulation, asked: Asked, quiet: bool = False) -> str:
    """A table and a list, for issues and reports."""
    table = [
        "| | mean | ± | 5 % | 50 % | 95 % | 99 % | first order |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|",
        *(_markdown_row(*row) for row in figure_rows(found)),
    ]
    if quiet:
        return "\n".join(table) + "\n"
    spent = ", ".join(f"{s.name} {text.percent(s.share)}" for s in found.states if s.share > 0)
    said = [*sentences(found), ("time", spent), *(("note", note) for note in found.notes)]
    parts = [
        f"**{_escape(titles.job_line(asked))}**",
        f"{plan_name(found)}: {_escape(plan_words(found.plan))}; {found.runs:,} simulated runs,"
        f" seed {found.seed}.",
        "\n".join(table),
        *_policies(found),
        "\n".join(f"* *{label}*: {_escape(words)}" for label, words in said),
    ]
    return "\n\n".join(parts) + "\n"


def _policies(found: Simulation) -> list[str]:
    if not found.policies:
        return []
    rows = [POLICY_TITLES, (":--", *["--:"] * (len(POLICY_TITLES) - 1))]
    rows += [policy_cells(run) for run in found.policies]
    return [f"{policy_title(found)}:", "\n".join(f"| {' | '.join(row)} |" for row in rows)]


def _markdown_row(name: str, q: Quantiles, unit: float, form: str) -> str:
    mean, *rest = (text.three(x / unit) for x in (q.mean, q.p05, q.p50, q.p95, q.p99))
    return f"| {' | '.join([name, mean, f'{q.error / unit:.2g}', *rest, form])} |"


def _escape(foreign: str) -> str:
    return text.clean(foreign).translate(_SPECIAL)
