"""NVIDIA's runs of long sequences agree with what NVIDIA states of them elsewhere."""

import pytest

from tests.research.accuracy.long_sequences import STUDIES, long_runs, stated_flop
from tests.research.accuracy.parallel import networks


def test_flop_are_counted_as_in_the_table_that_states_rates_too():
    """NeMo 24.07: 16,847 tokens/s and 776 TFLOP/s of an H100 for Llama 2 7B at 4,096 tokens."""
    each = stated_flop(networks()["Llama 2 7B"], 4096) / 4096
    assert 16847 * each == pytest.approx(776e12, rel=0.005)


def test_llama_3_of_8b_is_counted_in_the_same_way():
    """NeMo 24.07: 12,036 tokens/s and 697 TFLOP/s of an H100 at 8,192 tokens."""
    each = stated_flop(networks()["Llama 3.1 8B"], 8192) / 8192
    assert 12036 * each == pytest.approx(697e12, rel=0.005)


def test_four_million_tokens_a_step_on_the_gpus_that_the_degrees_ask_for():
    for run in long_runs():
        assert run.batch * run.tokens == 2**22
        assert run.gpus % (run.tensor * run.stages * run.context) == 0


def test_no_run_is_off_by_more_than_a_sixth():
    found = STUDIES[0].finding(None).score
    assert found.points == 14
    assert found.mean < 10.0
    assert found.p90 < 17.0
