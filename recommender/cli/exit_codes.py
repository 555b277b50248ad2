"""The edge of the program: exceptions become messages and exit codes, here and only here.

0 answer   1 internal error   2 usage   3 no plan meets the limits   4 catalog
5 a refresh or batch did only a part   6 a refresh published nothing
7 `replan --changed-since`: moving pays, or prices moved
130 interrupted   141 the reader of standard output went away
"""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from recommender.catalogs.errors import CatalogError, RecommendError
from recommender.cli.screen import OutputClosed, flush, write_text
from recommender.errors import SolverError, UsageError
from recommender.text import shown

OK, INTERNAL, USAGE, INFEASIBLE, CATALOG, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 4, 130, 141
PARTIAL, NOTHING = 5, 6  # of `recommend catalog refresh`; the first of `recommend batch` too
_USAGE_CHARS = 400  # of a refusal by Typer, which quotes whole words of the call
CHANGED = 7  # of `recommend replan --changed-since`


def run_guarded(run: Callable[[Sequence[str]], int], words: Sequence[str]) -> int:
    """Run the program; whatever happens, leave one clear message and an exit code."""
    if sys.stdout is None:  # closed by the caller: >&-
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:  # 2>&-
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        code = run(words)
        flush(sys.stdout)
        return code
    except (BrokenPipeError, OutputClosed):
        return _pipe_closed()
    except KeyboardInterrupt:
        return INTERRUPTED
    except RecommendError as error:
        return report_errors(words, *_kind(error), _problems(error))
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no path of the program's own is
            return report_errors(words, "USAGE", USAGE, [f"{_system(error)}; name a shorter path"])
        return report_errors(words, "IO", INTERNAL, [_system(error)])
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's own refusals of a call
            return report_errors(words, "USAGE", USAGE, [_refused_call(error)])
        if os.environ.get("RECOMMEND_DEBUG"):
            raise
        return report_errors(words, "INTERNAL", INTERNAL, [_internal(error)])


def report_errors(words: Sequence[str], code: str, exit_code: int, problems: Sequence[str]) -> int:
    """Report on standard error what went wrong; as JSON if JSON was requested."""
    if wants_json(words):
        from recommender.report.json_output import dumps, error_document

        write_text(dumps(error_document(code, exit_code, problems)), sys.stderr)
    else:
        write_text("".join(f"error: {problem}\n" for problem in problems), sys.stderr)
    return exit_code


def wants_json(words: Sequence[str]) -> bool:
    """Whether the call requests JSON, even if it cannot be parsed."""
    given = _usual_form()
    for i, word in enumerate(words):
        if word == "--json":
            return True
        for name in ("--output=", "-o"):
            if word.startswith(name) and word != name:
                given = word.removeprefix(name)
        if word in ("-o", "--output"):
            given = words[i + 1] if i + 1 < len(words) else ""
    return given.strip().lower() == "json"


def _usual_form() -> str:
    """The form that settings ask for, if they can be read."""
    from recommender.inputs.settings import load

    try:
        return str(load({}, Path())["output"].value)
    except (RecommendError, OSError):
        return os.environ.get("RECOMMEND_OUTPUT", "")


def _kind(error: RecommendError) -> tuple[str, int]:
    if isinstance(error, CatalogError):
        return "CATALOG", CATALOG
    if isinstance(error, SolverError):
        return "SOLVER", INTERNAL
    return ("USAGE" if isinstance(error, UsageError) else "RECORD"), USAGE


def _problems(error: RecommendError) -> list[str]:
    if isinstance(error, UsageError):
        return list(error.problems)
    return [str(error)]


def _internal(error: Exception) -> str:
    message = f"{type(error).__name__}: {shown(error)}"
    return f"internal error, please report it ({message}); RECOMMEND_DEBUG=1 shows where"


def _refused_call(error: Any) -> str:
    """What Typer says of a call; where a word is missing, also where the words are listed."""
    message = shorten(str(error.format_message()), _USAGE_CHARS, placeholder=" …")
    call = getattr(getattr(error, "ctx", None), "command_path", "")
    return (
        f"{message.rstrip('.')}; {call} --help"
        if call and message.startswith("Missing")
        else message
    )


def _system(error: OSError) -> str:
    where = f"{shown(error.filename)}: " if error.filename else ""
    return f"{where}{error.strerror or shown(error)}"


def _pipe_closed() -> int:
    """Keep Python from complaining about the closed pipe when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED
