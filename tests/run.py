"""Runs a module of `tests` against the installed package: `python -P tests/run.py MODULE ...`.

`python -m` would find the source folder `recommender` first, which lacks catalogs and benchmarks.
"""

import sys
from pathlib import Path
from runpy import run_module

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    del sys.argv[0]
    run_module(sys.argv[0], run_name="__main__", alter_sys=True)
