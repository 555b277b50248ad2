"""Shared sequences (context parallelism), and shared layers under sharded weights (FSDP + TP).

Which runs count was fixed before any was predicted (`data/shared_sequences.csv`, 2026-11-23):
every row with CP > 1, or with TP under FSDP, of torchtitan's tables on H100 (2024-12; clocks of
500 W, memory of 2.4 TB/s, constants of typical scripts), of NeMo 24.07 and Megatron-Bridge on
H100, and the long sequences of Llama 3.1 405B. All but the last are in FP8. Where torchtitan
shards the weights of each stage of a pipeline, the stages hold them whole here. Nothing is fitted
on them: no fit holds a run with CP, or with TP.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from recommender.plan.accuracy import Score, Target
from tests.research.accuracy.parallel import Run, held, networks, run_of
from tests.research.accuracy.study import Study, score
from tests.research.accuracy.tables import table


@cache
def shared_runs() -> tuple[Run, ...]:
    """The runs that count."""
    return tuple(_run(row) for row in table("shared_sequences"))


def _run(row: Mapping[str, str]) -> Run:
    network, gpus, tokens = networks()[row["network"]], int(row["gpus"]), int(row["tokens"])
    rate = float(row["tokens_per_s"] or 0.0) / tokens
    if not rate:  # Llama 3 states 380 TFLOP/s of each GPU
        rate = LLAMA_3_FLOP_PER_S * gpus / network.flop(tokens)
    return replace(
        run_of(row, rate),
        fp8=row["fp8"] == "1",
        stack="tuned" if row["stack"] == "tuned" else "typical",
        context=int(row["context"]),
        sharded=row["sharded"] == "1",
        memory_gb_per_s=float(row["memory_gb_per_s"] or 0.0),
    )


LLAMA_3_FLOP_PER_S = 380e12  # arXiv 2407.21783, table 4: 131,072 tokens, CP 16


def _score() -> Score:
    return score(held(shared_runs()))


STUDIES: tuple[Study, ...] = (
    Study(
        key="parallel-shared",
        subject="speed with shared sequences or TP under sharded weights, nothing measured",
        split="constants of data-parallel runs; every such run held out",
        target=Target(mean=25.0),
        published="none known",
        source="torchtitan, NeMo 24.07, Megatron-Bridge, Llama 3 405B: their tables, H100",
        run=lambda _: _score(),
    ),
)
