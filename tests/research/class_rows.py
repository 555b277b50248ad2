"""Writes the defaults of configuration classes into `conventions.csv`, from transformers itself.

    python -P tests/research/class_rows.py

Of each `model_type` of the table that the installed transformers knows, those fields that our
counter reads and that are not null. Lists that a class derives from its number of layers are
written as the period or the number that they come from.
"""

import ast
import csv
import json
from pathlib import Path
from typing import Any

import transformers

NETWORKS = Path(__file__).parents[2] / "recommender" / "networks"
READERS = (
    "config.py",
    "layer_plan.py",
    "mixers.py",
    "transformers.py",
    "composites.py",
    "vision.py",
)
DERIVED = ("layer_types", "layers_block_type", "mlp_layer_types", "hybrid_override_pattern",
           "indexer_types")  # fmt: skip
NOT_OURS = ("model_type", "_class_name", "num_labels", "id2label", "architectures")


MORE = {"gemma4_text": {"global_head_dim": 512}}  # popped in its __post_init__ (5.24.0, line 208)


def fields_read() -> set[str]:
    """Every word of the modules that read fields."""
    found: set[str] = set()
    for name in READERS:
        for node in ast.walk(ast.parse((NETWORKS / name).read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
        kinds = ("key", "value", "nope", "rope")
        found |= {f"linear_{k}_head_dim" for k in kinds} | {f"linear_num_{k}_heads" for k in kinds}
        found |= {f"qk_{k}_head_dim" for k in kinds}
        heads = ("head_dim", "v_head_dim", "num_key_value_heads", "num_attention_heads")
        found |= {f"{prefix}{each}" for prefix in ("swa_", "global_") for each in heads}
    return found - set(NOT_OURS)


def period(words: list[str], others: str) -> int:
    """After how many layers a full one follows; 0 if they are no such list."""
    full = [i for i, word in enumerate(words) if others not in word]
    if not full or len(full) == len(words):
        return 0
    each = full[0] + 1
    regular = all((others not in w) == ((i + 1) % each == 0) for i, w in enumerate(words))
    return each if regular else 0


def defaults(kind: str, wanted: set[str]) -> dict[str, Any]:
    """The fields of a class that are not null."""
    usual = transformers.CONFIG_MAPPING[kind]()
    found: dict[str, Any] = {}
    raw = type(usual).__dataclass_fields__
    for name in sorted(wanted - set(DERIVED)):
        value = vars(usual).get(name)
        if name not in raw or raw[name].default != value:  # follows from others where not stated
            continue
        if isinstance(value, (bool, int, str, list, tuple, dict)) and not isinstance(value, type):
            found[name] = list(value) if isinstance(value, tuple) else value
    types = list(vars(usual).get("layer_types") or ())
    if "full_attention_interval" not in found and (each := period(types, "linear")):
        found["full_attention_interval"] = each
    if "sliding_window_pattern" not in found and (each := period(types, "sliding")):
        found["sliding_window_pattern"] = each
    sparse = list(vars(usual).get("mlp_layer_types") or ())
    if sparse and "first_k_dense_replace" not in found:
        found["first_k_dense_replace"] = (
            sparse.index("sparse") if "sparse" in sparse else len(sparse)
        )
    found |= MORE.get(kind, {})
    return {name: value for name, value in found.items() if value not in ("", [], {})}


def main() -> None:
    """Write the table."""
    table, wanted = NETWORKS / "conventions.csv", fields_read()
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    for row in rows:
        try:
            found = defaults(row["model_type"], wanted)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            print(row["model_type"], "not written:", str(error)[:80])
            continue
        row["defaults"] = json.dumps(found, separators=(", ", ": "))
        row["source"] = f"transformers {transformers.__version__}"
    with table.open("w", encoding="utf-8", newline="") as file:
        written = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        written.writeheader()
        written.writerows(rows)


if __name__ == "__main__":
    main()
