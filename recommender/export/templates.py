"""Text of exported files that few plans change: parts of the files in `templates/`.

There `#: name` begins a part and `##` a note for its reader. `@NAME@` is a value; alone on a line
it may be several lines, or none.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from recommender.export.helper import HELPER
from recommender.export.start import SECRETS
from recommender.performance.checkpoint import POLL_S, QUIET_S

ROOT = "/checkpoints"  # keys of the bucket are paths below it
MACHINE = "machine.sh"  # what a machine runs from its first boot
ASKED = "/tmp/asked-to-end"  # by launch.sh, because others take over
RUN_KEY = "recommend-run"  # tag or label by which the machines of a run are found
TRAINING = "/tmp/train.sh"  # where a machine has the commands to start again
PAID = "paid_minutes"  # file of CHECKPOINT_DIR: a line for each minute, the price of an hour
CAPPED = 124  # exit status of a run at its cap, as of timeout(1): nothing starts it again

Value = str | int | float | Iterable[str]
_EVERYWHERE: Mapping[str, Value] = {
    "ROOT": ROOT,
    "MACHINE": MACHINE,
    "ASKED": ASKED,
    "RUN_KEY": RUN_KEY,
    "TRAINING": TRAINING,
    "PAID": PAID,
    "CAPPED": CAPPED,
    "HELPER": HELPER,
    "SECRETS": " ".join(SECRETS),
    "POLL_S": POLL_S,
    "QUIET_S": QUIET_S,
}
_ALONE = re.compile(r"( *)@([A-Z_]+)@")
_NAME = re.compile(r"@([A-Z_]+)@")


def part(file: str, name: str, **values: Value) -> tuple[str, ...]:
    """The lines of a part of a template, with its values."""
    known = {**_EVERYWHERE, **values}
    return tuple(line for each in _parts(file)[name] for line in _filled(each, known))


def text_of(file: str) -> str:
    """A whole template."""
    return files(__package__).joinpath("templates", file).read_text("utf-8")


@cache
def _parts(file: str) -> Mapping[str, tuple[str, ...]]:
    """The parts of a template by name, without notes."""
    found: dict[str, list[str]] = {}
    for line in text_of(file).splitlines():
        if line.startswith("#: "):
            lines = found.setdefault(line.removeprefix("#: "), [])
        elif not line.startswith("##"):
            lines.append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def _filled(line: str, values: Mapping[str, Value]) -> list[str]:
    alone = _ALONE.fullmatch(line)
    if alone and not isinstance(values[alone[2]], (str, int, float)):
        lines: Iterable[str] = values[alone[2]]  # type: ignore[assignment]
        return [f"{alone[1]}{each}".rstrip() for each in lines]
    return [_NAME.sub(lambda found: f"{values[found[1]]}", line)]


def shell_function(name: str, body: Iterable[str]) -> list[str]:
    """A function of bash, and an empty line after it."""
    return [f"{name}() {{", *(f"  {line}" if line else "" for line in body), "}", ""]
