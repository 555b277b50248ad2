"""Changes of a valid file that a broken program, a torn page or an enemy could have made."""

from random import Random

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
