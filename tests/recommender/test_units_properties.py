"""For every parser: what is written is read back exactly, and nonsense is a UsageError."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recommender.errors import UsageError
from recommender.inputs import units
from recommender.job.timings import Measured, parse_measured
from recommender.plan.limits import GpuFilter

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
EVERY: list[Callable[[str], object]] = [
    units.parse_bytes,
    units.parse_comparison,
    units.parse_count,
    units.parse_data_at,
    units.parse_discount,
    units.parse_duration,
    units.parse_gpu,
    units.parse_hourly,
    units.parse_instant,
    parse_measured,
    units.parse_money,
    units.parse_share,
    units.parse_whole,
    lambda text: units.parse_deadline(text, NOON),
]
SHARDS = st.sampled_from(
    ["1", "0", ".", "e9", "-", "+", " ", "x", "h", "m", "k", "GB", "GiB", "%", "$", "/", "USD", ":",
     "H100", "s/step", "tokens/s", "p4d.24xlarge", "aws", "=", "us-east-1", ",", "P", "T",
     "2026-12", "nan", "inf", "é", "٣", "\x1b", "\n", "\ud800", "Z", "+23:59", "9999-12-31T23:59"]
)  # fmt: skip
TEXT = st.one_of(st.text(max_size=40), st.lists(SHARDS, max_size=8).map("".join))
GPU = st.from_regex(r"[A-Z][A-Z0-9]{1,6}(-[0-9]{2}GB)?", fullmatch=True)
TYPE = st.sampled_from(["p4d.24xlarge", "a2-highgpu-8g", "ND96isr_H100_v5", "g5.xlarge"])
REGION = st.from_regex(r"[a-z]{2}-[a-z]{4,9}-[1-9]", fullmatch=True)
PROVIDER = st.sampled_from(units.PROVIDERS)


@pytest.mark.parametrize("parser", EVERY)
@given(text=TEXT)
@settings(deadline=None, max_examples=150)
@example(text="9" * 5000)
@example(text="1e999999999")
@example(text="0" * 100_000)
def test_nonsense_is_a_usage_error(parser: Callable[[str], object], text: str) -> None:
    with suppress(UsageError):
        assert parser(text) is not None


def _positive(most: float, least: float = 1e-6) -> st.SearchStrategy[float]:
    return st.floats(least, most) | st.integers(1, int(most)).map(float)


@given(_positive(10 * 365 * 86400))
@settings(deadline=None)
def test_durations(seconds: float) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@given(_positive(1e9))
@settings(deadline=None)
def test_money(usd: float) -> None:
    assert units.parse_money(f"{usd!r} USD") == usd
    assert units.parse_hourly(f"{usd!r} USD/h") == usd


@given(_positive(1e18))
@settings(deadline=None)
def test_counts(count: float) -> None:
    assert units.parse_count(units.format_count(count)) == count


@given(_positive(1e18))
@settings(deadline=None)
def test_bytes(size: float) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == size


@given(st.floats(1e-9, 1) | st.integers(0, 100).map(lambda n: n / 100))
@settings(deadline=None)
def test_shares(share: float) -> None:
    assert units.parse_share(units.format_share(share), zero=True, one=True) == share


@given(st.integers(1, 300_000_000))
@settings(deadline=None)
def test_moments(seconds: int) -> None:
    moment = NOON + timedelta(seconds=seconds)
    assert units.parse_instant(units.format_instant(moment)) == moment
    assert units.parse_deadline(units.format_instant(moment), NOON) == seconds


@given(GPU | st.just(""), st.none() | st.integers(1, 999), st.floats(0.1, 1e4) | st.just(0.0))
@settings(deadline=None)
def test_gpus(name: str, per_machine: int | None, memory: float) -> None:
    if name or memory:
        wish = GpuFilter(name, per_machine, memory)
        assert units.parse_gpu(units.format_gpu(wish)) == wish


@given(
    st.integers(1, 64), st.integers(1, 16), GPU | TYPE, _positive(1e9, 1e-3),
    st.sampled_from(["s/step", "samples/s", "tokens/s"]),
)  # fmt: skip
@settings(deadline=None)
def test_measured(machines: int, each: int, name: str, value: float, unit: str) -> None:
    gpus = 0 if units.looks_like_instance(name) else machines * each
    measured = Measured(machines, gpus, name, value, unit)  # type: ignore[arg-type]
    machine = f"x{each}x{name}" if gpus else f"x {name}"
    assert parse_measured(f"{machines}{machine}: {value!r} {unit}") == measured


@given(st.integers(1, 9999), TYPE, st.sampled_from(["spot", "on_demand"]), REGION | st.just(""))
@settings(deadline=None)
def test_comparisons(count: int, name: str, market: str, region: str) -> None:
    setup = units.Comparison(count, name, market, region)  # type: ignore[arg-type]
    assert units.parse_comparison(units.format_comparison(setup)) == setup


@given(PROVIDER, REGION, st.floats(0.001, 1e6) | st.just(0.0))
@settings(deadline=None)
def test_places(provider: str, region: str, gib: float) -> None:
    at = f"{provider}:{region}"
    typed = f"{at},{units.format_bytes(gib * 2**30)}" if gib else at
    assert units.parse_data_at(typed) == units.DataAt(at, gib)


@given(PROVIDER, st.floats(1e-6, 0.99) | st.just(0.0))
@settings(deadline=None)
def test_discounts(provider: str, share: float) -> None:
    assert units.parse_discount(f"{provider}={units.format_share(share)}") == (provider, share)
