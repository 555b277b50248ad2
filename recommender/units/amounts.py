"""Money in USD (`$200`, `1.5k`, `30 USD/h`) and sizes in bytes (`112GB`, `150GiB`)."""

import re

from recommender.text import shown
from recommender.units.numbers import MOST, NUMBER, refusal, refuse_sign, refuse_size, scaled

MOST_USD = 1e9
_HOUR = r"\s*(?:/|per|an)\s*(?:h|hr|hour)\s*$"
_MONEY = rf"(?:US)?(\$?)\s*({NUMBER})\s*([kKmM]?)\s*(\$|USD)?"
_BYTES = rf"({NUMBER})\s*([kKMGTPE]?)(i?)B"
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}


def parse_money(text: str, name: str = "--budget") -> float:
    """Read an amount of money such as `200`, `$200`, `1.5k`, `200 USD`; in USD."""
    instead = "write 200, $200 or 1.5k"
    if re.search(_HOUR, text, re.IGNORECASE):
        instead = "write a total such as 200, or --hourly for a limit per hour"
        raise refusal(name, text, "is a price per hour, not a total", instead)
    return _usd(text, text, name, instead)


def parse_hourly(text: str, name: str = "--hourly") -> float:
    """Read a price per hour such as `30`, `$30/h`, `30 USD/h`; in USD per hour."""
    return _usd(re.sub(_HOUR, "", text, flags=re.IGNORECASE), text, name, "write 30 or $30/h")


def _usd(amount: str, text: str, name: str, instead: str) -> float:
    refuse_sign(name, text, instead)
    for sign in ("€", "£", "¥", "EUR", "GBP", "JPY", "CNY"):
        if sign in amount.upper():
            raise refusal(name, text, "is not in US dollars, the currency of the prices", instead)
    if "," in amount:
        raise refusal(name, text, "holds a comma", "write 1500 or 1.5k")
    found = re.fullmatch(_MONEY, amount.strip(), re.IGNORECASE)
    if not found or (found[1] and found[4]):
        raise refusal(name, text, "is not an amount of money", instead)
    return refuse_size(name, text, scaled(found[2], found[3]), instead, MOST_USD)


def format_money(usd: float) -> str:
    """Write an amount so that `parse_money` gives it back exactly: 200 USD."""
    text = f"{usd:.2f}".removesuffix(".00")
    return f"{text if float(text) == usd else repr(float(usd))} USD"


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
    return refuse_size(name, text, value, instead, MOST)


def format_bytes(size: float) -> str:
    """Write a size so that `parse_bytes` gives it back exactly: 112GB, 1.5GiB."""
    for letter in ("T", "G", "M", "k"):
        for binary in ("", "i"):
            unit = (1024 if binary else 1000) ** _POWER[letter.lower()]
            digits = f"{size / unit:.6g}"
            if size >= unit and float(digits) * unit == size:
                return f"{digits}{letter}{binary}B"
    return f"{size!r}B"
