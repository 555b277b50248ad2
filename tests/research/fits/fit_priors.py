"""Fit the speed priors on published runs and print how well they predict unseen sources.

python -P tests/run.py tests.research.fits.fit_priors --reference DIR [--write]
"""

import argparse
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recommender.performance.priors import KINDS, Prior, kind_of, load_priors
from tests.research import SOURCES
from tests.research.fits.data import BY_GPU, HERE, table
from tests.research.fits.held_out import (
    BY_OWN_GPU,
    OVERLAP_TRANSFERRED,
    STATED_BOTH,
    Group,
    Left,
    constants,
    fp32_ratio,
    groups_of,
    sigma,
    unseen_errors,
    unstated_errors,
)
from tests.research.fits.later import fitted_runs
from tests.research.fits.model import TENSOR_S, best_overlap, errors, scaling_errors, summary
from tests.research.fits.transfer import (
    LABORATORY,
    LABORATORY_NAMES,
    Readings,
    fitted,
    gpu_factors,
    predicted,
    readings,
)
from tests.shipped import snapshot

AS_OF = "2026-11-26"
SHIPPED = SOURCES / "performance"
TRANSFER_SIGMA = 0.36
NOTHING = frozenset[Left]()
OWN = ["efficiency", "efficiency_fp32", "flop_per_byte", "batch_penalty"]


