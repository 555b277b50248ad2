"""Every flag reaches the planner; settings stand below flags."""

import math
from pathlib import Path
from typing import Any

import pytest

from recommender.inputs.units import Comparison
from recommender.plan.limits import Choice, GpuFilter, Limits, Progress
from recommender.planner.options import AnswerOptions
from tests.recommender.cli.conftest import Planner, Run

JOB = "llama3-8b-sft"
TODAY = Comparison(8, "p4d.24xlarge", "on_demand", "")
CASES: list[tuple[list[str], str, object]] = [
    (["--deadline", "1d"], "limits.deadline_s", 86_400.0),
    (["--deadline", "2026-11-20T13:00Z"], "limits.deadline_s", 3600.0),
    (["--budget", "$1.5k"], "limits.budget_usd", 1500.0),
    (["--hourly", "30"], "limits.hourly_usd", 30.0),
    (["--confidence", "80%"], "limits.confidence", 0.8),
    (["--max-overhead", "20%"], "limits.max_overhead", 0.2),
    (["--max-machines", "4"], "limits.max_machines", 4),
    (["--objective", "time"], "limits.objective", "time"),
    (["--provider", "aws", "--provider", "gcp"], "choice.providers", ("aws", "gcp")),
    (["--region", "us-east-1"], "choice.regions", ("us-east-1",)),
    (["--region", "us-*"], "choice.regions", ("us-*",)),
    (["--zone", "us-east4-a"], "choice.zones", ("us-east4-a",)),
    (["--gpu", "A100:8"], "choice.gpus", (GpuFilter("A100", 8),)),
    (["--instance", "p5.48xlarge"], "choice.instances", ("p5.48xlarge",)),
    (["--deny", "T4", "--deny", "azure"], "choice.deny", ("T4", "azure")),
    (["--market", "on-demand"], "choice.market", "on_demand"),
    (["--no-spot"], "choice.market", "no_spot"),
    (["--failover", "zone"], "choice.failover", "zone"),
    (["--no-mix"], "choice.mix", "no"),
    (["--mix"], "choice.mix", "yes"),
    (["--checkpoint-to", "anchor"], "choice.checkpoint_to", "anchor"),
    (["--accelerator", "amd"], "choice.accelerator", "amd"),
    (["--arch", "arm64"], "choice.arch", "arm64"),
    (["--quoted-only"], "choice.quoted_only", True),
    (["--confidential"], "choice.confidential", True),
    (["--prices-as-quoted"], "choice.prices_as_quoted", True),
    (["--mtbf", "3"], "choice.mtbf_h", 3.0),
    (["--mtbf", "90m"], "choice.mtbf_h", 1.5),
    (["--discount", "aws=20%"], "choice.discounts", (("aws", 0.2),)),
    (["--assume-on-demand", "100%"], "choice.on_demand_obtainable", 1.0),
    (["--done", "40%"], "progress.done_share", 0.4),
    (["--elapsed", "9h", "--deadline", "1d"], "progress.elapsed_s", 32_400.0),
    (["--spent", "62", "--budget", "99"], "progress.spent_usd", 62.0),
    (["--tokens", "1M"], "job.samples", pytest.approx(1e6 / 720, rel=0.5)),
    (["--steps", "10"], "job.steps", 10.0),
    (["--batch", "32"], "job.global_batch", 32),
    (["--precision", "bf16"], "job.precision", "bf16"),
    (["--method", "lora"], "job.method", "lora"),
    (["--optimizer", "sgd"], "job.optimizer", "sgd"),
    (["--sharding", "fsdp"], "job.sharding", "fsdp"),
    (["--elastic"], "job.elastic", True),
    (["--gang"], "job.elastic", False),
    (["--stack", "tuned"], "job.stack", "tuned"),
    (["--image", "prebuilt"], "job.image", "prebuilt"),
    (["--setup", "5m"], "job.setup_s", 300.0),
    (["--data-at", "aws:us-east-1"], "job.data.at", "aws:us-east-1"),
    (["--top", "9"], "options.top", 9),
    (["--top", "2", "--explain", "4"], "options.top", 4),
    (["--seed", "7"], "seed", 7),
    (["--prove"], "options.prove", True),
    (["--save-lp", "x.lp"], "options.save_lp", Path("x.lp")),
    (
        ["--compare", "8x p4d.24xlarge"],
        "options.compare",
        Comparison(8, "p4d.24xlarge", "on_demand", ""),
    ),
]


