"""Files of training tools, written after their published formats, and what is read of them."""

from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.inputs.training_configs.read import read_training_config
from recommender.inputs.training_configs.training_config import TrainingConfig
from recommender.job.draft import StatedJob, draft_job, network_of
from recommender.job.jobfile import job_from_text
from recommender.networks.known_models import find_shape

HERE = Path(__file__).parent


def read(name: str) -> TrainingConfig:
    return read_training_config(HERE / name)


def test_axolotl_with_adapters() -> None:
    found = read("axolotl_qlora.yaml")
    assert (found.tool, found.model) == ("axolotl", "NousResearch/Meta-Llama-3-8B")
    assert (found.micro_batch, found.accumulation, found.gpus) == (2, 4, 0)
    assert (found.tokens, found.packed, found.epochs) == (4096, True, 4)
    assert (found.method, found.lora_rank, found.precision) == ("qlora", 32, "mixed")
    assert (found.optimizer, found.sharding) == ("adamw", "")
    assert found.recomputation == "full"
    assert [each.partition(" (")[0] for each in found.unread] == [
        "size of the data set aaditya/alpaca_subset_1",
    ]
    assert {"learning_rate", "special_tokens.pad_token"} <= set(found.unused)


def test_axolotl_of_preferences() -> None:
    found = read("axolotl_dpo.yaml")
    assert (found.kind, found.method, found.packed) == ("dpo", "full", False)
    assert found.sharding == "zero3"  # zero3_bf16.json
    assert found.optimizer == "adamw_8bit"


def test_training_arguments_as_json() -> None:
    found = read("training_arguments.json")
    assert found.model == "google-bert/bert-large-uncased"
    assert (found.micro_batch, found.accumulation, found.epochs, found.steps) == (16, 2, 3, 0)
    assert (found.tokens, found.precision, found.method) == (384, "mixed", "full")


def test_defaults_of_training_arguments_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "arguments.json"
    path.write_text('{"output_dir": "out", "num_train_epochs": 2}', "utf-8")
    found = read_training_config(path)
    assert (found.micro_batch, found.epochs) == (8, 2)
    assert any("per_device_train_batch_size" in each for each in found.unread)


def test_rewards_with_completions() -> None:
    found = read("grpo.yaml")
    assert (found.tool, found.kind, found.generations) == ("TRL", "grpo", 16)
    assert found.tokens == 512 + 2048


def test_torchtitan() -> None:
    found = read("torchtitan.toml")
    assert (found.model, found.tokens, found.steps) == ("meta-llama/Llama-3.1-70B", 8192, 1000)
    assert (found.micro_batch, found.gpus, found.replica_gpus) == (8, 64, 8)
    assert (found.sharding, found.optimizer) == ("tensor", "adamw")


def test_nemo_describes_its_network() -> None:
    found = read("nemo.yaml")
    assert (found.batch, found.gpus, found.replica_gpus, found.steps) == (256, 16, 2, 100_000)
    shape = found.network
    assert shape is not None
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    assert [shape[each] for each in names] == [2048, 24, 16, 4 * 2048]  # ${multiply:4, …}
    assert found.tokens == 2048


def test_megatron_with_dashes() -> None:
    found = read("megatron.yaml")
    shape = found.network
    assert shape is not None
    assert (shape["model_type"], shape["num_key_value_heads"]) == ("llama", 8)
    assert shape["vocab_size"] == 128_256
    assert (found.batch, found.replica_gpus, found.sharding) == (128, 8, "pipeline")
    assert found.unused == ("lr",)


def test_llm_foundry_follows_its_variables() -> None:
    found = read("llm_foundry.yaml")
    assert (found.model, found.tokens) == ("meta-llama/Llama-2-7b-hf", 4096)
    assert (found.batch, found.epochs, found.packed) == (64, 3, True)
    assert (found.sharding, found.precision, found.optimizer) == ("fsdp", "mixed", "lion")
    assert "device_train_microbatch_size: auto" in found.unread


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("2ep", (2, 0, 0, 0)),
        ("4800ba", (0, 4800, 0, 0)),
        ("1e9tok", (0, 0, 0, 1_000_000_000)),
        ("100_000sp", (0, 0, 100_000, 0)),
    ],
)
def test_composers_time_has_four_units(tmp_path: Path, word: str, wanted: tuple[int, ...]) -> None:
    path = tmp_path / "foundry.yaml"
    path.write_text(f"global_train_batch_size: 64\nmax_duration: {word}\n", "utf-8")
    found = read_training_config(path)
    assert (found.epochs, found.steps, found.samples, found.total_tokens) == wanted


