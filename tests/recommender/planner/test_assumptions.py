"""What an answer takes for granted is reported."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from recommender.cli import main

Printed = Callable[..., str]


@pytest.fixture
def printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    planned_once: None,
) -> Printed:
    """What `recommend` prints in an empty folder, in one line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOMMEND_BENCH", str(tmp_path / "bench"))

    def call(*words: str) -> str:
        main(words)
        return " ".join(capsys.readouterr().out.split())

    return call


def test_a_stack_that_was_not_given_is_named(printed: Printed) -> None:
    words = ("resnet50-imagenet", "--deadline", "48h", "--provider", "gcp", "--explain", "1")
    said = printed(*words)
    assert "training software not stated: speeds between scripts and recipes" in said
    found = re.search(r"factor of ([\d.]+) to ([\d.]+), a timed step \(--measured\) to 1.2", said)
    assert found is not None
    assert float(found[1]) > float(found[2]) > 1.2
    assert "training software" not in printed(*words, "--stack", "tuned")


def test_the_software_is_requested_before_a_gpu_is_reported_to_be_unmeasured(
    printed: Printed,
) -> None:
    """An answer says what narrows it most, and --explain all that is assumed."""
    words = ("resnet50-imagenet", "--deadline", "48h", "--gpu", "H100-NVL", "--provider", "azure")
    assert "training software not stated" in printed(*words)
    said = printed(*words, "--explain", "1")
    assert said.index("its name narrows") < said.index("speed of H100-NVL from the vendor's peak")


def test_a_timing_far_slower_than_expected_gives_a_warning(printed: Printed) -> None:
    """A step of 310 s instead of 3.1 s is a wrong unit or batch; half of the speed is not."""
    words = ("llama3-8b-sft", "--hourly", "60", "--gpu", "H100", "--provider", "aws",
             "--max-machines", "1", "--measured")  # fmt: skip
    assert "times slower than expected; check its unit" in printed(*words, "8xH100: 310 s/step")
    usual = printed(*words, "8xH100: 6 s/step")
    assert "slower than expected" not in usual
    assert "matrix multiplication reaches" not in usual
    assert "times what matrix multiplication reaches; check" in printed(
        *words, "8xH100: 0.4 s/step"
    )


def test_a_carried_speed_is_said_of_plans_only(printed: Printed) -> None:
    words = ("llama3-8b-sft", "--gpu", "H100:8", "--precision", "fp8", "--max-machines", "1")
    timed = (*words, "--measured", "8xH100 mixed: 4 s/step", "--explain", "1")
    said = "speed carried from your own timings in bf16 to fp8: ± 14 % in addition"
    assert said in printed(*timed)
    assert "speed carried" not in printed(*words, *timed[-4:-2], "--deadline", "1m")


def test_a_timing_on_excluded_gpus_counts(printed: Printed) -> None:
    words = ("llama3-8b-sft", "--gpu", "A100:8", "--no-spot", "--max-machines", "1")
    slow, usual = (printed(*words, "--measured", f"8xH100: {s} s/step") for s in (12, 6))
    assert slow != usual != printed(*words)


def test_own_machines_need_no_quota_and_are_never_short(tmp_path: Path, printed: Printed) -> None:
    (tmp_path / "own.csv").write_text("label,gpu,gpus,usd_per_hour,count\nlab,RTX-4090,4,0.6,1\n")
    words = ("resnet50-imagenet", "--offers", "own.csv", "--max-machines", "1", "--explain", "1")
    for flag, is_told in (("--provider=own", False), ("--provider=gcp", True)):
        said = printed(*words, flag)
        assert ("quotas not checked" in said) == is_told
        assert ("available at once in a region" in said) == is_told


def test_an_unmeasured_gpu_is_marked_where_offers_are_shown(printed: Printed) -> None:
    shown = printed("catalog", "show", "g6.xlarge", "--top", "1")
    assert "bf16 72.6 (60.5-90.8)*" in shown
    assert "not measured" in shown
    assert "not measured" not in printed("catalog", "show", "T4", "--top", "1")


