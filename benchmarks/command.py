"""`recommend-bench`: measures the machine it runs on. Processors only, for now."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.matmul import matmul
from benchmarks.memory import memory
from benchmarks.record import Result, document, dumps, hardware_line

ALL: tuple[Callable[[bool], Iterator[Result]], ...] = (matmul, memory)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and end with the record as one line of JSON or in a file."""
    given = _parser().parse_args(argv)
    try:
        _measure(given.quick, given.output)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader went away: keep Python from complaining at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ArithmeticError as error:
        print(f"error: this machine computes wrongly: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _measure(quick: bool, output: str | None) -> None:
    print(hardware_line())
    results = []
    for benchmark in ALL:
        for result in benchmark(quick):
            results.append(result)
            what = f"{result.benchmark:8}{result.case:14}"
            rate = f"{result.median:10.1f} {result.unit:8}"
            print(f"{what}{rate} spread {result.spread:4.0%}", flush=True)
    line = dumps(document(results, quick)) + "\n"
    if output is None:
        sys.stdout.write(line)
    else:
        Path(output).write_text(line, encoding="utf-8")
        print(f"written to {output}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="recommend-bench",
        description="Measure this machine's processor: matrix multiplication and memory.",
        epilog="GPUs are not measured yet; nothing here uses the network.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes only, in seconds")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON record to FILE")
    return parser
