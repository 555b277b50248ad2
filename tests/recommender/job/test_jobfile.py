"""Job files: what is stated is kept, what is not is derived and named, what is wrong is said."""

import json
import re
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.errors import UsageError
from recommender.job.job import Job, Timing
from recommender.job.jobfile import find_job, job_from_text
from recommender.job.merge_layers import JobFlags
from recommender.job.preset_files import preset_text, presets
from recommender.job.schema import JobFile, json_schema
from recommender.performance.memory import bytes_of
from recommender.performance.priors import load_priors

HEAD = "schema: recommend.job/v1\n"
OWN = HEAD + "family: decoder\nparams: 8B\ntokens: 1B\nbatch: 4M tokens\n"


def test_four_fields_make_a_transformer_job() -> None:
    job = job_from_text(OWN)
    assert (job.family, job.parameters, job.tokens_per_sample) == ("decoder", 8e9, 2048)
    assert job.samples * 2048 == 1e9
    assert job.global_batch == round(4e6 / 2048)
    assert job.flop_per_sample == pytest.approx(6 * 8e9 * 2048, rel=0.1)
    assert job.checkpoint_bytes == 14 * 8e9
    assert 12 * job.layers * job.hidden**2 == pytest.approx(8e9, rel=0.05)
    derived = {"hidden", "layers", "vocabulary", "flop_per_sample", "checkpoint_bytes"}
    assert derived <= set(job.assumed)


def test_what_is_stated_is_not_assumed() -> None:
    stated = "hidden: 4096\nlayers: 32\nvocab: 32000\ncheckpoint_bytes: 99GB\nseq_len: 4096\n"
    job = job_from_text(OWN + stated)
    assert (job.hidden, job.layers, job.vocabulary) == (4096, 32, 32000)
    assert (job.checkpoint_bytes, job.tokens_per_sample) == (99e9, 4096)
    assert not {"hidden", "layers", "vocabulary", "checkpoint_bytes"} & set(job.assumed)


def test_every_field_can_be_stated() -> None:
    job = job_from_text(
        HEAD + "name: mine\ntitle: My job\nlike: llama3-8b-sft\nprecision: bf16\noptimizer: lamb\n"
        "sharding: ddp\nsync: parameter_server\nstack: tuned\nelastic: yes\nwriter: chief\n"
        "parameter_servers: 2\nasynchronous_save: no\nimage: prebuilt\nsetup: 5m\n"
        "fault_rate_per_hour: 1e-3\nmemory_gib_at_batch: {8: 21.3, 4: 15}\n"
        'measured: ["8xH100: 3.2 s/step", "4x p4d.24xlarge: 412 samples/s"]\n'
        "data: {at: 'aws:us-east-1', gib: 150GiB, read: stage, bytes_per_sample: 2kB,"
        " cpu_s_per_sample: 0.5}\n"
    )
    assert (job.name, job.title, job.precision, job.optimizer) == ("mine", "My job", "bf16", "lamb")
    assert (job.sharding, job.sync, job.stack) == ("ddp", "parameter_server", "tuned")
    assert job.parameter_servers == 2
    assert (job.elastic, job.asynchronous_save) == (True, False)
    assert (job.writer, job.image, job.setup_s) == ("chief", "prebuilt", 300)
    assert job.fault_rate_per_hour == 1e-3
    assert job.memory_gib_at_batch == ((4, 15.0), (8, 21.3))
    assert job.timings == (
        Timing("H100", 8, 1, 40.0),
        Timing("", 0, 4, 412.0, "p4d.24xlarge"),
    )
    data = job.data
    assert (data.at, data.gib, data.read) == ("aws:us-east-1", 150, "stage")
    assert (data.bytes_per_sample, data.cpu_s_per_sample) == (2000, 0.5)


def test_like_inherits_and_a_new_size_drops_what_is_no_longer_true() -> None:
    job = job_from_text(HEAD + "like: llama3-8b-sft\nparams: 13B\n")
    assert (job.family, job.global_batch, job.vocabulary) == ("decoder", 128, 128256)
    assert job.checkpoint_bytes == 14 * 13e9
    assert job.hidden > 4096
    assert {"hidden", "gradient_tensors"} <= set(job.assumed)
    assert "13B" in job.title


def test_the_same_value_again_changes_nothing() -> None:
    same = job_from_text(HEAD + "like: llama3-8b-sft\nparams: 8030.26M\nname: llama3-8b-sft\n")
    assert same == find_job("llama3-8b-sft")


