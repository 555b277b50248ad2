"""The reference tables that the facts of the catalog are fitted on, if they are here."""

import os
from pathlib import Path

import pytest

from tests.research.snapshot.sources import SourceBook


def reference() -> Path:
    """Give the folder of the reference tables, or skip the test and say why."""
    folder = os.environ.get("RECOMMEND_REFERENCE_DATA")
    if not folder:
        pytest.skip("RECOMMEND_REFERENCE_DATA does not name the reference tables")
    return Path(folder)


def book() -> SourceBook:
    """Give an empty book of sources."""
    return SourceBook()
