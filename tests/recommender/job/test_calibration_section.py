"""The calibration in a job file: written, read back, and checked."""

import math
from dataclasses import fields

import jsonschema
import pytest
import yaml

from recommender.errors import UsageError
from recommender.inputs.yaml_text import load_yaml
from recommender.job import calibration_section
from recommender.job.calibration_section import calibration_text, read_calibration
from recommender.job.job import Calibration, Fitted, InputRates
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.merge_layers import JobFlags

OWN = Calibration(
    as_of="2026-11-21",
    rows=3,
    constants="cnn typical 2026-11-21",
    compute=Fitted(0.8125, 0.15),
    tensor=Fitted(1.0, 0.7),
    latency=Fitted(12.5, 0.25),
    network=Fitted(0.5, 0.125),
    links=Fitted(1.0, 0.7),
    overlap=0.0,
    overlap_sd=0.0625,
    noise=0.05,
    sigma=0.075,
    sigma_several=0.125,
    sigma_other=0.25,
    gpus=(("V100", Fitted(0.75, 0.05)), ("A100-80GB", Fitted(0.9, 0.05))),
    feeds=(
        InputRates("aws/p3.2xlarge", 1250.0, math.inf),
        InputRates("aws/p3.8xlarge", 640.0, 427.0),
    ),
    sigma_larger=((4, 0.15), (16, 0.25)),
    network_kind="tcp",
    precision="bf16",
    service=Fitted(1.25, 0.2),
    worker=Fitted(0.75, 0.4),
    penalty=Fitted(1.5, 0.6),
)
JOB = "schema: recommend.job/v1\nlike: resnet152-imagenet\n" + calibration_text(OWN)


def section(**changes):
    """The section as a file holds it, with some keys changed; None drops one."""
    raw = load_yaml(calibration_text(OWN), "x")["calibration"] | changes
    return {key: value for key, value in raw.items() if value is not None}


def test_what_is_written_is_read_back():
    assert read_calibration(section(), "calibration:") == OWN


def test_it_is_part_of_the_job():
    assert job_from_text(JOB).calibration == OWN


def test_it_keeps_the_schema_of_job_files():
    raw = yaml.safe_load(calibration_text(OWN))["calibration"] | {"as_of": "2026-11-21"}
    jsonschema.validate(raw, calibration_section.SCHEMA)


def test_every_field_is_written():
    assert set(section()) == {field.name for field in fields(Calibration)} - {"overlap_sd"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sigma": None}, "sigma: is missing"),
        ({"speed": "1"}, "unknown key 'speed'"),
        ({"compute": {"factor": "1"}}, "compute: sd: is missing"),
        ({"compute": "1"}, "compute: 1 cannot be used"),
        ({"network": {"factor": "nan", "sd": "1"}}, "nan is not a finite number"),
        ({"overlap": {"share": "1.5", "sd": "0.1"}}, "1.5 is more than all"),
        ({"gpus": {"V100": {"factor": "-1", "sd": "1"}}}, "gpus.V100: factor: -1 is negative"),
        ({"feeds": {"aws/x": {"rate": "1"}}}, "unknown key 'rate'"),
        ({"sigma_larger": {"many": "0.1"}}, "sigma_larger.many: many is not a number"),
        ({"sigma_larger": {"4": "wide"}}, "sigma_larger.4: wide is not a number"),
        ({"precision": "fp7"}, "precision: unknown value 'fp7'; did you mean fp8?"),
        ({"network_kind": "pigeon"}, "network_kind: unknown value 'pigeon'; known: tcp, rdma"),
    ],
)
def test_a_wrong_section_says_what_is_wrong(changes, said):
    with pytest.raises(UsageError, match=r"calibration:") as error:
        read_calibration(section(**changes), "calibration:")
    assert any(said in problem for problem in error.value.problems)


def test_sizes_are_read_in_their_order():
    found = read_calibration(section(sigma_larger={"16": "0.25", "4": "0.15"}), "calibration:")
    assert found.sigma_larger == ((4, 0.15), (16, 0.25))


def test_a_file_of_before_holds_for_every_network_and_size():
    old = section(sigma_larger=None, network_kind=None, precision=None)
    found = read_calibration(old, "calibration:")
    assert (found.sigma_larger, found.network_kind, found.precision) == ((), "", "")


def test_a_factor_of_zero_is_refused():
    with pytest.raises(UsageError, match="zero"):
        read_calibration(section(links={"factor": "0", "sd": "1"}), "calibration:")


def test_another_precision_keeps_it_and_says_of_which_its_runs_are(tmp_path):
    old = JOB.replace("  precision: bf16\n", "")
    (tmp_path / "mine.yaml").write_text(JOB, "utf-8")
    (tmp_path / "old.yaml").write_text(old + "precision: fp16\n", "utf-8")
    flags = JobFlags(precision="tf32")
    assert find_job("mine.yaml", tmp_path, flags).calibration == OWN
    assert find_job("old.yaml", tmp_path).calibration.precision == ""
    assert find_job("old.yaml", tmp_path, flags).calibration.precision == "fp16"


@pytest.mark.parametrize(
    "flags", [JobFlags(stack="tuned"), JobFlags(precision="fp32"), JobFlags(params="100M")]
)
def test_another_network_or_stack_drops_it(tmp_path, flags):
    (tmp_path / "mine.yaml").write_text(JOB, "utf-8")
    assert find_job("mine.yaml", tmp_path).calibration == OWN
    assert find_job("mine.yaml", tmp_path, JobFlags(batch="512")).calibration == OWN
    if flags.params is None:
        assert find_job("mine.yaml", tmp_path, flags).calibration is None
