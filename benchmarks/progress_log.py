"""The progress log: results so far, printed line by line as they come."""

from collections.abc import Callable
from dataclasses import dataclass

from .errors import Skipped
from .method import Result

Notify = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ProgressLog:
    """Collects results and reasons why there are none, and prints each as it comes."""

    results: list[Result]
    skipped: list[str]
    notify: Notify

    def record(self, each: Result | Skipped) -> None:
        """Add a result, or why there is none."""
        if isinstance(each, Skipped):
            self.skipped.append(str(each))
            self.notify(f"skipped: {each}")
            return
        self.results.append(each)
        low, high = each.interval
        share = f" {each.share:4.0%} of ceiling" if each.share is not None else ""
        doubt = " (disturbed)" if each.interference and each.interference.seen else ""
        width = (high - low) / 2 / each.median
        self.notify(
            f"{each.benchmark:12}{each.case:36}{each.median:11.4g} {each.unit:10}"
            f"± {width:4.0%}{share}{doubt}"
        )