def looked_up(call: dict[str, Any], path: str) -> object:
    """A value of a planner's call by its dotted path."""
    first, *rest = path.split(".")
    value = call[first]
    for name in rest:
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(("words", "path", "value"), CASES, ids=lambda v: str(v)[:40])
def test_a_flag_reaches_the_planner(
    run: Run, planner: Planner, words: list[str], path: str, value: object
) -> None:
    result = run(*words, JOB)
    assert result.err == ""
    assert looked_up(planner.calls[-1], path) == value


def test_options_may_come_before_or_after_the_job_or_after_plan(run: Run, planner: Planner) -> None:
    for call in (f"--deadline 24h {JOB}", f"{JOB} --deadline=24h", f"plan {JOB} --deadline 24h"):
        assert run(*call.split()).code == 0
    first, *others = planner.calls
    assert all(call["limits"] == first["limits"] for call in others)


def test_defaults_are_those_of_a_newcomer(run: Run, planner: Planner) -> None:
    run(JOB)
    call = planner.calls[-1]
    assert (call["limits"], call["choice"], call["progress"]) == (Limits(), Choice(), Progress())
    assert call["options"] == AnswerOptions(program=False)  # which no table shows


def test_quotas_come_from_a_file_or_are_those_of_a_new_account(
    run: Run, planner: Planner, tmp_path: Path
) -> None:
    (tmp_path / "quotas.csv").write_text("provider,family,amount\naws,p,192\n")
    run(JOB, "--quota", "quotas.csv")
    choice = planner.calls[-1]["choice"]
    assert choice.quotas_known
    assert [(q.quota_family, q.amount) for q in choice.quotas] == [("p", 192.0)]
    run(JOB, "--quota", "default-new")
    assert len(planner.calls[-1]["choice"].quotas) > 10


def test_an_account_is_said_once_and_a_file_of_quotas_wins(
    run: Run, planner: Planner, tmp_path: Path
) -> None:
    run(JOB, "--quota", "default-new")
    new = planner.calls[-1]["choice"].quotas
    assert run("config", "set", "account", "new").code == 0
    run(JOB)
    assert planner.calls[-1]["choice"].quotas == new
    run("config", "set", "account", "old")
    run(JOB)
    assert all(math.isinf(quota.amount) for quota in planner.calls[-1]["choice"].quotas)
    (tmp_path / "quotas.csv").write_text("provider,family,amount\naws,p,192\n")
    run(JOB, "--quota", "quotas.csv")
    assert [quota.amount for quota in planner.calls[-1]["choice"].quotas] == [192.0]


def test_own_machines_join_the_catalog(run: Run, planner: Planner, tmp_path: Path) -> None:
    rows = "label,gpu,gpus,usd_per_hour,count\nlab,H100,8,12.5,3\n"
    (tmp_path / "own.csv").write_text(rows)
    run(JOB, "--offers", "own.csv", "--provider", "own")
    call = planner.calls[-1]
    last = call["catalog"].offers[len(call["catalog"].offers) - 1]
    assert (last.provider, last.usd_per_hour, last.flag) == ("own", 12.5, "imported")
    assert call["catalog"].source_by_key[last.source].name == "your own file"
    assert call["choice"].quotas[0].amount == 3
    assert not call["choice"].quotas_known


def test_flags_override_settings(
    run: Run, planner: Planner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "recommend.toml").write_text('confidence = "80%"\nproviders = ["aws", "gcp"]\n')
    monkeypatch.setenv("RECOMMEND_CONFIDENCE", "90%")
    run(JOB)
    run(JOB, "--confidence", "70%", "--provider", "azure")
    below, above = planner.calls
    assert (below["limits"].confidence, below["choice"].providers) == (0.9, ("aws", "gcp"))
    assert (above["limits"].confidence, above["choice"].providers) == (0.7, ("azure",))


def test_a_job_file_of_the_folder_is_found(run: Run, planner: Planner, tmp_path: Path) -> None:
    (tmp_path / "recommend.yaml").write_text("schema: recommend.job/v1\nlike: llama3-8b-sft\n")
    assert run("--deadline", "24h").code == 0
    assert "recommend.yaml found" in run().out
