"""Counts of requests in the text form that Prometheus reads."""

from collections import Counter
from dataclasses import field

from recommender.catalogs.frozen import dataclass

BOUNDS_S = (0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Metrics:
    """Requests by path and status, and how long they took."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    buckets: Counter[float] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=lambda: [0.0])

    def count(self, path: str, status: int, seconds: float) -> None:
        """One request is done."""
        self.requests[path, status] += 1
        self.seconds[0] += seconds
        for bound in BOUNDS_S:
            self.buckets[bound] += seconds <= bound

    def text(self, planning: int, kept_bytes: int) -> str:
        """All counts; `planning` questions are being planned, and so many bytes are kept."""
        total = sum(self.requests.values())
        lines = ["# TYPE recommend_requests_total counter"]
        lines += [
            f'recommend_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self.requests.items())
        ]
        lines.append("# TYPE recommend_request_seconds histogram")
        lines += [
            f'recommend_request_seconds_bucket{{le="{bound:g}"}} {self.buckets[bound]}'
            for bound in BOUNDS_S
        ]
        lines += [
            f'recommend_request_seconds_bucket{{le="+Inf"}} {total}',
            f"recommend_request_seconds_sum {self.seconds[0]:.6f}",
            f"recommend_request_seconds_count {total}",
            "# TYPE recommend_questions_planned gauge",
            f"recommend_questions_planned {planning}",
            "# TYPE recommend_answers_kept_bytes gauge",
            f"recommend_answers_kept_bytes {kept_bytes}",
        ]
        return "".join(f"{line}\n" for line in lines)
