"""Writes what the documentation quotes: `python tests/regenerate.py`, after figures change.

The golden files of the views are written by RECOMMEND_UPDATE_GOLDEN=1 pytest tests/recommender.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
NOW = "2026-11-21T12:00Z"
CALL = re.compile(r"```console\n\$ recommend ([^\n]*)\n.*?```", re.DOTALL)


def printed(words: str) -> str:
    """What `recommend` prints for some words, 80 columns wide, on a fixed day."""
    with tempfile.TemporaryDirectory() as empty:
        own = {
            "RECOMMEND_NOW": NOW,
            "COLUMNS": "80",
            "XDG_CONFIG_HOME": empty,
            "XDG_DATA_HOME": empty,
            "PYTHONPATH": str(ROOT),
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


def readme() -> str:
    """The README with the output of the calls it shows."""
    text = README.read_text("utf-8")
    return CALL.sub(lambda m: f"```console\n$ recommend {m[1]}\n{printed(m[1])}```", text)


if __name__ == "__main__":
    README.write_text(readme(), "utf-8")
