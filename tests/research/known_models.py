"""Holds the table of known models against what others ship; writes `checked.csv`, and who agrees.

    python -P tests/run.py tests.research.known_models FOLDER

FOLDER holds unpacked wheels of litgpt, keras_hub and torchvision, one folder each; torch and
transformers are installed. Nothing of them is kept but figures:

* `fields_by`: whose configuration has the same layers, widths, heads, vocabulary and experts; for
  what neither litgpt nor transformers has, who was read by hand (`read.csv`, 2026-11-23);
* `count`, `count_by`: the number of parameters that somebody wrote down for it;
* `built`, `built_as`: the number that transformers' own classes allocate for our fields.
"""

import ast
import csv
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recommender.networks.architectures import count_network
from recommender.networks.known_models import KnownModel, known_models

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "tests" / "recommender" / "networks" / "checked.csv"
READ = TARGET.with_name("read.csv")
SHIPPED = ROOT / "recommender" / "networks" / "known_models.json"
LITGPT, KERAS, VISION = "litgpt 0.5.13", "keras-hub 0.32.0", "torchvision 0.29.1"
COLUMNS = ("model", "fields_by", "count", "count_by", "built", "built_as")
CLASSES = (
    "AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForImageClassification",
)  # fmt: skip
ONLY_LENGTHS = {  # fields of a file that do not change what is counted, or are said elsewhere
    "model_type", "max_position_embeddings", "tie_word_embeddings", "num_labels", "n_positions",
}  # fmt: skip
PRESETS = {  # of keras-hub: those of whole language models and encoders without their heads
    "meta-llama/Llama-2-7b-hf": "llama2_7b_en", "meta-llama/Meta-Llama-3-8B": "llama3_8b_en",
    "meta-llama/Llama-3.1-8B": "llama3.1_8b", "mistralai/Mistral-7B-v0.1": "mistral_7b_en",
    "mistralai/Mistral-7B-v0.3": "mistral_0.3_7b_en", "google/gemma-2b": "gemma_2b_en",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral_8_7b_en", "google/gemma-7b": "gemma_7b_en",
    "Qwen/Qwen2.5-0.5B": "qwen2.5_0.5b_en", "Qwen/Qwen2.5-1.5B": "qwen2.5_math_1.5b_en",
    "Qwen/Qwen2.5-3B": "qwen2.5_3b_en", "Qwen/Qwen2.5-7B": "qwen2.5_math_7b_en",
    "Qwen/Qwen2.5-32B": "qwen2.5_instruct_32b_en", "Qwen/Qwen2.5-72B": "qwen2.5_instruct_72b_en",
    "Qwen/Qwen3-0.6B": "qwen3_0.6b_en", "Qwen/Qwen3-1.7B": "qwen3_1.7b_en",
    "Qwen/Qwen3-4B": "qwen3_4b_en", "Qwen/Qwen3-8B": "qwen3_8b_en",
    "Qwen/Qwen3-14B": "qwen3_14b_en", "Qwen/Qwen3-32B": "qwen3_32b_en",
    "Qwen/Qwen3-30B-A3B": "qwen3_moe_30b_a3b_en", "Qwen/Qwen3-235B-A22B": "qwen3_moe_235b_a22b_en",
    "Qwen/Qwen1.5-MoE-A2.7B": "qwen1.5_moe_2.7b_en", "google/gemma-2-2b": "gemma2_2b_en",
    "google/gemma-2-9b": "gemma2_9b_en", "google/gemma-2-27b": "gemma2_27b_en",
    "google/gemma-3-1b-pt": "gemma3_1b", "openai/gpt-oss-20b": "gpt_oss_20b_en",
    "openai/gpt-oss-120b": "gpt_oss_120b_en", "microsoft/Phi-3-mini-4k-instruct":
    "phi3_mini_4k_instruct_en", "openai-community/gpt2": "gpt2_base_en",
    "openai-community/gpt2-medium": "gpt2_medium_en", "openai-community/gpt2-large":
    "gpt2_large_en", "openai-community/gpt2-xl": "gpt2_extra_large_en",
    "facebook/opt-125m": "opt_125m_en", "facebook/opt-1.3b": "opt_1.3b_en",
    "bigscience/bloom-560m": "bloom_560m_multi", "google-bert/bert-base-uncased":
    "bert_base_en_uncased", "google-bert/bert-large-uncased": "bert_large_en_uncased",
    "FacebookAI/roberta-base": "roberta_base_en", "FacebookAI/roberta-large": "roberta_large_en",
    "FacebookAI/xlm-roberta-base": "xlm_roberta_base_multi",
    "FacebookAI/xlm-roberta-large": "xlm_roberta_large_multi",
    "distilbert/distilbert-base-uncased": "distil_bert_base_en_uncased",
    "google/electra-small-discriminator": "electra_small_discriminator_uncased_en",
    "microsoft/deberta-v3-base": "deberta_v3_base_en",
    "microsoft/deberta-v3-large": "deberta_v3_large_en", "google-t5/t5-small": "t5_small_multi",
    "google-t5/t5-base": "t5_base_multi", "google-t5/t5-large": "t5_large_multi",
    "google/flan-t5-base": "flan_base_multi", "google/flan-t5-large": "flan_large_multi",
    "google/flan-t5-xl": "t5_1.1_xl", "google/flan-t5-xxl": "t5_1.1_xxl",
    "facebook/bart-base": "bart_base_en", "facebook/bart-large": "bart_large_en",
    "openai/whisper-tiny": "whisper_tiny_multi", "openai/whisper-base": "whisper_base_multi",
    "openai/whisper-small": "whisper_small_multi", "openai/whisper-medium":
    "whisper_medium_multi", "openai/whisper-large-v2": "whisper_large_multi_v2",
    "microsoft/swin-large-patch4-window7-224": "swin_large_patch4_window7_224",
}  # fmt: skip
PICTURES = {  # of torchvision: builder and which of its weights
    "microsoft/resnet-18": "ResNet18", "microsoft/resnet-34": "ResNet34",
    "microsoft/resnet-50": "ResNet50", "microsoft/resnet-101": "ResNet101",
    "microsoft/resnet-152": "ResNet152", "facebook/convnext-tiny-224": "ConvNeXt_Tiny",
    "facebook/convnext-small-224": "ConvNeXt_Small", "facebook/convnext-base-224": "ConvNeXt_Base",
    "facebook/convnext-large-224": "ConvNeXt_Large", "google/vit-base-patch16-224": "ViT_B_16",
    "google/vit-large-patch16-224": "ViT_L_16", "microsoft/swin-tiny-patch4-window7-224": "Swin_T",
    "microsoft/swin-small-patch4-window7-224": "Swin_S",
    "microsoft/swin-base-patch4-window7-224": "Swin_B",
}  # fmt: skip


def entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every dict of a module that stands under a name, with those values that are literals."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node.name, figures(node)
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Dict):
                    yield str(key.value), figures(value)


def figures(node: ast.AST) -> dict[str, Any]:
    """The first constant under each name within a part of a module."""
    found: dict[str, Any] = {}
    for each in ast.walk(node):
        if isinstance(each, ast.Dict):
            for key, value in zip(each.keys, each.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    found.setdefault(str(key.value), value.value)
    return found


def keras_counts(root: Path) -> dict[str, int]:
    """Parameters of each preset."""
    pages = (root / "keras_hub" / "keras_hub" / "src" / "models").rglob("*presets.py")
    return {
        name: each["params"] for page in pages for name, each in entries(page) if "params" in each
    }


def vision_counts(root: Path) -> dict[str, int]:
    """Parameters of each builder's first weights."""
    pages = (root / "torchvision" / "torchvision" / "models").glob("*.py")
    return {
        name.removesuffix("_Weights"): each["num_params"]
        for page in pages
        for name, each in entries(page)
        if name.endswith("_Weights") and "num_params" in each
    }


def litgpt_configs(root: Path) -> dict[str, Any]:
    """Its configurations by the hub's names, in small letters."""
    path = root / "litgpt" / "litgpt" / "config.py"
    spec = importlib.util.spec_from_file_location("litgpt_config", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = [module.Config(**each) for each in module.configs]
    return {f"{c.hf_config['org']}/{c.hf_config['name']}".lower(): c for c in made}


def shape(fields: Any) -> tuple[int, ...]:
    """Layers, widths, heads, vocabulary and experts of our fields."""
    first = lambda *names: next((fields[name] for name in names if name in fields), 0)  # noqa: E731
    hidden, heads = first("hidden_size"), first("num_attention_heads")
    shared = 1 if fields.get("multi_query") and not fields.get("new_decoder_architecture") else 0
    return (
        first("num_hidden_layers"), hidden, heads,
        shared or first("num_key_value_heads", "num_kv_heads") or heads,
        first("head_dim") or (hidden // heads if heads else 0),
        first("moe_intermediate_size", "intermediate_size") or 4 * hidden,
        first("num_local_experts", "num_experts"),
    )  # fmt: skip


def fields_by(model: KnownModel, litgpt: dict[str, Any]) -> str:
    """Who has the same figures: litgpt, or the defaults of transformers' configuration class."""
    name = model.name.lower()
    other = litgpt.get(name) or litgpt.get(name.replace("llama-3.1", "meta-llama-3.1"))
    if other is not None:
        inner = other.moe_intermediate_size or other.intermediate_size
        theirs = (
            other.n_layer, other.n_embd, other.n_head, other.n_query_groups, other.head_size,
            inner, other.n_expert,
        )  # fmt: skip
        words = {other.vocab_size, other.padded_vocab_size}
        if theirs == shape(model.config.fields) and model.config.fields["vocab_size"] in words:
            return LITGPT
    return defaults(model)


def defaults(model: KnownModel) -> str:
    import transformers

    kind = model.config.word("model_type")
    if not kind:
        return ""
    usual = transformers.CONFIG_MAPPING[kind]()
    own = {name: value for name, value in model.config.fields.items() if name not in ONLY_LENGTHS}
    differ = [n for n, value in own.items() if value != plain(getattr(usual, n, None))]
    return "" if differ else f"transformers {transformers.__version__}, defaults of its class"


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def built(model: KnownModel) -> tuple[int | None, str]:
    """What transformers allocates for our fields, by the class whose count is nearest to ours."""
    import torch
    import transformers

    fields = dict(model.config.fields)
    kind = fields.pop("model_type", None)
    if kind is None:
        return None, ""
    if fields.get("tie_word_embeddings") is False:
        fields["tie_encoder_decoder"] = False
    ours, found = count_network(model.config).count.parameters, list[tuple[int, str]]()
    for name in CLASSES:
        try:
            config = transformers.AutoConfig.for_model(kind, **fields)
            with torch.device("meta"):
                made = getattr(transformers, name).from_config(config)
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            print(f"{model.name} as {name}: {str(error)[:60]}", file=sys.stderr)
            continue
        if hasattr(made, "tie_weights"):
            made.tie_weights()
        found.append((sum(each.numel() for each in made.parameters()), name))
    return min(found, key=lambda each: abs(each[0] - ours), default=(None, ""))


def write_names(rows: list[dict[str, Any]]) -> None:
    """Say in the shipped table which figures somebody else has as well."""
    text = SHIPPED.read_text("utf-8")
    agree: dict[str, list[str]] = {}
    for row in rows:
        if by := row["fields_by"] or row["count_by"]:
            agree.setdefault(by, []).append(row["model"])
    lines = [f"  {json.dumps(by)}: {json.dumps(names)}" for by, names in sorted(agree.items())]
    said = ' "checked_by": {\n' + ",\n".join(lines) + "\n },\n"
    text = re.sub(r' "checked_by": \{\n.*?\n \},\n', "", text, flags=re.DOTALL)
    SHIPPED.write_text(text.replace(' "models": {', said + ' "models": {'), "utf-8")


def main() -> None:
    """Write the table."""
    root = Path(sys.argv[1])
    litgpt, keras, vision = litgpt_configs(root), keras_counts(root), vision_counts(root)
    rows = []
    read = {row["model"]: row["source"] for row in csv.DictReader(READ.open(encoding="utf-8"))}
    for model in known_models():
        count, by = keras.get(PRESETS.get(model.name, "")), KERAS
        if model.name in PICTURES:
            count, by = vision[PICTURES[model.name]], VISION
        reported = (count, by) if count else ("", "")
        by_others = fields_by(model, litgpt) or read.get(model.name, "")
        values = (model.name, by_others, *reported, *built(model))
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    write_names(rows)


if __name__ == "__main__":
    main()
