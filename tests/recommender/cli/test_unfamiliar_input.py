"""What a user types who has not read the manual: understood, or answered with what to type."""

import subprocess
import sys
from pathlib import Path

import pytest

from recommender.api.calls import recommend
from recommender.plan.limits import Choice, Limits
from tests.recommender.cli.conftest import Planner, Run
from tests.shipped import snapshot

JOB = "resnet50-imagenet"
HEAD = "schema: recommend.job/v1\nlike: resnet50-imagenet\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--gpu H100:8,A100", "--gpu H100:8,A100 names several; write --gpu H100:8 --gpu A100"),
        ("--provider aws,gcp", "names several; write --provider aws --provider gcp"),
        ("--region us-east-1,us-west-2", "names several; write --region us-east-1 --region us-we"),
        ("--gpu A100-20GB", "--gpu: unknown GPU 'A100-20GB'; did you mean A100?"),
        ("--gpu nvidia-h100", "--gpu: unknown GPU 'nvidia-h100'; did you mean H100?"),
        ("--instance p5", "--instance: unknown instance type 'p5'; did you mean p5*?"),
        ("--region eu", "--region: unknown region 'eu'; did you mean eu*?"),
        ("--zone us-west-2a", "AWS zones go by id, such as use1-az3"),
        ("--provider own", "--provider own: no machine of yours is known; name a file: --offers"),
        ("--data-at aws:europe-west4", "--data-at: unknown aws region 'europe-west4'"),
        ("--data-at s3://bucket", "is an address, not a provider and region"),
        ("--discount aws=.2 --discount aws=.3", "--discount names aws twice; keep one"),
        ("--mix --no-mix", "--no-mix contradicts --mix; keep one"),
        ("--elastic --gang", "--gang contradicts --elastic; keep one"),
        ("--confidence 0.95%", "--confidence 0.95% is hardly any chance; write a share such as 95"),
        ("--mtbf 1m", "--mtbf 1m is less than a machine takes to start; write hours, such as"),
        ("--samples 1", "--samples: is less than one step of 2,048 samples; write more"),
        ("--params 8", "--params 8 is absurdly small (below 1000); write 8B or 1.3e9"),
        ("--measured 8xA100:52k_tokens/s", "--measured"),
        ("--deadline 2020-01-01T00:00Z", "is past (now is Fri 2026-11-20 12:00 UTC); write 24h"),
        (
            "--deadline 2026-12-01",
            "has no time of day; write 24h, 1d12h, tomorrow 08:00 or 2026-12-01T08:00Z",
        ),
        (
            "--deadline tomorrow",
            "--deadline tomorrow is not a duration; write 24h, 1d12h, tomorrow 08:00",
        ),
    ],
)
def test_what_cannot_be_meant_is_answered_with_what_can(
    run: Run, planner: Planner, words: str, said: str
) -> None:
    result = run(JOB, *words.split())
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert said in result.err
    assert not planner.calls


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("--market", "on_demand"), ("--market", "on-demand")),
        (("--checkpoint-to", "object-store"), ("--checkpoint-to", "object_store")),
        (("--gpu", "A100-40GB"), ("--gpu", "A100")),
        (("--precision", "BF16"), ("--precision", "bf16")),
        (("--provider", "AWS"), ("--provider", "aws")),
        (("--compare", "8 p4d.24xlarge"), ("--compare", "8x p4d.24xlarge")),
        (("--deadline", "2026-11-22 08:00 UTC"), ("--deadline", "2026-11-22T08:00Z")),
        (("--deadline", "2026-11-22T09:00+01:00"), ("--deadline", "2026-11-22T08:00Z")),
        (("--deadline", "24 hours"), ("--deadline", "24h")),
        (("--quota", "DEFAULT-NEW"), ("--quota", "default-new")),
        (("--hourly", "30 USD per hour"), ("--hourly", "30")),
    ],
)
def test_two_ways_to_write_the_same_thing(
    run: Run, planner: Planner, words: tuple[str, ...], same: tuple[str, ...]
) -> None:
    assert (run(JOB, *words).code, run(JOB, *same).code) == (0, 0)
    first, second = ({k: v for k, v in c.items() if k != "catalog"} for c in planner.calls)
    assert first == second


def test_several_kinds_of_machines_cannot_be_compared(run: Run) -> None:
    said = run(JOB, "--compare", "2x p4d.24xlarge + 1x p5.48xlarge").err
    assert "names several kinds of machines; one can be compared" in said


def test_tokens_per_second_of_an_image_job_are_refused(run: Run) -> None:
    said = run(JOB, "--measured", "8xA100: 52k tokens/s").err
    assert said.startswith("error: --measured: an image job counts samples, not tokens")


