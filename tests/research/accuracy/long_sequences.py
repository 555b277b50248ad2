"""Sequences of 8,192 to 1,048,576 tokens, with and without sharing them (context parallelism).

Which runs count was fixed before any was predicted (`data/long_sequences.csv`, 2026-11-27): every
row with a stated layout of NVIDIA's table of long sequences, Llama 2 7B on H100 (NeMo 24.03) and
Llama 3 8B on B200 (NeMo 25.04), both in FP8, on whole machines. Three rows on two and four GPUs
are therefore left out, and rates without sharing, whose layout is not stated. Where the number of
GPUs and the degrees disagree (B200), the degrees are right: an earlier version of the table states
their product. The figures are FLOP by the formulas of `nemo.utils`, in which attention counts all
of the scores. One sequence is a micro-batch; whether layers are recomputed is the model's choice.
Nothing is fitted on them.
"""

from collections.abc import Mapping
from functools import cache

from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.parallel import Network, Run, held, networks
from tests.research.accuracy.study import Study, score
from tests.research.accuracy.tables import table

GBIT = 3200.0  # of a machine: DGX H100 and B200, eight times 400 Gbit/s


@cache
def long_runs() -> tuple[Run, ...]:
    """The runs that count."""
    return tuple(_run(row) for row in table("long_sequences"))


def stated_flop(network: Network, tokens: int) -> float:
    """FLOP of a sequence as NeMo counts them, twice the attention of a causal mask."""
    return network.flop(tokens) + 6.0 * network.hidden * network.layers * float(tokens) ** 2


def _run(row: Mapping[str, str]) -> Run:
    network, gpus, tokens = networks()[row["network"]], int(row["gpus"]), int(row["tokens"])
    rate = float(row["tflops_per_gpu"]) * 1e12 * gpus / stated_flop(network, tokens)
    return Run(
        source=row["source"].split(",")[0],
        network=row["network"],
        gpu=row["gpu"],
        network_gbit_per_s=GBIT,
        gpus=gpus,
        tensor=int(row["tensor"]),
        stages=int(row["stages"]),
        batch=int(row["global_batch"]),
        tokens=tokens,
        micro_batch=1,
        recompute=None,
        samples_per_s=rate,
        fp8=True,
        context=int(row["context"]),
    )


def _score() -> Score:
    return score(held(long_runs()))


STUDIES: tuple[Study, ...] = (
    Study(
        key="parallel-long",
        subject="speed of sequences of 8,192 to a million tokens in FP8, nothing measured",
        split="constants of data-parallel runs; every such run held out",
        target=Target(mean=25.0),
        published="none known",
        source="NVIDIA NeMo 24.03 and 25.04, long sequence performance, H100 and B200",
        run=lambda _: _score(),
    ),
)
