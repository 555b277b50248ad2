"""The tables of docs/research/memory.md: memory as counted against memory as measured.

    python -P tests/run.py tests.research.measured_memory

writes them. The figures are others' readings of one GPU: what PyTorch had allocated at its peak,
what it had reserved, or what the GPU had occupied, which includes the CUDA context; and trainings
that ran out of memory.
"""

import csv
from dataclasses import replace
from math import log
from pathlib import Path
from statistics import median

import numpy as np

from recommender.job.job import Job
from recommender.job.jobfile import job_from_text
from recommender.performance.clusters import Clusters
from recommender.performance.data_parallel import ON_REQUEST, data_parallel
from recommender.performance.machines import USABLE
from recommender.performance.memory import (
    GIB,
    VISIBLE,
    Bytes,
    bytes_of,
    fit_chance,
    held_bytes,
    per_sample,
    sample_bytes,
    sure_bytes,
)
from recommender.performance.priors import load_priors
from recommender.performance.step import strategy_of
from recommender.plan.limits import Limits

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "recommender" / "performance" / "measured_memory.csv"
ROWS = list(csv.DictReader(DATA.read_text("utf-8").splitlines()))
PAGE = ROOT / "docs" / "research" / "memory.md"
COMMAND = "python -P tests/run.py tests.research.measured_memory"
TABLES = ("derived", "held out", "states", "failures")
END = "<!-- end -->"
TITLES = {
    "failures": (
        "| network | training | samples × tokens | GPUs, GiB | counted, GB | of them | cause |\n"
        "|:--|:--|--:|--:|--:|--:|:--|"
    ),
    "": (
        "| network | training | samples × tokens | measured, GB | counted | off | cause |\n"
        "|:--|:--|--:|--:|--:|--:|:--|"
    ),
}
Row = dict[str, str]
CAUSES = {  # why some readings are a quarter less or a tenth more than is counted
    "GPTQ": "matrices of GPTQ give back 16 bits, embeddings stay in 16, and so does the loss",
    "parallel": "one norm for both halves of a layer, one adapter input for three matrices",
    "16-bit": "a 16-bit stream of activations: the software does not call PEFT's preparation",
    "unsynced": "FSDP keeps whole gradients between the micro-batches of a step",
    "fused": "DeepSpeed's own AdamW holds nothing between",
    "loop": "AdamW of PyTorch 1, weight by weight",
    "megatron": "32-bit gradients of Megatron",
    "cached": "blocks that the allocator keeps where there is room",
}


def job_of(row: Row) -> Job:
    """The job of a reading, as a user states it."""
    named = {"rank": "lora_rank", "trainable": "trainable_params", "tokens": "seq_len"}
    stated = ("rank", "trainable", "attention", "tokens", "method", "precision")
    keys = [f"{named.get(name, name)}: {row[name]}" for name in stated if row[name]]
    network = row["network"] or f"model: {row['model']}"
    family = [] if not row["network"] or "family" in network else ["family: decoder"]
    layers = ["schema: recommend.job/v1", "batch: 640", "samples: 20000", *family]
    others = [each for each in row["stated"].split("; ") if each]
    return job_from_text("\n".join([*layers, *network.split("; "), *keys, *others]))


def needs_of(row: Row) -> Bytes:
    """What a plan counts for the same training."""
    job = job_of(row)
    needs = bytes_of(job, load_priors()[job.family, job.stack])
    # Of the others a classifier was read, and Liger's loss keeps no logits.
    language = job.family in ("decoder", "moe") and row["software"] != "Liger"
    return needs if language else replace(needs, logits=0.0)


