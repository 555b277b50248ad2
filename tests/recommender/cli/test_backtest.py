"""`recommend backtest` from the command line."""

import json
from pathlib import Path

import pytest

from tests.recommender.cli.conftest import Run

JOB = ("--job", "2h/4h/10m", "--every", "1h")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Two days, six hours up and two hours away."""
    path = tmp_path / "zone-a.csv"
    rows = [f"{8 * 3600 * i},machines,2\n{(8 * i + 6) * 3600},machines,0\n" for i in range(6)]
    path.write_text("t_s,event,value\n" + "".join(rows) + "172800,end,\n", encoding="utf-8")
    return str(path)


def test_policies_are_listed_next_to_each_other(run: Run, trace: str) -> None:
    found = run("backtest", trace, *JOB)
    assert (found.code, found.err) == (0, "")
    for name in ("on-demand", "spot-only", "greedy", "uniform progress", "cost-optimal"):
        assert name in found.out
    assert "Evaluated on the last 50 % of each trace" in found.out


def test_on_demand_costs_its_price_times_the_work_and_the_changeover(run: Run, trace: str) -> None:
    words = ("--policy", "on-demand", "--on-demand-usd", "3", "-o", "json")
    row = json.loads(run("backtest", trace, *JOB, *words).out)["rows"][0]
    assert row["mean_usd"] == pytest.approx(3 * (2 + 1 / 6))
    assert row["late_share"] == 0


def test_deepvms_architectures_pay_while_they_wait(run: Run, trace: str) -> None:
    words = ("--policy", "spot-only", "--policy", "single-anchor", "--policy", "tiering")
    prices = (
        "--machines",
        "2",
        "--receivers-usd",
        "0.5",
        "--spot-usd",
        "1",
        "--on-demand-usd",
        "3",
    )
    rows = json.loads(run("backtest", trace, *JOB, *words, *prices, "-o", "json").out)["rows"]
    usd = {row["policy"]: row["mean_usd"] for row in rows}
    assert set(usd) == {"spot-only", "DeepVM single anchor", "DeepVM tiering"}
    assert usd["spot-only"] < usd["DeepVM tiering"]
    assert usd["DeepVM single anchor"] > 1.5 * usd["spot-only"]


def test_csv_has_a_row_for_each_trace_if_requested(run: Run, trace: str) -> None:
    words = ("--policy", "greedy", "--by-trace", "-o", "csv")
    lines = run("backtest", trace, *JOB, *words).out.splitlines()
    assert lines[0].startswith("setting,policy,trace,windows,mean_usd")
    assert [line.split(",")[2] for line in lines[1:]] == ["", "zone-a"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--job", "2h"), "write work/deadline/changeover"),
        (("--job", "40h/50h/6m"), "no trace is as long as a deadline"),
        (("--policy", "best"), "--policy"),
        (("--policy", "single-anchor"), "give --machines 2 or more"),
        (("--policy", "tiering"), "--receivers-usd need each other"),
        (("--policy", "greedy", "--receivers-usd", "1"), "--receivers-usd need each other"),
        (("--job", "3h/3h/6m"), "work and changeover take 3.1 h, longer than the deadline"),
        (("--job", "2h/4h/6m", "--machines", "3"), "no trace ever has as many up, 2 at most"),
        (("--machines", "2", "--job", "2h/90h/1m"), "no trace is as long"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    run: Run, trace: str, words: tuple[str, ...], said: str
) -> None:
    found = run("backtest", trace, *words)
    assert found.code == 2
    assert said in found.err
    assert found.out == ""


@pytest.fixture
def other(tmp_path: Path) -> str:
    """Two days, up when the first zone is away."""
    path = tmp_path / "zone-b.csv"
    rows = [
        f"{8 * 3600 * i},machines,0\n{(8 * i + 5) * 3600},machines,2\n"
        f"{(8 * i + 7.5) * 3600:.0f},machines,0\n"
        for i in range(6)
    ]
    path.write_text("t_s,event,value\n" + "".join(rows) + "172800,end,\n", encoding="utf-8")
    return str(path)


def test_one_job_over_all_traces_is_listed_next_to_single_zones(
    run: Run, trace: str, other: str
) -> None:
    words = ("--policy", "greedy", "--policy", "failover", "--policy", "multi-region")
    found = run("backtest", trace, other, *JOB, *words, "--spot-usd", "1,1.2", "--move-usd", "0.1")
    assert (found.code, found.err) == (0, "")
    assert "on 2 traces" in found.out
    assert "one job that may move between the zones of all traces" in " ".join(found.out.split())
    rows = json.loads(run("backtest", trace, other, *JOB, *words, "--json").out)["rows"]
    greedy, failover, ours = (row["mean_usd"] for row in rows)
    assert ours <= failover <= greedy


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--spot-usd", "1,2,3"), "3 prices for 2 traces"),
        (("--spot-usd", "1,much"), "--spot-usd"),
        (("--move-usd", "far"), "--move-usd"),
    ],
)
def test_prices_per_trace_that_do_not_fit_are_refused(
    run: Run, trace: str, other: str, words: tuple[str, ...], said: str
) -> None:
    found = run("backtest", trace, other, *JOB, *words)
    assert found.code == 2
    assert said in found.err


# Every value that `recommend backtest --help` names as the default of a flag.
DEFAULTS = [
    ("--confidence", "100%"), ("--machines", "1"), ("--spot-usd", "0.9731"),
    ("--on-demand-usd", "3.06"), ("--move-usd", "0"), ("--past", "50%"),
]  # fmt: skip


@pytest.mark.parametrize("words", DEFAULTS, ids=" ".join)
def test_a_default_can_be_written_and_changes_nothing(
    run: Run, trace: str, words: tuple[str, str]
) -> None:
    found = run("backtest", trace, *JOB, *words)
    assert (found.code, found.err) == (0, "")
    assert f"({words[1]})" in " ".join(run("backtest", "--help").out.split())
    assert found.out == run("backtest", trace, *JOB).out


def test_a_chance_above_one_is_refused(run: Run, trace: str) -> None:
    for word, said in (("101%", "is more than 100 %"), ("1", "write 100% or 1%")):
        found = run("backtest", trace, *JOB, "--confidence", word)
        assert (found.code, said in found.err) == (2, True)
