"""Runs `recommend` as `python -m recommender`."""

import sys

from recommender.cli import run

if __name__ == "__main__":
    sys.exit(run())
