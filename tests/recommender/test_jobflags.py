"""No flag about the job is accepted and then ignored, whatever the job."""

import json
from functools import cache
from pathlib import Path

import pytest

from recommender.api.calls import recommend
from recommender.errors import UsageError
from recommender.job.job import Job
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.merge_layers import JobFlags
from recommender.plan.limits import Choice, Limits
from recommender.report.answer_frame import PlanRequest
from recommender.report.json_output import document
from tests.recommender.planning import NOW
from tests.shipped import snapshot

# One job of each kind, and the values of each flag of which one must tell in its answer.
KINDS = (
    "resnet50-imagenet", "vit-l-imagenet", "bert-large-pretrain", "gpt2-xl", "llama3-8b-sft",
    "llama3-8b-lora", "llama3-70b-qlora", "mixtral-8x7b-sft", "t5-3b", "whisper-large", "sd-xl",
    "dlrm",
)  # fmt: skip
# Of these kinds every flag is asked by default; the others are slow.
FAMILIES = (
    "resnet50-imagenet",
    "llama3-8b-lora",
    "dlrm",
)
VALUES: dict[str, tuple[str | bool, ...]] = {
    "tokens": ("1M",), "samples": ("12345",), "epochs": ("7",), "steps": ("77",),
    "batch": ("8", "48"), "batch_per_gpu": ("4",), "max_global_batch": ("64",),
    "params": ("1.1B",), "seq_len": ("777",), "precision": ("fp32",),
    "method": ("full", "lora"), "lora_rank": ("64",), "optimizer": ("sgd", "adafactor"),
    "sharding": ("ddp", "hsdp", "fsdp"), "elastic": (True,), "stack": ("tuned",),
    "image": ("prebuilt",), "setup": ("17m",), "examples": ("23456",),
    "model": ("Qwen/Qwen2.5-0.5B",), "image_size": ("384",), "machines": ("3",),
}  # fmt: skip
TYPED = {
    "seq_len": "--seq-len",
    "lora_rank": "--lora-rank",
    "max_global_batch": "--max-global-batch",
    "image_size": "--image-size",
}
MINE = "schema: recommend.job/v1\nlike: resnet50-imagenet\n"


def answered(job: Job) -> str:
    """Everything a plan says of a job but the question itself."""
    choice = Choice(instances=("p4d.24xlarge", "p5.48xlarge"), regions=("us-east-1",))
    catalog = snapshot()
    limits = Limits(max_machines=4)  # without a deadline every job has plans
    answer = recommend(job, limits, choice, catalog=catalog, now=NOW, top=3)
    found = document(answer, PlanRequest(job))
    del found["inputs"]
    return json.dumps(found)


@cache
def as_it_comes(kind: str) -> str:
    """The answer for a job without any flag."""
    return answered(find_job(kind))


@pytest.mark.parametrize("flag", VALUES)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind in FAMILIES else pytest.mark.slow) for kind in KINDS],
)
def test_a_flag_of_the_job_changes_the_answer_or_is_refused_by_name(kind: str, flag: str) -> None:
    effects = [effect_of(kind, flag, value) for value in VALUES[flag]]
    assert TYPED.get(flag, f"--{flag}") in effects or "another answer" in effects


def effect_of(kind: str, flag: str, value: str | bool) -> str:
    """What one flag does: another answer, the same, or the name under which it is refused."""
    try:
        job = find_job(kind, flags=JobFlags(**{flag: value}))  # type: ignore[arg-type]
    except UsageError as error:
        return ", ".join(problem.split(":")[0] for problem in error.problems)
    return "another answer" if answered(job) != as_it_comes(kind) else "the same"


def test_the_table_names_every_flag_of_the_job() -> None:
    assert set(VALUES) | {"sync", "measured", "data_at"} == set(JobFlags.__dataclass_fields__)


def test_another_rank_is_another_number_of_adapter_weights() -> None:
    job = find_job("llama3-8b-lora", flags=JobFlags(lora_rank="64"))
    assert job.trainable_parameters == pytest.approx(4 * 41.943e6, rel=0.001)
    assert job.checkpoint_bytes == pytest.approx(12 * 4 * 41.943e6, rel=0.001)
    assert "rank 16" not in job.title


