"""Files and scripts of further tools: the table of keys, and what each says."""

from pathlib import Path

import pytest

from recommender.errors import UsageError
from recommender.inputs.project_software import find_trainings
from recommender.inputs.training_configs.described import NETWORKS
from recommender.inputs.training_configs.read import read_together, read_training_config, table
from recommender.inputs.training_configs.training_config import TrainingConfig
from recommender.inputs.training_configs.words import READERS, WITH_A_WORD
from recommender.job.draft import StatedJob, draft_job
from recommender.job.job import Job
from recommender.job.jobfile import job_from_text


def of(folder: Path, text: str, name: str = "config.yaml") -> TrainingConfig:
    path = folder / name
    path.write_text(text, "utf-8")
    return read_training_config(path)


def job_of(folder: Path, text: str, name: str = "config.yaml", **said: str) -> Job:
    said = {"examples": "10k", "tokens_per_example": "600", "gpus": "8", **said}
    return job_from_text(draft_job(StatedJob(**said), of(folder, text, name), folder).text)


def test_every_row_of_the_table_has_a_reader() -> None:
    for tool, rows in table().items():
        assert any(row.field == "sign" and row.keys for row in rows), tool
        for row in rows:
            name, equals, _ = row.reader.partition("=")
            if row.field == "network":
                assert row.reader in NETWORKS
            elif row.field not in ("sign", "root", "without", "off"):
                assert not name or name in (WITH_A_WORD if equals else READERS), row


AXOLOTL = "base_model: mistralai/Mixtral-8x7B-v0.1\nmicro_batch_size: 1\nnum_epochs: 1\n"


@pytest.mark.parametrize("line", [
    "image_size: 384", "unfrozen_layers: [1]", "moe_capacity: 2", "expert_interval: 4",
    "quantize_moe_experts: true", "reward_weighting: log", "activation_offloading: true",
])  # fmt: skip
def test_a_key_that_may_change_the_network_or_the_work_is_named(tmp_path: Path, line: str) -> None:
    key = line.partition(":")[0]
    found = of(tmp_path, AXOLOTL + line + "\nlearning_rate: 1e-4\n")
    assert any(each.startswith(f"{key}: ") for each in found.unread)
    assert key not in found.unused
    off = of(tmp_path, AXOLOTL + f"{key}: false\n")
    assert not any(each.startswith(f"{key}: ") for each in off.unread)


LLAMA_FACTORY = "model_name_or_path: gpt2\nfinetuning_type: full\nstage: sft\n"
TRL = "model_name_or_path: gpt2\nper_device_train_batch_size: 1\noutput_dir: o\n"
TORCHTUNE = "model: {_component_: torchtune.models.llama3_1.llama3_1_8b, decoder_trainable: frozen}"
VERL = "actor_rollout_ref: {model: {path: gpt2, use_remove_padding: false}, actor: {ppo_epochs: 2}}"


@pytest.mark.parametrize(("text", "key"), [
    (LLAMA_FACTORY + "mixture_of_depths: convert\n", "mixture_of_depths"),
    (LLAMA_FACTORY + "use_llama_pro: true\n", "use_llama_pro"),
    (LLAMA_FACTORY + "video_max_pixels: 16384\n", "video_max_pixels"),
    (AXOLOTL + "kd_trainer: true\n", "kd_trainer"),
    (TRL + "num_generations: 4\nnum_iterations: 2\n", "num_iterations"),
    (TORCHTUNE, "model.decoder_trainable"),
    (VERL, "actor_rollout_ref.model.use_remove_padding"),
    (VERL, "actor_rollout_ref.actor.ppo_epochs"),
    (VERL + "\ncritic: {model: {path: opt}}\n", "critic.model.path"),
    ("checkpoint_dir: gpt2\ntrain: {micro_batch_size: 1}\nlora_r: 8\nlora_head: true\n",
     "lora_head"),
])  # fmt: skip
def test_work_that_is_planned_otherwise_is_said(tmp_path: Path, text: str, key: str) -> None:
    assert any(each.startswith(f"{key}: ") for each in of(tmp_path, text).unread)


