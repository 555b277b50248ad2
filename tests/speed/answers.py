"""What each kind of question takes in a process of its own, and what it loads. By hand:

    python tests/speed/answers.py [--write]

First one question of each class against an import of the libraries, the measure that targets are
set in; then cases of tests/golden_answers/cases.toml. All take turns, so that a busy machine slows
all alike; processor seconds hardly feel it. `--write` puts the tables into `answers.md` next to
this file. The last line is JSON.
"""

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden_answers"
OWN = ("recommender", "catalogs", "benchmarks")
REPEATS = 7
WARM_UP = 1  # bytecode is compiled, files are in the page cache
COUNTED = "deadline"  # the case whose modules are counted
LIBRARIES = "libraries"
CLASSES = {
    LIBRARIES: ["-c", "import numpy, pulp, typer, rich"],
    **{
        name: ["-m", "recommender", *words.split()]
        for name, words in (
            ("a deadline", "--deadline 24h resnet50-imagenet"),
            ("a large network", "--deadline 48h llama3-70b-sft"),
            ("a price per hour", "--hourly 20 llama3-8b-sft"),
            ("a budget", "--budget 200 llama3-8b-sft"),
            ("no limit", "llama3-8b-sft"),
            ("overhead", "--deadline 24h --max-overhead 5% llama3-8b-sft"),
            ("a refusal", "--deadline 20m llama3-8b-sft"),
            ("two limits refused", "--deadline 30m --budget 8 vit-b-imagenet"),
        )
    },
}
CASES = (
    "deadline", "budget", "hourly", "curve", "quota-file", "mix", "mix-quota", "mix-elastic",
    "own-offers", "checkpoints-memory", "experts", "measured", "verified", "job-own",
    "infeasible-budget", "infeasible-quota", "infeasible-deadline", "explain", "frontier",
    "simulate", "backtest", "trace-fit", "bench-compare", "calibrate", "catalog-status",
    "catalog-show", "jobs-show-own", "help", "refused-many",
)  # fmt: skip
COUNT = f"""
import json, sys
from recommender.cli import main
main(sys.argv[1:])
found = dict(sys.modules)
own = [m.__file__ for name, m in found.items() if name.partition(".")[0] in {OWN}]
lines = sum(len(open(path, "rb").readlines()) for path in own if path)
said = dict(own=len(own), lines=lines, all=len(found))
print(json.dumps(said), file=sys.stderr)
"""


def calls() -> dict[str, list[str]]:
    """The words of each case."""
    tables = tomllib.loads((GOLDEN / "cases.toml").read_text("utf-8"))
    every = {name: call for table in tables.values() for name, call in table.items()}
    return {name: shlex.split(every[name]) for name in CASES}


def environment(folder: Path) -> dict[str, str]:
    """The environment of a user without settings, with compiled modules."""
    own = {
        "RECOMMEND_NOW": "2026-11-21T12:00Z",
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "HOME": str(folder / "home"),
        **{f"XDG_{name}_HOME": str(folder / "home") for name in ("CONFIG", "DATA", "CACHE")},
    }
    return {"PATH": os.environ["PATH"], **own}


@dataclass(frozen=True, slots=True)
class Taken:
    """What one process took and said."""

    wall_s: float
    processor_s: float
    memory_mib: float  # at its peak
    error: str


def process(words: list[str], folder: Path) -> Taken:
    """One process; it runs in a fresh copy of the files."""
    here = folder / "here"
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(GOLDEN / "files", here)
    with (folder / "said").open("w+") as said:
        start = perf_counter()
        running = subprocess.Popen(
            [sys.executable, "-P", *words],
            cwd=here,
            env=environment(folder),
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        _, status, used = os.wait4(running.pid, 0)
        seconds = perf_counter() - start
        running.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        error = said.read()
    assert running.returncode in (0, 2, 3), (words, error)
    return Taken(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, error)


def measured(folder: Path) -> dict[str, list[Taken]]:
    """Every class of question and every case, in turns."""
    every = CLASSES | {name: ["-m", "recommender", *words] for name, words in calls().items()}
    taken: dict[str, list[Taken]] = {name: [] for name in every}
    for repeat in range(WARM_UP + REPEATS):
        for name, words in every.items():
            found = process(words, folder)
            if repeat >= WARM_UP:
                taken[name].append(found)
    return taken


def loaded(folder: Path) -> dict[str, int]:
    """Modules of ours, their lines, and all modules that a cold answer loads."""
    said = process(["-c", COUNT, *calls()[COUNTED]], folder).error
    found: dict[str, int] = json.loads(said.splitlines()[-1])
    return found


def by_class(taken: dict[str, list[Taken]]) -> list[str]:
    """The table of the classes: least seconds, how often those of the libraries, and memory."""
    least = {
        name: (min(t.wall_s for t in taken[name]), min(t.processor_s for t in taken[name]))
        for name in CLASSES
    }
    wall_0, processor_0 = least[LIBRARIES]
    lines = [
        "| question | least | × libraries | processor | × libraries | MiB |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {name}: `{CLASSES[name][-1] if name == LIBRARIES else ' '.join(CLASSES[name][2:])}` "
        f"| {wall:.2f} | {wall / wall_0:.1f} | {processor:.2f} | {processor / processor_0:.1f} "
        f"| {max(t.memory_mib for t in taken[name]):.0f} |"
        for name, (wall, processor) in least.items()
    ]
    return [*lines, ""]


def page(taken: dict[str, list[Taken]], counts: dict[str, int], load: float) -> str:
    """Both tables in Markdown."""
    every = calls()
    words = f"recommend {shlex.join(every[COUNTED])}"
    lines = [
        "# What a question takes",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, load before "
        f"{load:.1f}; seconds of a new process, {REPEATS} of each. "
        f"`python tests/speed/answers.py --write`",
        "",
        f"`{words}` loads {counts['own']} modules of ours with {counts['lines']:,} lines, "
        f"{counts['all']:,} modules in all.",
        "",
        *by_class(taken),
        "| case | min | median | max |",
        "|:--|--:|--:|--:|",
    ]
    for name in calls():
        seconds = [t.wall_s for t in taken[name]]
        figures = (min(seconds), median(seconds), max(seconds))
        lines.append(f"| {name} | {' | '.join(f'{s:.2f}' for s in figures)} |")
    lines += ["", "On a busy machine the least of a case is what to compare."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print the tables, end with JSON."""
    load = os.getloadavg()[0]
    with TemporaryDirectory() as name:
        folder = Path(name)
        taken, counts = measured(folder), loaded(folder)
    text = page(taken, counts, load)
    print(text)
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text, "utf-8")
    seconds = {name: [round(t.wall_s, 4) for t in found] for name, found in taken.items()}
    print(json.dumps({"modules": counts, "seconds": seconds}))


if __name__ == "__main__":
    main()
