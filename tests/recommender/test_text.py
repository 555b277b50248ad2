"""Which word was meant."""

import pytest

from recommender.text import nearest

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
