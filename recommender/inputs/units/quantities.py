"""Parses numbers, counts (`15T tokens`), shares (`5%`), money (`$200`, `30 USD/h`) and bytes
(`112GB`).
"""

import math
import re
from collections.abc import Callable

from recommender.errors import UsageError
from recommender.text import shown

NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
MAX_VALUE = 1e18  # more than this of anything is a slip
_ANY = "write a number such as 256, 8e9, 1.3B or 15T"
_SHARE_INSTEAD = "write a share such as 5% or 0.05"

_COUNT = rf"({NUMBER})\s*([kKmMbBgGtT]?)(?:\s*([A-Za-z][A-Za-z/ ]*))?"
_SHARE = rf"({NUMBER})\s*(%?)"
MAX_USD = 1e9
_HOUR = r"(?:/|per|an)\s*(?:h|hr|hour)$"


def refusal(name: str, text: str, why: str, instead: str) -> UsageError:
    """Build the error of one value: what failed, the value, why, what to write."""
    if not text.strip():
        return UsageError(f"{name} is empty; {instead}")
    return UsageError(f"{name} {shown(text)} {why}; {instead}")


def refuse_sign(name: str, text: str, instead: str) -> None:
    """Refuse a negative or non-finite number with its own message, before parsing."""
    word = text.strip().lower().lstrip("+-$ ")
    if word.startswith(("nan", "inf")):
        raise refusal(name, text, "is not a finite number", instead)
    if text.strip().lstrip("$ ").startswith("-"):
        raise refusal(name, text, "is negative", instead)


def scaled(digits: str, suffix: str) -> float:
    """Multiply a number as written by its suffix, exactly if possible."""
    value, scale = float(digits), SUFFIXES[suffix.lower()]
    if scale == 1 or not math.isfinite(value):
        return value
    # Through the decimal digits: float(70.3) * 1e9 would be off by one unit in the last place.
    return float(f"{digits}e{len(str(scale)) - 1}") if "e" not in digits.lower() else value * scale


def refuse_size(name: str, text: str, value: float, instead: str, most: float = MAX_VALUE) -> float:
    """Refuse zero, overflow and absurd sizes; return other values."""
    if value == 0:
        raise refusal(name, text, "is zero", instead)
    if value < 1 / MAX_VALUE:
        raise refusal(name, text, "is absurdly small", instead)
    if not value <= most:
        raise refusal(name, text, f"is absurdly large (above {most:g})", instead)
    return value


def parse_count(
    text: str,
    name: str = "value",
    units: tuple[str, ...] = (),
    *,
    most: float = MAX_VALUE,
    instead: str = _ANY,
) -> float:
    """Read a count such as `15T tokens`, `1.3B`, `8e9`; `units` are the allowed suffixes."""
    refuse_sign(name, text, instead)
    found = re.fullmatch(_COUNT, text.strip())
    if not found:
        raise refusal(name, text, "is not a number", instead)
    digits, suffix, unit = found.groups()
    if unit and f"{suffix}{unit.strip()}".lower() in units:  # 256 tokens are no 256 T
        suffix = unit = ""
    if unit and unit.strip().lower() not in units:
        raise refusal(name, text, f"has the unit '{shown(unit.strip())}'", instead)
    return refuse_size(name, text, scaled(digits, suffix), instead, most)


def parse_whole(
    text: str,
    name: str = "value",
    units: tuple[str, ...] = (),
    *,
    most: float = MAX_VALUE,
    instead: str = _ANY,
) -> int:
    """Read a count that must be a whole number."""
    value = parse_count(text, name, units, most=most, instead=instead)
    if value != int(value):
        raise refusal(name, text, "is not a whole number", f"write {max(1, round(value))}")
    return int(value)


_CURRENCY = re.compile(r"([A-Z]{3})\s*=\s*([^@]+)(?:@\s*(\d{4}-\d\d-\d\d))?")


def parse_currency(text: str, name: str) -> tuple[str, float, str]:
    """A currency, what a USD is in it, and the day of that rate: "EUR=0.86@2026-11-27"."""
    instead = "write the currency and what 1 USD is in it: EUR=0.86 or EUR=0.86@2026-11-27"
    found = _CURRENCY.fullmatch(text.strip())
    if not found:
        raise refusal(name, text, "states no rate", instead)
    code, rate, day = found.groups()
    return code, parse_count(rate, name, instead=instead), day or ""


def count_of(
    *examples: str, least: float = 0.0, most: float = MAX_VALUE, units: tuple[str, ...] = ()
) -> Callable[[str, str], float]:
    """Make a parser of one quantity's counts, with its examples and bounds."""
    instead = f"write {' or '.join(examples)}"

    def parse(text: str, name: str) -> float:
        value = parse_count(text, name, units, most=most, instead=instead)
        if value < least:
            raise refusal(name, text, f"is absurdly small (below {least:g})", instead)
        return value

    return parse


def whole_of(
    *examples: str, most: float = MAX_VALUE, units: tuple[str, ...] = ()
) -> Callable[[str, str], int]:
    """Make a parser of whole numbers up to `most`, whose errors quote the examples."""
    instead = f"write {' or '.join(examples)}"
    return lambda text, name: parse_whole(text, name, units, most=most, instead=instead)


