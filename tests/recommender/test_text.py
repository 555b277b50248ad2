"""Which word was meant, and how shares are rounded."""

import pytest

from recommender.text import nearest, percent

TYPES = ("p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "g6e.xlarge", "g6e.12xlarge")
REGIONS = ("us-east-1", "us-west-1", "us-west-2", "eu-west-1")


@pytest.mark.parametrize(
    ("typed", "choices", "meant"),
    [
        ("us-esat-1", REGIONS, "us-east-1"),  # as close to us-west-1, but of its letters
        ("us-wset-1", REGIONS, "us-west-1"),
        ("P4D", TYPES, "p4d.24xlarge"),
        ("p5.48xlrage", TYPES, "p5.48xlarge"),
        ("nvidia A100 80GB", ("A100", "A100-80GB"), "A100"),
        ("banana", TYPES, None),
    ],
)
def test_the_word_that_was_meant_is_found(
    typed: str, choices: tuple[str, ...], meant: str | None
) -> None:
    assert nearest(typed, choices) == meant


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0 %"), (0.0004, "<0.1 %"), (0.074, "7.4 %"), (0.994, "99 %"), (1.0, "100 %")]
    + [(0.999, "99.9 %"), (0.99996, "99.9 %"), (0.996, "99.6 %"), (-0.2, "-20 %")],
)
def test_a_share_is_rounded_but_never_to_all_of_what_is_not_all(share: float, words: str) -> None:
    assert percent(share) == words
