"""The command line: parses, calls, prints; holds no logic of the problem."""

import gc
import os
import sys
from collections.abc import Sequence

from recommender.cli.exit_codes import run_guarded

# A run makes many small objects and hardly any garbage: looking for it costs 8 % (2026-11).
COLLECT_AFTER = 1_000_000
KEPT_BYTES = 8 << 20  # arrays up to this size stay in the process, up to twice as much unused


def main(argv: Sequence[str] | None = None) -> int:
    """Run `recommend` with the given words, or those of the call; give the exit code."""
    return run_guarded(_run, list(sys.argv[1:] if argv is None else argv))


def run() -> int:
    """Run `recommend` as a program of its own, which ends with the call."""
    os.umask(os.umask(0o077) | 0o002)  # whatever the shell allows: nothing for all to write
    _prepare_for_arrays()
    gc.set_threshold(COLLECT_AFTER)
    code = main()
    gc.freeze()  # the interpreter would look for garbage once more as it ends: 12 % (2026-11)
    return code


def _prepare_for_arrays() -> None:
    """Switch off what only slows down the many small arrays of an answer (2026-11).

    OpenBLAS starts a thread for every core as NumPy is imported: 0.05 s, for no product that is
    large enough, and sums that depend on the number of cores. The C library gives each array of
    128 kB back to the kernel, to fetch it again page by page: 0.08 s. A larger block that came
    and went makes malloc keep them (M_MMAP_THRESHOLD, mallopt(3)); no page of it is touched.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    bytes(KEPT_BYTES)


def _run(words: Sequence[str]) -> int:
    if list(words) in ([], ["--version"]) and "_RECOMMEND_COMPLETE" not in os.environ:
        from recommender.cli.banner import show_banner  # needs no Typer, so answers at once

        show_banner(version=bool(words))
        return 0
    from typer.main import get_command

    from recommender.cli.app import app

    command = get_command(app)
    code = command.main(args=list(words), prog_name="recommend", standalone_mode=False)
    return code if isinstance(code, int) else 0
