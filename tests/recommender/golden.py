"""Exported files kept next to the tests; RECOMMEND_UPDATE_GOLDEN=1 replaces them."""

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden_answers" / "exported"


def check(name: str, text: str) -> None:
    """Compare a text with the file that keeps it, byte for byte."""
    path = FOLDER / name
    if os.environ.get("RECOMMEND_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    assert path.is_file(), f"no {name}; write it with RECOMMEND_UPDATE_GOLDEN=1"
    assert path.read_bytes().decode() == text