def test_experts_and_shared_keys_of_foundry_are_counted(tmp_path: Path) -> None:
    text = ("global_train_batch_size: 64\ndevice_train_microbatch_size: 1\nmax_seq_len: 2048\n"
            "max_duration: 10ba\nmodel: {name: mpt_causal_lm, d_model: 1024, n_heads: 16, "
            "n_layers: 4, vocab_size: 50368, attn_config: {kv_n_heads: 4}, "
            "ffn_config: {moe_num_experts: 8, moe_top_k: 2}}\n")  # fmt: skip
    job = job_of(tmp_path, text)
    each = 2 * 1024 * 4096
    attention = 2 * 1024**2 + 2 * 1024 * 256
    tables = 50_368 * 1024
    assert job.family == "moe"
    assert job.parameters == pytest.approx(4 * (8 * each + attention) + tables, rel=0.01)
    assert job.active_parameters == pytest.approx(4 * (2 * each + attention) + tables, rel=0.01)


def test_torchtitans_mixtures_and_openrlhfs_teachers_are_known(tmp_path: Path) -> None:
    text = '[model]\nname = "deepseek_v3"\nflavor = "16B"\n[training]\nlocal_batch_size = 4\n'
    found = of(tmp_path, text, "titan.toml")
    assert found.model == "deepseek-ai/DeepSeek-V2-Lite"
    script = ("deepspeed --module openrlhf.cli.train_kd --pretrain gpt2 --teacher_model gpt2-xl "
              "--micro_train_batch_size 1 --ring_attn_size 2\n")  # fmt: skip
    taught = of(tmp_path, script, "kd.sh")
    assert (taught.kind, taught.teacher, taught.replica_gpus) == ("distillation", "gpt2-xl", 2)


def test_nemo_with_experts_and_with_pictures(tmp_path: Path) -> None:
    head = "exp_manager: {}\ntrainer: {num_nodes: 2, devices: 8, max_steps: 100}\nmodel:\n"
    shape = ("  {micro_batch_size: 1, global_batch_size: 64, encoder_seq_length: 4096, "
             "num_layers: 32, hidden_size: 4096, ffn_hidden_size: 14336, num_query_groups: 8, "
             "num_attention_heads: 32, activation: fast-swiglu, num_moe_experts: 8, "
             "share_embeddings_and_output_weights: false, override_vocab_size: 32000}")  # fmt: skip
    job = job_of(tmp_path, head + shape)
    assert job.family == "moe"
    assert job.parameters == pytest.approx(46.70e9, rel=0.001)
    assert job.active_parameters == pytest.approx(12.88e9, rel=0.001)
    assert job.samples == 100 * 64  # the file's steps, not the examples
    picture = ("  {global_batch_size: 4096, num_layers: 12, hidden_size: 768, num_classes: 1000, "
               "num_attention_heads: 12, patch_dim: 16, img_h: 224, img_w: 224, "
               "encoder_seq_length: 196, vision_pretraining_type: classify}")  # fmt: skip
    seen = job_of(tmp_path, head + picture)
    assert (seen.family, seen.sample_unit) == ("vit", "image")
    assert seen.parameters == 86_567_656


def test_nemo_of_another_kind_is_refused_and_not_read_as_a_decoder(tmp_path: Path) -> None:
    text = "exp_manager: {}\nmodel: {global_batch_size: 8, unet: {embed_dim: 128}}\n"
    with pytest.raises(UsageError, match="names no network"):
        job_of(tmp_path, text)


