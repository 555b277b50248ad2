"""Fit the speed priors on published runs and print how well they predict unseen sources.

python -m recommender.performance.fit_priors --reference DIR [--write]
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from recommender.performance.fit.data import HERE, runs
from recommender.performance.fit.model import (
    TENSOR_S,
    best_overlap,
    errors,
    fit,
    left_out,
    left_out_by,
    scaling_errors,
    spread,
    summary,
)

AS_OF = "2026-11-21"
FITTED = (
    ("cnn", "tuned"),
    ("cnn", "typical"),
    ("encoder", "tuned"),
    ("encoder", "typical"),
    ("decoder", "typical"),
    ("encdec", "tuned"),
)
OVERLAP_TRANSFERRED = 0.1  # what the fitted families show
SCALING_SIGMA = 0.15  # 12 % mean error of scaling a measured run; gpu-performance B1
LEAST_SCALING_SIGMA = 0.08
# Two laboratories measure the same model on the same GPU 43 % apart in the median (review D2):
# a spread between the sources of one laboratory, or the GPUs of one source, is too small.
LEAST_SIGMA = {"source": 0.30, "gpu": 0.25}
TRANSFER_SIGMA = 0.36
OWN = ["efficiency", "efficiency_fp32", "flop_per_byte", "batch_penalty", "sigma_one"]


def main() -> None:
    """Fit, print the errors, and write priors.csv if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    rows = runs(chosen.reference)
    fitted = pd.DataFrame([fitted_row(rows, *pair) for pair in FITTED])
    print_overall(rows[rows.nodes == 1])
    table = pd.concat([fitted, transferred_rows(fitted)], ignore_index=True)
    table = table.sort_values(["family", "stack"])[list(fitted.columns)]
    if chosen.write:
        table.to_csv(Path(__file__).with_name("priors.csv"), index=False)
    else:
        print(table.to_string(index=False))


def fitted_row(rows: pd.DataFrame, family: str, tuning: str) -> dict[str, object]:
    """One fitted line of priors.csv, with its errors printed."""
    mine = rows[(rows.family == family) & (rows.tuning == tuning)]
    one, many = mine[mine.nodes == 1], mine[(mine.nodes > 1) & (mine.network > 0)]
    found, out = fit(one), left_out(one)
    print(f"{family} {tuning}: in sample           {summary(errors(one, found))}")
    print(f"{family} {tuning}: left out by {left_out_by(one):6}  {summary(out)}")
    overlap, scale_sigma = OVERLAP_TRANSFERRED, SCALING_SIGMA
    if len(many):
        overlap = best_overlap(one, many, found)
        scale = scaling_errors(pd.concat([one, many]), found, overlap)
        scale_sigma = max(spread(scale), LEAST_SCALING_SIGMA)
        print(f"{family} {tuning}: several, unmeasured {summary(errors(many, found, overlap))}")
        print(f"{family} {tuning}: several, scaled     {summary(scale)}  (overlap {overlap})")
    sigma = max(spread(out), LEAST_SIGMA[left_out_by(one)])
    return {
        "family": family,
        "stack": tuning,
        "efficiency": round(found.tensor, 3),
        "efficiency_fp32": round(found.cuda, 3),
        "flop_per_byte": round(found.intensity, 1),
        "batch_penalty": found.penalty,
        "tensor_s": TENSOR_S[tuning],
        "overlap": overlap,
        "gradient_bytes": _gradient_bytes(family, tuning),
        "sigma_one": round(sigma, 2),
        "sigma_several": round(float(np.hypot(sigma, scale_sigma)), 2),
        "basis": "fitted",
        "rows": len(one),
        "source": " + ".join(sorted({str(name).split(" v")[0] for name in one.source})),
        "as_of": AS_OF,
    }


def transferred_rows(fitted: pd.DataFrame) -> pd.DataFrame:
    """Lines for families and stacks without enough published runs, from their nearest kin."""
    known = {(row["family"], row["stack"]): row for row in fitted.to_dict("records")}
    rows = []
    for item in pd.read_csv(HERE / "transfers.csv").to_dict("records"):
        row = dict(known[item["kin_family"], item["kin_stack"]])
        for name in ("efficiency", "efficiency_fp32"):
            row[name] = round(min(float(row[name]) * float(item["factor"]), 1.0), 3)
        row["sigma_one"] = round(max(float(row["sigma_one"]), TRANSFER_SIGMA), 2)
        row |= {name: item[name] for name in OWN if pd.notna(item[name])}
        row |= {
            "family": item["family"],
            "stack": item["stack"],
            "tensor_s": TENSOR_S[str(item["stack"])],
            "gradient_bytes": _gradient_bytes(str(item["family"]), str(item["stack"])),
            "sigma_several": round(float(np.hypot(float(row["sigma_one"]), SCALING_SIGMA)), 2),
            "basis": "transferred",
            "rows": 0,
            "source": item["reason"],
        }
        rows.append(row)
    return pd.DataFrame(rows)


def print_overall(one: pd.DataFrame) -> None:
    """Errors on what was left out, with the software stack known and not known."""
    known = [
        left_out(one[(one.family == family) & (one.tuning == tuning)]) for family, tuning in FITTED
    ]
    unknown = [left_out(one[one.family == family]) for family in ("cnn", "encoder")]
    print(f"one machine, stack known, left out:     {summary(np.concatenate(known))}")
    print(f"one machine, stack not known, left out: {summary(np.concatenate(unknown))}")


def _gradient_bytes(family: str, stack: str) -> int:
    """Autocast leaves gradients in fp32; tuned recipes and LLM stacks send 16 bits."""
    return 2 if stack == "tuned" or family in ("decoder", "moe") else 4


if __name__ == "__main__":
    main()