def test_an_amount_replaces_the_preset_s_own() -> None:
    preset = find_job("llama3-8b-pretrain")
    more = find_job("llama3-8b-pretrain", flags=JobFlags(tokens="15T"))
    assert more.total_flop == pytest.approx(15_000 * preset.total_flop)
    assert "15T tokens" in more.title
    steps = find_job("resnet50-imagenet", flags=JobFlags(steps="100"))
    assert steps.samples == 100 * 2048
    epochs = find_job("resnet50-imagenet", flags=JobFlags(epochs="1"))
    assert epochs.samples == 1_281_167


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_adapters(method: str) -> None:
    full = find_job("llama3-8b-sft")
    job = find_job("llama3-8b-sft", flags=JobFlags(method=method, lora_rank="16"))
    assert job.trainable_parameters == pytest.approx(41.943e6, rel=0.001)  # peft prints 41,943,040
    assert job.flop_per_sample == pytest.approx(full.flop_per_sample * 2 / 3)
    assert job.checkpoint_bytes == pytest.approx(12 * 41.943e6, rel=0.001)
    assert job.gradient_tensors == 448
    assert job.parameters == full.parameters


def test_back_from_adapters_to_full_training() -> None:
    back = find_job("llama3-8b-lora", flags=JobFlags(method="full"))
    full = find_job("llama3-8b-sft")
    same = ("flop_per_sample", "trainable_parameters", "checkpoint_bytes", "gradient_tensors")
    assert [getattr(back, name) for name in same] == [getattr(full, name) for name in same]


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(OWN + "elastic: yes\n")
    flags = JobFlags(
        batch="256", elastic=False, measured=("8xH100: 2 s/step",), data_at="gcp:europe-west4,1TB"
    )
    job = find_job("mine.yaml", tmp_path, flags)
    assert (job.name, job.global_batch, job.elastic) == ("mine", 256, False)
    assert job.timings == (Timing("H100", 8, 1, 128.0),)
    assert (job.data.at, job.data.gib) == ("gcp:europe-west4", 1e12 / 2**30)


@pytest.mark.parametrize("family", ["cnn", "vit", "diffusion", "recsys"])
def test_other_families_need_their_flop(family: str) -> None:
    text = HEAD + f"family: {family}\nparams: 50M\nsamples: 1M\nbatch: 256\n"
    _refused(text, "flop_per_sample: is missing")
    job = job_from_text(text + "flop_per_sample: 24.5G\n")
    assert job.flop_per_sample == 24.5e9
    assert job.tokens_per_sample == 1
    assert job.activation_bytes_per_sample > 0


def test_all_problems_at_once() -> None:
    with pytest.raises(UsageError) as error:
        job_from_text(
            HEAD + "famly: decoder\nparams: 8X\ntokens: -1B\nbatch: 0\nprecision: fb16\n"
            "elastic: maybe\ndata: {gip: 3}\nmeasured: fast\nhidden: [1]\n",
            "recommend.yaml",
        )
    text = str(error.value)
    assert all(problem.startswith("recommend.yaml: ") for problem in error.value.problems)
    for part in (
        "unknown key 'famly'; did you mean family?",
        "params: 8X has the unit 'X'",
        "tokens: -1B is negative",
        "batch: 0 is zero",
        "precision: unknown value 'fb16'; did you mean bf16?",
        "elastic: maybe is neither yes, no nor auto",
        "unknown key 'gip'; did you mean gib?",
        "measured: fast has no colon",
        "hidden: must be one value",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD, "family: is missing"),
        ("family: decoder\n", "schema: is missing; write schema: recommend.job/v1"),
        ("schema: recommend.job/v9\n", "schema: unknown value"),
        ("- a\n", "not a job file"),
        ("", "not a job file"),
        (HEAD + "like: llama3-8b-stf\n", "did you mean llama3-8b-sft?"),
        (OWN + "samples: 5\n", "tokens, samples: give only one of them"),
        (OWN + "parameters: 5\n", "is given twice under two names"),
        (OWN.replace("tokens: 1B", "epochs: 2"), "epochs: needs the size of one epoch, data: {"),
        (OWN.replace("decoder", "cnn"), "an image job counts samples"),
        (HEAD + "like: resnet50-imagenet\nmethod: lora\n", "lora needs a transformer"),
        (OWN + "data: 5\n", "data: 5 cannot be used"),
        (OWN + "memory_gib_at_batch: 5\n", "must be like {8: 21.3}"),
        (OWN + "setup: 300\n", "setup: 300 has no unit"),
        (OWN + "nonsense: 1\n", "unknown key 'nonsense'; recommend jobs schema lists them"),
        (OWN + "reshard: no\n", "unknown key 'reshard'"),
        (OWN + "assumed: [{a: 1}, [2]]\n", "assumed: must be one value"),
    ],
)
def test_bad_files(text: str, reason: str) -> None:
    _refused(text, reason)


def test_flags_are_named_as_flags() -> None:
    with pytest.raises(UsageError) as error:
        find_job("llama3-8b-sft", flags=JobFlags(tokens="x", precision="bf61", data_at="us-east-1"))
    starts = ("--tokens x is not a number", "--precision: unknown value", "--data-at us-east-1 has")
    assert all(p.startswith(s) for p, s in zip(error.value.problems, starts, strict=True))


