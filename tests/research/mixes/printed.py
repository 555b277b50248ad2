"""What an installed earlier version answers, as records to compare with (`--before`):

    python -P tests/run.py tests.research.mixes.printed RECOMMEND --out FILE

RECOMMEND is its command. Questions without quotas only: its plans are read from `--json`, and
evaluated under today's law by `python -P tests/run.py tests.research.mixes --before FILE`.
"""

import argparse
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any

from recommender.performance.checkpoint import CHECKPOINT_PATHS
from recommender.plan.limits import Limits
from tests.research.mixes.questions import HOUR_S, Question, limits_of, questions
from tests.research.mixes.records import Asked, PlanRecord, Rented, line


def main() -> None:
    """Ask every question without quotas of jobs as they are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recommend", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with given.out.open("w", encoding="utf-8") as file:
        for question in questions(("| none |", "| default")):
            file.write(line(printed(given.recommend, question)) + "\n")


def printed(recommend: Path, question: Question) -> Asked:
    """One answer; the seconds are those of the whole process."""
    limits, start = limits_of(question), monotonic()
    words = [str(recommend), *_words(limits), question.preset, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    seconds = round(monotonic() - start, 3)
    if done.returncode not in (0, 3):
        return Asked(question, seconds, "failed", 1.0, "", None, failed=done.stderr.strip()[:200])
    answer = json.loads(done.stdout)
    first = _record(answer["plans"][0], limits) if answer["plans"] else None
    proof = answer["proof"] or {}
    return Asked(question, seconds, answer["status"], proof.get("gap", 1.0), "", first)


def _words(limits: Limits) -> Iterable[str]:
    """The limits as flags that every version knows."""
    if limits.deadline_s is not None:
        yield from ("--deadline", f"{limits.deadline_s / HOUR_S:.6g}h")
    if limits.budget_usd is not None:
        yield from ("--budget", f"{limits.budget_usd:.6g}")
    if limits.max_overhead is not None:
        yield from ("--max-overhead", f"{100.0 * limits.max_overhead:g}%")


def _record(plan: dict[str, Any], limits: Limits) -> PlanRecord:
    """The plan; times are of means that both versions print."""
    places = tuple((site["region"], site["zone"]) for site in plan["sites"])
    fallback, estimate = plan["fallback"] or {}, plan["estimate"]
    cost_usd, time_s = estimate["cost"]["mean"], estimate["time"]["mean"]
    return PlanRecord(
        machines=tuple(_rented(each, places) for each in plan["machines"]),
        checkpoint_path=CHECKPOINT_PATHS.index(plan["checkpointing"]["path"]),
        fallback=tuple(_rented(each, ()) for each in fallback.get("machines", ())),
        fallback_share=fallback.get("probability", 0.0),
        cost_usd=cost_usd,
        time_s=time_s,
        chance=estimate["chance"],
        goal=time_s if limits.goal == "time" else cost_usd,
    )


def _rented(machines: dict[str, Any], places: tuple[tuple[str, str], ...]) -> Rented:
    here = ((machines["region"], machines["zone"]),)
    at = places if machines["market"] == "spot" and places else here
    return Rented(
        machines["count"],
        machines["provider"],
        machines["instance_type"],
        machines["gpu"],
        machines["market"],
        at,
    )


if __name__ == "__main__":
    main()
