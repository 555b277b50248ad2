"""What was measured so far, told line by line as it comes."""

from collections.abc import Callable
from dataclasses import dataclass

from .errors import Skipped
from .method import Result

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured so far, told as it comes."""

    results: list[Result]
    skipped: list[str]
    say: Say

    def keep(self, each: Result | Skipped) -> None:
        """Hold a figure, or why there is none."""
        if isinstance(each, Skipped):
            self.skipped.append(str(each))
            self.say(f"skipped: {each}")
            return
        self.results.append(each)
        low, high = each.interval
        share = f" {each.share:4.0%} of ceiling" if each.share is not None else ""
        doubt = " (disturbed)" if each.interference and each.interference.seen else ""
        width = (high - low) / 2 / each.median
        self.say(
            f"{each.benchmark:12}{each.case:36}{each.median:11.4g} {each.unit:10}"
            f"± {width:4.0%}{share}{doubt}"
        )
