"""Words for people: how foreign text is shown, and which word was probably meant."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 60  # characters of a foreign value that fit a line of an error message


def has_control(text: str) -> bool:
    """Say whether a text holds characters that could steer a terminal."""
    return any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


def shown(value: object) -> str:
    """Make foreign text safe and short enough for an error message."""
    text = "".join("�" if has_control(c) else c for c in str(value)[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def shown_path(path: object) -> str:
    """Make a path safe for an error message; a long one keeps its end, the file's name."""
    text = str(path)
    return shown(text if len(text) <= _SHOWN else "…" + text[1 - _SHOWN :])


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Find the choice that a misspelt word was probably meant to be."""
    by_lower = {choice.lower(): choice for choice in choices}
    found = get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def unknown(what: str, word: str, choices: Iterable[str], listing: str = "") -> str:
    """Say that a word is not known, with the nearest spelling or what there is."""
    choices = tuple(choices)
    meant = nearest(word, choices)
    hint = f"did you mean {meant}?" if meant else listing or f"known: {', '.join(choices)}"
    return f"unknown {what} '{shown(word)}'; {hint}"
