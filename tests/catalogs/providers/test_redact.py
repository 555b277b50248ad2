"""Secrets are taken out of whatever text others write; ordinary words stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.catalogs.providers.redact import hider

ENV = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
    "GOOGLE_API_KEY": "a+b(c)[d]*efgh",
    "GOOGLE_APPLICATION_CREDENTIALS": "/etc/keys/recommend.json",
    "SHORT_TOKEN": "us",
    "HOME": "/root-of-somebody",
}
HIDE = hider(ENV)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("denied for wJalrXUtnFEMI/K7MDENG/bPxRfiCY here", "denied for [hidden] here"),
        ("key a+b(c)[d]*efgh", "key [hidden]"),
        ("GET https://x/skus?key=abc&pageSize=1", "GET https://x/skus?key=[hidden]&pageSize=1"),
        ("https://x/?X-Amz-Signature=ff00", "https://x/?X-Amz-Signature=[hidden]"),
        ("Authorization: Bearer abc.def", "Authorization: [hidden]"),
        ("x-goog-api-key: abc", "x-goog-api-key: [hidden]"),
        ("AKIA" + "IOSFODNN7EXAMPLE is unknown", "[hidden] is unknown"),
        ("AIza" + "SyA0123456789_abcdefghij", "[hidden]"),
        ("https://me:word@example.org/", "https://[hidden]@example.org/"),
    ],
)
def test_a_secret_is_hidden(text: str, kept: str) -> None:
    assert HIDE(text) == kept


def test_a_secret_that_begins_like_a_path_is_hidden() -> None:
    """One secret key of AWS in 64 begins with a slash."""
    env = {"AWS_SECRET_ACCESS_KEY": "/JalrXUtnFEMI/K7MDENG/bPxRfiCY"}
    env |= {"AWS_SHARED_CREDENTIALS_FILE": "/etc/aws/credentials"}
    hide = hider(env)
    assert hide("denied for /JalrXUtnFEMI/K7MDENG/bPxRfiCY") == "denied for [hidden]"
    assert hide("cannot read /etc/aws/credentials") == "cannot read /etc/aws/credentials"


@pytest.mark.parametrize(
    "text",
    [
        "p5.48xlarge us-east-1 spot 21.5 USD/h: more expensive than on-demand (20.1)",
        "cannot read /etc/keys/recommend.json",
        "the token has expired",
        "HTTP 503 from https://pricing.us-east-1.amazonaws.com/offers",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert HIDE(text) == text


@given(before=st.text(), after=st.text())
def test_a_secret_never_passes_whatever_is_around_it(before: str, after: str) -> None:
    secret = ENV["AWS_SECRET_ACCESS_KEY"]
    assert secret not in HIDE(before + secret + after)
