"""A config whose lists and figures do not fit together is refused, never an internal error."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from recommender.errors import UsageError
from recommender.networks.architectures import count_network
from recommender.networks.config import parse_config
from recommender.networks.known_models import known_models

ODD = (0, 1, -1, 10**8, 10**9, 1e999, True, None, "", "x", [], [0], [1, 2, 3, 4, 5, 6, 7], {}, [[]])
MODELS = {each.config.fields.get("model_type") or each.config.fields.get("_class_name"): each
          for each in known_models()}  # fmt: skip


def changed(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each field of another kind, and each list shorter or longer."""
    for name, value in fields.items():
        for odd in ODD:
            yield {**fields, name: odd}
        if isinstance(value, list):
            yield {**fields, name: value[:-1]}
            yield {**fields, name: [*value, *value]}
    yield {}


@pytest.mark.parametrize("kind", sorted(MODELS, key=str))
def test_an_odd_field_is_read_or_refused(kind: str):
    for fields in changed(dict(MODELS[kind].config.fields)):
        with suppress(UsageError):
            count_network(parse_config(json.dumps(fields), "config.json"))


@pytest.mark.parametrize("lists", [
    {"model_type": "resnet", "depths": [3, 4, 6], "hidden_sizes": [256, 512]},
    {"model_type": "resnet", "depths": [], "hidden_sizes": [256, 512]},
    {"_class_name": "UNet2DConditionModel", "block_out_channels": [320, 640, 1280],
     "down_block_types": ["CrossAttnDownBlock2D"], "cross_attention_dim": 768},
    {"_class_name": "UNet2DConditionModel", "block_out_channels": [], "down_block_types": [],
     "cross_attention_dim": 768},
])  # fmt: skip
def test_lists_of_other_lengths_are_refused(lists: dict[str, Any]):
    with pytest.raises(UsageError, match="lengths of lists"):
        count_network(parse_config(json.dumps(lists), "config.json"))