def main() -> None:
    """Fit, print the errors, and write priors.csv if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    groups = groups_of(fitted_runs(chosen.reference), gpu_factors(chosen.reference))
    print(f"efficiency of CUDA cores over that of tensor cores: {fp32_ratio(groups, NOTHING):.2f}")
    rows = pd.DataFrame([fitted_row(groups, group) for group in groups])
    print_overall(groups)
    priors = pd.concat([rows, transferred_rows(rows)], ignore_index=True)
    priors = priors.sort_values(["family", "stack"])[list(rows.columns)]
    priors = priors.assign(as_of=[_date(row) for row in priors.to_dict("records")])
    factors = gpu_factor_rows(readings(chosen.reference), priors)
    if chosen.write:
        factors.to_csv(SHIPPED / "gpu_factors.csv", index=False)
        priors.to_csv(SHIPPED / "priors.csv", index=False)
    else:
        print(priors.to_string(index=False))


def fitted_row(groups: tuple[Group, ...], group: Group) -> dict[str, object]:
    """One fitted line of priors.csv, with its errors printed."""
    family, stack, many = group.family, group.stack, group.many
    one = group.scaled(group.trials.rows, NOTHING)
    found = constants(groups, group, NOTHING)
    out = np.concatenate(list(unseen_errors(groups, group, several=False)))
    print(f"{family} {stack}: in sample           {summary(errors(one, found))}")
    print(f"{family} {stack}: left out by {group.by:6}  {summary(out)}")
    overlap = OVERLAP_TRANSFERRED
    if len(many):
        overlap = best_overlap(one, many, found)
        far = np.concatenate(list(unseen_errors(groups, group, several=True)))
        scale = scaling_errors(pd.concat([one, many]), found, overlap)
        print(f"{family} {stack}: several, left out   {summary(far)}")
        print(f"{family} {stack}: several, scaled     {summary(scale)}  (overlap {overlap})")
    return {
        "family": family,
        "stack": stack,
        "efficiency": round(found.tensor, 3),
        "efficiency_fp32": round(found.cuda, 3),
        "flop_per_byte": round(found.intensity, 1),
        "batch_penalty": float(f"{found.penalty:.2g}"),
        "tensor_s": TENSOR_S[stack],
        "overlap": overlap,
        "gradient_bytes": _gradient_bytes(family, stack),
        "sigma_one": round(sigma(groups, group, several=False), 2),
        "sigma_several": round(sigma(groups, group, several=True), 2),
        "by_gpu": int((family, stack) in (*BY_GPU, *BY_OWN_GPU)),
        "gpus": "|".join(sorted({str(card) for card in one.card if card})),
        "basis": "fitted",
        "rows": len(one),
        "source": " + ".join(sorted({str(name).split(" v")[0] for name in one.source})),
        "as_of": AS_OF,
    }


def gpu_factor_rows(found: Readings, priors: pd.DataFrame) -> pd.DataFrame:
    """gpu_factors.csv: what the formulas miss on each GPU of the catalog by NVIDIA."""
    networks = table("transfer")
    known = {p.family: p for p in map(_prior, priors.to_dict("records")) if p.stack == "typical"}
    models = {str(n): known[str(family)] for n, family in networks.family.items()}
    rows = predicted(found, models)
    missed, kinds = fitted(rows), rows.model.map(networks.family).map(kind_of)
    runs = rows.groupby(["gpu", "precision", kinds]).size()
    print(f"trend over GPUs: FLOP/s^{missed.trend[0]:.2f} · bandwidth^{missed.trend[1]:.2f}")
    catalog = snapshot()
    written = []
    for (name, precision), achieved in sorted(catalog.achieved.items()):
        gpu, kind = catalog.gpus[name], "bf16" if precision == "fp16" else precision
        twice = precision == "fp16" and (name, "bf16") in catalog.achieved
        if gpu.vendor != "nvidia" or kind not in ("fp32", "tf32", "bf16") or twice:
            continue
        own = LABORATORY_NAMES.get(name, name)
        speed = achieved.tflops, gpu.memory_gb_per_s
        for network in KINDS:
            factor = missed.factor(own, kind, network, speed)
            count = int(runs.get((own, kind, network), 0))
            basis = "measured" if (own, kind, "") in missed.own else "trend"
            line = (name, kind, network, round(factor, 3), basis, count)
            written.append((*line, LABORATORY, AS_OF))
    columns = ["gpu", "precision", "kind", "factor", "basis", "runs", "source", "as_of"]
    return pd.DataFrame(written, columns=columns)


def _date(row: Mapping[Hashable, Any]) -> str:
    """The day of a row: of the last fit that changed its constants, as calibrations name it."""
    known = load_priors().get((row["family"], row["stack"]))
    same = known is not None and all(getattr(known, name) == row[name] for name in OWN)
    return known.as_of if known is not None and same else AS_OF


def _prior(row: Mapping[Hashable, Any]) -> Prior:
    gpus = tuple(str(row["gpus"]).split("|"))
    columns = {name: row[name] for name in Prior.__slots__ if name in row}
    return Prior(**columns | {"gpus": gpus, "by_gpu": bool(row["by_gpu"])})


def transferred_rows(known_rows: pd.DataFrame) -> pd.DataFrame:
    """Lines for families and stacks without enough published runs, from their nearest kin."""
    known = {(row["family"], row["stack"]): row for row in known_rows.to_dict("records")}
    rows = []
    for item in pd.read_csv(HERE / "transfers.csv").to_dict("records"):
        row = dict(known[item["kin_family"], item["kin_stack"]])
        for name in ("efficiency", "efficiency_fp32"):
            row[name] = round(min(float(row[name]) * float(item["factor"]), 1.0), 3)
        row |= {name: item[name] for name in (*OWN, "overlap") if pd.notna(item[name])}
        least = max(float(row["sigma_one"]), TRANSFER_SIGMA)
        stated = pd.notna(item["sigma_one"])
        row["sigma_one"] = float(item["sigma_one"]) if stated else least
        several = max(float(row["sigma_several"]), float(row["sigma_one"]))
        row["sigma_several"] = item["sigma_several"] if item["sigma_several"] > 0 else several
        row |= {
            "family": item["family"],
            "stack": item["stack"],
            "tensor_s": TENSOR_S[str(item["stack"])],
            "gradient_bytes": _gradient_bytes(str(item["family"]), str(item["stack"])),
            "by_gpu": 0,
            "basis": "transferred",
            "rows": 0,
            "source": item["reason"],
        }
        rows.append(row)
    return pd.DataFrame(rows)


def print_overall(groups: tuple[Group, ...]) -> None:
    """Errors on what was left out, over all families."""
    for several, name in ((False, "one machine"), (True, "several machines")):
        known = [part for g in groups for part in unseen_errors(groups, g, several)]
        print(f"{name}, stack known, left out: {summary(np.concatenate(known))}")
    unstated = [part for f in STATED_BOTH for part in unstated_errors(groups, f)]
    print(f"one machine, stack not stated, left out: {summary(np.concatenate(unstated))}")


def _gradient_bytes(family: str, stack: str) -> int:
    """Autocast leaves gradients in fp32; tuned recipes and LLM stacks send 16 bits."""
    return 2 if stack == "tuned" or family in ("decoder", "moe") else 4


if __name__ == "__main__":
    main()
