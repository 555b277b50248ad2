"""`python -m recommender`: the same as `recommend`."""

import sys

from recommender.cli import main

if __name__ == "__main__":
    sys.exit(main())