def test_the_folder_s_own_job(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recommend.yaml here; recommend jobs list names"):
        find_job(None, tmp_path)
    (tmp_path / "job.yaml").write_text("apiVersion: batch/v1\nkind: Job\n")
    with pytest.raises(UsageError, match="job.yaml is ignored: it has no line 'schema:"):
        find_job(None, tmp_path)
    (tmp_path / "job.yaml").write_text(OWN)
    assert find_job(None, tmp_path).parameters == 8e9
    (tmp_path / "recommend.yaml").write_text(OWN.replace("8B", "9B"))
    job = find_job(None, tmp_path)
    assert (job.parameters, job.name) == (9e9, tmp_path.name)


def test_a_file_must_look_like_one(tmp_path: Path) -> None:
    (tmp_path / "zzz").write_text(OWN)
    with pytest.raises(UsageError, match="to read that file, write ./zzz"):
        find_job("zzz", tmp_path)
    assert find_job("./zzz", tmp_path).parameters == 8e9
    with pytest.raises(UsageError, match="no such file"):
        find_job("none.yaml", tmp_path)


@pytest.mark.parametrize(
    ("word", "called"),
    [
        ("mistralai/Mistral-7B-v0.1", "mistralai/Mistral-7B-v0.1 --examples"),
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B --examples"),
        ("someone/own-model", "someone/own-model --fetch --examples"),
    ],
)
def test_a_model_name_instead_of_a_job_is_refused_with_the_command_that_writes_its_job_file(
    word: str, called: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=re.escape(f"recommend init --model {called}")):
        find_job(word, tmp_path)
    with pytest.raises(UsageError, match=re.escape(f"recommend init --model {called}")):
        find_job(None, tmp_path, JobFlags(model=word))


def test_an_answer_in_place_of_a_job_file_is_one_mistake_and_not_one_for_each_key(
    tmp_path: Path,
) -> None:
    answer = {"schema": "recommend.plan/v1", "status": "ok", "plans": [], "trio": None}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    with pytest.raises(UsageError, match="recommend replan and recommend export read") as found:
        find_job("answer.json", tmp_path)
    assert len(found.value.problems) == 1


def test_the_json_schema_accepts_every_preset_and_refuses_a_typo() -> None:
    schema = json_schema()
    for name in presets():
        jsonschema.validate(yaml.safe_load(preset_text(name)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": "recommend.job/v1", "famly": "cnn"}, schema)


def test_every_field_of_a_job_has_a_key() -> None:
    renamed = {
        "parameters": "params", "active_parameters": "active_params", "vocabulary": "vocab",
        "trainable_parameters": "trainable_params", "tokens_per_sample": "seq_len",
        "global_batch": "batch", "setup_s": "setup", "timings": "measured",
        "examples": "data", "other_network_bytes": "post_training",
        "unquantized_parameters": "method",
        "intensity_ratio": "activation_bytes_per_sample",
        "longest_completion": "max_seq_len", "cache_bytes_per_token": "kv_width",
        "software": "stack", "forward_passes": "method", "token_experts": "expert_width",
        "layer_bytes_per_sample": "recomputed_activation_bytes_per_sample",
    }  # fmt: skip
    names = {renamed.get(field.name, field.name) for field in fields(Job)}
    names -= {"remarks", "carried"}  # which follow from others
    assert names <= {field.name for field in fields(JobFile)}


KEYS = [field.name for field in fields(JobFile)][1:]  # without the schema
VALUES = st.sampled_from(
    ["", "0", "-1", "8B", "1e999", "nan", "[]", "{}", "[1, 2]", "{a: 1}", "yes", "lora", "decoder",
     "cnn", "vit", "encdec", "fp32", "llama3-8b-sft", "dlrm", "8xH100: 3 s/step", "1M tokens", "~",
     "1e-17", "1e18", "'aws:x,1GB'", "1", "256"]
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), VALUES | st.text(max_size=20), max_size=9))
@settings(deadline=None, max_examples=300)
def test_any_file_is_a_job_or_a_usage_error(values: dict[str, str]) -> None:
    text = HEAD + "".join(f"{key}: {value}\n" for key, value in values.items())
    try:
        job = job_from_text(text)
    except UsageError:
        return
    assert job.total_flop > 0
    assert job.global_batch >= 1


@given(st.sampled_from(presets()), st.data())
@settings(deadline=None, max_examples=150)
def test_any_flags_are_a_job_or_a_usage_error(preset: str, data: st.DataObject) -> None:
    names = [f.name for f in fields(JobFlags) if f.name not in ("elastic", "measured")]
    given_flags = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=4))
    try:
        job = find_job(preset, flags=JobFlags(**given_flags))  # type: ignore[arg-type]
    except UsageError:
        return
    assert job.recomputed_activation_bytes_per_sample <= job.activation_bytes_per_sample
    assert job.trainable_parameters <= job.parameters


