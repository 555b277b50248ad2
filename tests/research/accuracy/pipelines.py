"""Plans of pipelines and replicas, calibrated on few replicas: Parcae on p3.2xlarge.

The split was fixed before any error was looked at: plans with one or two replicas teach four
constants of a network, plans with three and more are predicted. The form was chosen on the plans
with one replica; its all-reduce is that of `data_parallel.py`.
"""

from functools import partial
from pathlib import Path

import numpy as np

from recommender.arrays import Bools, Floats
from recommender.performance import least_squares as lsq
from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.stages import PipelineSpeed, pipeline_step_s
from tests.research.accuracy.study import Held, Study, score
from tests.research.accuracy.tables import table

MAX_SEEN = 2  # replicas
# Units that a pipeline is cut into, embedding and head each counted as one, and parameters.
# GPT-3 XL's shape (Brown et al. 2020) widened to 1.5 B is GPT-2's 48 layers; BERT-large has 24;
# ResNet-152 has 50 blocks (He et al. 2015).
LAYERS = {"gpt-1.5b": 50, "bert": 26, "resnet152": 52}
PARAMETERS = {"gpt-1.5b": 1.5e9, "bert": 0.336e9, "resnet152": 60.2e6}
BYTES = 4.0  # of a gradient; V100, 32 bit
NETWORK_BYTES_PER_S = 10e9 / 8
LATENCY_S = 5e-4
TURN_S = 0.01  # to start from: a layer, and a handover
SPREAD = np.array([3.0, 3.0, 1.0, 2.0])  # sd of ln: layer, handover, network, latency
NOISE = 0.02


def parcae(model: str) -> Held:
    """Seconds per iteration of plans with three replicas and more."""
    rows = [row for row in table("parcae_plans") if row["model"] == model]
    stages = _column(rows, "pipeline_parallel")
    replicas = _column(rows, "data_parallel")
    per_replica = _column(rows, "global_batch") / replicas
    micro = np.ceil(per_replica / _column(rows, "micro_batch"))
    measured = _column(rows, "iteration_ms") / 1e3
    seen = replicas <= MAX_SEEN

    def steps(theta: Floats, which: Bools) -> Floats:
        layer, handover, network, latency = np.exp(theta).tolist()
        speed = PipelineSpeed(
            layer_s=TURN_S * layer,
            handover_s=TURN_S * handover,
            gradient_bytes=BYTES * PARAMETERS[model],
            network_bytes_per_s=NETWORK_BYTES_PER_S * network,
            network_latency_s=LATENCY_S * latency,
        )
        at = (micro[which], stages[which], replicas[which])
        return np.log(pipeline_step_s(speed, LAYERS[model], *at))

    belief = lsq.ParameterPrior(np.zeros(4), SPREAD, np.full(4, -7.0), np.full(4, 7.0))
    fit = lsq.solve_relative(lambda theta: steps(theta, seen), measured[seen], NOISE, belief)
    noise = max(float(np.sqrt(np.mean(fit.residual**2))), NOISE)
    sigma = np.hypot(noise, lsq.spread(lambda theta: steps(theta, ~seen), fit, noise))
    return Held(
        labels=tuple(
            f"{model} {row['data_parallel']} x {row['pipeline_parallel']}"
            for row, old in zip(rows, seen, strict=True)
            if not old
        ),
        predicted=np.exp(steps(fit.value, ~seen)),
        measured=measured[~seen],
        sigma=sigma,
    )


def _column(rows: list[dict[str, str]], name: str) -> Floats:
    return np.array([float(row[name]) for row in rows])


def _score(model: str, reference: Path | None) -> Score:
    return score(parcae(model))


STUDIES: tuple[Study, ...] = tuple(
    Study(
        key=f"parcae-{model}",
        subject=f"{name} in pipelines on up to 32 p3.2xlarge",
        split="calibrated on 1 and 2 replicas, predicted for 3 to 16",
        target=Target(mean=10.0),
        published="none known",
        source="Parcae (NSDI 2024)",
        run=partial(_score, model),
    )
    for model, name in (
        ("gpt-1.5b", "GPT of 1.5 B"),
        ("bert", "BERT-large"),
        ("resnet152", "ResNet-152"),
    )
)
