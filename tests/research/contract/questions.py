"""The questions of the contract, as one types them; paths are relative to `tests/research`.

Where another question allows all that one allows, and more, the one names the other: its plan can
never be the better of the two.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from zlib import crc32

from recommender.job.preset_files import presets
from tests.research.mixes.questions import HOUR_S, MORE, TWICE, anchors

HERE = Path(__file__).parent
FOLDER = HERE.parent  # where questions are asked
PROVIDERS = ("aws", "gcp", "azure")
DEADLINES = ("6h", "12h", "24h", "72h", "7d")
ABOVE = (1.005, 1.02, 1.1)  # of the deadline at an edge
# Limits, quotas and ways to run under which mixes led answers (docs/research/mixes.md, 2026-11-27).
MIXED = {
    "96": ("24h", "2x", "24h --gang", "2x --gang"),
    "192": ("24h", "2x", "24h --gang", "2x --gang"),
    "384": ("2x", "2x --gang"),
    "small": ("2x", "1.3x"),
}
ANCHORED = {"96": "96 vCPU", "192": "192 vCPU", "384": "384 vCPU", "small": "small account"}
# Quota files of small accounts, and the providers whose machines they allow.
ACCOUNTS = {
    "aws-first": "--provider aws",
    "aws-spot": "--provider aws",
    "azure-few": "--provider azure",
    "gcp-few": "--provider gcp",
    "h100-only": "--provider aws --provider gcp",
    "three-clouds": "",
}
NARROWER = ("--market on-demand", "--market spot", "--no-mix", "--max-machines 2")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its class, one that allows all that it allows, and one of which it does."""

    kind: str
    words: str
    wider: str = ""
    narrower: str = ""


def questions(kinds: Iterable[str] = (), every: int = 1) -> list[Question]:
    """Every n-th question of some classes, or of all; any first part stands for the whole."""
    chosen: list[tuple[float, Question]] = []
    for kind in kinds or KINDS:
        asked = sorted(dict.fromkeys(KINDS[kind]()), key=_draw)[::every]
        chosen += [((number + 0.5) / len(asked), each) for number, each in enumerate(asked)]
    return [each for _, each in sorted(chosen, key=lambda one: (one[0], one[1].words))]


def _draw(question: Question) -> int:
    """A number that is the same in every run."""
    return crc32(question.words.encode())


def _deadline() -> Iterator[Question]:
    for name in presets():
        for short, more in pairwise((*DEADLINES, "")):
            wider = f"--deadline {more} {name}" if more else ""
            yield Question("deadline", f"--deadline {short} {name}", wider)
        yield Question("deadline", f"--deadline 72h --objective time {name}")


def _hourly() -> Iterator[Question]:
    for name in presets():
        for usd, more in pairwise(("10", "30", "100", "")):
            wider = f"--hourly {more} {name}" if more else ""
            yield Question("hourly", f"--hourly {usd} {name}", wider)
        yield Question("hourly", f"--deadline 72h --hourly 30 {name}", f"--deadline 72h {name}")


def _budget() -> Iterator[Question]:
    for anchor in anchors():
        if anchor.quotas == "none":
            name = anchor.preset
            asked = [f"--budget {times * anchor.cheapest_usd:.4g}" for times in (1.4, 2.5, 6.0)]
            for less, more in pairwise((*asked, "")):
                yield Question("budget", f"{less} {name}", f"{more} {name}" if more else "")
            both = f"--deadline 72h {asked[-1]} {name}"
            yield Question("budget", both, f"--deadline 72h {name}")


def _no_limit() -> Iterator[Question]:
    for name in presets():
        yield Question("no_limit", name)
        yield Question("no_limit", f"--market on-demand {name}")
        yield Question("no_limit", f"--objective cost {name}")


def _overhead() -> Iterator[Question]:
    for name in presets():
        for due in ("12h", "72h"):
            wider = f"--deadline {due} {name}"
            for share in ("5%", "2%", "1%"):
                words = f"--deadline {due} --max-overhead {share} {name}"
                yield Question("overhead", words, wider)
                wider = words


