"""Work on many regions at once."""

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from recommender.catalogs.errors import ProviderError
from recommender.catalogs.providers.aws.client import Tasks
from recommender.catalogs.providers.contract import Wanted

LEFT_BEHIND = """
import sys, threading
sys.path.append(".")
from tests.catalogs.providers.aws.test_tasks import wanted
from recommender.catalogs.providers.aws.client import Tasks
found, failed = Tasks({"hangs": threading.Event().wait, "works": lambda: 7}, 2).results(wanted(0.3))
print(found, failed["hangs"].reason)
"""


def wanted(seconds: float) -> Wanted:
    return Wanted({}, {}, datetime(2026, 11, 21, tzinfo=UTC), stop_at=time.monotonic() + seconds)


def test_results_and_failures_come_by_place_and_no_more_run_than_allowed() -> None:
    running, most, lock = [0], [0], threading.Lock()

    def task(number: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        if number == 3:
            raise ProviderError("aws", "server", "HTTP 500")
        with lock:
            running[0] -= number != 3
        return number

    tasks = {str(n): lambda n=n: task(n) for n in range(40)}
    found, failed = Tasks(tasks, 4).results(wanted(60))  # type: ignore[arg-type]
    assert found == {str(n): n for n in range(40) if n != 3}
    assert failed["3"].reason == "HTTP 500"
    assert most[0] <= 5  # the failed one never counted itself out


def test_a_program_ends_although_a_region_never_answers() -> None:
    """The threads of a pool are waited for as the interpreter ends: a nightly job would hang."""
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", LEFT_BEHIND], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "{'works': 7} no answer before the deadline\n", done.stderr