def test_lightning_names_what_is_a_class_of_the_users_own() -> None:
    found = read("lightning.yaml")
    assert (found.model, found.micro_batch, found.gpus) == ("google/vit-base-patch16-224", 64, 4)
    assert (found.epochs, found.precision, found.sharding) == (30, "mixed", "ddp")
    assert "model: mine.ImageClassifier (a class)" in found.unread


def test_deepspeed_holds_no_network() -> None:
    found = read("deepspeed.json")
    assert (found.micro_batch, found.accumulation, found.batch) == (4, 8, 0)
    assert (found.precision, found.sharding, found.optimizer) == ("mixed", "zero3", "adamw")
    assert "train_batch_size: auto" in found.unread
    assert any("holds neither" in each for each in found.unread)


def test_every_key_is_read_or_named() -> None:
    """A key that says how long training lasts, misspelt, is among those not used."""
    for path in [*HERE.glob("*.yaml"), *HERE.glob("*.json"), *HERE.glob("*.toml")]:
        found = read_training_config(path)
        text = path.read_text("utf-8")
        assert all(key.rpartition(".")[2] in text for key in found.unused)
        assert found.tool


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "a: 1\n", "of no training tool that is known"),
        ("a.yaml", "- 1\n", "of no training tool that is known"),
        ("a.toml", "a = \n", "not TOML"),
        ("a.json", "{", "not JSON"),
        ("a.yaml", "{", "not YAML"),
        ("a.yaml", "base_model: &x a\nb: *x\n", "aliases"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(UsageError) as refused:
        read_training_config(tmp_path / name)
    assert said in str(refused.value)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e999", "lots", "[1]", "{a: 1}"])
def test_odd_numbers_are_none_or_named(tmp_path: Path, value: str) -> None:
    path = tmp_path / "axolotl.yaml"
    path.write_text(f"base_model: gpt2\nmicro_batch_size: {value}\n", "utf-8")
    found = read_training_config(path)
    assert found.micro_batch == 1
    assert value not in ("nan", "inf", "1e999", "lots") or any(
        value in each for each in found.unread
    )


def of(folder: Path, text: str, name: str = "config.yaml") -> TrainingConfig:
    path = folder / name
    path.write_text(text, "utf-8")
    return read_training_config(path)


def test_what_is_planned_otherwise_is_reported(tmp_path: Path) -> None:
    found = of(tmp_path, """
        base_model: owner/network
        adapter: lora
        load_in_8bit: true
        lora_modules_to_save: [embed_tokens, lm_head]
        gradient_checkpointing: offload
        micro_batch_size: 2
        fp8: true
        fsdp_config: {fsdp_offload_params: true, fsdp_sharding_strategy: HYBRID_SHARD}
        """)  # fmt: skip
    assert (found.precision, found.sharding, found.method) == ("fp8", "hsdp", "lora")
    assert found.recomputation == "full"
    reported = [each.partition(" (")[0].lower() for each in found.unread]
    assert reported == ["gradient_checkpointing: offload", "load_in_8bit: true"]
    assert found.whole_modules == ("embed_tokens", "lm_head")
    assert found.offload == "parameters"


@pytest.mark.parametrize(
    ("text", "name", "reported"),
    [
        (
            "device_train_microbatch_size: 1\nfsdp_config: {{activation_checkpointing: {}}}",
            "a.yaml",
            "fsdp_config.activation_checkpointing: false",
        ),
        (
            "[model]\nflavor = '8B'\n[activation_checkpoint]\nmode = {}",
            "a.toml",
            "activation_checkpoint.mode: none",
        ),
        (
            "base_model: a/b\nmicro_batch_size: 2\ngradient_checkpointing: {}",
            "a.yaml",
            "gradient_checkpointing: false",
        ),
    ],
)
def test_recomputation_that_is_switched_off_is_reported(
    tmp_path: Path, text: str, name: str, reported: str
) -> None:
    """Plans have it where that is faster."""
    on, off = ("'full'", "'none'") if name == "a.toml" else ("true", "false")
    assert of(tmp_path, text.format(on), name).recomputation == "full"
    found = of(tmp_path, text.format(off), name)
    assert found.recomputation == ""
    assert f"{reported} (planned with it where that is faster)" in found.unread


@pytest.mark.parametrize(
    ("text", "name", "recomputation"),
    [
        ("per_device_train_batch_size: 2\ngradient_checkpointing: true", "", "full"),
        ("base_model: a/b\nmicro_batch_size: 2\ngradient_checkpointing: false", "", ""),
        ("[model]\nflavor = '8B'\n[activation_checkpoint]\nmode = 'full'", "a.toml", "full"),
        ("[model]\nflavor = '8B'\n[activation_checkpoint]\nmode = 'selective'", "a.toml", ""),
        ("train_iters: 9\nnum_layers: 2\nhidden_size: 8\nrecompute-granularity: full", "", "full"),
        (
            "train_iters: 9\nnum_layers: 2\nhidden_size: 8\nrecompute_granularity: full\n"
            "recompute_method: block\nrecompute_num_layers: 1",
            "",
            "",
        ),
    ],
)
def test_recomputation_of_every_layer_is_read(
    tmp_path: Path, text: str, name: str, recomputation: str
) -> None:
    """Where only some operations or layers are computed again, the plan decides which."""
    assert of(tmp_path, text, name or "config.yaml").recomputation == recomputation


def test_what_is_switched_off_needs_no_word(tmp_path: Path) -> None:
    text = "base_model: owner/network\nload_in_8bit: false\nfsdp_config: {offload_params: false}"
    assert of(tmp_path, text).unread == ()


def test_offload_of_deepspeed_is_read(tmp_path: Path) -> None:
    text = """{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "none"}}, "train_micro_batch_size_per_gpu": "auto"}"""
    found = of(tmp_path, text, "ds.json")
    assert found.sharding == "zero3"
    assert found.offload == "optimizer"
    assert "train_micro_batch_size_per_gpu: auto" in found.unread


@pytest.mark.parametrize(("text", "kind"), [
    ("loss_type: nll", ""), ("loss_type: sigmoid", "dpo"), ("beta: 0.05", "dpo"),
    ("use_vllm: true\nbeta: 0.04", "grpo"), ("packing: true", ""),
])  # fmt: skip
def test_trainers_of_trl_are_recognised_by_their_own_fields(
    tmp_path: Path, text: str, kind: str
) -> None:
    found = of(tmp_path, f"output_dir: out\nmodel_name_or_path: owner/network\n{text}\n")
    assert found.kind == kind
    assert any("of DPO, ORPO" in each for each in found.unread) == (text == "beta: 0.05")


AXOLOTL = "base_model: owner/network\nrl: grpo\ntrl: {num_generations: 8, use_vllm: true"


@pytest.mark.parametrize(("text", "reported"), [
    ("output_dir: out\nuse_vllm: true", "use_vllm: its 30% of each GPU's memory are not counted"),
    ("output_dir: out\nuse_vllm: true\nvllm_mode: server",
     "use_vllm: its GPUs are needed in addition to those of the plan"),
    (AXOLOTL + ", vllm_gpu_memory_utilization: 0.5}",
     "trl.use_vllm: its 50% of each GPU's memory are not counted"),
    ("output_dir: out\nnum_generations: 8", ""),
])  # fmt: skip
def test_what_an_engine_takes_next_to_the_training_is_reported(
    tmp_path: Path, text: str, reported: str
) -> None:
    unread = of(tmp_path, text + "\n").unread
    assert [each for each in unread if "vllm" in each] == ([reported] if reported else [])


def test_data_sets_of_a_mixture_are_named(tmp_path: Path) -> None:
    found = of(tmp_path, """
        output_dir: out
        dataset_mixer: {owner/first: 1.0}
        dataset_mixture: {datasets: [{id: owner/a}, {id: owner/b}, {id: owner/a}]}
        """)  # fmt: skip
    named = [each for each in found.unread if each.startswith("size of the data set")]
    assert named == [
        "size of the data set owner/first (share 1.0)",
        "size of the data set owner/a",
        "size of the data set owner/b",
    ]


NEMO = """
trainer: {devices: 8, precision: bf16, max_steps: 10}
model:
  global_batch_size: 8
  encoder_seq_length: 8192
  num_layers: 28
  hidden_size: 3072
  ffn_hidden_size: 24576
  num_attention_heads: 16
  kv_channels: 256
  activation: geglu
"""


def counted(tmp_path: Path, text: str) -> int:
    """Parameters of the network that a file describes."""
    path = tmp_path / "file.yaml"
    path.write_text(text, "utf-8")
    return network_of(StatedJob(), read_training_config(path), tmp_path).network.count.parameters


def test_a_described_network_has_the_heads_and_the_tokenizer_that_its_file_names(
    tmp_path: Path,
) -> None:
    """Gemma 7B in NeMo's words has Google's 8,537,680,896 parameters."""
    stated = "  share_embeddings_and_output_weights: true\n  vocab_size: 256000\n"
    assert counted(tmp_path, NEMO + stated) == 8_537_680_896
    other = counted(tmp_path, NEMO + "  tokenizer: {type: google/gemma-7b-it}\n")
    assert other == 8_537_680_896  # one table by default, and a tuned model's tokenizer
    two = counted(tmp_path, NEMO + stated.replace("true", "false"))
    assert two == 8_537_680_896 + 256_000 * 3072


def test_an_mpt_of_llm_foundry_has_one_table(tmp_path: Path) -> None:
    """MPT-7B: 6,649,286,656 parameters, as its card has them."""
    text = """
max_seq_len: 2048
model: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, vocab_size: 50432}
train_loader: {name: text}
max_duration: 10ba
global_train_batch_size: 8
"""
    assert counted(tmp_path, text) == pytest.approx(6_649_286_656, rel=0.001)


def test_eight_bits_by_a_converter_and_states_on_the_host(tmp_path: Path) -> None:
    path = tmp_path / "titan.toml"
    path.write_text(
        """
[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
local_batch_size = 1
seq_len = 8192
steps = 10
enable_cpu_offload = true
""",
        "utf-8",
    )
    found = read_training_config(path)
    assert found.precision == "fp8"
    assert found.offload == "parameters"


def test_an_optimiser_inside_a_lightning_model(tmp_path: Path) -> None:
    path = tmp_path / "lightning.yaml"
    path.write_text(
        """
trainer: {max_epochs: 2, devices: 4, precision: 32}
model: {class_path: my.Model, init_args: {optimizer: {class_path: torch.optim.SGD}}}
data: {class_path: my.Data, init_args: {batch_size: 128}}
""",
        "utf-8",
    )
    found = read_training_config(path)
    assert (found.optimizer, found.micro_batch, found.gpus) == ("sgd", 128, 4)


def test_adapters_of_some_matrices_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "axolotl.yaml"
    path.write_text(
        "base_model: mistralai/Mistral-7B-v0.1\nadapter: lora\nlora_r: 8\n"
        "lora_target_modules: [q_proj, v_proj]\nnum_epochs: 1\nsequence_len: 512\n",
        "utf-8",
    )
    draft = draft_job(StatedJob(examples="10k"), read_training_config(path))
    job = job_from_text(draft.text)
    assert job.trainable_parameters == 8 * 32 * ((4096 + 4096) + (4096 + 1024))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-ai/DeepSeek-V2-Lite"),
        ("unsloth/mistral-7b-v0.3-bnb-4bit", "mistralai/Mistral-7B-v0.3"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistralai/Mistral-7B-v0.3"),
        ("meta-llama/Llama-2-7b-chat-hf", "meta-llama/Llama-2-7b-hf"),
    ],
)
def test_a_tuned_model_has_the_shape_of_its_base(name: str, known: str) -> None:
    found = find_shape(name)
    assert found is not None
    assert found.name == known


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-VL-9B", "my/own", "meta-llama/Llama-3.1-9B"])
def test_other_models_have_the_shape_of_none(name: str) -> None:
    assert find_shape(name) is None


