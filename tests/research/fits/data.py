"""Published training runs as rows for fitting: FLOP, bytes, GPU, machine, batch, rate.

Reads a reference folder (`measured/training.csv.gz`, `hardware/gpus.csv`) and the tables
next to this file: networks with their FLOP, GPUs by the names of the runs, the software stack
of each source, and H100 runs that the reference folder lacks.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recommender.catalogs.schema import Achieved
from recommender.performance.gpu_speed import long_share
from recommender.performance.priors import kind_of, load_gpu_factors, number_format
from recommender.performance.speed_spread import achieved_sd
from tests.research.fits.lambda_runs import share_run
from tests.shipped import snapshot

HERE = Path(__file__).parent
BY_GPU = (("decoder", "typical"),)  # families whose constants are used with the GPUs' factors
SQUAD_TOKENS = 384  # DeepLearningExamples' default where a row gives none
SHARE_OF_PEAK = {"bf16": 0.77, "tf32": 0.75, "fp32": 0.9}  # GPUs the catalog lacks; large matmul
SHARE_SD = 0.113  # of ln that share: 0.62 to 0.9 of tensor cores' peaks (snapshot/achieved.py)
POSSIBLE = 1.05  # times the matrix rate: more can only be shorter sequences than stated
PHASE_TWO_FLOP = 1e12  # BERT-large on 512 tokens
VERSION = r" v\d.*$"  # of a laboratory's scripts, or of an MLPerf round
LINES = re.compile(r"(\d+) ?x ?[^,+]*?(?:HDR\w*|EDR|NDR)? ?(\d{2,3}) ?G", re.IGNORECASE)
COUNT = re.compile(r"\b\d+ ?x ?(?=[A-Z])")  # of GPUs, in the name of a machine: "2x H100"
DGX_GBIT = {"V": 400.0, "A": 1600.0}  # DGX-1 and DGX-2: at least 4 x EDR; DGX A100: 8 x HDR


def runs(reference: Path) -> pd.DataFrame:
    """Every usable published run; one row each, SI units, rate in samples/s of one GPU."""
    listed = pd.read_csv(reference / "measured" / "training.csv.gz", low_memory=False)
    networks, cards, stacks = table("networks"), table("gpus"), table("sources")
    peaks = pd.read_csv(reference / "hardware" / "gpus.csv").set_index("gpu_id")
    named = listed.source.isin(stacks.index) | listed.source.str.startswith("MLPerf")
    known = listed.model.isin(networks.index) & listed.gpu_canon.isin(cards.index)
    real = listed.throughput.gt(0) & listed.nodes.ge(1) & listed.gpus_per_node.ge(1)
    rows = [
        _row(item, networks.loc[str(item.model)], cards.loc[str(item.gpu_canon)], peaks, stacks)
        for item in listed[named & known & real].itertuples()
    ]
    more = [h100_run(item, networks.loc[str(item.model)]) for item in table("runs").itertuples()]
    found = pd.DataFrame([row for row in rows if row] + more)
    found = found[~_unpadded(found) & ~found.model.str.startswith("BioBERT")]
    possible: pd.DataFrame = found[found.rate * found.flop < POSSIBLE * found.matmul]
    laboratory = possible.source.str.replace(VERSION, "", regex=True)
    return with_factors(possible.assign(laboratory=laboratory).reset_index(drop=True))


def with_factors(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs with the rates of each GPU times what the formulas miss on it.

    Only for families without runs of the laboratory that the factors come from: with them, their
    own rows would say what their GPUs miss.
    """
    factors = load_gpu_factors()
    each = [
        factors.get((row.card, number_format(row.precision), kind_of(row.family)), 1.0)
        if (row.family, row.tuning) in BY_GPU
        else 1.0
        for row in rows.itertuples()
    ]
    return rows.assign(matmul=rows.matmul * each, memory=rows.memory * each)


@cache
def table(name: str) -> pd.DataFrame:
    """A table next to this file, by its first column."""
    return pd.read_csv(HERE / f"{name}.csv", index_col=0, keep_default_na=False)


@cache
def _achieved() -> Mapping[tuple[str, str], Achieved]:
    return snapshot().achieved


