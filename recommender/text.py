"""Words for people: how numbers and foreign text are shown, and which word was meant."""

import math
import re
import unicodedata
from collections.abc import Iterable

_SHOWN = 60  # characters of a foreign value that fit a line of an error message
_VENDOR = re.compile(r"^(nvidia|tesla|amd)[- ]")
_MEMORY = re.compile(r"[- ]\d+ ?gb$")  # A100-40GB is A100


def has_control(text: str) -> bool:
    """Say whether a text holds characters that could steer a terminal."""
    if text.isprintable():  # nearly every text; none of the categories below is printable
        return False
    return any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


def shown(value: object) -> str:
    """Make foreign text safe and short enough for an error message."""
    text = "".join("�" if has_control(c) else c for c in str(value)[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def shown_path(path: object) -> str:
    """Make a path safe for an error message; a long one keeps its end, the file's name."""
    text = str(path)
    return shown(text if len(text) <= _SHOWN else "…" + text[1 - _SHOWN :])


def nearest(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Find the choice that a misspelt word was probably meant to be.

    `cutoff` is the least share of equal letters (difflib's ratio).
    """
    from difflib import get_close_matches  # most calls misspell nothing

    by_lower = {choice.lower(): choice for choice in choices}
    bare = _VENDOR.sub("", word.lower()[:100])
    for name in (bare, _MEMORY.sub("", bare)):
        if name in by_lower:
            return by_lower[name]
    found = get_close_matches(word.lower()[:100], by_lower, n=3, cutoff=cutoff)
    found.sort(key=lambda each: sorted(each) != sorted(bare))  # swapped letters come first
    if found:
        return by_lower[found[0]]
    begun = sorted(each for each in by_lower if len(bare) > 2 and each.startswith(f"{bare}."))
    return by_lower[begun[0]] if begun else None


def unknown(what: str, word: str, choices: Iterable[str], listing: str = "") -> str:
    """Say that a word is not known, with the nearest spelling or what there is."""
    choices = tuple(choices)
    meant = nearest(word, choices)
    hint = f"did you mean {meant}?" if meant else listing or f"known: {', '.join(choices)}"
    return f"unknown {what} '{shown(word)}'; {hint}"


NO_MONEY = 1e-4  # USD: machines that are paid anyway cost next to nothing


def number(x: float) -> str:
    """Three significant digits: 0.0475, 4.87, 97, 1,230."""
    if not math.isfinite(x):
        return "unknown"
    if x == 0:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(x)))
    rounded = round(x, decimals)
    plain = f"{rounded:,.{max(0, decimals)}f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def exact(x: float) -> str:
    """A figure of which no digit may be lost, such as a quota to request: 2,304, 99.9."""
    return f"{x:,.10f}".rstrip("0").rstrip(".") if math.isfinite(x) else "unlimited"


def share(x: float) -> str:
    """A share in per cent, rounded down so that it promises nothing: 94.9 % becomes 94 %."""
    if not math.isfinite(x):
        return "unknown"
    percent = 100 * x
    if 0 < percent < 1:
        return "<1 %"
    return ">99 %" if percent >= 99.5 else f"{math.floor(percent + 1e-9)} %"


def percent(x: float) -> str:
    """A share in per cent, rounded: 74 %, 0.4 %, 99.8 %; never all of what is not all."""
    if 0 < abs(x) < 0.0005:
        return "<0.1 %"
    if 0.995 <= x < 1.0:
        return f"{math.floor(1000 * x + 1e-9) / 10} %"
    return f"{number(round(100 * x, 1) if abs(x) < 0.1 else round(100 * x))} %"


def usd(x: float) -> str:
    """Money for a whole job, as sure as estimates are: whole dollars from 10 on, two digits below.

    4.1, 0.81, 0.047, 97, 361.
    """
    if abs(x) < NO_MONEY:
        return "0"
    if abs(x) >= 1000 or not math.isfinite(x):
        return number(x)
    digits = 0 if abs(x) >= 9.95 else 1 - math.floor(math.log10(abs(x)))
    return number(float(round(x, digits)))


def duration(seconds: float) -> str:
    """A time with the unit that fits: 38 s, 24 min, 4.5 h, 5.2 d."""
    if not math.isfinite(seconds):
        return "unknown"
    if 0 < seconds < 1:
        return f"{number(seconds * 1e3)} ms"
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (360_000, 3600, "h")):
        if seconds < limit:
            return f"{_short(seconds / unit)} {name}"
    return f"{_short(seconds / 86_400)} d"


def _short(x: float) -> str:
    """One decimal below 10, none from 10 on."""
    return f"{x:,.0f}" if x >= 9.95 else number(round(x, 1))


def interruptions_words(some: float, mean: float, p95: float) -> str:
    """How often a run is interrupted, from the share of runs that are at all.

    A mean alone misleads: where it is 2, half of the runs may have none and 1 in 20 nine.
    """
    times = round(mean, 1)
    often = "once on average" if times == 1.0 else f"{number(times)} times on average"
    if math.isnan(some):
        return often
    if p95 <= 1.0:
        return f"in {share(some)} of the runs"
    return f"in {share(some)} of the runs; {often}, and 1 run in 20 has {p95:.0f} or more"