@pytest.mark.parametrize(
    ("degrees", "sharding"),
    [((8, 4, 2), "context"), ((8, 4, 0), "pipeline"), ((8, 0, 1), "tensor")],
)
def test_a_run_that_shares_sequences_says_so(
    tmp_path: Path, degrees: tuple[int, ...], sharding: str
) -> None:
    kinds = ("tensor_model_parallel", "pipeline_model_parallel", "context_parallel")
    lines = (f"{kind}_size: {n}" for kind, n in zip(kinds, degrees, strict=True))
    assert of(tmp_path, "train_iters: 9\n" + "\n".join(lines)).sharding == sharding


@pytest.mark.parametrize(
    ("switches", "precision"),
    [
        ("bf16: true\nfp8-format: hybrid", "fp8"),
        ("bf16: true\nfp8-format: e4m3\nfp8-recipe: mxfp8", "mxfp8"),
        ("bf16: true\nfp4-format: e2m1\nfp4-recipe: nvfp4", "nvfp4"),
    ],
)
def test_megatrons_switches_of_8_and_4_bits(tmp_path, switches, precision):
    path = tmp_path / "args.yaml"
    path.write_text(f"train-iters: 9\nseq-length: 4096\n{switches}\n", "utf-8")
    assert read_training_config(path).precision == precision