def _filter() -> Iterator[Question]:
    found = (*(f"--provider {each}" for each in PROVIDERS), "--market spot", "--market on-demand",
             "--max-machines 2", "--max-machines 64", "--gpu H100 --gpu A100")  # fmt: skip
    for name in presets():
        for each in found:
            words, plain = f"--deadline 24h {each} {name}", f"--deadline 24h {name}"
            if "64" in each:  # more than the usual number of machines
                yield Question("filter", words, narrower=plain)
            else:
                yield Question("filter", words, plain)


def _mix() -> Iterator[Question]:
    """The questions of the sweep of mixes where mixes led, and the same without a quota."""
    for anchor in anchors():
        file = next((file for file, name in ANCHORED.items() if name == anchor.quotas), "")
        for limit in MIXED.get(file, ()):
            due, _, gang = limit.partition(" ")
            limited = {
                "24h": "--deadline 24h",
                "2x": f"--deadline {TWICE * anchor.fastest_s / HOUR_S:.4g}h",
                "1.3x": f"--budget {MORE * anchor.cheapest_usd:.4g}",
            }[due]
            provider = "--provider aws " if file == "small" else ""
            asked = f"{limited} {provider}--quota contract/quotas/{file}.csv"
            wider = f"{asked} {anchor.preset}" if gang else ""
            yield Question("mix", " ".join(filter(None, (asked, gang, anchor.preset))), wider)


def _quota() -> Iterator[Question]:
    """Every preset under every quota file; of every second a narrower question, in turn."""
    for number, (name, account) in enumerate(product(presets(), ACCOUNTS)):
        limited = f"--deadline 72h {ACCOUNTS[account]} --quota contract/quotas/{account}.csv"
        wide = " ".join(f"{limited} {name}".split())
        yield Question("quota", wide, f"--deadline 72h {name}")
        if (number + number // len(ACCOUNTS)) % 2:
            narrow = NARROWER[number // 2 % len(NARROWER)]
            yield Question("quota", " ".join(f"{limited} {narrow} {name}".split()), wide)


def _metamorphic() -> Iterator[Question]:
    """What allows more than a deadline of 24 h, or makes it cheaper."""
    looser = ("--discount aws=20% --discount gcp=20% --discount azure=20%", "--confidence 80%",
              "--done 40%", "--mix")  # fmt: skip
    for name in presets():
        for each in looser:
            words = f"--deadline 24h {each} {name}"
            yield Question("metamorphic", words, narrower=f"--deadline 24h {name}")


def _refusal() -> Iterator[Question]:
    for name in presets():
        yield Question("refusal", f"--deadline 11m {name}")
        yield Question("refusal", f"--budget 0.3 {name}")
        yield Question("refusal", f"--deadline 24h --quota default-new --provider aws {name}")
        yield Question("refusal", f"--deadline 3h --hourly 2 {name}")


def _own_job() -> Iterator[Question]:
    folders = ("contract/jobs", "first_answers/jobs")
    found = [f"{folder}/{path.name}" for folder in folders
             for path in sorted((FOLDER / folder).glob("*.yaml"))]  # fmt: skip
    for job in found:
        for limit in ("--deadline 24h", "--deadline 5d", "--budget 300", "--hourly 30", ""):
            yield Question("own_job", f"{limit} {job}".strip())


def _elastic() -> Iterator[Question]:
    for name in presets():
        for due in ("24h", "72h"):
            words = f"--deadline {due} --elastic {name}"
            yield Question("elastic", words)
            yield Question("elastic", f"--deadline {due} --gang {name}", words)


def _edge() -> Iterator[Question]:
    """Deadlines just above the least, and above what cheap spot machines need (edges.csv)."""
    with (HERE / "edges.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            where = f"--provider {row['provider']} " if row["provider"] else ""
            above = ABOVE[:2] if row["provider"] else ABOVE
            dues = [f"--deadline {times * float(row['hours']):.4g}h" for times in above]
            for short, more in pairwise((*dues, "")):
                words, wider = (f"{due} {where}{row['preset']}" for due in (short, more))
                yield Question("edge", words, wider if more else "")


KINDS = {
    "deadline": _deadline,
    "hourly": _hourly,
    "budget": _budget,
    "no_limit": _no_limit,
    "overhead": _overhead,
    "filter": _filter,
    "mix": _mix,
    "quota": _quota,
    "metamorphic": _metamorphic,
    "refusal": _refusal,
    "own_job": _own_job,
    "elastic": _elastic,
    "edge": _edge,
}
