"""Training in 8 bits: what the stack keeps of faster products, and where it runs at all."""

import pytest

from recommender.performance.fp8 import TYPICAL, kept_share, with_fp8
from recommender.performance.machines import machine_columns, precision_on
from recommender.performance.priors import load_priors
from tests.recommender.performance.parts import GPUS, P5, columns, llama
from tests.shipped import snapshot

CATALOG = snapshot()


def rate(stack: str, precision: str) -> float:
    job = llama(stack=stack, precision=precision)
    machine = CATALOG.instance_types["aws", "p5.48xlarge"]
    found = machine_columns(job, (machine,), CATALOG.gpus, CATALOG.achieved)
    return float(found.compute_per_s[0])


def test_fp8_is_never_emulated():
    assert precision_on("fp8", CATALOG.gpus["H100"]) == "fp8"
    assert precision_on("fp8", CATALOG.gpus["A100"]) == ""
    assert precision_on("mixed", CATALOG.gpus["H100"]) == "bf16"
    assert columns(llama(precision="fp8"), (P5,)).reasons == ("H100 has no fp8",)
    assert GPUS["H100"].peak_fp8_tflops is None


def test_scripts_gain_what_was_published_for_eight_billion_parameters():
    """torchao, eight H100: 10 % with a scale a row, 25 % with one a tensor."""
    assert 1.10 < rate("typical", "fp8") / rate("typical", "mixed") < 1.25


def test_recipes_of_vendors_gain_more_and_stay_below_the_ratio_of_the_products():
    gain = rate("tuned", "fp8") / rate("tuned", "mixed")
    products = CATALOG.achieved["H100", "fp8"].tflops / CATALOG.achieved["H100", "bf16"].tflops
    assert rate("typical", "fp8") / rate("typical", "mixed") < gain < products


def test_the_share_counts_in_logarithms():
    row, wide = CATALOG.achieved["H100", "fp8"], CATALOG.achieved["H100", "bf16"]
    typical = load_priors()["decoder", "typical"]
    expected = wide.tflops * (row.tflops / wide.tflops) ** TYPICAL
    assert with_fp8(typical, row, wide).tflops == pytest.approx(expected)
    assert kept_share(load_priors()["encoder", "tuned"]) == 0.0
