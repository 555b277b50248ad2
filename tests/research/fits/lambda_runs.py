"""What Lambda's configurations say of its runs: the batch, and how many steps BERT ran.

Their BERT runs end after two epochs of SQuAD or 100 steps, whichever comes first, but
`run_squad.py` always reports 100 steps over the time taken. Large clusters run out of samples:
eight B200 took 20.33 s for 30 steps of 6,144 and report 100 · 6,144 / 20.33 = 30,222 samples/s
(log of 2025-12-10 in lambdal/deeplearning-benchmark, results_v2, 8xB200, bert_base_squad_FP16).
"""

import re
from functools import cache
from math import ceil, inf
from pathlib import Path
from typing import Any

import pandas as pd

from recommender.errors import UsageError

LABORATORY = "Lambda"
SQUAD_FEATURES = 88_641  # v1.1 in 384 tokens with a stride of 128, as the logs print it
SQUAD_EPOCHS, STEPS_REPORTED = 2, 100  # `num_train_epochs`, `max_steps` of all configurations
MEMORY = re.compile(r"(\d+)GB")  # in the name of a GPU: "B200-192GB"


def share_run(item: Any, precision: str, batch: float) -> float:
    """Steps that ran as a share of those reported: 1 but for BERT on large clusters.

    `batch` is what the table holds, of all GPUs; inf in its second version, whose configurations
    go by the size of a GPU's memory.
    """
    if not (item.source.startswith(LABORATORY) and item.model.startswith("BERT")):
        return 1.0
    if batch == inf:
        batch = configured_batch(item, precision) * float(item.n_gpus)
    if batch == inf:
        raise UsageError(
            f"{item.model} on {item.gpu}, {precision}: the batch is not known, nor how many steps "
            "ran; add it to lambda_batches.csv from the laboratory's configurations"
        )
    return min(1.0, SQUAD_EPOCHS * ceil(SQUAD_FEATURES / batch) / STEPS_REPORTED)


def configured_batch(item: Any, precision: str) -> float:
    """Samples of one GPU's step in the second version; inf where no configuration is known."""
    memory = MEMORY.search(str(item.gpu))
    key = str(item.model), int(memory[1]) if memory else 0, precision
    return _batches().get(key, inf)


@cache
def _batches() -> dict[tuple[str, int, str], float]:
    """Samples of one GPU's step, by network, memory of the GPU in GB and precision."""
    listed = pd.read_csv(Path(__file__).parent / "lambda_batches.csv")
    keys = zip(listed.model, listed.memory_gb, listed.precision, strict=True)
    return dict(zip(keys, listed.batch.astype(float), strict=True))
