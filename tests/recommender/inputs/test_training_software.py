"""Training software by name: what is known of each."""

import re
from importlib.resources import files

import pytest

from recommender.errors import UsageError
from recommender.inputs.training_software import software
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.merge_layers import JobFlags, invalidated

TEXT = "schema: recommend.job/v1\nlike: llama3-8b-sft\n"


def test_every_software_has_a_source_and_a_date() -> None:
    text = files("recommender.inputs").joinpath("training_software.csv").read_text("utf-8")
    lines = text.splitlines()[1:]
    assert len(lines) == len(software())
    assert all(re.search(r",[^,].*,20\d\d-\d\d-\d\d$", line) for line in lines)


@pytest.mark.parametrize("name", software())
def test_every_name_is_a_stack_of_a_job(name: str) -> None:
    job = job_from_text(f"{TEXT}stack: {name.upper()}\n")
    assert job.stack == software()[name].stack
    assert "stack" not in job.assumed
    assert find_job("llama3-8b-sft", flags=JobFlags(stack=name)).stack == job.stack


def test_modules_and_packages_belong_to_one_software_each() -> None:
    for kind in ("modules", "packages"):
        names = [name for each in software().values() for name in getattr(each, kind)]
        assert len(names) == len(set(names))
    assert all(each == each.lower() for s in software().values() for each in s.packages)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stack: megatron", "stack: unknown value 'megatron'; did you mean megatron-lm?"),
        ("stack: huggingface", "stack: unknown value 'huggingface'; known: tuned, typical, "),
        ("stack: [nemo, trl]", "stack: must be one value"),
        ('stack: ""', "stack: is empty; write one of tuned, typical, "),
        ('precision: ""', "precision: is empty; write one of auto, mixed, fp8"),
        ("precision: {auto: yes}", "precision: must be one value"),
        ("attention: flash3", "attention: unknown value 'flash3'; write fused (FlashAttention"),
        ("attention: [fused]", "attention: must be one value"),
        (
            "attention: eager",
            "attention: unknown value 'eager'; write fused (FlashAttention, sdpa),",
        ),
        ("heads: 5000", "heads: 5,000 is more than the 4,096 the network is wide"),
        ("sdpa: maybe", "sdpa: maybe is neither yes nor no"),
        ("heads: 0", "heads: 0 is zero"),
    ],
)
def test_what_no_software_is_called_is_refused(line: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        job_from_text(f"{TEXT}{line}\n")
    assert said in str(error.value)


def test_another_name_of_the_same_speed_and_attention_keeps_own_figures() -> None:
    lower = {"calibration": {}, "stack": "typical"}
    assert invalidated(lower, {"stack": "TRL"}) == {}
    assert invalidated({"calibration": {}}, {"stack": "transformers"}) == {}
    for other in ("nemo", "tuned", "megatron-deepspeed"):
        assert invalidated(lower, {"stack": other}) == {"calibration": "stack"}


def test_plain_attention_of_a_network_without_sequences_is_stated_in_vain() -> None:
    text = "schema: recommend.job/v1\nlike: vit-b-imagenet\nattention: plain\n"
    assert job_from_text(text).remarks == (
        "attention: plain has no effect: it is planned for sequences of tokens only",
    )
    assert job_from_text(TEXT + "attention: plain\n").remarks == ()
