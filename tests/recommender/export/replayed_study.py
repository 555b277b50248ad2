"""Exported scripts on many drawn paths, told against run: by hand, about a second a path.

    python -P tests/run.py tests.recommender.export.replayed_study [PATHS [TARGET [POLICY]]]

prints a row of the table of docs/research/simulation.md for each target and policy.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.recommender.export.test_replayed_paths import (
    CASE,
    DEADLINE_S,
    HOUR,
    POLICIES,
    POLL_S,
    TARGETS,
    compared,
    run_of,
)
from tests.recommender.risk.cases import path_inputs


def row(target: str, policy: str, paths: int) -> str:
    """One target: run over told for time and cost, and what differs."""
    inputs = path_inputs(CASE | POLICIES[policy])
    with TemporaryDirectory() as folder:
        told, seen = compared(
            Path(folder) / "run", target, run_of(target, inputs), inputs, paths, POLL_S
        )
    time, cost, late = told[0], told[1], [float((t[0] > DEADLINE_S).mean()) for t in (told, seen)]
    hours = [t[2].mean() / HOUR for t in (told, seen)]
    other = float((abs(seen[0] - time) > 0.02 * time).mean())
    return (
        f"| `{target}` | {policy} | {paths} | {seen[0].mean() / time.mean():.4f} "
        f"| {seen[1].mean() / cost.mean():.4f} | {hours[0]:.2f} → {hours[1]:.2f} "
        f"| {late[0]:.1%} → {late[1]:.1%} | {other:.1%} |"
    )


def main(paths: int = 200, target: str = "", policy: str = "") -> None:
    """Print the table."""
    for each in [target] if target else TARGETS:
        for rule in [policy] if policy else POLICIES:
            print(row(each, rule, paths), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
