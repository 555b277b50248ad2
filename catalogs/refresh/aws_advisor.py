"""The public Spot Instance Advisor file: how often AWS takes machines back, by region.

Its form is not documented, so it is used only while it looks exactly as it always has.
"""

from typing import Any

from catalogs.errors import ProviderError
from catalogs.jsontext import parsed
from catalogs.refresh.aws_calls import Caller
from catalogs.refresh.aws_files import read_whole

_MOST_BYTES = 64 << 20  # some 3 MB in 2026
_RANGES = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")  # interruptions a month, index 0 to 4

Ranges = dict[tuple[str, str], int]  # index of the range by (instance type, region)


def read_advisor(caller: Caller, url: str) -> Ranges:
    """Read the range of interruption of every machine in every region, Linux.

    Raises:
        ProviderError: the file cannot be read, or does not look as it always has.
    """
    content = read_whole(caller, url, "aws-spot-advisor", _MOST_BYTES)
    try:
        return ranges_of(parsed(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"the spot advisor's file has changed its form ({type(error).__name__}: {error})"
        raise ProviderError("aws", "format", reason[:200]) from None


def ranges_of(tree: Any) -> Ranges:
    """Take the ranges out of the file; ValueError and the like where it looks otherwise."""
    labels = {each["index"]: each["label"] for each in tree["ranges"]}
    if labels != dict(enumerate(_RANGES)):
        raise ValueError("other ranges")
    found: Ranges = {}
    for region, systems in tree["spot_advisor"].items():
        for name, row in systems.get("Linux", {}).items():
            index, saving = row["r"], row["s"]
            whole = type(index) is int and type(saving) is int
            if not whole or not 0 <= index < len(_RANGES) or not -100 <= saving <= 100:
                raise ValueError("a range or saving that is none")
            found[name, region] = index
    if not found:
        raise ValueError("no machine")
    return found
