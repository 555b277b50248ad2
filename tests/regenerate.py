"""Writes what the documentation quotes: `python -P tests/regenerate.py`, after figures change.

Also the table of docs/research/accuracy.md, where RECOMMEND_REFERENCE_DATA names the tables.
Golden files are written by `make golden`.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # of `tests`, after what is installed

from recommender.plan.accuracy import RUNS_TABLE, TABLE, Finding  # noqa: E402
from tests.research.accuracy.committed import findings_text, runs_text  # noqa: E402
from tests.research.accuracy.run_table import predicted_runs  # noqa: E402
from tests.research.accuracy.studies import STUDIES  # noqa: E402

ACCURACY = ROOT / "docs" / "research" / "accuracy.md"
README = ROOT / "README.md"
QUOTING = ("simulate.md", "policies.md", "traces.md", "research/accuracy-later.md")
PAGES = (README, *(ROOT / "docs" / name for name in QUOTING))
NOW = "2026-11-21T12:00Z"
CALL = re.compile(r"```console\n\$ recommend ([^\n]*)\n(.*?)```", re.DOTALL)
# Studies on rows that another study has as well, by the beginning of their keys.
ROWS_OF_OTHERS = (
    "training-one-unstated", "training-laboratory", "later-unstated",
    "scaling-several", "scaling-fsdp", "one-row-",
    "gavel-k80-links", "gavel-p100-links", "gavel-v100-links", "cmdare-cluster-k80-own",
    "cmdare-cluster-p100-2ps-placed", "layout-", "other-precision-",
)  # fmt: skip
LEFT_OUT = "…"  # a line of a page that stands for those before or after an excerpt


def printed(words: str) -> str:
    """What `recommend` prints for some words, 80 columns wide, on a fixed day."""
    with tempfile.TemporaryDirectory() as empty:
        own = {
            "RECOMMEND_NOW": NOW,
            "COLUMNS": "80",
            "XDG_CONFIG_HOME": empty,
            "XDG_DATA_HOME": empty,
        }
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RECOMMEND_")}
        done = subprocess.run(
            [sys.executable, "-m", "recommender", *words.split()],
            env={**kept, **own, "PYTHONIOENCODING": "utf-8"},
            cwd=empty,
            capture_output=True,
            timeout=120,
            check=True,
        )
    return done.stdout.decode()


def page(path: Path) -> str:
    """A page with the output of the calls it shows."""
    return CALL.sub(_shown, path.read_text("utf-8"))


def _shown(call: re.Match[str]) -> str:
    return f"```console\n$ recommend {call[1]}\n{_excerpt(call[2], printed(call[1]))}```"


def _excerpt(before: str, output: str) -> str:
    """The part of an output that a page shows: from a known line on, or as many lines as before."""
    lines = before.splitlines()
    if lines[0] != LEFT_OUT:
        return output
    ends = lines[-1] == LEFT_OUT
    lines = lines[1:-1] if ends else lines[1:]
    every = output.splitlines()
    known = lines[0].split()[:3]
    start = next(at for at, line in enumerate(every) if line.split()[:3] == known)
    part = every[start : start + len(lines)] if ends else every[start:]
    return "\n".join([LEFT_OUT, *part, *([LEFT_OUT] if ends else []), ""])


def accuracy(findings: Sequence[Finding]) -> str:
    """docs/research/accuracy.md with the table of all studies."""
    text = ACCURACY.read_text("utf-8")
    head, _, rest = text.partition("<!-- studies -->\n")
    made = _table(findings) + "\n" + _pooled(findings)
    return f"{head}<!-- studies -->\n{made}{rest[rest.index('<!-- end -->') :]}"


def _table(findings: Sequence[Finding]) -> str:
    heads = ("study", "points", "mean", "median", "p90", "bias", "in span", "target", "published")
    rows = [heads, ("---",) * len(heads), *map(_row, findings)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _pooled(findings: Sequence[Finding]) -> str:
    """How many of all held-out points lie inside their spans."""
    runs = _inside(each for each in findings if each.key == "runs-all")
    speeds = _inside(
        each
        for each in findings
        if not each.key.startswith("runs-") and not each.key.startswith(ROWS_OF_OTHERS)
    )
    return f"All together, each row once: {speeds} held-out speeds inside, {runs} spot runs.\n"


def _inside(findings: Iterable[Finding]) -> str:
    scores = [each.score for each in findings if each.score and each.score.coverage is not None]
    points = sum(score.points for score in scores)
    inside = sum((score.coverage or 0.0) * score.points for score in scores)
    return f"{100.0 * inside / points:.0f} % of {points:,}"


def _row(each: Finding) -> tuple[str, ...]:
    facts, s = each.target.words, each.score
    assert s is not None
    digits = 1 if s.unit == "%" else 3
    figures = ["" if x is None else f"{x:.{digits}f}" for x in (s.mean, s.median, s.p90)]
    bias = "" if s.bias is None else f"{s.bias:+.{digits}f}"
    span = "" if s.coverage is None else f"{100 * s.coverage:.0f} %"
    span += " **out**" if s.spans_met is False else ""
    asked = f"{facts}: {'met' if each.target.met_by(s) else '**missed**'}" if facts else ""
    unit = "" if s.unit == "share" else f" ({s.unit})"
    name = f"`{each.key}` {each.subject}{unit}"
    return (name, f"{s.points:,}", *figures, bias, span, asked, each.published)


if __name__ == "__main__":
    runs = runs_text(predicted_runs())
    (ROOT / "recommender" / "plan" / RUNS_TABLE).write_text(runs, "utf-8")
    for each in PAGES:
        each.write_text(page(each), "utf-8")
    if os.environ.get("RECOMMEND_REFERENCE_DATA"):
        reference = Path(os.environ["RECOMMEND_REFERENCE_DATA"])
        found = [study.finding(reference) for study in STUDIES]
        ACCURACY.write_text(accuracy(found), "utf-8")
        (ROOT / "recommender" / "plan" / TABLE).write_text(findings_text(found), "utf-8")