def test_a_rank_above_the_width_of_the_network_is_refused(run: Run) -> None:
    said = run("llama3-8b-lora", "--lora-rank", "5000").err
    assert said == "error: --lora-rank: 5000 is more than the 4096 the network is wide\n"


@pytest.mark.parametrize(
    ("flag", "value", "limit"), [("--elapsed", "9h", "--deadline"), ("--spent", "20", "--budget")]
)
def test_what_counts_against_no_limit_is_named(run: Run, flag: str, value: str, limit: str) -> None:
    result = run(JOB, flag, value)
    assert result.code == 0
    assert result.err == f"warning: {flag} {value} has no effect without {limit}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("deadline: 24h", "'deadline' is no part of a job; give it as --deadline"),
        ("max_overhead: 20%", "'max_overhead' is no part of a job; give it as --max-overhead"),
        ("max_machines: 4", "'max_machines' is no part of a job; give it as --max-machines"),
        ("assumed: 5", "assumed: 5 cannot be used; write a list"),
        ("batch: [1, 2]", "batch: must be one value"),
        ("elastic: maybe", "elastic: maybe is neither yes, no nor auto"),
        ("lora_rank: 8", "lora_rank: has no effect if all weights are trained; leave it out"),
    ],
)
def test_wrong_lines_of_the_folder_s_job_are_named(run: Run, line: str, said: str) -> None:
    Path("recommend.yaml").write_text(f"{HEAD}{line}\n", "utf-8")
    result = run("--deadline", "24h")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: recommend.yaml: {said}")


def test_what_a_file_assumes_is_added_to_what_its_preset_assumes(
    run: Run, planner: Planner
) -> None:
    Path("recommend.yaml").write_text(f"{HEAD}assumed: [batch]\n", "utf-8")
    run()
    run("--deadline", "24h")
    assert {"batch", "data.cpu_s_per_sample"} <= set(planner.calls[-1]["job"].assumed)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RECOMMEND_PROVIDER", "aws", "unknown variable RECOMMEND_PROVIDER; did you mean RECOMM"),
        ("RECOMMEND_OUTPUT", "yaml", "RECOMMEND_OUTPUT unknown value 'yaml'; known: table"),
        ("RECOMMEND_MAX_AGE", "3", "RECOMMEND_MAX_AGE 3 has no unit; write 30d"),
        ("RECOMMEND_MAX_MACHINES", "-1", "RECOMMEND_MAX_MACHINES -1 is negative; write 16"),
        ("RECOMMEND_NOW", "yesterday", "RECOMMEND_NOW yesterday is not a date and time"),
    ],
)
def test_wrong_variables_are_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    result = run(JOB, "--deadline", "2026-12-01T08:00Z")
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_an_absurd_width_is_not_written_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "999999")
    assert max(map(len, run("jobs", "list").out.splitlines())) <= 1000


@pytest.mark.parametrize("word", ["", " "])
def test_an_empty_name_of_a_job_is_called_empty(run: Run, word: str) -> None:
    assert run(word).err == "error: the name of the job is empty; recommend jobs list names them\n"


def test_a_closed_standard_error_does_not_hide_that_the_call_was_wrong(tmp_path: Path) -> None:
    call = f"{sys.executable} -m recommender {JOB} --deadline 24 2>&-"
    done = subprocess.run(["sh", "-c", call], cwd=tmp_path, check=False, timeout=120)
    assert done.returncode == 2


def test_lists_that_contradict_are_named_where_nothing_is_left(run: Run, planner: Planner) -> None:
    from recommender.inputs.units import parse_gpu
    from recommender.job.jobfile import find_job

    choice = Choice(gpus=(parse_gpu("H100"),), deny=("H100",), providers=("aws",))
    planner.answer = recommend(find_job(JOB), Limits(), choice, catalog=snapshot())
    said = " ".join(run(JOB).out.split())
    assert "--gpu H100 leaves no machine that can" in said
    assert "--deny H100 leaves no machine that can" in said
    assert "--provider" not in said


def test_today_s_machines_cost_what_the_user_s_discount_makes_them() -> None:
    from recommender.inputs.units import parse_comparison
    from recommender.job.jobfile import find_job

    job, today = find_job(JOB), parse_comparison("2x p4d.24xlarge on-demand us-east-1")
    here = Choice(providers=("aws",), regions=("us-east-1",), instances=("p4d.24xlarge",))
    half = Choice(**{**{f: getattr(here, f) for f in here.__slots__}, "discounts": (("aws", 0.5),)})
    costs = []
    for choice in (here, half):
        limits = Limits(max_machines=2)
        found = recommend(job, limits, choice, catalog=snapshot(), compare=today).compared
        assert found is not None
        costs.append(found.usd_per_hour)
    assert costs[1] / costs[0] == pytest.approx(0.5, abs=0.02)