def format_count(value: float) -> str:
    """Write a count so that `parse_count` reads exactly the same value: 1.3B, 15T, 939344."""
    for suffix in ("T", "B", "M", "k"):
        if value >= SUFFIXES[suffix.lower()]:
            digits = f"{value / SUFFIXES[suffix.lower()]:.6g}"
            if scaled(digits, suffix) == value:
                return f"{digits}{suffix}"
    return str(int(value)) if value == int(value) and value < 1e15 else repr(float(value))


def parse_share(
    text: str,
    name: str = "value",
    *,
    zero: bool = False,
    one: bool = False,
    instead: str = _SHARE_INSTEAD,
) -> float:
    """Read a share such as `5%` or `0.05`; `zero` and `one` permit 0 and 100 %."""
    refuse_sign(name, text, instead)
    found = re.fullmatch(_SHARE, text.strip())
    if not found:
        raise refusal(name, text, "is not a share", instead)
    digits, percent = found.groups()
    value = float(digits) / 100 if percent else float(digits)
    if not percent and value >= 1:
        if value == 1 and one:
            instead = "write 100% or 1%"
        elif value < 100:
            instead = f"write {shown(digits)}% or {value / 100:g}"
        raise refusal(name, text, "is not a share below 1", instead)
    if value > 1 or (value == 1 and not one):
        most = "more than 100 %" if one else "100 % or more"
        raise refusal(name, text, f"is {most}", instead)
    return value if value == 0 and zero else refuse_size(name, text, value, instead)


def format_share(value: float) -> str:
    """Write a share so that `parse_share` reads exactly the same value."""
    digits = f"{value * 100:.6g}"
    return f"{digits}%" if float(digits) / 100 == value else repr(value)


_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")  # every price of most files, and quickly read
_MONEY = rf"(?:US)?(\$?)\s*({NUMBER})\s*([kKmM]?)\s*(\$|USD)?"
_BYTES = rf"({NUMBER})\s*([kKMGTPE]?)(i?)B"
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}


def parse_money(text: str, name: str = "--budget", *, zero: bool = False) -> float:
    """Read an amount of money such as `200`, `$200`, `1.5k`, `200 USD`; in USD."""
    if _PLAIN.fullmatch(text) and 1 / MAX_VALUE <= float(text) <= MAX_USD:
        return float(text)
    instead = "write 200, $200 or 1.5k"
    if re.search(_HOUR, text.rstrip(), re.IGNORECASE):
        instead = "write a total such as 200, or --hourly for a limit per hour"
        raise refusal(name, text, "is a price per hour, not a total", instead)
    return _usd(text, text, name, instead, zero)


def parse_hourly(text: str, name: str = "--hourly") -> float:
    """Read a price per hour such as `30`, `$30/h`, `30 USD/h`; in USD per hour."""
    amount = re.sub(_HOUR, "", text.rstrip(), flags=re.IGNORECASE)
    return _usd(amount, text, name, "write 30 or $30/h")


def _usd(amount: str, text: str, name: str, instead: str, zero: bool = False) -> float:
    refuse_sign(name, text, instead)
    for sign in ("€", "£", "¥", "EUR", "GBP", "JPY", "CNY"):
        if sign in amount.upper():
            raise refusal(name, text, "is not in US dollars, the currency of the prices", instead)
    if "," in amount:
        raise refusal(name, text, "holds a comma", "write 1500 or 1.5k")
    found = re.fullmatch(_MONEY, amount.strip(), re.IGNORECASE)
    if not found or (found[1] and found[4]):
        raise refusal(name, text, "is not an amount of money", instead)
    usd = scaled(found[2], found[3])
    return usd if usd == 0 and zero else refuse_size(name, text, usd, instead, MAX_USD)


def parse_bytes(text: str, name: str = "size", *, bare: bool = False) -> float:
    """Read a size such as `112GB` (10^9) or `150GiB` (2^30); `bare` allows plain bytes."""
    instead = "write 112GB or 150GiB"
    refuse_sign(name, text, instead)
    if re.fullmatch(NUMBER, text.strip()):
        if bare:
            return refuse_size(name, text, float(text), instead)
        raise refusal(name, text, "has no unit", f"write {shown(text.strip())}GB")
    found = re.fullmatch(_BYTES, text.strip())
    if not found or (found[3] and not found[2]):
        raise refusal(name, text, "is not a size", instead)
    power = _POWER[found[2].lower()]
    value = float(found[1]) * (1024**power if found[3] else 1000**power)
    return refuse_size(name, text, value, instead, MAX_VALUE)


def format_bytes(size: float) -> str:
    """Write a size so that `parse_bytes` reads exactly the same value: 112GB, 1.5GiB."""
    for letter in ("T", "G", "M", "k"):
        for binary in ("", "i"):
            unit = (1024 if binary else 1000) ** _POWER[letter.lower()]
            digits = f"{size / unit:.6g}"
            if size >= unit and float(digits) * unit == size:
                return f"{digits}{letter}{binary}B"
    return f"{size!r}B"
