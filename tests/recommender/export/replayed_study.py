"""Exported files on many drawn paths, told against run: by hand, half a second a path.

    python -P tests/run.py tests.recommender.export.replayed_study [PATHS [TARGET [POLICY]]]

prints a row of the table of docs/research/simulation.md for each target and policy.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.recommender.export.test_replayed_paths import HOUR, PAIRS, POLL_S, case_of, compared


def row(target: str, policy: str, paths: int) -> str:
    """One target: run over told for time and cost, and what differs."""
    run, inputs = case_of(target, policy)
    with TemporaryDirectory() as folder:
        told, seen = compared(Path(folder) / "run", target, run, inputs, paths, POLL_S)
    both = told.ended & seen.ended
    time, cost = (
        getattr(seen, each)[both].mean() / getattr(told, each)[both].mean()
        for each in ("time_s", "cost_usd")
    )
    hours = [each.fallback_s.mean() / HOUR for each in (told, seen)]
    other = float((np.abs(seen.time_s - told.time_s)[both] > 0.02 * told.time_s[both]).mean())
    return (
        f"| `{target}` | {policy} | {paths} | {time:.4f} | {cost:.4f} "
        f"| {hours[0]:.2f} → {hours[1]:.2f} | {told.met.mean():.1%} → {seen.met.mean():.1%} "
        f"| {other:.1%} | {told.moves.mean():.2f} → {seen.moves.mean():.2f} |"
    )


def main(paths: int = 200, target: str = "", policy: str = "") -> None:
    """Print the table."""
    for each, rule in PAIRS:
        if target in ("", each) and policy in ("", rule):
            print(row(each, rule, paths), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