@pytest.mark.parametrize(
    ("kind", "flags", "said"),
    [
        ("resnet50-imagenet", {"lora_rank": "8"}, "--lora-rank: has no effect if all weights"),
        ("llama3-8b-sft", {"lora_rank": "8"}, "choose the method lora or qlora, or leave it out"),
        ("whisper-large", {"seq_len": "8"}, "--seq-len: a clip job has no sequences of tokens"),
        ("resnet50-imagenet", {"params": "9M"}, "--params: another size needs another flop_per"),
        ("resnet50-imagenet", {"tokens": "9M"}, "--tokens: an image job counts samples, not"),
        ("resnet50-imagenet", {"batch": "9 tokens"}, "--batch: an image job counts samples, not"),
        ("gpt2-xl", {"batch": "8", "batch_per_gpu": "8"}, "--batch, --batch-per-gpu: give only"),
        ("gpt2-xl", {"batch_per_gpu": "8", "steps": "9"}, "--steps: what 9 steps train on depends"),
        ("gpt2-xl", {"max_global_batch": "8"}, "--max-global-batch: needs batch_per_gpu"),
        ("gpt2-xl", {"epochs": "2"}, "--epochs: needs the size of one epoch"),
        ("gpt2-xl", {"epochs": "2", "steps": "9"}, "--epochs, --steps: give only one"),
    ],
)
def test_a_flag_that_the_job_cannot_use_is_refused_with_what_to_do(
    kind: str, flags: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError) as error:
        find_job(kind, flags=JobFlags(**flags))  # type: ignore[arg-type]
    assert len(error.value.problems) == 1
    assert said in error.value.problems[0]


def test_a_batch_per_gpu_takes_the_place_of_a_presets_batch_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    grows = find_job("llama3-8b-pretrain", flags=JobFlags(batch_per_gpu="16k tokens"))
    assert (grows.global_batch, grows.batch_per_gpu) == (2, True)
    assert float(grows.batch_on(64)) == 128.0
    assert "global_batch" not in grows.assumed
    assert grows.samples == find_job("llama3-8b-pretrain").samples
    name = mine(tmp_path, "batch_per_gpu: 32\nmax_global_batch: 512\n")
    assert find_job(name, tmp_path).max_global_batch == 512
    fixed = find_job(name, tmp_path, JobFlags(batch="256"))
    assert (fixed.global_batch, fixed.batch_per_gpu) == (256, False)


def test_an_image_next_to_a_known_setup_is_named_as_without_effect() -> None:
    both = JobFlags(setup="5m", image="prebuilt")
    (said,) = find_job("resnet50-imagenet", flags=both).remarks
    assert said == "--image prebuilt has no effect: --setup says how long a start takes"
    assert find_job("resnet50-imagenet", flags=JobFlags(setup="5m")).remarks == ()


def mine(folder: Path, lines: str) -> str:
    """A job file with own figures."""
    (folder / "mine.yaml").write_text(MINE + lines, "utf-8")
    return "mine.yaml"


@pytest.mark.parametrize(
    ("flags", "because"),
    [
        ({"precision": "fp32"}, "--precision fp32"),
        ({"batch": "4096"}, "--batch 4096"),
    ],
)
def test_own_timings_that_a_flag_makes_untrue_are_named(
    tmp_path: Path, flags: dict[str, str], because: str
) -> None:
    name = mine(tmp_path, 'measured: ["8xV100: 0.3 s/step"]\n')
    job = find_job(name, tmp_path, JobFlags(**flags))  # type: ignore[arg-type]
    assert job.timings == ()
    (said,) = job.remarks
    assert said == (
        f"mine.yaml: measured is not used: {because} is not what it was taken with; "
        "give --measured as well"
    )


def test_timings_in_samples_hold_for_another_batch(tmp_path: Path) -> None:
    name = mine(tmp_path, 'measured: ["8xV100: 5000 images/s"]\n')
    job = find_job(name, tmp_path, JobFlags(batch="4096"))
    assert (job.timings[0].samples_per_s, job.remarks) == (5000.0, ())