def planned_gb(row: Row) -> float:
    """What a plan counts on one GPU, with the context."""
    needs, job, gpus = needs_of(row), job_of(row), float(row["gpus"])
    again, batch = row["recompute"] == "1", int(row["batch"])
    if job.sharding == "tensor":
        all_of_it, one = np.array([gpus]), np.ones(1)
        held = float(held_bytes(needs, gpus, all_of_it, one)[0])
        each = float(sample_bytes(needs, float(again), gpus, one)[0])
        return (held + needs.context + batch * each) / 1e9
    strategy = ON_REQUEST.get(job.sharding) or next(
        each
        for each in data_parallel(job)
        if each.name in (job.sharding, "ddp")
        and (job.sharding == "auto" or each is strategy_of(job.sharding))
    )
    held, updating = (
        float(part(needs, _machine(gpus))[0])
        for part in (strategy.held_bytes, strategy.updating_bytes)
    )
    return (needs.context + max(held + batch * per_sample(needs, again), updating)) / 1e9


def _machine(gpus: float) -> Clusters:
    """One machine with so many GPUs, of which nothing else counts."""
    columns = dict.fromkeys(Clusters.__slots__, np.ones(1))
    return Clusters(**columns | {"gpus": np.full(1, gpus), "gpus_per_machine": np.full(1, gpus)})


def counted_gb(row: Row) -> float:
    """What a plan counts of what was read."""
    context = needs_of(row).context / 1e9
    return planned_gb(row) - (context if row["reading"] == "allocated" else 0.0)


def off(row: Row) -> float:
    """The relative error of what is counted."""
    return counted_gb(row) / float(row["measured_gb"]) - 1.0


def filled(row: Row) -> float:
    """The share of its GPU, as programs see it, that a training takes as counted."""
    return planned_gb(row) * 1e9 / (float(row["gpu_gib"]) * GIB)


def fits(row: Row) -> float:
    """The chance that the training fits its GPU, as a plan counts it."""
    usable = float(row["gpu_gib"]) * GIB / VISIBLE
    return float(fit_chance(job_of(row), np.array(planned_gb(row) * 1e9), np.array(usable)))


def told_to_fit(row: Row) -> bool:
    """Whether a plan with this setting is made at the chance that is asked unless stated."""
    return fits(row) >= Limits().confidence


def room(row: Row) -> float:
    """The memory of the smallest GPU that surely fits, over what the reading occupied."""
    occupied = float(row["occupied_gb"] or row["measured_gb"])
    return planned_gb(row) / sure_bytes(job_of(row), USABLE) / occupied


def of_table(table: str) -> list[Row]:
    """The rows of one table."""
    return [row for row in ROWS if row["table"] == table]


def is_state(row: Row) -> bool:
    """Whether a reading is of states of training: all weights are trained, or they are divided."""
    return row["table"] == "states" and (row["method"] == "full" or row["gpus"] != "1")


def median_off(rows: list[Row]) -> float:
    """The median of the sizes of the errors."""
    return median(abs(off(row)) for row in rows)


def spread(rows: list[Row]) -> float:
    """Root of the mean square of ln (measured / counted)."""
    return float(np.sqrt(np.mean([log(1.0 + off(row)) ** 2 for row in rows])))


def table(name: str) -> str:
    """One line for each reading."""
    lines = [TITLES.get(name, TITLES[""])]
    for row in of_table(name):
        way = ", ".join(filter(None, (row["method"], row["precision"], row["stated"])))
        way += ", recomputed" * int(row["recompute"])
        way += ", plain attention" * (row["attention"] == "plain")
        size = f"{row['batch']} × {int(row['tokens']):,}"
        if name == "failures":
            gpus = f"{row['gpus']} × {float(row['gpu_gib']):.1f}"
            figures = f"{gpus} | {planned_gb(row):.1f} | {100 * filled(row):.0f} %"
        else:
            each = f" ({row['gpus']} GPUs)" * (row["gpus"] != "1")
            counted = f"{counted_gb(row):.1f} | {100 * off(row):+.0f} %"
            figures = f"{float(row['measured_gb']):.1f}{each} | {counted}"
        lines.append(f"| {row['model']} | {way} | {size} | {figures} | {row['cause']} |")
    return "\n".join(lines)


def page() -> str:
    """The page with the tables of today."""
    text = PAGE.read_text("utf-8")
    for name in TABLES:
        begin = f"<!-- begin: {COMMAND} ({name}) -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table(name)}\n{END}{rest.partition(END)[2]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
