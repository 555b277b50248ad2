"""Reads JSON that others may have damaged."""

import json
from typing import Any


def parsed(text: str | bytes) -> Any:
    """Read JSON.

    Raises:
        ValueError: it is none, or lists lie in lists deeper than the parser goes.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
