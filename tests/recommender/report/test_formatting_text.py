"""Numbers and foreign words as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.report import formatting as fmt


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (0.04751, "0.0475"), (4.872, "4.87"), (97.0, "97"), (1234.0, "1,230"), (0, "0"),
        (99.96, "100"), (55.04, "55"), (math.nan, "unknown"), (math.inf, "unknown"),
    ],
)  # fmt: skip
def test_three_digits(x: float, said: str) -> None:
    assert fmt.number(x) == said


@pytest.mark.parametrize(
    ("x", "said"),
    [(2304, "2,304"), (99.9, "99.9"), (0.0, "0"), (1e6, "1,000,000"), (math.inf, "unlimited")],
)
def test_exact_figures_keep_every_digit(x: float, said: str) -> None:
    assert fmt.exact(x) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0004, "0.4 ms"), (3.1, "3.1 s"), (38, "38 s"), (900, "15 min"), (16_200, "4.5 h"),
        (129_600, "36 h"), (86_400 * 5.2, "5.2 d"), (math.nan, "unknown"), (0, "0 s"),
    ],
)  # fmt: skip
def test_durations(seconds: float, said: str) -> None:
    assert fmt.duration(seconds) == said


@pytest.mark.parametrize(
    ("x", "said"),
    [(0.949, "94 %"), (0.991, "99 %"), (1.0, ">99 %"), (0.004, "<1 %"), (0.0, "0 %")],
)
def test_shares_never_promise_more(x: float, said: str) -> None:
    assert fmt.share(x) == said


@pytest.mark.parametrize(
    ("x", "said"), [(0.9999e9, "1.0 B"), (115.3e6, "115 M"), (999, "999"), (3200, "3.2 k")]
)
def test_large_counts(x: float, said: str) -> None:
    assert fmt.large(x) == said


@pytest.mark.parametrize(
    "foreign",
    ["\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x07red\x1b]8;;\x07", "r\x00e\u202ed", "re\x9bd"],
)
def test_foreign_words_lose_what_steers_a_terminal(foreign: str) -> None:
    assert fmt.clean(foreign) == "red"


@given(st.text())
def test_clean_text_is_one_printable_line(foreign: str) -> None:
    cleaned = fmt.clean(foreign)
    assert cleaned == cleaned.strip()
    assert all(c.isprintable() for c in cleaned)


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_three_digits_are_close(x: float) -> None:
    assert float(fmt.number(x).replace(",", "")) == pytest.approx(x, rel=0.006)
