"""No view is wider than the terminal, whatever its width; only a word that cannot be cut is."""

from functools import cache
from pathlib import Path

import pytest

from recommender.api.calls import recommend
from recommender.job.jobfile import find_job
from recommender.plan.answer import Answer
from recommender.plan.limits import Choice, Limits
from tests.recommender.cli.conftest import Planner, Run
from tests.recommender.optimize.samples import sampled
from tests.shipped import snapshot

JOB = "resnet50-imagenet"
WIDTHS = sampled(("40", "60", "80", "200"), ("40", "80"))
VIEWS: tuple[tuple[str, ...], ...] = (
    (), ("--version",), (JOB, "--deadline", "24h"), (JOB,), (JOB, "--explain", "1"),
    (JOB, "--explain", "2"), (JOB, "--hourly", "1"), (JOB, "--all-regions"),
    ("jobs", "list"), ("jobs", "show", JOB), ("jobs", "show", "llama3-8b-lora"),
    ("catalog", "status"), ("catalog", "show", "H100"), ("catalog", "show", "g6"), ("sources",),
    ("config", "show"), ("doctor",), ("trace", "list"), ("bench", "show", "H100"),
)  # fmt: skip


def too_long(out: str, width: int) -> list[str]:
    """Lines over the width that could have been broken between two words."""
    lines = [line for line in out.splitlines() if len(line) > width]
    return [line for line in lines if len(line.split()) > 1]


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A width of the terminal."""
    monkeypatch.setenv("COLUMNS", request.param)
    return int(request.param)


@pytest.mark.parametrize("words", VIEWS, ids=" ".join)
def test_a_view_fits_the_terminal(run: Run, width: int, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.code in (0, 3)
    assert too_long(result.out, width) == []


ASKED = {
    "deadline": (JOB, Limits(deadline_s=86_400.0), "any"),
    "hourly": (JOB, Limits(hourly_usd=30.0), "any"),
    "frontier": (JOB, Limits(), "on_demand"),
    "spot": ("llama3-8b-sft", Limits(deadline_s=864_000.0), "spot"),
    "too big": ("llama3-70b-sft", Limits(max_machines=1), "any"),
    "too dear": (JOB, Limits(budget_usd=1.0), "any"),
}


@cache
def answered(name: str) -> Answer:
    """An answer of the planner itself, once for all widths."""
    job, limits, market = ASKED[name]
    choice = Choice(regions=("us-east-1", "us-east4"), market=market)  # type: ignore[arg-type]
    return recommend(find_job(job), limits, choice, catalog=snapshot(), top=2)


@pytest.mark.parametrize("name", ASKED)
def test_real_answers_and_every_term_of_them_fit_the_terminal(
    run: Run, planner: Planner, width: int, name: str
) -> None:
    planner.answer = answered(name)
    assert too_long(run(JOB).out, width) == []
    if planner.answer.status == "ok":
        assert too_long(run(JOB, "--explain", "1").out, width) == []


def test_a_simulation_fits_the_terminal(run: Run, planner: Planner, width: int) -> None:
    words = ("--deadline", "24h", "--region", "us-east-1", "--runs", "64", "--max-machines", "2")
    result = run("simulate", JOB, *words)
    assert result.code == 0
    assert too_long(result.out, width) == []


def test_a_trace_fits_the_terminal(run: Run, width: int) -> None:
    rows = [f"{600 * i},machines,{int(i % 7 > 1)}" for i in range(400)]
    Path("zone.csv").write_text("\n".join(["t_s,event,value", *rows, "240000,end,"]), "utf-8")
    for command in ("show", "fit"):
        result = run("trace", command, "zone.csv")
        assert result.code == 0, result.err
        assert too_long(result.out, width) == []