def test_megatrons_experts_of_some_layers(tmp_path: Path) -> None:
    script = """#!/bin/bash
    LAYERS=4
    ARGS=(
      --num-layers $((LAYERS + 1)) --hidden-size 512 --num-attention-heads 8 --swiglu
      --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256
      --moe-layer-freq [0]*1+[1]*4 --vocab-size 1000
    )
    torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} --seq-length 2048 \\
        --micro-batch-size 1 --global-batch-size 64 --train-iters 100 --bf16
    """
    found = of(tmp_path, script, "train.sh")
    assert found.network is not None
    assert found.network["num_hidden_layers"] == 5
    assert found.network["moe_layer_freq"] == [0, 1, 1, 1, 1]
    assert (found.batch, found.steps, found.gpus, found.precision) == (64, 100, 8, "mixed")


def test_a_script_takes_in_another(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "small.sh").write_text("A=(--num-layers 2 --hidden-size 64)\n", "utf-8")
    text = 'source "${HERE}/models/small.sh"\npython pretrain.py --train-iters 9 --seq-length 64\n'
    found = of(tmp_path, text, "run.sh")
    assert found.network is not None
    assert found.network["hidden_size"] == 64


def test_a_size_that_depends_on_a_branch_is_not_guessed(tmp_path: Path) -> None:
    script = """
    if [ $SIZE = small ]; then
      LAYERS=2
      HIDDEN=64
    else
      LAYERS=80
      HIDDEN=8192
    fi
    torchrun pretrain.py --num-layers $LAYERS --hidden-size $HIDDEN --train-iters 9
    """
    found = of(tmp_path, script, "run.sh")
    assert found.network is None
    assert any(each.startswith("num_layers: ") for each in found.unread)
    twice = (
        "python a.py --num-layers 2 --hidden-size 64\npython a.py --num-layers 9 --train-iters 9"
    )
    assert of(tmp_path, twice, "run.sh").network is None


OPTIONS = """
if [ $SIZE = dense ]; then
  gqa_options=" \\
      --group-query-attention --num-query-groups 8"
  moe_options=" \\
      "
%s
fi
pretrain="torchrun pretrain.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\
    --ffn-hidden-size 14336 --swiglu --train-iters 9 --vocab-size 32000 \\
    --untie-embeddings-and-output-weights ${gqa_options} ${moe_options}"
"""


def test_options_in_variables_are_read_and_those_of_branches_are_not_guessed(
    tmp_path: Path,
) -> None:
    """Mistral 7B and Mixtral in one script, as in Pai-Megatron-Patch."""
    one = of(tmp_path, OPTIONS % "", "run.sh")
    assert one.network is not None
    assert one.network["num_key_value_heads"] == 8
    mixture = 'else\n moe_options=" --num-experts 8 --moe-router-topk 2"'
    both = of(tmp_path, OPTIONS % mixture, "run.sh")
    assert both.network is None
    assert any(each.startswith("num_experts: ") for each in both.unread)
    hybrid = 'else\n other=" --is-hybrid-model --mamba-state-dim 128"'
    assert of(tmp_path, OPTIONS % hybrid, "run.sh").network is None


def test_verls_overrides_count_prompts_times_completions(tmp_path: Path) -> None:
    script = """MODEL=Qwen/Qwen2.5-7B
    python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
      data.train_batch_size=128 data.max_prompt_length=512 data.max_response_length=1024 \\
      actor_rollout_ref.model.path=$MODEL actor_rollout_ref.rollout.n=5 \\
      actor_rollout_ref.actor.fsdp_config.param_offload=True trainer.total_epochs=2 \\
      trainer.n_gpus_per_node=8 trainer.nnodes=2
    """
    found = of(tmp_path, script, "grpo.sh")
    assert (found.model, found.kind, found.generations) == ("Qwen/Qwen2.5-7B", "grpo", 5)
    assert (found.batch, found.tokens, found.gpus) == (128 * 5, 1536, 16)
    assert found.offload == "parameters"
    assert job_of(tmp_path, script, "grpo.sh", examples="1000").samples == 1000 * 5 * 2


