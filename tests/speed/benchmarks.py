"""Whether the benchmarks of machines measure what is there, against other programs. By hand:

    python tests/speed/benchmarks.py     # a table, then JSON on the last line

Matrix products against a call of the BLAS library through ctypes, checkpoints against `dd` with
fsync, the line through the collectives' times, and stalls that were planted with sleeps. Calls
alternate, so that a busy machine slows both alike; what others used of it is printed.
"""

import ctypes
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from subprocess import run
from time import perf_counter, sleep

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from benchmarks import checkpoint, collectives, matmul  # noqa: E402
from benchmarks.loader import Loader  # noqa: E402
from benchmarks.machine import look  # noqa: E402
from benchmarks.method import cpu_times, interference  # noqa: E402
from benchmarks.stalls import Kind, profile, time_runs  # noqa: E402
from benchmarks.subject import Bench  # noqa: E402

SIZE, MIB = 1024, 256
REPEATS = 15
GEMM_WITHIN, DISK_WITHIN, LEAST_R2, STALL_WITHIN = 0.10, 0.15, 0.95, 0.10  # targets
QUIET = 0.05  # share of the processors that others may use for figures worth keeping
COMPUTE_S, DELAY_S, PREPARE_S, FETCH_S, WORKERS = 0.020, 0.010, 0.080, 0.060, 2  # planted
_ROW_MAJOR, _AS_IS = 101, 111  # cblas.h
_SYMBOLS = (("scipy_cblas_sgemm64_", ctypes.c_int64), ("cblas_sgemm", ctypes.c_int))


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


def gemm(folder: Path) -> dict[str, float]:
    """Our TFLOP/s and those of the direct call, in turns."""
    bench = Bench("quick", "cpu", None, folder)
    case = next(
        c for c in matmul.matmul(bench) if getattr(c, "name", "").startswith(f"fp32 {SIZE}")
    )
    trial, theirs = case.setup(), blas()

    def ours() -> float:
        start = perf_counter()
        trial.run()
        return perf_counter() - start

    mine, other = in_turns(ours, theirs)
    trial.check()
    return {"ours": case.work / mine, "theirs": case.work / other, "ceiling": case.ceiling or 0.0}


def disk(folder: Path) -> dict[str, float]:
    """Our GB/s of a checkpoint and those of dd, in turns."""
    source, target = folder / "source", folder / "target"
    source.write_bytes(np.random.default_rng(1).bytes(MIB * 2**20))
    checkpoint._SIZES_MIB = {"quick": (MIB,)}
    case = next(checkpoint.checkpoint(Bench("quick", "cpu", None, folder)))
    trial = case.setup()
    assert trial.timed is not None

    def dd() -> float:
        target.unlink(missing_ok=True)
        call = ["dd", f"if={source}", f"of={target}", "bs=8M", "conv=fsync"]
        said = run(call, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}).stderr
        return float(said.rsplit("copied, ", 1)[1].split(" s")[0])

    mine, other = in_turns(trial.timed, dd)
    trial.close()
    return {"ours": case.work / mine, "theirs": case.work / other}


def in_turns(first: Callable[[], float], second: Callable[[], float]) -> tuple[float, float]:
    """Median seconds of two programs that take turns."""
    for warm in (first, second):
        warm()
    pairs = [(first(), second()) for _ in range(REPEATS)]
    return median(a for a, _ in pairs), median(b for _, b in pairs)


def link(folder: Path) -> dict[str, float]:
    """The fit of an all-reduce among four local processes."""
    collectives._SIZES = {"quick": (4, 64, 1024, 4096, 16384, 65536)}
    collectives.COLLECTIVES = {"all_reduce": collectives.COLLECTIVES["all_reduce"]}
    found = list(collectives.ring(Bench("quick", "cpu", None, folder)))
    (line,) = collectives.links(found).values()
    return {"r2": line.r2, "latency_us": 1e6 * line.latency_s, "gb_per_s": line.bytes_per_s / 1e9}


class Slept:
    """A training whose parts are sleeps, with our own loader."""

    def begin(self, kind: Kind) -> Callable[[], object]:
        """A step that sleeps as planted."""
        work = COMPUTE_S + (0 if kind == "synthetic_one" else DELAY_S)
        if kind.startswith("synthetic"):
            return partial(sleep, work)
        fetch = FETCH_S if kind == "cold" else 0.0
        loader = Loader(lambda i: sleep(fetch), lambda raw: sleep(PREPARE_S) or 1, WORKERS)
        return lambda: (loader.next(), sleep(work))


def stalls(folder: Path) -> dict[str, float]:
    """Each stall found over the one planted, from sleeps of this machine's clock."""
    kinds: tuple[Kind, ...] = ("synthetic_one", "synthetic_all", "cached", "cold")
    found = profile(time_runs(Slept(), kinds, 60, 12, 2, 1))
    truth = {
        "interconnect": DELAY_S,
        "preparation": PREPARE_S / WORKERS - COMPUTE_S - DELAY_S,
        "fetch": FETCH_S / WORKERS,
    }
    return {each.name: each.seconds / truth[each.name] for each in found.stalls}


def main() -> None:
    """Measure, print a table, end with JSON."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else ".") as name:
        folder = Path(name)
        before = cpu_times()
        g, d, line, planted = gemm(folder), disk(folder), link(folder), stalls(folder)
        others = interference([1.0] * 3, before, cpu_times()).others
        machine = look(Bench("quick", "cpu", None, folder)).line
    rows = [
        (
            "matmul over BLAS",
            g["ours"] / g["theirs"],
            abs(g["ours"] / g["theirs"] - 1) <= GEMM_WITHIN,
        ),
        ("matmul over ceiling", g["ours"] / g["ceiling"], g["ours"] <= g["ceiling"]),
        (
            "checkpoint over dd",
            d["ours"] / d["theirs"],
            abs(d["ours"] / d["theirs"] - 1) <= DISK_WITHIN,
        ),
        ("all-reduce, R2", line["r2"], line["r2"] >= LEAST_R2),
        *((f"{k} stall over planted", v, abs(v - 1) <= STALL_WITHIN) for k, v in planted.items()),
    ]
    quiet = others is not None and others <= QUIET
    print(
        machine, f"others used {others or 0:.0%} of it", "quiet" if quiet else "NOT QUIET", sep="; "
    )
    for what, value, holds in rows:
        print(f"{what:28}{value:9.3f}  {'holds' if holds else 'MISSED'}")
    facts = {"machine": machine, "others": others, "quiet": quiet, "matmul": g, "disk": d,
             "all_reduce": line, "stalls": planted}  # fmt: skip
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