def test_the_kind_and_spread_of_a_speed_are_in_the_json(printed: Printed) -> None:
    shown = json.loads(printed("catalog", "show", "p5.48xlarge", "--top", "1", "-o", "json"))
    row = shown[0] if isinstance(shown, list) else next(iter(shown.values()))[0]
    speeds = {each["precision"]: each for each in row["matrix_tflops"]}
    assert speeds["bf16"]["kind"] == "measured"
    assert speeds["bf16"]["low"] < speeds["bf16"]["tflops"] < speeds["bf16"]["high"]
    assert speeds["fp32"]["kind"] == "fallback"


def test_a_plan_on_own_speeds_says_so_and_takes_as_long_as_they_say(
    tmp_path: Path, printed: Printed
) -> None:
    words = ("llama3-8b-sft", "--gpu", "H100", "--no-spot", "--max-machines", "1")
    before = printed(*words, "-o", "json")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "speeds.csv").write_text(
        "gpu,precision,tflops,low_tflops,high_tflops,machines,as_of\n"
        "H100,bf16,381.1,370,400,2,2026-11-20\n"  # half of the shipped 762.2
    )
    after = printed(*words, "-o", "json")
    assert "speed of H100 from your own benchmarks" in after
    assert "own benchmarks" not in before
    slower = [json.loads(each)["lower_bound"]["s"] for each in (after, before)]
    assert 1.4 < slower[0] / slower[1] < 2.0


def test_no_timed_step_makes_a_long_run_more_certain_than_published_ones_are(
    printed: Printed,
) -> None:
    words = ("llama3-8b-pretrain", "--instance", "a3-megagpu-8g", "--no-spot", "--explain", "1",
             "--tokens")  # fmt: skip
    each = (printed(*words, tokens) for tokens in ("1B", "50B", "100B", "1T"))
    short, middle, longer, long = each
    timed = r"from a factor of 1\.\d (to 1\.\d, a timed step )?\(--measured\) to 1.2"
    assert re.search(timed, short)
    assert "run of this size" not in short
    # e^(1.645 · hypot(0.10, 0.065)) is 1.217
    assert re.search(timed, middle)
    # 100B are 5.1e21 FLOP, 0.71 of the way to 1e22 in the logarithm: an sd of 0.114.
    assert "run of this size is known within a factor of 1.2 at best" in longer  # e^(1.645 · 0.114)
    assert "run of this size is known within a factor of 1.3 at best" in long  # e^(1.645 · 0.16)
    assert "repeated work are taken for 9 % of it" in long
    assert "narrows the speed from a factor of 1.5 (--measured) to 1.4" in long


@pytest.mark.slow
def test_llama_405b_on_as_many_gpus_as_it_was_trained_on_takes_as_long_as_published(
    tmp_path: Path, printed: Printed
) -> None:
    """arXiv 2407.21783: 16,384 H100, and 30.84 M GPU-hours by the model card (2024-07-23)."""
    (tmp_path / "job.yaml").write_text(
        "schema: recommend.job/v1\nmodel: meta-llama/Llama-3.1-405B\nmethod: full\n"
        "tokens: 15.6T\nseq_len: 8192\nbatch: 2048\nstack: tuned\n"
    )
    words = ("job.yaml", "--gpu", "H100", "--provider", "aws", "--machines", "2048")
    reserved = ("--assume-on-demand", "100%")
    found = json.loads(printed(*words, *reserved, "-o", "json"))
    (plan,) = found["plans"]
    hours = plan["estimate"]["time"]["median"] / 3600
    # It is 6.9 since a restart counts the whole checkpoint on each of 2,048 machines, as exported
    # files fetch it; theirs read a shared file system (2026-11-29).
    assert hours * 16384 / 30.84e6 > 0.75
    assert "--assume-on-demand 100%" in printed(*words, "--explain", "1")
    assert "(if yours are reserved" not in printed(*words, *reserved, "--explain", "1")


def test_the_other_software_is_named_with_the_time_that_it_takes(printed: Printed) -> None:
    words = ("llama3-8b-sft", "--instance", "p5.48xlarge", "--machines", "1", "--no-spot")
    said = printed(*words, "--explain", "1")
    times = [
        json.loads(printed(*words, *more, "-o", "json"))["plans"][0]["estimate"]["time"]["median"]
        for more in (("--stack", "typical"), (), ("--stack", "tuned"))
    ]
    assert times == sorted(times, reverse=True)
    for kind, seconds in (
        ("typical, a script,", times[0]),
        ("tuned, a vendor's recipe,", times[2]),
    ):
        found = re.search(rf"--stack {kind} takes about ([\d.]+) h with plan 1", said)
        assert found is not None
        assert float(found[1]) == pytest.approx(seconds / 3600, rel=0.1)


