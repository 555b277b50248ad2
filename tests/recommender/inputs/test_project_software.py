"""The training software of small projects, by their files."""

from pathlib import Path
from shutil import copy

import pytest

from recommender.inputs import project_software
from recommender.inputs.project_software import find_software
from recommender.inputs.training_configs.read import read_training_config
from recommender.inputs.training_configs.training_config import TrainingConfig
from recommender.inputs.training_software import software

CONFIGS = Path(__file__).parent / "training_configs"
PROJECTS = [
    # A script of transformers' Trainer, and what it needs
    (
        {
            "train.py": "import torch\nfrom transformers import AutoModelForCausalLM, Trainer\n",
            "requirements.txt": "torch>=2.4\ntransformers==5.24.0\naccelerate\n",
        },
        "transformers, imported by train.py",
    ),
    # TRL's scripts import transformers as well: the more specific one is named
    (
        {"sft.py": "from transformers import AutoTokenizer\nfrom trl import SFTTrainer\n"},
        "trl, imported by sft.py",
    ),
    (
        {"finetune.ipynb": '"source": [\n    "import torch\\n",\n    "import unsloth\\n",'},
        "unsloth, imported by finetune.ipynb",
    ),
    ({"src/module.py": "import pytorch_lightning as pl\n"}, "lightning, imported by src/module.py"),
    (
        {"main.py": "import os, deepspeed\n", "ds_config.json": '{"zero_optimization": {}}'},
        "deepspeed, imported by main.py",
    ),
    ({"run.py": "from accelerate import Accelerator\n"}, "accelerate, imported by run.py"),
    ({"imagenet.py": "import timm\nimport torchvision\n"}, "timm, imported by imagenet.py"),
    ({"train.py": "import tensorflow as tf\nimport keras\n"}, "keras, imported by train.py"),
    ({"train.py": "from tensorflow import keras\n"}, "keras, imported by train.py"),
    ({"train.py": "from tensorflow.keras import layers\n"}, "keras, imported by train.py"),
    ({"train.py": "import tensorflow.keras\n"}, "keras, imported by train.py"),
    (
        {"fit.ipynb": '    "import tensorflow as tf\\n",\n    "m = tf.keras.Sequential()\\n"'},
        "keras, imported by fit.ipynb",
    ),
    (
        {"fit.py": "import numpy as np, tensorflow\nm = tensorflow.keras.Sequential()\n"},
        "keras, imported by fit.py",
    ),
    ({"train.py": "import jax\nfrom flax import nnx\n"}, "flax, imported by train.py"),
    ({"train.py": "from composer import Trainer\n"}, "composer, imported by train.py"),
    # Recipes, by what only they import
    (
        {"pretrain.py": "from megatron.core import mpu\nfrom megatron.training import x\n"},
        "megatron-lm, imported by pretrain.py",
    ),
    (
        {"recipe.py": "from megatron.bridge.recipes.llama import llama3_8b\n"},
        "megatron-bridge, imported by recipe.py",
    ),
    (
        {"recipe.py": "import nemo_run as run\nfrom nemo.collections import llm\n"},
        "nemo, imported by recipe.py",
    ),
    (
        {"pretrain_gpt.py": "import deepspeed\nfrom megatron import get_args\n"},
        "megatron-deepspeed, imported by pretrain_gpt.py",
    ),
    # Two scripts are two projects: what only one of them imports does not combine
    (
        {"gpt.py": "from megatron.core import mpu\n", "other.py": "import deepspeed\n"},
        "megatron-lm, imported by gpt.py",
    ),
    # Scripts in the repository of Megatron-LM, of which each user has a copy
    (
        {"pretrain.py": "from megatron.training import x\n", "megatron/__init__.py": ""},
        "megatron-lm, imported by pretrain.py",
    ),
    (
        {
            "pretrain.py": "import deepspeed\nfrom megatron import get_args\n",
            "megatron/__init__.py": "",
        },
        "megatron-deepspeed, imported by pretrain.py",
    ),
    (
        {"pyproject.toml": '[project]\nname = "torchtitan"\n', "torchtitan/__init__.py": "",
         "run.py": "from torchtitan.train import main\n"},
        "torchtitan, required by pyproject.toml",
    ),
    # A file in another folder is not what a script imports
    (
        {"train.py": "from composer import Trainer\n", "examples/composer.py": ""},
        "composer, imported by train.py",
    ),
    # Without scripts: a tool's file, then requirements
    (
        {"configs/lora.yaml": "base_model: gpt2\nadapter: lora\n", "requirements.txt": "torch\n"},
        "axolotl, configured by configs/lora.yaml",
    ),
    (
        {"requirements-gpu.txt": "# trl\nPyTorch_Lightning~=2.4\n"},
        "lightning, required by requirements-gpu.txt",
    ),
    (
        {"pyproject.toml": '[project]\nname = "mine"\ndependencies = ["llm-foundry[gpu]>=0.22"]\n'},
        "llm-foundry, required by pyproject.toml",
    ),
    (
        {"environment.yml": "dependencies:\n  - python=3.12\n  - pip:\n      - torchtitan\n"},
        "torchtitan, required by environment.yml",
    ),
]  # fmt: skip
NOTHING: list[dict[str, str]] = [
    {},
    {"train.py": "import torch\n# import trl\ntext = 'from trl import x'\n"},  # a recipe, or not
    {"load.py": "import tensorflow as tf\ntf.data\nself.tf.keras\n"},  # data alone
    # Modules of one's own
    {"train.py": "import composer\n", "composer.py": "def compose(): pass\n"},
    {"src/train.py": "from composer import Song\n", "src/composer.py": ""},
    {"run/train.py": "from composer import Song\n", "composer/__init__.py": ""},
    {"src/train.py": "import lightning.nets as nets\n", "src/lightning/__init__.py": ""},
    {"asr.py": "import nemo.collections.asr as asr\n"},  # speech: not on Megatron
    {"train.py": "import transformers_of_mine\nfrom .trl import x\n"},
    {"pyproject.toml": '[project]\nname = "axolotl-runs"\ndescription = "not of axolotl"\n'},
    {"tests/test_it.py": "import trl\n", ".venv/site.py": "import trl\n"},
    {"config.yaml": "trainer:\n  max_epochs: 3\nglobal_batch_size: 8\noutput_dir: out\n"},
    {"train.py": "\udcff", "broken.yaml": "a: [1", "broken.toml": "= 3", "package.json": "{}"},
]


