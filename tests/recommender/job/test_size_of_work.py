"""How much a job trains on: stated in examples, repeated in the header, with a warning if kept."""

import pytest

from recommender.errors import UsageError
from recommender.job.derive import size_of_work
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.merge_layers import JobFlags

OWN = "schema: recommend.job/v1\nfamily: decoder\nparams: 8B\nbatch: 64\n"


def test_examples_epochs_and_tokens_are_the_work() -> None:
    job = job_from_text(OWN + "examples: 50k\nepochs: 3\ntokens_per_example: 600\n")
    assert (job.samples, job.examples, job.epochs) == (150_000, 50_000, 3)
    assert size_of_work(job) == "50,000 examples × 3 epochs × 600 tokens = 90M tokens"


def test_one_epoch_is_assumed_where_none_is_stated() -> None:
    job = job_from_text(OWN + "examples: 50k\ntokens_per_example: 600\n")
    assert size_of_work(job) == "50,000 examples × 600 tokens = 30M tokens"
    assert "epochs" in job.assumed


def test_pictures_have_no_tokens() -> None:
    assert size_of_work(find_job("resnet50-imagenet")).startswith("1.28M images × 90 epochs = 115M")


def test_examples_in_two_places_are_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        job_from_text(OWN + "examples: 50k\ndata: {samples: 60k}\n")


def test_examples_replace_an_amount_that_a_preset_states_otherwise() -> None:
    job = find_job("llama3-8b-pretrain", flags=JobFlags(examples="10k"))
    assert job.samples == 10_000
    assert job.remarks == ()


@pytest.mark.parametrize(
    ("flags", "because"),
    [
        (JobFlags(epochs="3"), "--epochs 3"),
        (JobFlags(params="13B"), "--params 13B"),
        (JobFlags(model="Qwen/Qwen2.5-7B", epochs="3"), "--model Qwen/Qwen2.5-7B and --epochs 3"),
    ],
)
def test_a_presets_data_set_that_is_kept_is_reported(flags: JobFlags, because: str) -> None:
    (said,) = find_job("llama3-8b-lora", flags=flags).remarks
    assert f"with {because} the data set is still that of llama3-8b-lora: 939,344 examples" in said
    assert "--examples" in said


@pytest.mark.parametrize(
    "flags",
    [
        JobFlags(),
        JobFlags(epochs="2"),
        JobFlags(epochs="3", examples="50k"),
        JobFlags(params="13B", tokens="1B"),
        JobFlags(batch="64"),
    ],
)
def test_no_remark_on_the_amount_of_work_if_it_is_the_users_or_the_presets(flags: JobFlags) -> None:
    assert find_job("llama3-8b-lora", flags=flags).remarks == ()
