"""What machines bring to a job: precision, speed, memory, network, input."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recommender.job.job import DataSet
from recommender.performance.clusters import spread_of
from recommender.performance.gpu_speed import gpu_speed, precision_on
from recommender.performance.priors import load_gpu_factors, load_priors, prior_of, recipe_share
from recommender.performance.speed_spread import SIGMA_NEW_GPU, achieved_sd
from tests.recommender.performance.parts import (
    ACHIEVED,
    G4DN,
    G5X8,
    GPUS,
    P3,
    P4DE,
    P5,
    columns,
    llama,
    machine,
    resnet,
)
from tests.shipped import snapshot


@pytest.mark.parametrize(
    ("wanted", "gpu", "used"),
    [
        ("mixed", "H100", "bf16"),
        ("mixed", "T4", "fp16"),
        ("mixed", "K80", ""),
        ("bf16", "V100", ""),
        ("fp16", "T4", "fp16"),
        ("tf32", "H100", "tf32"),
        ("tf32", "V100", "fp32"),
        ("fp32", "H100", "fp32"),
    ],
)
def test_precision_follows_the_gpu(wanted, gpu, used):
    assert precision_on(wanted, GPUS[gpu]) == used


def test_reasons_name_the_gpu():
    t4, v100 = columns(resnet(precision="bf16"), (G4DN, P3)).reasons
    assert t4 == "T4 has no bf16"
    assert v100 == "V100 has no bf16"
    assert columns(resnet(), (machine("c5.large", "", 0),)).reasons == ("c5.large has no GPU",)
    k80 = columns(resnet(), (machine("p2.xlarge", "K80", 1),))
    assert k80.reasons == ("K80 has no 16-bit arithmetic",)
    assert k80.compute_per_s[0] == k80.memory_bytes[0] == 0.0


def test_the_compute_rate_is_the_two_term_roofline():
    job = resnet()
    prior = prior_of(job)
    per_flop = 1 / (prior.efficiency * 762.2e12) + 1 / (prior.flop_per_byte * 3350e9)
    missed = load_gpu_factors()["H100", "bf16", "cnn"]
    assert columns(job, (P5,)).compute_per_s[0] == pytest.approx(missed * 8 / (24.535e9 * per_flop))


def test_32_bit_moves_twice_the_bytes_and_fp32_has_its_own_efficiency():
    job = resnet(precision="fp32")
    prior = prior_of(job)
    per_flop = 1 / (prior.efficiency_fp32 * 14e12) + 2 / (prior.flop_per_byte * 900e9)
    missed = load_gpu_factors()["V100", "fp32", "cnn"]
    assert columns(job, (P3,)).compute_per_s[0] == pytest.approx(missed / (24.535e9 * per_flop))


def test_wider_transformers_move_fewer_bytes_per_flop():
    prior = prior_of(llama())
    assert prior.intensity(4096) == pytest.approx(4 * prior.intensity(1024))
    assert prior.intensity(0) == prior.flop_per_byte


def test_networks_reach_the_listed_rate_over_rdma_and_less_over_tcp():
    found = columns(resnet(), (P5, P4DE, G5X8, machine("x.1", "L4", 1, network_gbit_per_s=None)))
    assert found.network_bytes_per_s.tolist() == pytest.approx([400e9, 50e9, 0.85 * 12.5e9, 0.0])
    half_mib = (found.network_half_bytes / 2**20).tolist()
    assert half_mib == pytest.approx([58.0, 32.0, 0.0, 0.0])
    assert found.network_latency_s[2] > found.network_latency_s[0] > 0


def test_half_performance_sizes_give_the_16_mib_rates_back():
    """busbw at 16 MiB: 26 of 78 GB/s on p4de, 105 of 487 on p5 (AWS's nccl-tests)."""
    found = columns(resnet(), (P4DE, P5)).network_half_bytes / 2**20
    assert 78 * 16 / (16 + found[0]) == pytest.approx(26, rel=0.01)
    assert 487 * 16 / (16 + found[1]) == pytest.approx(105, rel=0.01)


def test_memory_keeps_eight_per_cent_free():
    assert columns(resnet(), (P5,)).memory_bytes[0] == pytest.approx(0.92 * 81559 * 2**20)


def test_input_rates():
    job = resnet(data=DataSet(bytes_per_sample=1e5, cpu_s_per_sample=0.01))
    found = columns(job, (P3, P5))
    assert found.prepare_per_s.tolist() == pytest.approx([8 / 0.01, 64 / 0.01])
    assert found.fetch_per_s[0] == pytest.approx(0.6 * 0.85 * 2.5e9 / 8 / 1e5)
    assert found.fetch_per_s[1] == pytest.approx(64 * 80e6 / 1e5)
    staged = resnet(data=DataSet(bytes_per_sample=1e5, read="stage"))
    assert columns(staged, (P3,)).fetch_per_s[0] == pytest.approx(2e9 / 1e5)
    assert math.isinf(columns(resnet(), (P3,)).fetch_per_s[0])


def test_every_family_and_stack_has_a_prior_with_its_origin():
    families = ("cnn", "vit", "encoder", "decoder", "moe", "encdec", "diffusion", "recsys")
    for family in families:
        for stack in ("tuned", "typical"):
            prior = load_priors()[family, stack]
            assert 0 < prior.efficiency <= 1
            assert 0 <= prior.overlap < 1
            assert prior.sigma_one > 0.1
            assert prior.sigma_several > 0.1
            assert prior.source
            assert prior.as_of.startswith("2026")
            assert (prior.rows > 0) == (prior.basis == "fitted")


def test_a_gpu_with_few_measurements_is_known_less_well_than_one_with_many():
    """G4DN's T4 took part in no fit of CNNs."""
    seen, new = columns(resnet(), (P3, G4DN)).speed_sigma
    prior = load_priors()["cnn", "typical"]
    assert "V100" in prior.gpus
    assert "T4" not in prior.gpus
    assert seen == pytest.approx(prior.sigma_one)
    assert new == pytest.approx(np.hypot(prior.sigma_one, SIGMA_NEW_GPU))


def test_a_matrix_rate_is_known_as_well_as_its_range_says():
    """An L40S makes 224 to 326 TFLOP/s in bf16, an H100 730 to 795: nine of ten lie inside."""
    rates = snapshot().achieved
    assert achieved_sd(rates["L40S", "bf16"]) == pytest.approx(
        np.log(325.8 / 224.4) / 3.29, rel=1e-3
    )
    assert achieved_sd(rates["H100", "bf16"]) < 0.03


def test_several_machines_have_a_spread_of_their_own():
    found, prior = columns(resnet(), (P3,)), load_priors()["cnn", "typical"]
    assert found.speed_sigma[0] ** 2 - found.speed_sigma_several[0] ** 2 == pytest.approx(
        prior.sigma_one**2 - prior.sigma_several**2
    )


def test_a_stack_that_is_assumed_lies_between_scripts_and_recipes_and_is_known_less_well():
    script, recipe, assumed = (
        columns(resnet(**more), (P3,)) for more in ({}, {"stack": "tuned"}, {"assumed": ("stack",)})
    )
    apart = np.log(recipe.compute_per_s[0] / script.compute_per_s[0])
    moved = np.log(assumed.compute_per_s[0] / script.compute_per_s[0])
    assert moved == pytest.approx(0.2 * apart)
    # Deviations of 0 and of `apart`, the latter with the chance 0.2
    more = assumed.speed_sigma[0] ** 2 - script.speed_sigma[0] ** 2
    assert more == pytest.approx(np.average([0, apart**2], weights=[0.8, 0.2]) - moved**2)


def test_a_micro_batch_of_software_that_is_not_stated_costs_between_both():
    job = llama(assumed=("stack",))
    script, recipe = prior_of(job.as_script), prior_of(job.as_recipe)
    assert prior_of(job).launch_s == pytest.approx((script.launch_s + recipe.launch_s) / 2)
    assert recipe_share(job) == 0.5
    assert recipe_share(job.as_script) == 0.0
    assert recipe_share(resnet(assumed=("stack",))) == 0.2
    assert recipe_share(resnet(assumed=("stack",), precision="fp8")) == 0.5


def test_tuned_stacks_are_not_slower():
    for family in ("cnn", "encoder", "decoder", "moe", "vit", "diffusion", "recsys"):
        rates = [
            columns(llama(family=family, stack=stack, hidden=1024), (P5,)).compute_per_s[0]
            for stack in ("typical", "tuned")
        ]
        assert rates[0] <= rates[1]


def test_the_spread_of_a_cluster_is_that_of_its_least_known_machine():
    found = replace(
        columns(resnet(), (P3, G4DN)),
        speed_sigma=np.array([0.3, 0.2]),
        speed_sigma_several=np.array([0.1, 0.15]),
    )
    kinds, counts = np.array([0, 1]), np.array([[1, 0], [0, 1], [2, 0], [1, 1]])
    assert spread_of(found, kinds, counts).tolist() == [0.3, 0.2, 0.1, 0.15]


def test_typical_decoders_reach_what_other_networks_show_of_a_gpu():
    """Lambda's other networks: 0.88 of the formulas on an H100, 1.06 on an A100."""
    job, factors = llama(stack="typical"), load_gpu_factors()
    prior = prior_of(job)
    plain = replace(prior, by_gpu=False)
    for name in ("H100", "A100-80GB"):
        with_factor, without = (
            gpu_speed(job, each, name, GPUS, ACHIEVED, factors).rate for each in (prior, plain)
        )
        assert with_factor / without == pytest.approx(factors[name, "bf16", "sequence"])
    tuned = prior_of(llama(stack="tuned"))
    assert not tuned.by_gpu


def test_a_network_with_other_bytes_than_those_of_the_fits_is_known_less_well():
    """Exponents 0 and 1 instead of 1/2, for a network that moves a quarter of ResNet-50's bytes."""
    job = resnet(intensity_ratio=2.0)
    (sd,) = columns(job, (P5,)).speed_sigma
    (plain,) = columns(resnet(), (P5,)).speed_sigma
    rates = [columns(resnet(intensity_ratio=each), (P5,)).compute_per_s[0] for each in (1, 2, 4)]
    added = np.sqrt(sd**2 - plain**2)
    assert added == pytest.approx(np.log(rates[2] / rates[0]) / 2, rel=0.15)
    assert (
        columns(llama(intensity_ratio=2.0), (P5,)).speed_sigma
        == columns(llama(), (P5,)).speed_sigma
    )
