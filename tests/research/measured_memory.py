"""The table of docs/research/memory.md: memory as counted against memory as measured.

    python -P tests/run.py tests.research.measured_memory

writes it. The figures are others' readings of one GPU, sequences of 512 tokens: what PyTorch had
allocated at its peak, or what the GPU had occupied, which holds the CUDA context as well.
"""

import csv
from pathlib import Path

from recommender.job.jobfile import job_from_text
from recommender.performance.memory import bytes_of
from recommender.performance.priors import load_priors

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "recommender" / "performance" / "measured_memory.csv"
ROWS = list(csv.DictReader(DATA.read_text("utf-8").splitlines()))
PAGE = ROOT / "docs" / "research" / "memory.md"
BEGIN = "<!-- begin: python -P tests/run.py tests.research.measured_memory -->"
END = "<!-- end -->"
TITLES = (
    "| network | training | samples | measured, GB | counted | off | cause |\n"
    "|:--|:--|--:|--:|--:|--:|:--|"
)
Row = dict[str, str]


def counted_gb(row: Row) -> float:
    """What a plan counts for the same training on one GPU."""
    adapters = f"lora_rank: {row['rank']}\n" if row["rank"] else ""
    job = job_from_text(
        "schema: recommend.job/v1\nbatch: 8\nsamples: 2000\nseq_len: 512\n"
        f"model: {row['model']}\nmethod: {row['method']}\nprecision: {row['precision']}\n{adapters}"
    )
    needs = bytes_of(job, load_priors()[job.family, job.stack])
    kept = needs.recomputed if row["recompute"] == "1" else needs.activations
    language = job.family in ("decoder", "moe")  # the other readings are of a classifier
    each = kept + (needs.logits if language else 0.0)
    context = needs.context if row["reading"] == "occupied" else 0.0
    return (needs.states + context + int(row["batch"]) * each) / 1e9


def off(row: Row) -> float:
    """The relative error of what is counted."""
    return counted_gb(row) / float(row["measured_gb"]) - 1.0


def table() -> str:
    """One line for each reading."""
    lines = [TITLES]
    for row in ROWS:
        way = f"{row['method']}, {row['precision']}" + (", recomputed" * int(row["recompute"]))
        figures = (
            f"{float(row['measured_gb']):.1f} | {counted_gb(row):.1f} | {100 * off(row):+.0f} %"
        )
        lines.append(f"| {row['model']} | {way} | {row['batch']} | {figures} | {row['cause']} |")
    return "\n".join(lines)


def page() -> str:
    """The page with the table of today."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
