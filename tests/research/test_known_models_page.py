"""The page of known models says what is counted today, and holds more than forty."""

from tests.research.known_models_page import PAGE, TITLES, page, table


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page()


def test_more_than_forty_models_have_published_parameters_flop_and_memory() -> None:
    lines = table().removeprefix(TITLES).splitlines()
    whole = [line for line in lines if line and all(cell.strip() for cell in line.split("|")[1:-1])]
    assert len(whole) >= 40
