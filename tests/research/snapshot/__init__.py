"""Builds the shipped snapshot from reference tables.

    python -P tests/run.py tests.research.snapshot

Each module turns some of the tables into rows of `catalogs.schema`. A module named
`facts_*.py` is found by itself; it offers

    def tables(reference: Path, sources: SourceBook) -> dict[str, list[Row]]

where a key is a table of `catalogs.tables.TABLES` ("fees") and `reference` is the folder that
holds `prices/`, `hardware/`, `measured/` and `spot/`.
"""
