"""`recommend-bench`: measures the machine it runs on, with torch or with numpy alone."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from . import backend
from .errors import BenchError, WrongResult
from .metadata import PROVIDERS, Place
from .record import dumps
from .suite import SuiteOptions, prepare, run


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and end with the record as one line of JSON or in a file."""
    given = _parser().parse_args(argv)
    try:
        measure(_options(given), given.output)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader went away: keep Python from complaining at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except WrongResult as error:
        print(f"error: this machine computes wrongly: {error}", file=sys.stderr)
        return 1
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = error.filename or "standard output"
        print(f"error: {where}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def measure(options: SuiteOptions, output: str | None) -> None:
    """Say what will be done and what it costs, do it, write the record.

    Raises BenchError before anything is measured if the request cannot be met, and OSError
    where the file cannot be written.
    """
    with _ended_cleanly(), ExitStack() as undo:
        if output is not None and backend.place()[0] == 0:
            if not Path(output).exists():
                undo.callback(Path(output).unlink, missing_ok=True)
            Path(output).touch()  # a file that cannot be written is noticed at once
        _measure(options, output)
        undo.pop_all()


@contextmanager
def _ended_cleanly() -> Iterator[None]:
    """Let SIGTERM (of torchrun, of a spot machine that is taken) remove files as Ctrl-C does."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _measure(options: SuiteOptions, output: str | None) -> None:
    ready = prepare(options)
    first = ready.bench.rank == 0

    def notify(line: str) -> None:
        if first:
            print(line, flush=True)

    notify(ready.machine.line)
    where = ready.place
    if where.provider or where.instance_type:
        words = (where.provider, where.instance_type, where.zone or where.region, where.market)
        notify(" ".join(word for word in words if word))
    notify(ready.announcement)
    if ":" in options.profile:
        notify(f"runs your own code: {options.profile}")
    record = run(ready, notify)
    if record is None:
        return
    line = dumps(record) + "\n"
    if output is None:
        sys.stdout.write(line)
        return
    try:
        Path(output).write_text(line, encoding="utf-8")
    except OSError as error:
        sys.stdout.write(line)  # a rented machine was measured: a full disk costs the file alone
        raise OSError(error.errno, error.strerror, output) from None
    notify(f"written to {output}")


def _options(given: Any) -> SuiteOptions:
    place = Place(
        given.provider, given.instance, given.region, given.zone,
        given.market.replace("-", "_"),
    )  # fmt: skip
    return SuiteOptions(
        given.suite, given.device, given.folder, given.mount, given.s3, given.s3_endpoint,
        given.profile, not given.no_metadata, place, given.usd_per_hour,
    )  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="recommend-bench",
        description="Measure this machine: matrix multiplication, memory, links, disk, input.",
        epilog="Under torchrun also the exchange between GPUs and machines. The network is used "
        "for nothing but that, --s3, and the provider's own metadata service.",
    )
    add = parser.add_argument
    add("--suite", choices=("quick", "full"), default="quick", help="quick: about a minute")
    add("--device", choices=("cuda", "cpu"), help="a GPU where there is one")
    add("-o", "--output", metavar="FILE", help="write the JSON record to FILE")
    add("--folder", default=".", metavar="DIR", help="on the disk that is measured (here)")
    add("--mount", default="", metavar="DIR", help="measure this mounted path as well as the disk")
    add("--s3", default="", metavar="s3://BUCKET/PREFIX", help="measure this object store")
    add("--s3-endpoint", default="", metavar="URL", help="of an S3-compatible store")
    add("--profile", default="", metavar="NAME", help="stalls of cnn, transformer, mlp, or of "
        "your own module:function, which is run")  # fmt: skip
    add("--no-metadata", action="store_true", help="do not ask the provider what this machine is")
    add("--provider", default="", choices=PROVIDERS, help="whose machine")
    add("--instance", default="", metavar="NAME", help="its instance type")
    add("--region", default="", metavar="NAME", help="its region")
    add("--zone", default="", metavar="NAME", help="its zone")
    add("--market", default="", choices=("spot", "on-demand"), help="how it is rented")
    add("--usd-per-hour", type=_price, metavar="USD", help="its price: says what the run costs")
    return parser


def _price(word: str) -> float:
    with suppress(ValueError):
        if 0 < float(word) < 1e6:
            return float(word)
    raise argparse.ArgumentTypeError(f"{word} is no price per hour")
