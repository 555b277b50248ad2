"""Measured speeds named by GPU or instance type, completed from the catalog."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from recommender.catalogs.schema import InstanceType
from recommender.errors import UsageError
from recommender.inputs.offers_file import read_offers
from recommender.job.job import Job, Timing
from recommender.job.jobfile import find_job
from recommender.job.merge_layers import JobFlags
from recommender.job.timings import in_precision, on_catalog, parse_measured
from tests.catalogs.small import gpu

MEMORY = {"H100": 81559, "A100-40GB": 40960}
GPUS = {
    "H100": gpu(gpu="H100", peak_fp16_tflops=989.0),
    "A100-40GB": gpu(gpu="A100-40GB", peak_fp16_tflops=312.0),
}


@pytest.fixture
def types(tmp_path: Path) -> Sequence[InstanceType]:
    (tmp_path / "o.csv").write_text("label,gpu,gpus,usd_per_hour\np4d.24xlarge,A100-40GB,8,22\n")
    own = read_offers(tmp_path / "o.csv", MEMORY, (), date(2026, 11, 20))
    return list(own.hardware.values())


def _job(*measured: str) -> Job:
    return find_job("llama3-8b-sft", flags=JobFlags(measured=measured))


def test_an_instance_type_is_completed(types: list[InstanceType]) -> None:
    job = on_catalog(_job("4x P4D.24xlarge: 2 s/step"), GPUS, types)
    assert job.timings == (Timing("A100-40GB", 32, 4, 64.0, "p4d.24xlarge"),)


def test_a_gpu_is_spelt_as_in_the_catalog(types: list[InstanceType]) -> None:
    job = on_catalog(_job("8xh100: 2 s/step"), GPUS, types)
    assert job.timings == (Timing("H100", 8, 1, 64.0),)
    assert replace(job, timings=()) == on_catalog(_job(), GPUS, types)


@pytest.mark.parametrize("machines", ["8xH100", "1 x p5.48xlarge", "2x8xH100"])
def test_a_speed_may_state_its_precision(machines: str) -> None:
    plain = _job(f"{machines}: 2 s/step").timings[0]
    assert _job(f"{machines} BF16: 2 s/step").timings == (replace(plain, precision="bf16"),)
    assert in_precision(f"{machines}: 2 s/step", "fp8") == f"{machines} fp8: 2 s/step"
    assert in_precision(f"{machines} bf16: 2 s/step", "fp8") == f"{machines} bf16: 2 s/step"


def test_a_timing_in_automatic_precision_is_in_mixed() -> None:
    assert _job("8xH100 auto: 2 s/step") == _job("8xH100 mixed: 2 s/step")


def test_an_unknown_precision_is_named_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match=r"unknown precision 'int8'; .*auto, mixed, fp8, .*fp32"):
        _job("8xH100 int8: 2 s/step")


def test_timings_of_a_job_file_keep_their_precision_where_the_plan_has_another(
    tmp_path: Path,
) -> None:
    text = "schema: recommend.job/v1\nlike: llama3-8b-sft\n"
    rows = 'measured: ["8xH100: 2 s/step", "8xH100 bf16: 3 s/step"]\n'
    (tmp_path / "mine.yaml").write_text(text + rows)

    def precisions(flag: str) -> list[str]:
        job = find_job("mine.yaml", tmp_path, JobFlags(precision=flag))
        return [timing.precision for timing in job.timings]

    assert precisions("fp8") == ["mixed", "bf16"]
    assert precisions("mixed") == ["", "bf16"]
    assert precisions("fp32") == []


def test_unknown_names_are_refused_together(types: list[InstanceType]) -> None:
    with pytest.raises(UsageError) as error:
        on_catalog(_job("8xH1000: 2 s/step", "p4d.24xlrge: 2 s/step"), GPUS, types)
    assert error.value.problems == (
        "measured: unknown GPU 'H1000'; did you mean H100?",
        "measured: unknown instance type 'p4d.24xlrge'; did you mean p4d.24xlarge?",
    )


def test_a_speed_that_no_gpu_can_reach_is_a_slip(types: list[InstanceType]) -> None:
    with pytest.raises(
        UsageError, match=r"8xH100: 1.28e\+06 samples/s is .* times the vendor's peak"
    ):
        on_catalog(_job("8xH100: 0.1 ms/step"), GPUS, types)
    assert on_catalog(_job("8xH100: 1 s/step"), GPUS, types).timings


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("8xH100: 41% MFU", 0.41, "MFU"),
        ("8xH100: 30 steps/min", 2.0, "s/step"),
        ("8xH100: train_samples_per_second 12.5", 12.5, "samples/s"),
        ("8xH100: 7200 samples/h", 2.0, "samples/s"),
    ],
)
def test_speeds_as_tools_print_them(text: str, value: float, unit: str) -> None:
    found = parse_measured(text)
    assert (found.value, found.unit) == (pytest.approx(value), unit)