def _refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        job_from_text(text)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("parameter_servers: 2\n", "parameter_servers: needs sync"),
        ("sync: parameter_server\nsharding: fsdp\n", "sharding: fsdp needs all-reduce"),
    ],
)
def test_fields_of_another_way_to_exchange_gradients_are_refused(lines: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        job_from_text(OWN + lines)


def test_one_line_is_a_job_and_says_what_it_took_for_granted(tmp_path: Path) -> None:
    flags = JobFlags(model="Qwen/Qwen2.5-7B", method="lora", tokens="100M")
    job = find_job(None, tmp_path, flags)
    assert job.samples * job.tokens_per_sample == pytest.approx(100e6, rel=0.001)
    assert (job.method, job.parameters) == ("lora", 7_615_616_512)
    assert any("assumed: " in each and "batch 64" in each for each in job.remarks)
    assert job.name == "Qwen2.5-7B"


def test_a_model_on_the_command_line_does_not_hide_that_the_folder_s_job_is_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "recommend.yaml").write_text(OWN, "utf-8")
    over = find_job(None, tmp_path, JobFlags(model="Qwen/Qwen2.5-7B"))
    assert any("job file of this folder is read" in each for each in over.remarks)
    alone = find_job(None, tmp_path, JobFlags())
    assert not any("of this folder" in each for each in alone.remarks)


def test_the_length_that_one_line_states_is_that_of_its_examples(tmp_path: Path) -> None:
    flags = JobFlags(model="Qwen/Qwen2.5-7B", examples="1000", epochs="1", seq_len="2048")
    job = find_job(None, tmp_path, flags)
    assert (job.samples, job.tokens_per_sample) == (1000, 2048)
    assert not any("tokens_per_example" in each for each in job.remarks)
    with pytest.raises(UsageError, match="no job given"):
        find_job(None, tmp_path, JobFlags(model="Qwen/Qwen2.5-7B"))


def test_the_file_of_a_tool_is_named_with_the_command_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "axolotl.yaml").write_text("base_model: gpt2\nnum_epochs: 1\n", "utf-8")
    with pytest.raises(UsageError, match="recommend init --from axolotl.yaml"):
        find_job("axolotl.yaml", tmp_path)


def test_states_without_master_weights_take_six_bytes_a_parameter() -> None:
    """42 GB were measured for 7B in bf16 with 8-bit AdamW on one card."""
    text = "schema: recommend.job/v1\nmodel: meta-llama/Llama-2-7b-hf\nbatch: 8\ntokens: 10M\n"
    job = job_from_text(text + "optimizer: adamw_8bit\nmaster_weights: no\nmicro_batch: 1\n")
    needs = bytes_of(job, load_priors()["decoder", "typical"])
    assert needs.states == pytest.approx(6 * job.parameters)
    assert needs.states + needs.context == pytest.approx(42e9, rel=0.03)
    assert needs.most_at_once == 1
    away = job_from_text(text + "offload: parameters\n")
    assert bytes_of(away, load_priors()["decoder", "typical"]).states == 0


def test_offloaded_states_leave_the_weights() -> None:
    """ZeRO-Offload trains 13 billion parameters on one V100 of 32 GB (arXiv 2101.06840, 2021)."""
    text = "schema: recommend.job/v1\nfamily: decoder\nparams: 13B\nbatch: 8\ntokens: 10M\n"
    needs = bytes_of(
        job_from_text(text + "offload: optimizer\n"), load_priors()["decoder", "typical"]
    )
    assert needs.states == pytest.approx(26e9)
    assert needs.states + needs.context < 0.92 * 32 * 2**30


def test_a_size_alone_is_planned_and_said(tmp_path: Path) -> None:
    job = find_job(None, tmp_path, JobFlags(params="7B", tokens="1B"))
    assert (job.parameters, job.samples * job.tokens_per_sample) == (
        7e9,
        pytest.approx(1e9, rel=1e-3),
    )
    assert any("is not known, taken as stated" in each for each in job.remarks)


def test_a_clip_keeps_the_inputs_of_layers_that_are_computed_again() -> None:
    text = "schema: recommend.job/v1\nmodel: Wan-AI/Wan2.1-T2V-1.3B\nbatch: 8\nsamples: 1k\n"
    job = job_from_text(text)
    positions = 21 * (80 // 2) ** 2
    inputs = 2 * 1536 * 30 * positions
    assert inputs < job.recomputed_activation_bytes_per_sample < 2 * inputs
    assert job.activation_bytes_per_sample == 17 * inputs
