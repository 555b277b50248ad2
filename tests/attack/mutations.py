"""Changes of a valid file that a broken program, a torn page or an enemy could have made."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

import yaml

TOKENS = (
    b"nan", b"inf", b"-1", b"0", b"1e999", b"9" * 400, b"9" * 5000, b"\x00", b"\xff\xfe", b"\r",
    b"\n\n", b'"', b"'", b",", b"," * 2000, b";", b"\t", b"=1+1", b"@SUM(A1)", b"../../etc/passwd",
    b"[" * 5000, b"{" * 5000, b"}", b"]", b"null", b"true", b"&a", b"*a", b"!!python/object:x ",
    b"%s%n", b"${HOME}", "\u202e".encode(), "\u2028".encode(), "\U0001f600".encode(), b"\xc0\xaf",
    b"\x1b[31m", b"-" * 3000, b"\xef\xbb\xbf", b"-0", b"1_000", b"0x10", b"1e-999", b"x" * 70_000,
    b".a" * 20_000, b"".join(b"\nk%d: 1" % n for n in range(5_000)),
    b"".join(b"\nk%d = 1" % n for n in range(5_000)),
)  # fmt: skip


def mutated(content: bytes, draw: Random) -> bytes:
    """A few changes of some bytes, lines or values."""
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        draw.choice(_CHANGES)(found, draw)
    return bytes(found)


def _flip(content: bytearray, draw: Random) -> None:
    if content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def _cut(content: bytearray, draw: Random) -> None:
    start = draw.randrange(len(content) + 1)
    del content[start : start + draw.choice((1, 10, 1000, len(content)))]


def _repeat(content: bytearray, draw: Random) -> None:
    start = draw.randrange(len(content) + 1)
    piece = content[start : start + draw.choice((1, 30, 300))]
    content[start:start] = piece * draw.choice((1, 2, 50))


def _token(content: bytearray, draw: Random) -> None:
    start = draw.randrange(len(content) + 1)
    content[start : start + draw.choice((0, 0, 1, 5))] = draw.choice(TOKENS)


def _value(content: bytearray, draw: Random) -> None:
    """Another value between two commas, colons or line breaks."""
    marks = [i for i, byte in enumerate(content[:20_000]) if byte in b",:\n= "]
    if len(marks) > 1:
        at = draw.randrange(len(marks) - 1)
        content[marks[at] + 1 : marks[at + 1]] = draw.choice(TOKENS)


def _swap(content: bytearray, draw: Random) -> None:
    lines = content.split(b"\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    content[:] = b"\n".join(lines)


_CHANGES = (_flip, _cut, _repeat, _token, _token, _value, _value, _swap)


ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 10**30, 1.5, -0.0, 1e308, float("inf"), float("nan"),
    "", " ", "x", "x" * 5000, "a\x00b", "0", "-1", "1e999", "nan", "24h", "90%", "2026-13-45",
    "2026-11-23T00:00:00Z", "../x", "=1+1", "\u2028", "\x1b[31m", "aws", "H100", [], [[]], [None],
    [1, 2, 3], ["x"] * 3, [0] * 3000, {}, {"a": {}}, {"": 0}, {"schema": "x"},
)  # fmt: skip


def restructured(content: bytes, ending: str, draw: Random) -> bytes:
    """A file of the same form: values, keys, rows and columns are others, or elsewhere."""
    text = content.decode()
    change = {".json": _json, ".yaml": _yaml, ".csv": _csv, ".toml": _toml}.get(ending, _script)
    return change(text, draw).encode("utf-8", "surrogatepass")


def _json(text: str, draw: Random) -> str:
    return json.dumps(_grown(json.loads(text), draw))


def _yaml(text: str, draw: Random) -> str:
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError:  # a tag of a tool
        tree = None
    if not isinstance(tree, dict | list):
        return _script(text, draw)
    return str(yaml.dump(_grown(tree, draw), sort_keys=False))


def _grown(tree: Any, draw: Random) -> Any:
    for _ in range(draw.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        holder, key = draw.choice(places)
        draw.choice(_TREE_CHANGES)(holder, key, draw)
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a tree: what holds it, and under which key."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def _other(holder: Any, key: Any, draw: Random) -> None:
    holder[key] = deepcopy(draw.choice(ODD))


def _gone(holder: Any, key: Any, draw: Random) -> None:
    if len(holder) > 1:
        del holder[key]


def _renamed(holder: Any, key: Any, draw: Random) -> None:
    if isinstance(holder, dict):
        holder[draw.choice((f"{key}_", str(key).upper(), "", "x"))] = holder.pop(key)


def _scaled(holder: Any, key: Any, draw: Random) -> None:
    if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] *= draw.choice((-1, 0, 1e-9, 1e-3, 1000, 1e12))
    elif isinstance(holder[key], str | list):
        holder[key] = holder[key] * draw.choice((0, 2, 100))


def _wrapped(holder: Any, key: Any, draw: Random) -> None:
    holder[key] = draw.choice(([holder[key]], {"x": holder[key]}, str(holder[key])))


def _twice(holder: Any, key: Any, draw: Random) -> None:
    if isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[f"{key}2"] = holder[key]


_TREE_CHANGES: tuple[Callable[[Any, Any, Random], None], ...] = (
    _other, _other, _other, _gone, _renamed, _scaled, _scaled, _wrapped, _twice,
)  # fmt: skip


def _csv(text: str, draw: Random) -> str:
    rows = list(csv.reader(io.StringIO(text)))
    for _ in range(draw.choice((1, 1, 2, 3))):
        at, column = draw.randrange(len(rows)), draw.randrange(len(rows[0]))
        change = draw.randrange(6)
        if change < 2 and column < len(rows[at]):
            rows[at][column] = str(draw.choice(ODD))[:5000]
        elif change == 2:
            rows.insert(at, list(rows[-1]))
        elif change == 3 and len(rows) > 1:
            del rows[at]
        elif change == 4:
            rows = [[*row[:column], *row[column + 1 :]] for row in rows]
        elif change == 5:
            rows = [[*row, *row[column : column + 1]] for row in rows]
        if not rows[0]:
            break
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _toml(text: str, draw: Random) -> str:
    lines = text.splitlines()
    for _ in range(draw.choice((1, 1, 2))):
        at = draw.randrange(len(lines))
        key = lines[at].partition("=")[0]
        lines[at] = draw.choice((f"{key}= {json.dumps(draw.choice(ODD))}", key, "", f"[{key}]"))
    return "\n".join(lines) + "\n"


_WORD = re.compile(r"[\w./-]+|['\"(){}\[\]=$\\,:]")
_OF_SCRIPTS = (
    "$X", "${X:-1}", "$((1/0))", "$((9**9**9))", "$(date)", "9**9**9", "1/0", "1e400", "int('x')",
    "x=x", "f'{x}'", "lambda x: x", "A=$A$A", "[0]*10**9", "'a'*10**9", "1<<10**9", "(1,)*9999999",
    "(", "[", "{", "'", '"', "\\", "$", "",
)  # fmt: skip


def _script(text: str, draw: Random) -> str:
    """Words and lines of a script are others, or elsewhere."""
    lines = text.splitlines()
    for _ in range(draw.choice((1, 1, 2, 3))):
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        words, change = list(_WORD.finditer(lines[at])), draw.randrange(6)
        if change < 3 and words:
            word, value = draw.choice(words), draw.choice((str(draw.choice(ODD)), "", *_OF_SCRIPTS))
            lines[at] = lines[at][: word.start()] + value + lines[at][word.end() :]
        elif change == 3:
            lines[at], lines[other] = lines[other], lines[at]
        elif change == 4:
            lines.insert(at, lines[other])
        elif len(lines) > 1:
            del lines[at]
    return "\n".join(lines) + "\n"
