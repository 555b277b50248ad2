"""Whether the benchmarks of machines measure what is there, against other programs. By hand:

    python tests/speed/benchmarks.py [FOLDER] [--write]

Matrix products against a call of the BLAS library through ctypes, checkpoints against `dd` with
fsync, the lines through the times of collectives among four local processes (Gloo where torch is
there, and plain sockets), and stalls that were planted with sleeps. FOLDER is on the disk to
measure. `--write` puts the table into `benchmarks.md` next to this file.

It holds on a shared machine too: ours and the other program take turns, the order turns around
each time, and what counts is the median of the ratios of neighbours with its 95 % interval by
order statistics. A row holds only where the whole interval is inside the target. R² gets its
interval by drawing the repetitions again (200 times); sleeps note how long they really were.
"""

import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median
from time import perf_counter, sleep

import numpy as np

from recommender.benchmarks import backend, checkpoint, collectives, matmul
from recommender.benchmarks.collectives import fit_lines
from recommender.benchmarks.input_pipeline import Loader
from recommender.benchmarks.machine import look
from recommender.benchmarks.method import Result, cpu_times, interference, median_interval
from recommender.benchmarks.record import read_record
from recommender.benchmarks.stalls import Kind, profile, time_runs
from recommender.benchmarks.subject import Bench