def _row(
    item: Any, network: Any, card: Any, peaks: pd.DataFrame, stacks: pd.DataFrame
) -> dict[str, object] | None:
    """One run of the reference folder; None where its GPU has no figure at its precision."""
    precision = precision_of(item)
    column = {"bf16": "fp16_tensor_tflops"}.get(precision, f"{precision}_tflops")
    gpu: Any = peaks.loc[card.peaks]
    peak, memory = float(gpu[column]), float(gpu["mem_bw_gbs"])
    if not peak > 0:
        return None
    gpus = float(item.nodes) * float(item.gpus_per_node)
    in_tokens = item.unit == "tokens/s"
    tokens = 1.0 if in_tokens and network.family == "encdec" else _tokens(item, network)
    per_sample = tokens if in_tokens else 1.0
    batch, rounds = _batch(item, precision, gpus)
    mlperf = item.source.startswith("MLPerf")
    ran = share_run(item, precision, batch * gpus)
    return {
        "source": f"MLPerf {item.source[-4:]}" if mlperf else item.source,
        "tuning": "tuned" if mlperf else stacks.at[item.source, "stack"],
        "model": item.model,
        "gpu": item.gpu_canon,
        "precision": precision,
        "framework": str(item.framework),
        "nodes": float(item.nodes),
        "per_node": float(item.gpus_per_node),
        **network_numbers(network, tokens),
        "matmul": _matmul(card.catalog, _format(item, precision), peak),
        "matmul_sd": _matmul_sd(card.catalog, _format(item, precision)),
        "card": card.catalog,
        "memory": (memory if memory > 0 else 732.0) * 1e9,  # P100
        "links": float(card.links_gb_per_s) * 1e9,
        "network": _network(item),
        "batch": batch,
        "rounds": rounds,
        "sharded": "FSDP" in str(item.parallelism),
        "recompute": "act_ckpt=True" in str(item.parallelism),
        "machine": COUNT.sub("", str(item.instance_type)).strip(),
        "rate": float(item.throughput) * ran / per_sample / gpus,
    }


def _format(item: Any, precision: str) -> str:
    """The format of the matrix products: MLPerf's BERT runs in 8 bits on H100 (NVIDIA, v2.1)."""
    return "fp8" if (item.model, item.gpu_canon) == ("MLPerf bert", "H100-SXM") else precision


def h100_run(item: Any, network: Any) -> dict[str, object]:
    """One run of runs.csv: FSDP in bf16 on machines of eight H100 with 400 Gbit/s per GPU."""
    return {
        "source": item.Index,
        "tuning": "typical",
        "model": item.model,
        "gpu": "H100-SXM",
        "precision": "bf16",
        "framework": "PyTorch FSDP",
        "nodes": item.gpus / 8,
        "per_node": 8.0,
        **network_numbers(network, float(item.tokens)),
        "matmul": _matmul("H100", "bf16", 0.0),
        "matmul_sd": _matmul_sd("H100", "bf16"),
        "card": "H100",
        "memory": item.memory_gb_per_s * 1e9,
        "links": 450e9,
        "network": 400e9,
        "batch": float(item.micro_batch),
        "rounds": float(item.accumulation),
        "sharded": True,
        "recompute": bool(item.recompute),
        "machine": "",
        "rate": item.tokens_per_s / item.tokens / item.gpus,
    }


def network_numbers(network: Any, tokens: float) -> dict[str, object]:
    """FLOP and sizes of a network with samples of so many tokens."""
    attention = network.attention_flop * tokens * tokens
    return {
        "family": network.family,
        "flop": network.flop_per_token * tokens + attention,
        "long_flop": long_share(tokens) * attention,
        "parameters": float(network.parameters),
        "layers": int(network.layers),
        "hidden": int(network.hidden),
        "tensors": int(network.tensors),
    }


def _unpadded(rows: pd.DataFrame) -> Any:
    """Phase 2 of BERT with kernels that skip padding: up to 86 % MFU if every token counted."""
    skipping = rows.framework.isin(["PyTorch", "PaddlePaddle"]) & (rows.family == "encoder")
    mine = rows.source == "NVIDIA DeepLearningExamples"
    return skipping & mine & (rows.flop > PHASE_TWO_FLOP)