TRAIN = """
import os
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments
from peft import LoraConfig
EPOCHS = 3
name = os.environ.get("MODEL", "Qwen/Qwen2.5-7B-Instruct")
tokenizer = AutoTokenizer.from_pretrained("other/tokenizer")
model = AutoModelForCausalLM.from_pretrained(name)
peft = LoraConfig(r=2 * 8, target_modules=["q_proj", "v_proj"])
args = TrainingArguments("out", per_device_train_batch_size=4, gradient_accumulation_steps=4,
                         num_train_epochs=EPOCHS, optim="adamw_bnb_8bit", bf16=True)
raise SystemExit("never run")
"""


def test_a_python_script_is_read_and_never_run(tmp_path: Path) -> None:
    found = of(tmp_path, TRAIN, "train.py")
    assert (found.model, found.method, found.lora_rank) == ("Qwen/Qwen2.5-7B-Instruct", "lora", 16)
    assert (found.micro_batch, found.accumulation, found.epochs) == (4, 4, 3)
    assert (found.optimizer, found.precision) == ("adamw_8bit", "mixed")


def test_a_folder_is_what_its_one_training_says(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    (tmp_path / "other.py").write_text("print('hello')\n", "utf-8")
    assert [path.name for path, _ in find_trainings(tmp_path)] == ["train.py"]
    (tmp_path / "axolotl.yaml").write_text(AXOLOTL, "utf-8")
    assert len(find_trainings(tmp_path)) == 2


@pytest.mark.parametrize(("name", "text"), [
    ("a.py", "def ("), ("a.py", "x = 1\n"), ("a.sh", "echo hello\n"), ("a.ipynb", "{"),
    ("a.ipynb", '{"cells": 3}'), ("a.sh", "source ../../etc/passwd\n"),
])  # fmt: skip
def test_other_scripts_are_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(UsageError):
        of(tmp_path, text, name)


def test_hostile_scripts_are_refused_at_once(tmp_path: Path) -> None:
    doubled = "\n".join(f"A{n + 1}=$A{n}$A{n}" for n in range(99))
    texts = {"a.sh": f"A0=x\n{doubled}\npython a.py --train-iters 9 --data $A99\n",
             "b.sh": "--" + "a." * 9999 + "b 1 --train-iters 9\n"}  # fmt: skip
    for name, text in texts.items():
        assert of(tmp_path, text, name).steps == 9
    for name, text in {"a.py": "x = " + "-" * 3000 + "1", "b.py": "x = " + "[" * 999}.items():
        with pytest.raises(UsageError):
            of(tmp_path, text, name)


def test_a_notebook_is_its_cells(tmp_path: Path) -> None:
    cell = "!pip install trl\\nfrom trl import GRPOConfig, GRPOTrainer\\n"
    cell += "t = GRPOTrainer(model='Qwen/Qwen2.5-0.5B', args=GRPOConfig(num_generations=4))"
    text = f'{{"cells": [{{"cell_type": "code", "source": ["{cell}"]}}]}}'
    found = of(tmp_path, text, "a.ipynb")
    assert (found.model, found.kind, found.generations) == ("Qwen/Qwen2.5-0.5B", "grpo", 4)


def test_a_second_file_says_what_the_first_leaves_open(tmp_path: Path) -> None:
    first, second = tmp_path / "sft.yaml", tmp_path / "ds.json"
    first.write_text("model_name_or_path: gpt2\nfinetuning_type: full\ndeepspeed: my.json\n"
                     "per_device_train_batch_size: 2\nnum_train_epochs: 1\n", "utf-8")  # fmt: skip
    second.write_text('{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},'
                      '"train_micro_batch_size_per_gpu": 4}', "utf-8")  # fmt: skip
    for order in ([first, second], [second, first]):
        found = read_together(order)
        assert (found.tool, found.model) == ("LLaMA-Factory", "gpt2")
        assert (found.sharding, found.offload, found.micro_batch) == ("zero3", "optimizer", 2)


@pytest.mark.parametrize(("text", "wanted"), [
    ("model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 8}\n"
     "tokenizer: {max_seq_len: 1024}\nbatch_size: 2\ngradient_accumulation_steps: 8\nepochs: 1\n"
     "dtype: bf16\noptimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit}\n"
     "optimizer_in_bwd: true\n",
     {"method": "lora", "lora_rank": 8, "master_weights": "no", "optimizer": "adamw_8bit",
      "optimizer_in_backward": "yes"}),
    ("checkpoint_dir: checkpoints/meta-llama/Llama-2-7b-hf\nprecision: bf16-true\ndevices: 2\n"
     "train: {global_batch_size: 8, micro_batch_size: 1, epochs: 2}\nlora_r: 32\n"
     "quantize: bnb.nf4\n",
     {"method": "qlora", "lora_rank": 32, "batch": 8, "gpus": 2, "master_weights": "no"}),
    ("finetuning_type: full\nuse_galore: true\ngalore_layerwise: true\npure_bf16: true\n"
     "model_name_or_path: gpt2\nnum_train_epochs: 1\nper_device_train_batch_size: 1\n",
     {"optimizer": "galore", "optimizer_in_backward": "yes", "master_weights": "no",
      "method": "full", "lora_rank": 0}),
    ("base_model: gpt2\nrl: kto\nunfrozen_parameters: [^lm_head]\n"
     "deepspeed: zero3_cpuoffload.json\n",
     {"kind": "kto", "trained": ("^lm_head",), "offload": "optimizer", "sharding": "zero3"}),
    ("base_model: gpt2\nreward_model: true\n", {"kind": "reward"}),
])  # fmt: skip
def test_states_and_kinds(tmp_path: Path, text: str, wanted: dict[str, object]) -> None:
    found = of(tmp_path, text)
    assert {name: getattr(found, name) for name in wanted} == wanted


def test_pairs_of_a_reward_model_pass_twice(tmp_path: Path) -> None:
    text = "base_model: Qwen/Qwen2.5-0.5B\nnum_epochs: 4\nmicro_batch_size: 2\n"
    plain, pairs = job_of(tmp_path, text), job_of(tmp_path, text + "reward_model: true\n")
    assert pairs.tokens_per_sample == 2 * plain.tokens_per_sample
    assert pairs.flop_per_sample == pytest.approx(2 * plain.flop_per_sample)
    assert pairs.other_network_bytes == 0


def test_what_is_trained_of_a_mixture_and_the_micro_batch_are_kept(tmp_path: Path) -> None:
    text = AXOLOTL + (
        "gradient_accumulation_steps: 8\nunfrozen_parameters: "
        "['model.layers.[0-9]\\.block_sparse_moe.experts']\n"
    )
    job = job_of(tmp_path, text)
    assert job.trainable_parameters == 10 * 8 * 3 * 4096 * 14336
    assert (job.micro_batch, job.global_batch) == (1, 8 * 8)


def test_an_unknown_model_is_planned_by_the_size_in_its_name_and_said_first(tmp_path: Path) -> None:
    draft = draft_job(StatedJob(), of(tmp_path, "base_model: new/Thing-48B-A3B\n"), tmp_path)
    job = job_from_text(draft.text)
    assert (job.family, job.parameters, job.active_parameters) == ("moe", 48e9, 3e9)
    assert "is not known" in draft.assumed[0]
    with pytest.raises(UsageError, match="unknown model"):
        draft_job(StatedJob(), of(tmp_path, "base_model: new/Thing\n"), tmp_path)


def test_a_module_in_a_variable_says_what_openrlhf_trains(tmp_path: Path) -> None:
    path = tmp_path / "train_rm.sh"
    path.write_text(
        "read -r -d '' training_commands <<EOF\nopenrlhf.cli.train_rm \\\n"
        "   --model.model_name_or_path Qwen/Qwen2.5-7B --train.micro_batch_size 1 \\\n"
        "   --data.chosen_key chosen --ds.zero_stage 2\nEOF\n"
        "deepspeed --module $training_commands\n"
    )
    found = read_training_config(path)
    assert (found.kind, found.sharding, found.method) == ("reward", "zero2", "full")