def test_llama_factory_has_words_of_its_own_for_adapters_and_lengths(tmp_path: Path) -> None:
    found = read_training_config(HERE / "llama_factory.yaml")
    assert (found.tool, found.method, found.lora_rank) == ("LLaMA-Factory", "lora", 8)
    assert (found.tokens, found.micro_batch, found.accumulation) == (2048, 1, 8)
    assert (found.epochs, found.precision, found.kind) == (3.0, "mixed", "")
    assert "size of the data set alpaca_en_demo" in found.unread
    path = tmp_path / "dpo.yaml"
    path.write_text(
        "model_name_or_path: a/b\nstage: dpo\npref_loss: simpo\nfinetuning_type: freeze\n"
        "cutoff_len: 512\nper_device_train_batch_size: 1\nnum_train_epochs: 1\n",
        "utf-8",
    )
    found = read_training_config(path)
    assert (found.method, found.kind) == ("full", "dpo")
    assert found.trained == ("the last 2 layers",)
    path.write_text("stage: sft\nfinetuning_type: lora\nquantization_bit: 4\n", "utf-8")
    assert read_training_config(path).method == "qlora"


def test_llama_factory_takes_no_more_than_max_samples_of_each_data_set(tmp_path: Path) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: lora\ncutoff_len: 2048\n"
        "dataset: identity,alpaca_en_demo\nmax_samples: 1000\n",
        "utf-8",
    )
    found = read_training_config(path)
    assert found.most_examples == 2000
    assert "max_samples" not in found.unused
    made = draft_job(StatedJob(), found, tmp_path)
    assert "examples: 2k" in made.text
    assert any("takes 2k" in each for each in made.assumed)


