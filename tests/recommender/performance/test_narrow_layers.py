"""Spans where GPUs share narrow layers."""

from dataclasses import replace

import pytest

from recommender.performance.narrow_layers import narrow_sd
from tests.recommender.performance.parts import P5, columns, llama


@pytest.mark.parametrize(("hidden", "sd"), [(768, 0.465), (1024, 0.465), (2048, 0.232), (4096, 0)])
def test_shared_layers_are_less_certain_the_narrower_they_are(hidden, sd):
    """ln(1.2/0.26)/3.29 = 0.465 at 1,024, half of it at 2,048."""
    assert narrow_sd(llama(hidden=hidden, sharding="tensor")) == pytest.approx(sd, abs=1e-3)


def test_gpus_that_share_no_layer_are_as_certain_as_before():
    narrow = llama(hidden=1024, sharding="fsdp")
    assert columns(narrow, (P5,)).speed_sigma == columns(llama(), (P5,)).speed_sigma
    shared = columns(replace(narrow, sharding="pipeline"), (P5,))
    assert shared.speed_sigma > columns(narrow, (P5,)).speed_sigma + 0.2
