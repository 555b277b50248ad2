"""The table of docs/research/known-models.md: our counts against published figures.

    python -P tests/run.py tests.research.known_models_page

writes it. A model is in it where somebody else wrote its parameters down or ships its fields; FLOP
are published ones, or for decoders of one shape PaLM's formula on the published parameters.
"""

from pathlib import Path

from recommender.job.jobfile import job_from_text
from recommender.networks.find import find_network
from recommender.networks.known_models import find_known
from recommender.performance.memory import bytes_of
from recommender.performance.priors import load_priors
from tests.recommender.networks.test_published import DENSE, HEAD, ROWS, flop_of_palm

PAGE = Path(__file__).parents[2] / "docs" / "research" / "known-models.md"
BEGIN = "<!-- begin: python -P tests/run.py tests.research.known_models_page -->"
END = "<!-- end -->"
TITLES = (
    "| model | parameters | off | published in | FLOP of training | off | states, GB | off |\n"
    "|:--|--:|--:|:--|--:|--:|--:|--:|"
)
LENGTH = 2048  # tokens, where PaLM's formula is taken
Row = dict[str, str]


def off(ours: float, theirs: float) -> str:
    """How far our figure is from another, in percent; nothing where both are the same."""
    return "0" if ours == theirs else f"{100 * (ours / theirs - 1):+.2f} %"


def flop(row: Row) -> tuple[str, str]:
    """Published FLOP of a token, at its length, or of a picture, and how far ours are off."""
    dense = {model.name: model for model in DENSE}
    length, theirs = int(row["tokens"] or 0), float(row["flop"] or 0)
    if not theirs and row["model"] in dense:
        length, theirs = LENGTH, flop_of_palm(dense[row["model"]], LENGTH)
    if not theirs:
        return "", ""
    text = f"{HEAD}model: {row['model']}\n" + (f"seq_len: {length}\n" if length else "")
    ours = job_from_text(text).flop_per_sample / (length or 1)
    unit = f"G a token at {length:,}" if length else "G a picture"
    return f"{theirs / 1e9:,.4g} {unit}", off(ours, theirs)


def memory(row: Row) -> tuple[str, str]:
    """Weights, gradients and states (ZeRO: 16 bytes a parameter; 18 with fp32 gradients)."""
    length = "" if find_network(row["model"]).network.flop_per_sample else "seq_len: 512\n"
    job = job_from_text(f"{HEAD}model: {row['model']}\n{length}")
    prior = load_priors()[job.family, job.stack]
    theirs = (18 if prior.gradient_bytes == 4 else 16) * int(row["parameters"])
    return f"{theirs / 1e9:,.4g}", off(bytes_of(job, prior).states, theirs)


def table() -> str:
    """One line for each model that is not from memory alone."""
    lines = [TITLES]
    for row in ROWS:
        known = find_known(row["model"])
        if not row["parameters"] or known is None or "from memory" in known.source:
            continue
        ours, theirs = find_network(row["model"]).network.count.parameters, int(row["parameters"])
        cells = (
            row["model"], f"{theirs:,}", off(ours, theirs), row["source"], *flop(row), *memory(row),
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page() -> str:
    """The page with the table of today."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
