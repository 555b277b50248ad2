"""What people type, and what it means or why it is refused."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from recommender.errors import UsageError
from recommender.inputs import units
from recommender.inputs.units import Comparison, DataAt
from recommender.inputs.units.times import now
from recommender.job.timings import Measured, parse_measured, timing
from recommender.plan.limits import GpuFilter

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
Parser = Callable[[str], object]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24h", 86400), ("1d12h", 129600), ("1d 12h", 129600), ("90m", 5400), ("PT36H", 129600),
        ("P1DT12H", 129600), ("P2W", 1209600), ("45s", 45), ("1.5h", 5400), ("2w", 1209600),
        ("2 hours 30 minutes", 9000), (".5h", 1800), ("24H", 86400),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == seconds


def test_a_duration_without_unit_says_what_to_write() -> None:
    with pytest.raises(UsageError) as error:
        units.parse_duration("24", "--elapsed")
    expected = "--elapsed 24 has no unit; write 24h, 90m or 1d12h"
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-5h", "is negative"), ("0h", "is zero"), ("nan", "finite"), ("infinity", "finite"),
        ("1M", "minutes or months"), ("5y", "unknown unit"), ("1h2h", "twice"), ("99w9w", "twice"),
        ("9999w", "absurdly long"), ("1e400h", "absurdly long"), ("1_000h", "not a duration"),
        ("", "is empty"), ("P", "not a duration"), ("PT", "not a duration"),
        ("h", "not a duration"), ("24h!", "not a duration"), ("٢٤h", "not a duration"),
    ],
)  # fmt: skip
def test_bad_durations(text: str, reason: str) -> None:
    _refused(units.parse_duration, text, reason)


def test_a_deadline_may_be_a_moment() -> None:
    assert units.parse_deadline("2026-11-20T14:00Z", NOON) == 7200
    assert units.parse_deadline("2026-11-20T14:00+01:00", NOON) == 3600
    assert units.parse_deadline("24h", NOON) == 86400
    late = NOON - timedelta(seconds=0.4)
    assert units.parse_deadline("2026-11-20T14:00Z", late) == 7200


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-11-20T11:59Z", "is past (now is Fri 2026-11-20 12:00 UTC)"),
        ("2026-12-01", "has no time of day"),
        ("2026-12-01T08:00 Europe/Berlim", "has the unknown time zone 'Europe/Berlim'"),
        ("tomorrow 25:00", "is not a date and time"),
        ("today 13pm", "is not a date and time"),
        ("friday", "is not a duration"),
        ("2026-13-01T08:00Z", "is not a date and time"),
        ("2099-12-01T08:00Z", "absurdly long"),
    ],
)
def test_bad_moments(text: str, reason: str) -> None:
    _refused(lambda t: units.parse_deadline(t, NOON), text, reason)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (34800, "9h40m"),
        (45, "45s"),
        (86400, "24h"),
        (183600, "2d3h"),
        (3599.6, "60m"),
        (61, "1m1s"),
    ],
)
def test_brief_durations(seconds: float, text: str) -> None:
    assert units.brief_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "usd"),
    [
        ("200", 200), ("$200", 200), ("200$", 200), ("1.5k", 1500), ("$1.5k", 1500),
        ("200 USD", 200), ("200USD", 200), ("200 usd", 200), ("2M", 2e6), ("0.5", 0.5),
    ],
)  # fmt: skip
def test_money(text: str, usd: float) -> None:
    assert units.parse_money(text) == usd


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$5/h", "--hourly"), ("5 USD per hour", "--hourly"), ("5/hr", "--hourly"),
        ("€200", "US dollars"), ("200 EUR", "US dollars"), ("1,500", "comma"),
        ("-3", "negative"), ("$-3", "negative"), ("-$3", "negative"), ("0", "zero"),
        ("nan", "finite"), ("1e10", "absurdly large"), ("a lot", "not an amount"), ("", "is empty"),
    ],
)  # fmt: skip
def test_bad_money(text: str, reason: str) -> None:
    _refused(units.parse_money, text, reason)


@pytest.mark.parametrize("text", ["30", "$30", "$30/h", "30 USD/h", "30 per hour", "30/hr"])
def test_a_price_per_hour(text: str) -> None:
    assert units.parse_hourly(text) == 30


def test_counts() -> None:
    assert units.parse_count("15T tokens", units=("tokens",)) == 15e12
    assert units.parse_count("1.3B") == 1.3e9
    assert units.parse_count("70.3B") == 70.3e9
    assert units.parse_count("8e9") == 8e9
    assert units.parse_count("70b") == 70e9
    assert units.parse_whole("4k") == 4000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("15T samples", "has the unit 'samples'"), ("1_000", "not a number"), ("0", "zero"),
        ("-8B", "negative"), ("inf", "finite"), ("1e19", "absurdly large"), ("8 9", "not a number"),
        ("1e-30", "absurdly small"), ("true", "not a number"),
    ],
)  # fmt: skip
def test_bad_counts(text: str, reason: str) -> None:
    _refused(lambda t: units.parse_count(t, units=("tokens",)), text, reason)


def test_a_count_that_must_be_whole() -> None:
    _refused(units.parse_whole, "1.5", "is not a whole number; write 2")


def test_bytes() -> None:
    assert units.parse_bytes("112GB") == 112e9
    assert units.parse_bytes("150GiB") == 150 * 2**30
    assert units.parse_bytes("1.5 TB") == 1.5e12
    assert units.parse_bytes("512", bare=True) == 512
    _refused(units.parse_bytes, "112", "has no unit; write 112GB")
    _refused(units.parse_bytes, "112Gb", "is not a size")
    _refused(units.parse_bytes, "5iB", "is not a size")


def test_shares() -> None:
    assert units.parse_share("5%") == units.parse_share("0.05") == 0.05
    assert units.parse_share("0", zero=True) == 0
    assert units.parse_share("100%", one=True) == 1
    _refused(units.parse_share, "5", "write 5% or 0.05")
    _refused(units.parse_share, "1", "write 1% or 0.01")
    _refused(units.parse_share, "100%", "100 % or more")
    _refused(units.parse_share, "0%", "zero")
    _refused(units.parse_share, "half", "not a share")


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("H100", GpuFilter("H100")),
        ("A100:8", GpuFilter("A100", 8)),
        ("A100-80GB", GpuFilter("A100-80GB")),
        ("80GiB+", GpuFilter("", None, 80)),
        ("24GiB..", GpuFilter("", None, 24)),
        ("A100:40GiB+:8", GpuFilter("A100", 8, 40)),
        ("8xH100", GpuFilter("H100", 8)),
        ("A100 80GB", GpuFilter("A100-80GB")),
    ],
)
def test_gpus(text: str, wish: GpuFilter) -> None:
    assert units.parse_gpu(text) == wish


def test_a_card_sold_as_80_gb_passes_80gb() -> None:
    h100_mib = 81559  # NVIDIA H100 PCIe as reported by nvidia-smi
    assert units.parse_gpu("80GB+").memory_gib * 1024 < h100_mib


@pytest.mark.parametrize("text", ["A100:0", "A100:8:8", "A100:big"])
def test_bad_gpus(text: str) -> None:
    _refused(units.parse_gpu, text, "cannot be read")


@pytest.mark.parametrize("text", ["80GB", ":8", "4090", "0x", "8x80GB"])
def test_words_that_name_no_gpu(text: str) -> None:
    _refused(units.parse_gpu, text, "is not the name of a GPU")


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("8xH100: 3.1 s/step", Measured(1, 8, "H100", 3.1, "s/step")),
        ("8xA100: 412 samples/s", Measured(1, 8, "A100", 412, "samples/s")),
        ("1x8xH100: 52k tokens/s", Measured(1, 8, "H100", 52e3, "tokens/s")),
        ("2x8xH100: 2 it/s", Measured(2, 16, "H100", 0.5, "s/step")),
        ("16xH100: 1k tokens/s/gpu", Measured(2, 16, "H100", 16e3, "tokens/s")),
        ("4x p4d.24xlarge: 2.1 s/step", Measured(4, 0, "p4d.24xlarge", 2.1, "s/step")),
        ("a2-highgpu-8g: 250 ms/step", Measured(1, 0, "a2-highgpu-8g", 0.25, "s/step")),
        ("ND96isr_H100_v5: 3 images/s", Measured(1, 0, "ND96isr_H100_v5", 3, "samples/s")),
        ("A100-80GB: 3 clips/s", Measured(1, 1, "A100-80GB", 3, "samples/s")),
    ],
)
def test_measured(text: str, measured: Measured) -> None:
    assert parse_measured(text) == measured


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("8xH100 3.1 s/step", "no colon"), ("8xH100: fast", "no speed"), ("0xT4: 3 s/step", "1 to"),
        ("8xH100: -3 s/step", "negative"), ("8xH100: 0 s/step", "zero"),
        ("8xH100: 3 s/epoch", "no speed"), ("8xH100: 3 apples/s", "unknown unit 'apples/s'"),
        ("2x3x4xH100: 3 s/step", "does not begin with machines"),
        ("2x8xp4d.24xlarge: 3 s/step", "counts GPUs of an instance type"),
        ("p4d.24xlarge: 3 tokens/s/gpu", "is per GPU of an instance type"),
        ("8xH100: 3.1 h", "no speed"), ("8xH100: nan s/step", "finite"),
    ],
)  # fmt: skip
def test_bad_measured(text: str, reason: str) -> None:
    _refused(parse_measured, text, reason)


def test_a_measured_speed_becomes_samples_per_second() -> None:
    step = timing(Measured(1, 8, "H100", 3.2, "s/step"), 128, 8192)
    assert (step.gpu, step.gpus, step.machines, step.samples_per_s) == ("H100", 8, 1, 40)
    assert timing(Measured(1, 8, "H100", 8192, "tokens/s"), 128, 4096).samples_per_s == 2
    named = timing(Measured(4, 0, "p4d.24xlarge", 412, "samples/s"), 128, 1)
    assert (named.instance_type, named.machines, named.samples_per_s) == ("p4d.24xlarge", 4, 412)


@pytest.mark.parametrize(
    ("text", "setup"),
    [
        (
            "8x p4d.24xlarge on-demand us-east-1",
            Comparison(8, "p4d.24xlarge", "on_demand", "us-east-1"),
        ),
        ("p4d.24xlarge", Comparison(1, "p4d.24xlarge", "on_demand", "")),
        ("2 x a2-highgpu-8g spot", Comparison(2, "a2-highgpu-8g", "spot", "")),
    ],
)
def test_comparisons(text: str, setup: Comparison) -> None:
    assert units.parse_comparison(text) == setup


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), ("p5 eu us", "two regions"), ("p5 U$", "no region"), ("8", "not a number of")],
)
def test_bad_comparisons(text: str, reason: str) -> None:
    _refused(units.parse_comparison, text, reason)


def test_places_and_discounts() -> None:
    assert units.parse_data_at("aws:us-east-1,150GiB") == DataAt("aws:us-east-1", 150)
    assert units.parse_data_at("gcp:europe-west4") == DataAt("gcp:europe-west4", 0)
    assert units.parse_discount("aws=0.2") == ("aws", 0.2)
    assert units.parse_discount("GCP=15%") == ("gcp", 0.15)
    _refused(units.parse_data_at, "azur:eastus", "did you mean azure?")
    _refused(units.parse_data_at, "us-east-1", "no provider")
    _refused(units.parse_discount, "0.2", "no provider")


def test_error_messages_cannot_steer_a_terminal() -> None:
    with pytest.raises(UsageError) as error:
        units.parse_money("\x1b[31m" + "9" * 500)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 200


def test_the_clock_can_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOMMEND_NOW", "2026-11-20T12:00Z")
    assert now() == NOON
    monkeypatch.setenv("RECOMMEND_NOW", "noon")
    with pytest.raises(UsageError, match="RECOMMEND_NOW noon is not a date"):
        now()


def test_units_load_nothing_heavy() -> None:
    code = "import sys, recommender.inputs.units; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "pydantic", "yaml"} & set(out.stdout.split())


def _refused(parser: Parser, text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        parser(text)
    assert reason in str(error.value)
