"""MLPerf Training v3.1 as rows for fitting, next to those of `data.py`.

Networks that the fits know (BERT and ResNet-50), on GPUs of the catalog. BERT runs in 8 bits on
Hopper, with the rate that 8-bit products have there (`gpu_speed.py`).
"""

from pathlib import Path
from typing import Any

import pandas as pd

from recommender.performance.speed_spread import achieved_sd
from tests.research.accuracy.later_runs import (
    LaterRun,
    is_known,
    job_of,
    later_runs,
    machine_of,
)
from tests.research.fits.data import network_numbers, runs, table
from tests.shipped import snapshot

ROUND = "MLPerf v3.1"  # as `data.runs` names rounds
LISTED = "MLPerf Training v3.1"
TOKENS = 512.0


def fitted_runs(reference: Path) -> pd.DataFrame:
    """Every published run that constants may be fitted on."""
    known = table("networks").index
    later = (run for run in later_runs(reference) if run.source == LISTED and is_known(run))
    rows = [_row(run) for run in later if run.model in known and run.batch >= run.gpus]
    return pd.concat([runs(reference), pd.DataFrame(rows)], ignore_index=True)


def _row(run: LaterRun) -> dict[str, object]:
    network: Any = table("networks").loc[run.model]
    machine, catalog = machine_of(run, job_of(run)), snapshot()
    speed = catalog.achieved[machine.gpu, "fp8" if run.fp8 else "bf16"]
    tokens = TOKENS if network.hidden else 1.0
    return {
        "source": ROUND,
        "tuning": "tuned",
        "model": run.model,
        "gpu": run.gpu_canon,
        "precision": "bf16",
        "framework": "",
        "nodes": float(run.machines),
        "per_node": float(run.gpus_per_machine),
        **network_numbers(network, tokens),
        "matmul": speed.tflops * 1e12,
        "matmul_sd": achieved_sd(speed),
        "card": machine.gpu,
        "memory": catalog.gpus[machine.gpu].memory_gb_per_s * 1e9,
        "links": (machine.intra_gb_per_s or 10.0) * 1e9,
        "network": (machine.network_gbit_per_s or 0.0) * 1e9 / 8,
        "batch": run.batch / run.gpus,
        "rounds": 1.0,
        "sharded": False,
        "recompute": False,
        "machine": "",
        "rate": run.samples_per_s / run.gpus,
        "laboratory": "MLPerf",
    }