@pytest.mark.parametrize(
    ("name", "text", "attention"),
    [
        ("axolotl.yaml", "base_model: gpt2\nattn_implementation: eager\n", "plain"),
        ("axolotl.yaml", "base_model: gpt2\neager_attention: true\n", "plain"),
        ("axolotl.yaml", "base_model: gpt2\nflash_attention: true\n", ""),
        ("axolotl.yaml", "base_model: gpt2\nflash_attention: false\n", ""),  # sdpa
        ("trl.yaml", "output_dir: o\nattn_implementation: eager\n", "plain"),
        ("trl.yaml", "output_dir: o\nattn_implementation: sdpa\n", ""),
        ("factory.yaml", "finetuning_type: lora\ncutoff_len: 64\nflash_attn: disabled\n", "plain"),
        ("factory.yaml", "finetuning_type: lora\ncutoff_len: 64\nflash_attn: fa2\n", ""),
    ],
)
def test_attention_that_is_not_fused(tmp_path: Path, name: str, text: str, attention: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    found = read_training_config(tmp_path / name)
    assert found.attention == attention
    assert not {"attn_implementation", "flash_attn", "flash_attention"} & set(found.unused)


def test_attention_of_pre_training_that_is_not_fused(tmp_path: Path) -> None:
    more = {
        "megatron.yaml": ("attention-backend: unfused\n", "attention-backend: flash\n"),
        "nemo.yaml": ("  use_flash_attention: false\n", "  use_flash_attention: true\n"),
    }
    for name, (plain, fused) in more.items():
        for line, attention in ((plain, "plain"), (fused, "")):
            text = (HERE / name).read_text("utf-8")
            added = (
                text + line
                if name == "megatron.yaml"
                else text.replace("model:\n", "model:\n" + line)
            )
            (tmp_path / name).write_text(added, "utf-8")
            assert read_training_config(tmp_path / name).attention == attention


@pytest.mark.parametrize(
    ("name", "software", "stack"),
    [
        ("nemo.yaml", "nemo", "tuned"),
        ("megatron.yaml", "megatron-lm", "tuned"),
        ("torchtitan.toml", "torchtitan", "typical"),
        ("axolotl_qlora.yaml", "axolotl", "typical"),
        ("grpo.yaml", "trl", "typical"),
        ("training_arguments.json", "trl", "typical"),
        ("llama_factory.yaml", "llama-factory", "typical"),
        ("llm_foundry.yaml", "llm-foundry", "typical"),
    ],
)
def test_the_software_is_the_tool(name: str, software: str, stack: str) -> None:
    """With the speed as which the accuracy studies count the tool's published runs."""
    found = read(name).software
    assert found is not None
    assert (found.name, found.stack) == (software, stack)


@pytest.mark.parametrize("name", ["lightning.yaml", "deepspeed.json"])
def test_tools_that_run_the_networks_of_others_do_not_tell_the_software(name: str) -> None:
    assert read(name).software is None


def test_a_script_of_pytorch_names_its_network_batch_and_epochs(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import timm, torch\nEPOCHS = 90\n"
        "model = timm.create_model('vit_base_patch16_224')\n"
        "loader = torch.utils.data.DataLoader(data, batch_size=2 * 64)\n"
        "for epoch in range(EPOCHS):\n    pass\n"
    )
    found = read_training_config(script)
    assert (found.model, found.micro_batch, found.epochs) == ("vit_base_patch16_224", 128, 90)
    assert any("autocast" in each for each in found.unread)
    script.write_text("import torchvision\nnet = torchvision.models.resnet50()\n")
    assert read_training_config(script).model == "resnet50"


def test_a_frozen_eye_and_decoder_leave_the_projector(tmp_path: Path) -> None:
    path = tmp_path / "neva.yaml"
    path.write_text(
        "trainer: {devices: 8, max_steps: 10}\nexp_manager: {}\nmodel:\n"
        "  {global_batch_size: 8, micro_batch_size: 1, encoder_seq_length: 4096, num_layers: 32,"
        " hidden_size: 4096, ffn_hidden_size: 11008, num_attention_heads: 32, activation: swiglu,"
        " share_embeddings_and_output_weights: false, override_vocab_size: 32000,"
        " mm_cfg: {llm: {freeze: true}, vision_encoder: {hidden_size: 1024, freeze: true}}}\n"
    )
    draft = draft_job(StatedJob(), read_training_config(path))
    job = job_from_text(draft.text)
    assert job.trainable_parameters == 1024 * 4096 + 4096 * 4096 + 2 * 4096
    assert job.parameters == pytest.approx(7.06e9, rel=0.01)


def test_a_v1_file_without_adapters_trains_all_weights(tmp_path: Path) -> None:
    path = tmp_path / "v1.yaml"
    path.write_text("model: Qwen/Qwen3-0.6B\nmodel_class: llm\ncutoff_len: 512\n")
    assert read_training_config(path).method == "full"
    path.write_text("model_name_or_path: Qwen/Qwen3-0.6B\ncutoff_len: 512\nstage: sft\n")
    assert read_training_config(path).method == "lora"


def test_adapters_on_experts_and_weights_of_gptq_are_read(tmp_path: Path) -> None:
    path = tmp_path / "axolotl.yaml"
    text = (
        "base_model: Qwen/Qwen3-30B-A3B\nadapter: lora\nlora_r: 16\nnum_epochs: 1\n"
        "sequence_len: 512\nlora_target_modules: [q_proj, k_proj, v_proj, o_proj]\n"
    )
    path.write_text(text)
    few = job_from_text(draft_job(StatedJob(examples="1k"), read_training_config(path)).text)
    path.write_text(f"{text}lora_target_parameters: [experts.gate_up_proj, experts.down_proj]\n")
    more = job_from_text(draft_job(StatedJob(examples="1k"), read_training_config(path)).text)
    assert few.trainable_parameters < 20e6 < more.trainable_parameters
    path.write_text(f"{text}gptq: true\n")
    assert read_training_config(path).method == "qlora"
