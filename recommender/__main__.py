"""`python -m recommender`: the same as `recommend`."""

import sys

from recommender.cli import run

if __name__ == "__main__":
    sys.exit(run())