SIZE, MIB = 1024, 128
PAIRS = {"gemm": 301, "disk": 201}
GEMM_WITHIN, DISK_WITHIN, MIN_R2, STALL_WITHIN = 0.10, 0.15, 0.95, 0.10  # targets
COMPUTE_S, DELAY_S, PREPARE_S, FETCH_S, WORKERS = 0.040, 0.030, 0.260, 0.120, 2  # planted
BLOCKS = 11  # stall profiles; their medians count
DRAWS = 200
_ROW_MAJOR, _AS_IS = 101, 111  # cblas.h
_SYMBOLS = (("scipy_cblas_sgemm64_", ctypes.c_int64), ("cblas_sgemm", ctypes.c_int))
_GLOO = (
    "import sys; from recommender.benchmarks import collectives, command, suite; "
    "suite.SUBJECTS = (collectives.collectives,); collectives.SUSTAINED_S = 0.01; "
    "sys.exit(command.main(['--no-metadata', '--device', 'cpu', '--suite', 'full', "
    "'--folder', {folder!r}, '-o', {out!r}]))\n"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was found, its 95 % interval and the limits of the target."""

    what: str
    value: float
    low: float
    high: float
    least: float
    most: float

    @property
    def verdict(self) -> str:
        """Whether the interval is inside the target, outside, or neither."""
        if self.least <= self.low and self.high <= self.most:
            return "holds"
        return "MISSED" if self.high < self.least or self.low > self.most else "open"


def ratio_row(what: str, ratios: Sequence[float], within: float) -> Row:
    """The median of ratios with its interval."""
    return Row(what, median(ratios), *median_interval(ratios), 1 - within, 1 + within)


def in_turns(
    ours: Callable[[], float], other: Callable[[], float], pairs: int
) -> list[tuple[float, float]]:
    """Seconds of two programs in pairs of neighbours; every second pair starts with the other."""
    for warm in (ours, other, ours, other):
        warm()
    found = []
    for i in range(pairs):
        if i % 2:
            second = other()
            found.append((ours(), second))
        else:
            found.append((ours(), other()))
    return found


def blas() -> Callable[[], float]:
    """Seconds of one product by the BLAS that numpy ships, called directly."""
    library, symbol, whole = _find()
    call = getattr(library, symbol)
    call.restype = None
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))
    out = np.empty_like(a)
    one, none = ctypes.c_float(1), ctypes.c_float(0)
    at = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, out)]
    n = whole(SIZE)

    def timed(keep: object = (a, b, out)) -> float:
        start = perf_counter()
        call(_ROW_MAJOR, _AS_IS, _AS_IS, n, n, n, one, at[0], n, at[1], n, none, at[2], n)
        return perf_counter() - start

    timed()
    assert np.allclose(out, a @ b, rtol=1e-3, atol=1e-2), "the BLAS call is wrong"
    return timed


def _find() -> tuple[ctypes.CDLL, str, type]:
    for path in sorted(Path(np.__file__).parents[1].glob("numpy.libs/*openblas*")):
        library = ctypes.CDLL(str(path))
        for symbol, whole in _SYMBOLS:
            if hasattr(library, symbol):
                return library, symbol, whole
    raise SystemExit("numpy brings no OpenBLAS here: nothing to compare with")


def gemm(folder: Path) -> tuple[list[Row], dict[str, object]]:
    """Our products over the direct call, and our fastest over the ceiling."""
    bench = Bench("quick", "cpu", None, folder)
    case = next(
        c for c in matmul.matmul(bench) if getattr(c, "name", "").startswith(f"fp32 {SIZE}")
    )
    trial, theirs = case.setup(), blas()

    def ours() -> float:
        start = perf_counter()
        trial.run()
        return perf_counter() - start

    pairs = in_turns(ours, theirs, PAIRS["gemm"])
    trial.check()
    rates = [case.work / a for a, _ in pairs]
    best = max(rates) / (case.ceiling or float("nan"))
    rows = [
        ratio_row("GEMM over BLAS", [b / a for a, b in pairs], GEMM_WITHIN),
        Row("fastest GEMM over ceiling", best, best, best, 0.0, 1.0),
    ]
    return rows, {"tflops": median(rates), "blas_tflops": case.work / median(b for _, b in pairs)}


def disk(folder: Path) -> tuple[list[Row], dict[str, object]]:
    """Our checkpoint over dd with fsync, both from memory: dd's source is in the page cache.

    Blocks of 1 MiB: dd reads each into a buffer that stays in the processor's cache, which costs
    next to nothing next to the read that our write does too. (8 MiB leave the cache between the
    read and the write, and made dd 10 to 15 % slower than need be.)
    """
    source, target = folder / "source", folder / "target"
    source.write_bytes(np.random.default_rng(1).bytes(MIB * 2**20))
    checkpoint._SIZES_MIB = {"quick": (MIB,)}
    case = next(checkpoint.checkpoint(Bench("quick", "cpu", None, folder)))
    trial = case.setup()
    assert trial.timed is not None

    def dd() -> float:
        target.unlink(missing_ok=True)
        call = ["dd", f"if={source}", f"of={target}", "bs=1M", "conv=fsync"]
        done = subprocess.run(call, capture_output=True, text=True, check=True, env={"LC_ALL": "C"})
        return float(done.stderr.rsplit("copied, ", 1)[1].split(" s")[0])

    pairs = in_turns(trial.timed, dd, PAIRS["disk"])
    trial.close()
    rates = {"gb_per_s": case.work / median(a for a, _ in pairs)}
    rates["dd_gb_per_s"] = case.work / median(b for _, b in pairs)
    return [ratio_row("checkpoint over dd", [b / a for a, b in pairs], DISK_WITHIN)], dict(rates)


def links(folder: Path) -> tuple[list[Row], dict[str, object]]:
    """The lines of all collectives among four processes: sockets, and Gloo where torch is."""
    found = list(collectives.ring(Bench("full", "cpu", None, folder)))
    if backend.find_torch() is not None:
        script, out = folder / "gloo.py", folder / "gloo.json"
        words = {"folder": str(folder), "out": str(out)}
        script.write_text(_GLOO.format(**words))
        call = ["-m", "torch.distributed.run", "--nproc-per-node=4", "--standalone", str(script)]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, *call], check=True, env=env, capture_output=True)
        found += read_record(out).results
    groups: dict[str, list[Result]] = {}
    for each in found:
        facts = dict(each.facts)
        if facts["collective"] != "sustained":
            groups.setdefault(f"{facts['collective']}, {facts['how']}", []).append(each)
    rows, facts_of = [], {}
    for name, own in groups.items():
        lines = fit_lines([r.work * 1e9 for r in own], [median(r.seconds) for r in own])
        low, high = _again(own)
        rows.append(Row(f"R² of {name}", lines[0].r2, low, high, MIN_R2, 1.0))
        facts_of[name] = [
            {"us": 1e6 * x.latency_s, "gb_per_s": x.bytes_per_s / 1e9, "from": x.least_bytes}
            for x in lines
        ]
    return rows, facts_of


def _again(own: Sequence[Result]) -> tuple[float, float]:
    """The 95 % interval of R² when whole rounds are drawn again: sizes were measured in turns."""
    rng, found = random.Random(1), []
    rounds = range(len(own[0].seconds))
    for _ in range(DRAWS):
        drawn = rng.choices(rounds, k=len(rounds))
        times = [median(r.seconds[i] for i in drawn) for r in own]
        found.append(fit_lines([r.work * 1e9 for r in own], times)[0].r2)
    found.sort()
    return found[round(0.025 * DRAWS)], found[round(0.975 * DRAWS) - 1]


class Slept:
    """A training whose parts are sleeps, with our own loader; notes how long they really were."""

    def __init__(self) -> None:
        self.took: dict[tuple[str, str], list[float]] = {}

    def begin(self, kind: Kind) -> Callable[[], object]:
        """A step that sleeps as planted."""
        work = partial(
            self._sleep, kind, "work", COMPUTE_S + (0 if kind == "synthetic_one" else DELAY_S)
        )
        if kind.startswith("synthetic"):
            return work
        fetch = partial(self._sleep, kind, "fetch", FETCH_S if kind == "cold" else 0.0)
        prepare = partial(self._sleep, kind, "prepare", PREPARE_S)
        loader = Loader(lambda i: fetch(), lambda raw: prepare() or 1, WORKERS)
        return lambda: (loader.next(), work())

    def _sleep(self, kind: str, part: str, seconds: float) -> None:
        start = perf_counter()
        if seconds:
            sleep(seconds)
        self.took.setdefault((kind, part), []).append(perf_counter() - start)

    def mean(self, kind: str, part: str) -> float:
        """Mean seconds of a part in one kind of run."""
        return fmean(self.took[kind, part])

    def truth(self) -> dict[str, float]:
        """The stalls that the sleeps planted: a step takes the longer of work and loading."""
        load = {k: self.mean(k, "prepare") + self.mean(k, "fetch") for k in ("cached", "cold")}
        every = self.mean("synthetic_all", "work")
        return {
            "interconnect": every - self.mean("synthetic_one", "work"),
            "preparation": load["cached"] / WORKERS - every,
            "fetch": (load["cold"] - load["cached"]) / WORKERS,
        }


def stalls(folder: Path) -> tuple[list[Row], dict[str, object]]:
    """Each stall found over the one planted, in several blocks."""
    kinds: tuple[Kind, ...] = ("synthetic_one", "synthetic_all", "cached", "cold")
    ratios: dict[str, list[float]] = {}
    for _ in range(BLOCKS):
        training = Slept()
        found = profile(time_runs(training, kinds, 30, 8, 2, 1))
        for each in found.stalls:
            ratios.setdefault(each.name, []).append(each.seconds / training.truth()[each.name])
    rows = [ratio_row(f"{k} stall over planted", v, STALL_WITHIN) for k, v in ratios.items()]
    return rows, dict(ratios)


def main() -> int:
    """Measure, print the table, end with JSON."""
    words = [word for word in sys.argv[1:] if word != "--write"]
    rows: list[Row] = []
    facts: dict[str, object] = {}
    with tempfile.TemporaryDirectory(dir=words[0] if words else ".") as name:
        folder = Path(name)
        bench = Bench("quick", "cpu", None, folder)
        before = cpu_times()
        for part in (gemm, disk, links, stalls):
            own, reported = part(folder)
            rows += own
            facts[part.__name__] = reported
        others = interference([1.0] * 3, before, cpu_times()).others or 0.0
        machine = look(bench).line
    torch = backend.find_torch()
    lines = table(rows)
    head = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine}; numpy {np.__version__}, "
        f"torch {torch.__version__ if torch else 'none'}; other programs used {others:.0%} of the "
        "processors"
    )
    print(head, *lines, sep="\n")
    if "--write" in sys.argv:
        call = "`python tests/speed/benchmarks.py --write`"
        page = ["# Benchmarks against other programs", "", f"{head}. {call}", "", *lines, ""]
        Path(__file__).with_suffix(".md").write_text("\n".join(page), "utf-8")
    print(json.dumps({"machine": machine, "others": others, **facts}))
    return sum(row.verdict != "holds" for row in rows)


def table(rows: Sequence[Row]) -> list[str]:
    """The rows in Markdown."""
    lines = ["| what | median | 95 % interval | target | |", "|:--|--:|--:|--:|:--|"]
    for row in rows:
        target = f"{row.least:.2f} to {row.most:.2f}" if row.most != 1.0 else f"≥ {row.least:.2f}"
        target = "≤ 1" if row.least == 0.0 else target
        spread = f"{row.low:.3f} to {row.high:.3f}" if row.low != row.high else "the fastest of all"
        lines.append(f"| {row.what} | {row.value:.3f} | {spread} | {target} | {row.verdict} |")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