def test_the_other_software_is_not_named_where_it_takes_about_as_long(
    tmp_path: Path, printed: Printed
) -> None:
    (tmp_path / "job.yaml").write_text(
        "schema: recommend.job/v1\nmodel: meta-llama/Llama-3.1-8B\nmethod: full\ntokens: 100M\n"
        "seq_len: 1024\nbatch: 512\ndata:\n  cpu_s_per_sample: 10\n"  # the input sets the pace
    )
    words = ("job.yaml", "--instance", "p5.48xlarge", "--machines", "1", "--no-spot")
    times = [
        json.loads(printed(*words, *more, "-o", "json"))["plans"][0]["estimate"]["time"]
        for more in ((), ("--stack", "tuned"))
    ]
    assert times[1]["median"] > 0.9 * times[0]["median"]
    assert "tuned, a vendor's recipe, takes" not in printed(*words)


def test_the_formats_of_a_precision_that_was_not_stated_are_named_for_each_gpu(
    printed: Printed,
) -> None:
    """V100 and T4 have no bf16 (NVIDIA, Tesla V100 and T4 data sheets)."""
    words = ("resnet50-imagenet", "--deadline", "48h", "--market", "on-demand", "--explain", "1")
    older = ("--gpu", "V100", "--gpu", "T4")
    auto = printed(*words, *older, "--precision", "auto")
    found = re.search(r"precision not stated \(--precision\): ([^.]*)\.", auto)
    assert found is not None
    assert re.fullmatch(r"fp16 on (V100|T4|V100, T4|T4, V100), which ha(ve|s) no bf16", found[1])
    assert printed(*words, *older) == auto
    assert "precision not stated (--precision): bf16." in printed(*words, "--gpu", "A100")
    assert "precision not stated" not in printed(*words, "--precision", "mixed")


def test_eight_bits_are_not_assumed_and_their_time_is_named(printed: Printed) -> None:
    words = ("llama3-8b-sft", "--instance", "p5.48xlarge", "--machines", "1", "--no-spot")
    unstated, stated = (
        json.loads(printed(*words, *more, "-o", "json")) for more in ((), ("--precision", "fp8"))
    )
    (said,) = [each for each in unstated["assumptions"] if each.startswith("precision not stated")]
    found = re.fullmatch(
        r"precision not stated \(--precision\): bf16; fp8 would take about ([\d.]+) h with plan 1",
        said,
    )
    assert found is not None
    took, takes = (
        each["plans"][0]["estimate"]["time"]["median"] / 3600 for each in (unstated, stated)
    )
    assert float(found[1]) == pytest.approx(takes, rel=0.05)
    assert takes < 0.95 * took


@pytest.mark.parametrize(
    "more",
    [
        ("resnet50-imagenet", "--gpu", "H100"),  # convolutions
        ("llama3-8b-lora", "--gpu", "H100"),  # frozen weights
        ("llama3-8b-sft", "--gpu", "A100"),  # no such matrix products
        ("llama3-8b-sft", "--gpu", "H100", "--measured", "8xH100: 6 s/step"),  # in 16 bits
    ],
)
def test_eight_bits_are_not_named_where_nothing_is_known_to_be_gained(
    printed: Printed, more: tuple[str, ...]
) -> None:
    words = ("--no-spot", "--max-machines", "1", "--hourly", "120", "--explain", "1")
    said = printed(*more, *words)
    assert "precision not stated (--precision): bf16." in said
    assert "fp8" not in said


def test_what_eight_bits_assume_is_said(printed: Printed) -> None:
    words = ("llama3-8b-sft", "--gpu", "H100", "--no-spot", "--max-machines", "1", "--explain", "1")
    typical = printed(*words, "--precision", "fp8", "--stack", "typical")
    assert "this software keeps 0.51 of what they gain" in typical
    assert "this software keeps 0.755 of what" in printed(*words, "--precision", "fp8")
    assert "optimizer states are as in mixed precision" in typical
    tuned = printed(*words, "--precision", "fp8", "--stack", "tuned")
    assert "this software keeps all that they gain; attention" in tuned
    assert "matrix products of layers" not in printed(*words)