def project(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder


@pytest.mark.parametrize(("texts", "said"), PROJECTS, ids=[said for _, said in PROJECTS])
def test_a_project_shows_its_software(tmp_path: Path, texts: dict[str, str], said: str) -> None:
    found = find_software(project(tmp_path, texts))
    assert found is not None
    assert f"{found.software.name}, {found.shown_by}" == said


@pytest.mark.parametrize("texts", NOTHING, ids=lambda texts: ", ".join(texts) or "empty")
def test_a_project_that_shows_none_is_not_guessed(tmp_path: Path, texts: dict[str, str]) -> None:
    assert find_software(project(tmp_path, texts)) is None


def test_a_folder_that_does_not_exist_shows_none(tmp_path: Path) -> None:
    assert find_software(tmp_path / "none") is None


def test_every_module_of_the_table_is_recognised(tmp_path: Path) -> None:
    for each in software().values():
        for modules in each.modules:
            lines = "".join(f"import {module}\n" for module in modules.split("+"))
            found = find_software(project(tmp_path, {"train.py": lines}))
            assert found is not None
            assert found.software == each


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("axolotl_qlora.yaml", "axolotl"),
        ("llama_factory.yaml", "llama-factory"),
        ("llm_foundry.yaml", "llm-foundry"),
        ("nemo.yaml", "nemo"),
        ("torchtitan.toml", "torchtitan"),
        ("deepspeed.json", "deepspeed"),
    ],
)
def test_the_file_of_a_tool_shows_it(tmp_path: Path, name: str, tool: str) -> None:
    copy(CONFIGS / name, tmp_path)
    found = find_software(tmp_path)
    assert found is not None
    assert (found.software.name, found.shown_by) == (tool, f"configured by {name}")


def test_a_large_project_is_read_in_part_and_in_order(tmp_path: Path) -> None:
    project(tmp_path, {f"a{n:03}.py": "import os\n" for n in range(250)})
    (tmp_path / "z.py").write_text("import trl\n")
    assert find_software(tmp_path) is None
    (tmp_path / "a000.py").write_text("import trl\n")
    assert find_software(tmp_path) is not None


def test_of_a_folder_of_data_no_file_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def parse(path: Path) -> TrainingConfig:
        parsed.append(path.name)
        return read_training_config(path)

    monkeypatch.setattr(project_software, "read_training_config", parse)
    records = '[{"id": 1, "text": "base_model and zero_optimization are words"}]'
    project(tmp_path, {f"data/{n}.{end}": records for n in range(60) for end in ("json", "yaml")})
    (tmp_path / "large.json").write_text(f'{{"base_model": "{"a" * 2**16}"}}')
    assert find_software(tmp_path) is None
    assert parsed == []
    (tmp_path / "mine.toml").write_text('[model]\nflavor = "8B"\n')
    assert find_software(tmp_path) is not None
    assert parsed == ["mine.toml"]


def test_few_files_are_parsed_where_data_have_the_keys_of_a_tool(tmp_path: Path) -> None:
    project(tmp_path, {f"{n:02}.json": '[{"base_model": "gpt2"}]' for n in range(20)})
    (tmp_path / "tune.yaml").write_text("base_model: gpt2\n")
    assert find_software(tmp_path) is None
    (tmp_path / "00.json").unlink()
    assert find_software(tmp_path) is not None


@pytest.mark.parametrize(("name", "line"), [("t.py", "import trl"), ("requirements.txt", "trl")])
def test_blank_lines_are_passed_over(tmp_path: Path, name: str, line: str) -> None:
    found = find_software(project(tmp_path, {name: "\n" * 10**6 + line}))
    assert found is not None
    assert found.software.name == "trl"
