"""What is drawn holds at any width: words are whole, pipes are plain, markets are distinguished."""

import re

import pytest

from recommender.report.layout import drawn, grid, labelled, marked, render, text
from recommender.report.page import Column, Page
from tests.recommender.answers import ANSWER, QUESTION

WORD = "Standard_NCC40ads_H100_v5_with_a_long_name"
PAGE = Page(
    "offers",
    (Column("offer", right=False), Column("USD/h"), Column("note", right=False)),
    ((f"{WORD}\neastus", "1,234.5", "the provider's floor"),),
    flexible=2,
    below=("three words below",),
)


@pytest.mark.parametrize("width", range(20, 201, 9))
def test_no_word_and_no_number_is_cut_at_any_width(width: int) -> None:
    blocks = [*render(PAGE, width), labelled([("note", f"see {WORD}")]), grid([("a b", WORD)])]
    page = drawn(blocks, width)
    assert page.count(WORD) == 3
    assert "1,234.5" in page
    assert "…" not in page


@pytest.mark.parametrize("width", range(12, 60))
def test_a_number_stays_on_the_line_of_its_unit(width: int) -> None:
    said = drawn([text("it costs ≥ 12 USD in 5 min on 2× p5 at 7 % and +3 more")], width)
    assert all(each in said for each in ("≥ 12 USD", "5 min", "2× p5", "7 %", "and +3"))


def test_a_pipe_gets_no_escapes_no_frames_and_no_blanks_at_line_ends() -> None:
    from recommender.report import answer_table

    page = drawn(answer_table.render(ANSWER, QUESTION, 80), 80)
    assert not re.search("[│┃╭╮╰╯┌┐└┘\x1b\ue000]", page)
    assert all(line == line.rstrip() for line in page.splitlines())


def test_markets_differ_in_colour_and_in_word() -> None:
    painted = drawn([marked("1× a spot"), marked("1× b on-demand")], 80, colour=True)
    colours = re.findall("\x1b\\[(\\d+)m(spot|on-demand)", painted)
    assert len({code for code, _ in colours}) == 2
    assert {word for _, word in colours} == {"spot", "on-demand"}


@pytest.mark.parametrize("width", [50, 80, 100])
def test_only_a_link_exceeds_the_screen(width: int) -> None:
    link = f"https://portal.azure.com/{'quota/' * 20}"
    blocks = [labelled([("binding", f"{'some words ' * 30}see {link} and {'on ' * 40}")])]
    lines = drawn(blocks, width).splitlines()
    assert [line for line in lines if len(line) > width] == [f"{' ' * 11}{link}"]
    assert max(len(line) for line in lines if link not in line) > width - 12
