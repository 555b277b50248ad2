"""The tables of docs/research/memory.md: memory as counted against memory as measured.

    python -P tests/run.py tests.research.measured_memory

writes them. The figures are others' readings of one GPU: what PyTorch had allocated at its peak
and, or only, what the GPU had occupied: the CUDA context and what PyTorch reserved as well.
"""

import csv
from dataclasses import replace
from pathlib import Path

from recommender.job.job import Job
from recommender.job.jobfile import job_from_text
from recommender.performance.machines import USABLE
from recommender.performance.memory import Bytes, bytes_of, per_sample
from recommender.performance.priors import load_priors

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "recommender" / "performance" / "measured_memory.csv"
ROWS = list(csv.DictReader(DATA.read_text("utf-8").splitlines()))
PAGE = ROOT / "docs" / "research" / "memory.md"
COMMAND = "python -P tests/run.py tests.research.measured_memory"
BEGINS = (f"<!-- begin: {COMMAND} -->", f"<!-- begin: {COMMAND} (held out) -->")
END = "<!-- end -->"
TITLES = (
    "| network | training | samples × tokens | measured, GB | counted | off | cause |\n"
    "|:--|:--|--:|--:|--:|--:|:--|"
)
Row = dict[str, str]
OVER = {  # why some readings are a quarter less than is counted
    "GPTQ": "matrices of GPTQ give back 16 bits, embeddings stay in 16, and so does the loss",
    "parallel": "one norm for both halves of a layer, one adapter input for three matrices",
}


def job_of(row: Row) -> Job:
    """The job of a reading, as a user states it."""
    named = {"rank": "lora_rank", "trainable": "trainable_params", "tokens": "seq_len"}
    stated = ("rank", "trainable", "attention", "tokens", "method", "precision")
    keys = [f"{named.get(name, name)}: {row[name]}" for name in stated if row[name]]
    network = f"family: decoder; {row['network']}" if row["network"] else f"model: {row['model']}"
    layers = ["schema: recommend.job/v1", "batch: 64", "samples: 2000", *network.split("; "), *keys]
    return job_from_text("\n".join(layers))


def needs_of(row: Row) -> Bytes:
    """What a plan counts for the same training."""
    job = job_of(row)
    needs = bytes_of(job, load_priors()[job.family, job.stack])
    language = job.family in ("decoder", "moe")  # the other readings are of a classifier
    return needs if language else replace(needs, logits=0.0)


def planned_gb(row: Row) -> float:
    """What a plan counts on one GPU, with the context."""
    needs = needs_of(row)
    each = per_sample(needs, row["recompute"] == "1")
    return (needs.states + needs.context + int(row["batch"]) * each) / 1e9


def counted_gb(row: Row) -> float:
    """What a plan counts of what was read."""
    occupied = row["reading"] == "occupied"
    return planned_gb(row) - (0.0 if occupied else needs_of(row).context / 1e9)


def off(row: Row) -> float:
    """The relative error of what is counted."""
    return counted_gb(row) / float(row["measured_gb"]) - 1.0


def room(row: Row) -> float:
    """The memory of the smallest GPU that a plan would take, over what the reading occupied."""
    occupied = float(row["occupied_gb"] or row["measured_gb"])
    return planned_gb(row) / USABLE / occupied


def table(held_out: str) -> str:
    """One line for each reading."""
    lines = [TITLES]
    for row in ROWS:
        if row["held_out"] != held_out:
            continue
        way = f"{row['method']}, {row['precision']}" + (", recomputed" * int(row["recompute"]))
        way += ", plain attention" * (row["attention"] == "plain")
        figures = (
            f"{float(row['measured_gb']):.1f} | {counted_gb(row):.1f} | {100 * off(row):+.0f} %"
        )
        size = f"{row['batch']} × {int(row['tokens']):,}"
        lines.append(f"| {row['model']} | {way} | {size} | {figures} | {row['cause']} |")
    return "\n".join(lines)


def page() -> str:
    """The page with the tables of today."""
    text = PAGE.read_text("utf-8")
    for held_out, begin in enumerate(BEGINS):
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table(str(held_out))}\n{END}{rest.partition(END)[2]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