def _matmul(gpu: str, precision: str, peak: float) -> float:
    """FLOP/s that matrix multiplication achieves: of the catalog, else a share of the peak."""
    row = _row_of(gpu, precision)
    return peak * SHARE_OF_PEAK[precision] * 1e12 if row is None else row.tflops * 1e12


def _matmul_sd(gpu: str, precision: str) -> float:
    """How well that rate is known: sd of its ln."""
    row = _row_of(gpu, precision)
    return SHARE_SD if row is None else achieved_sd(row)


def _row_of(gpu: str, precision: str) -> Achieved | None:
    kinds = (precision, "fp16") if precision == "bf16" else (precision,)
    return next((_achieved()[gpu, kind] for kind in kinds if (gpu, kind) in _achieved()), None)


def card_speeds(name: str, reference: Path) -> dict[str, float]:
    """Memory GB/s of a GPU by its name in the runs, and achieved TFLOP/s by precision."""
    card: Any = table("gpus").loc[name]
    gpu: Any = pd.read_csv(reference / "hardware" / "gpus.csv").set_index("gpu_id").loc[card.peaks]
    columns = {"fp32": "fp32_tflops", "tf32": "tf32_tflops", "bf16": "fp16_tensor_tflops"}
    peaks = {key: float(gpu[column]) for key, column in columns.items() if gpu[column] > 0}
    speeds = {key: _matmul(card.catalog, key, peak) / 1e12 for key, peak in peaks.items()}
    return {"memory": float(gpu["mem_bw_gbs"])} | speeds


def precision_of(item: Any) -> str:
    """bf16 stands for any 16-bit format; unlabelled runs are fp32 except MLPerf's."""
    text = str(item.precision).lower()
    if text in ("tf32", "fp32"):
        return text
    if text.startswith("fp32/tf32"):
        return "tf32" if item.gpu_canon[0] in "AHGB" else "fp32"
    unlabelled = text == "nan" and not item.source.startswith("MLPerf")
    return "fp32" if item.gpu_canon in ("K80", "P100") or unlabelled else "bf16"


def _tokens(item: Any, network: Any) -> float:
    if network.hidden == 0 or network.attention_flop == 0:
        return 1.0
    if item.source.startswith("MLPerf"):
        return 512.0
    return float(item.seq_len) if item.seq_len > 0 else float(SQUAD_TOKENS)


def _batch(item: Any, precision: str, gpus: float) -> tuple[float, float]:
    """Samples of one micro-batch and micro-batches per step of one GPU; inf where unknown."""
    size, rounds = _number(_choice(str(item.batch_per_gpu), precision)), 1.0
    stated = str(item.grad_accum)
    parts = [float(x) for x in re.findall(r"\d+", stated)]
    if item.source.startswith("Lambda"):
        return size / gpus, 1.0  # Lambda's table holds the batch of all GPUs
    if "and" in stated and len(parts) == 2:
        rounds = parts[1] if precision == "bf16" else parts[0]
        whole = "Accumulated" in str(item.note) or size < 4 * rounds
        return (size, rounds) if whole else (size / rounds, rounds)
    if parts:
        rounds = parts[0]
    total = _number(str(item.global_batch))
    return (total / gpus / rounds if np.isinf(size) else size), rounds


def _network(item: Any) -> float:
    """Bytes/s of a machine's network as its submitter describes it; 0 unknown."""
    text = str(item.interconnect_inter)
    if item.inter_node_gbps > 0:
        return float(item.inter_node_gbps) * 1e9 / 8
    if "DGX cluster" in text:
        return DGX_GBIT.get(item.gpu_canon[0], 0.0) * 1e9 / 8
    found = [float(a) * float(b) for a, b in LINES.findall(text.split("Compute:")[-1])]
    return max(found, default=0.0) * 1e9 / 8


def _choice(text: str, precision: str) -> str:
    """One of "32 / 64", for 32-bit and for mixed precision."""
    parts = text.split(" / ")
    return parts[-1] if precision == "bf16" else parts[0]


def _number(text: str) -> float:
    match = re.match(r"^(\d+(?:\.\d+)?)(k?)$", text.replace(",", "").strip())
    return float(match[1]) * (1024 if match[2] else 1) if match else float("inf")
