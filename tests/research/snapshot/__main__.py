"""Builds the shipped snapshot.

python -P tests/run.py tests.research.snapshot --reference DIR [--out DIR]
"""

import argparse
from pathlib import Path

from recommender.catalogs.load import SNAPSHOT, load
from recommender.catalogs.serialize import write_catalog
from recommender.catalogs.validation import publication_problems
from tests.research.snapshot.assemble import snapshot_tables
from tests.research.snapshot.past_prices import write_past_prices


def main() -> int:
    """Write the snapshot, read it back and say what is wrong with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True, help="folder of reference tables")
    parser.add_argument("--out", type=Path, default=SNAPSHOT, help="folder to write")
    options = parser.parse_args()
    manifest = write_catalog(options.out, snapshot_tables(options.reference))
    catalog = load(manifest)
    types = catalog.instance_types.values()
    write_past_prices(options.out.parent, options.reference, catalog.offers, types)
    for date in catalog.price_dates():
        print(f"{date.provider:6} {date.market:10} {date.offers:6} {date.oldest} to {date.newest}")
    problems = publication_problems(catalog)
    for problem in problems:
        print(f"guard: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