@pytest.mark.parametrize(
    "flags", [{"precision": "mixed"}, {"precision": "Auto"}, {"stack": "typical"}]
)
def test_a_flag_that_repeats_the_file_invalidates_nothing(
    tmp_path: Path, flags: dict[str, str]
) -> None:
    name = mine(tmp_path, 'measured: ["8xV100: 0.3 s/step"]\n')
    job = find_job(name, tmp_path, JobFlags(**flags))  # type: ignore[arg-type]
    assert len(job.timings) == 1
    assert job.remarks == ()


def test_a_rank_goes_with_the_adapters_of_the_preset() -> None:
    assert job_from_text(
        "schema: recommend.job/v1\nlike: llama3-8b-lora\nmethod: full\n"
    ).trainable_parameters == pytest.approx(8.03e9, rel=0.01)


def test_precision_auto_is_as_if_it_were_not_stated(tmp_path: Path) -> None:
    unstated = find_job("llama3-8b-sft")
    assert unstated.precision == "mixed"
    assert find_job("llama3-8b-sft", flags=JobFlags(precision="auto")) == unstated
    text = "schema: recommend.job/v1\nlike: llama3-8b-sft\nname: llama3-8b-sft\n"
    assert job_from_text(text + "precision: AUTO\n") == unstated
    assert "precision" in unstated.assumed
    assert "precision" not in job_from_text(text + "precision: mixed\n").assumed


def test_precision_auto_replaces_that_of_a_file_and_its_timings(tmp_path: Path) -> None:
    name = mine(tmp_path, 'precision: fp32\nmeasured: ["8xV100: 0.3 s/step"]\n')
    job = find_job(name, tmp_path, JobFlags(precision="auto"))
    assert (job.precision, job.timings) == ("mixed", ())
    assert "--precision auto is not what it was taken with" in job.remarks[0]


CALIBRATED = """schema: recommend.job/v1
model: {model}
examples: 50k
tokens_per_example: 600
batch: 64
method: full
calibration:
  as_of: 2026-11-20
  rows: 2
  constants: decoder typical 2026-11-26
  compute: {{factor: 0.8, sd: 0.1}}
  tensor: {{factor: 1.0, sd: 0.7}}
  latency: {{factor: 1.0, sd: 2}}
  network: {{factor: 1.0, sd: 0.35}}
  links: {{factor: 1.0, sd: 0.7}}
  penalty: {{factor: 1.0, sd: 0.8}}
  overlap: {{share: 0, sd: 0.1}}
  noise: 0.05
  sigma: 0.06
  sigma_several: 0.11
  sigma_other: 0.15
  sigma_larger: {{2: 0.09, 4: 0.15}}
  network_kind: rdma
  gpus:
    A100: {{factor: 0.8, sd: 0.1}}
"""


@pytest.mark.parametrize(
    ("model", "stack", "kept"),
    [
        ("meta-llama/Llama-3.1-8B", "torchtitan", True),  # scripts, and fused attention in both
        ("meta-llama/Llama-3.1-8B", "nemo", False),  # a recipe
        ("meta-llama/Llama-3.1-8B", "megatron-deepspeed", False),  # plain attention
        ("google/gemma-2-9b", "trl", True),  # plain in transformers, as in scripts
        ("google/gemma-2-9b", "unsloth", False),
    ],
)
def test_a_calibration_goes_with_another_stack_only_if_that_runs_otherwise(
    tmp_path: Path, model: str, stack: str, kept: bool
) -> None:
    (tmp_path / "own.yaml").write_text(CALIBRATED.format(model=model))
    job = find_job("own.yaml", tmp_path, JobFlags(stack=stack))
    assert (job.calibration is not None) == kept


@pytest.mark.parametrize("more", ["like: resnet50-imagenet\n", "like: llama3-70b-qlora\n"])
def test_eight_bits_have_no_effect_where_no_software_trains_in_them(more: str) -> None:
    job = job_from_text(f"schema: recommend.job/v1\n{more}precision: fp8\n")
    assert job.precision == "mixed"
    assert "precision: fp8 has no effect" in job.remarks[0]
    lora = job_from_text("schema: recommend.job/v1\nlike: llama3-8b-lora\nprecision: fp8\n")
    assert (lora.precision, lora.remarks) == ("fp8", ())
