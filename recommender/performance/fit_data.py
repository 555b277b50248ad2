"""Published training runs as rows for fitting: FLOP, bytes, GPU, machine, batch, rate.

Reads a reference folder (`measured/training.csv.gz`, `hardware/gpus.csv`); only
`fit_priors.py` and the accuracy tests use it, never the recommender itself.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd


@dataclass(frozen=True, slots=True)
class Network:
    """A published network: training FLOP per sample = flop·s + attention·s², s tokens or 1."""

    family: str
    flop: float
    parameters: float
    layers: int
    attention: float = 0.0
    tensors: int = 160


# GFLOP per image, three times the forward pass at 224 or 299 pixels, 2 FLOP per MAC: torchvision
# and the papers' MAC counts; transformers: exact counts at two lengths (hardware/workloads.csv).
NETWORKS = {
    "ResNet-18": Network("cnn", 10.884e9, 11.69e6, 18, tensors=62),
    "ResNet-50 v1.5": Network("cnn", 24.535e9, 25.56e6, 50, tensors=161),
    "ResNet-50": Network("cnn", 23.2e9, 25.56e6, 50, tensors=161),
    "resnet50": Network("cnn", 24.535e9, 25.56e6, 50, tensors=161),
    "MLPerf resnet": Network("cnn", 24.535e9, 25.56e6, 50, tensors=161),
    "ResNet-152": Network("cnn", 69.082e9, 60.19e6, 152, tensors=467),
    "Inception v3": Network("cnn", 34.3e9, 23.8e6, 48, tensors=292),
    "ResNeXt-101-32x4d": Network("cnn", 48.0e9, 44.2e6, 101, tensors=314),
    "resnext101-32x4d": Network("cnn", 48.0e9, 44.2e6, 101, tensors=314),
    "BERT-base": Network("encoder", 0.5307e9, 108.89e6, 12, 1.106e5, 199),
    "BioBERT (BERT-base)": Network("encoder", 0.5307e9, 108.89e6, 12, 1.106e5, 199),
    "ELECTRA-base": Network("encoder", 0.5307e9, 108.89e6, 12, 1.106e5, 199),
    "BERT-large": Network("encoder", 1.84007e9, 334.09e6, 24, 2.949e5, 391),
    # Unpadded sequences: half of the 512 tokens are real (MLPerf BERT reference, Wikipedia).
    "MLPerf bert": Network("encoder", 0.92e9, 334.09e6, 24, 0.737e5, 391),
    "BART-large": Network("encdec", 6 * 406e6, 406e6, 24, 3.5e5, 511),
    "Transformer-big": Network("encdec", 6 * 213e6, 213e6, 12, 0.0, 260),
}
MPT = {  # width, layers (mosaicml/llm-foundry scripts/train/benchmarking, 2023)
    "MPT-125m": (125.3e6, 768, 12),
    "MPT-350m": (356.0e6, 1024, 24),
    "MPT-760m": (760.5e6, 1536, 24),
    "MPT-1b": (1316.0e6, 2048, 24),
    "MPT-3b": (2651.8e6, 2560, 32),
    "MPT-7b": (6658.9e6, 4096, 32),
    "MPT-13b": (12854.0e6, 5120, 40),
    "MPT-30b": (29975.2e6, 7168, 48),
    "MPT-70b": (64862.4e6, 8192, 80),
}
NETWORKS |= {
    name: Network("decoder", 6 * p, p, layers, 6.0 * width * layers, 12 * layers + 3)
    for name, (p, width, layers) in MPT.items()
}
# (model, tokens, GPUs, micro-batch, accumulation, recomputed, tokens/s): "H100 80GB BF16" of the
# llm-foundry page above, commit 061f2c7; the reference table has its A100 rows only
MPT_H100 = (
    ("MPT-70b", 2048, 64, 8, 4, True, 66523),
    ("MPT-70b", 2048, 32, 2, 16, True, 28242),
    ("MPT-30b", 2048, 8, 3, 21, True, 16022),
    ("MPT-30b", 2048, 16, 10, 3, True, 36209),
    ("MPT-30b", 8192, 8, 1, 21, True, 11072),
    ("MPT-13b", 2048, 8, 2, 1, False, 38336),
    ("MPT-13b", 4096, 8, 10, 3, True, 37740),
    ("MPT-13b", 2048, 64, 2, 1, False, 307209),
    ("MPT-7b", 2048, 8, 6, 1, False, 85144),
    ("MPT-7b", 8192, 8, 8, 2, True, 55481),
    ("MPT-3b", 2048, 64, 6, 3, False, 1441663),
    ("MPT-3b", 4096, 8, 5, 6, False, 167712),
    ("MPT-1b", 2048, 8, 14, 1, False, 363645),
    ("MPT-1b", 8192, 8, 3, 4, False, 233256),
    ("MPT-760m", 2048, 8, 24, 2, False, 505177),
)
SQUAD_TOKENS = 384  # DeepLearningExamples' default where the table gives none
STACKS = {
    "Lambda deeplearning-benchmark v1": "typical",
    "Lambda deeplearning-benchmark v2": "typical",
    "u39kun/deep-learning-benchmark": "typical",
    "stanford-futuredata/gavel throughputs": "typical",
    "TensorFlow official benchmarks 2017": "tuned",
    "Apache MXNet perf.md": "tuned",
    "NVIDIA DeepLearningExamples": "tuned",
    "MosaicML llm-foundry MPT benchmarks": "typical",
}
# name in the table -> (row of gpus.csv, achieved all-reduce GB/s per GPU inside a machine)
GPUS = {
    "K80": ("K80 (one GK210 die)", 5.0),
    "P100": ("P100-SXM2-16GB", 40.0),
    "V100-16GB": ("V100-SXM2-16GB", 120.0),
    "V100-32GB": ("V100-SXM2-32GB", 130.0),
    "T4": ("T4", 6.0),
    "A10": ("A10", 10.0),
    "A100-40GB-SXM": ("A100-40GB-SXM", 235.0),
    "A100-40GB-PCIe": ("A100-80GB-PCIe", 20.0),
    "A100-80GB-SXM": ("A100-80GB-SXM", 235.0),
    "A100-80GB-PCIe": ("A100-80GB-PCIe", 20.0),
    "H100-PCIe": ("H100-80GB-PCIe", 30.0),
    "H100-SXM": ("H100-80GB-SXM", 450.0),
    "H200-SXM": ("H200-SXM", 450.0),
    "GH200": ("GH200", 450.0),
    "B200-SXM": ("B200-SXM", 840.0),
}
ACHIEVED = {"bf16": 0.78, "tf32": 0.75, "fp32": 0.9}  # share of peak; gpu-performance, matmul
LINES = re.compile(r"(\d+) ?x ?[^,+]*?(?:HDR\w*|EDR|NDR)? ?(\d{2,3}) ?G", re.IGNORECASE)


def runs(reference: Path) -> pd.DataFrame:
    """Every usable published run; one row each, SI units."""
    table = pd.read_csv(reference / "measured" / "training.csv.gz", low_memory=False)
    table = table[table.model.isin(NETWORKS) & table.gpu_canon.isin(GPUS)]
    table = table[table.throughput.gt(0) & table.nodes.ge(1) & table.gpus_per_node.ge(1)]
    table = table[table.source.isin(STACKS) | table.source.str.startswith("MLPerf")]
    cards = pd.read_csv(reference / "hardware" / "gpus.csv").set_index("gpu_id")
    rows = [row for item in table.itertuples() if (row := _row(item, cards)) is not None]
    found = pd.concat([pd.DataFrame(rows), pd.DataFrame([_h100(*row) for row in MPT_H100])])
    # More than the matrix rate can only be shorter sequences than the table says.
    return found[found.rate * found.flop < 1.05 * found.matmul].reset_index(drop=True)


def _h100(
    model: str, tokens: int, gpus: int, micro: int, rounds: int, again: bool, rate: int
) -> dict[str, object]:
    network = NETWORKS[model]
    return {
        "source": "MosaicML llm-foundry MPT benchmarks",
        "family": "decoder",
        "tuning": "typical",
        "model": model,
        "gpu": "H100-SXM",
        "precision": "bf16",
        "framework": "PyTorch FSDP/Composer",
        "nodes": gpus / 8,
        "per_node": 8.0,
        "flop": network.flop * tokens + network.attention * tokens * tokens,
        "parameters": network.parameters,
        "layers": network.layers,
        "tensors": network.tensors,
        "matmul": 989e12 * ACHIEVED["bf16"],
        "memory": 3350e9,
        "links": 450e9,
        "network": 400e9,
        "batch": float(micro),
        "rounds": float(rounds),
        "sharded": True,
        "recompute": again,
        "rate": rate / tokens / gpus,
    }


def _row(item: object, cards: pd.DataFrame) -> dict[str, object] | None:
    network = NETWORKS[item.model]  # type: ignore[attr-defined]
    source = str(item.source)  # type: ignore[attr-defined]
    precision = _precision(item)
    card, links = GPUS[str(item.gpu_canon)]  # type: ignore[attr-defined]
    tokens = _tokens(item, network)
    peak = cards.loc[card, {"bf16": "fp16_tensor_tflops"}.get(precision, f"{precision}_tflops")]
    memory = cards.loc[card, "mem_bw_gbs"]
    if not (peak > 0) or not (tokens > 0) or "BioBERT" in str(item.model):  # type: ignore[attr-defined]
        return None
    unit = str(item.unit)  # type: ignore[attr-defined]
    rate = float(item.throughput)  # type: ignore[attr-defined]
    per = tokens if unit == "tokens/s" and network.family != "encdec" else 1.0
    if network.family == "encdec" and unit == "tokens/s":
        tokens = 1.0
    if unit.startswith("worker-steps"):
        rate *= _number(item.batch_per_gpu)  # type: ignore[attr-defined]
    gpus = float(item.nodes) * float(item.gpus_per_node)  # type: ignore[attr-defined]
    batch, rounds = _batch(item, precision, gpus)
    return {
        "source": "MLPerf " + source[-4:] if source.startswith("MLPerf") else source,
        "family": network.family,
        "tuning": STACKS.get(source, "tuned"),
        "model": item.model,  # type: ignore[attr-defined]
        "gpu": item.gpu_canon,  # type: ignore[attr-defined]
        "precision": precision,
        "framework": str(item.framework),  # type: ignore[attr-defined]
        "nodes": float(item.nodes),  # type: ignore[attr-defined]
        "per_node": float(item.gpus_per_node),  # type: ignore[attr-defined]
        "flop": network.flop * tokens + network.attention * tokens * tokens,
        "parameters": network.parameters,
        "layers": network.layers,
        "tensors": network.tensors,
        "matmul": float(peak) * 1e12 * (0.72 if card == "T4" else ACHIEVED[precision]),
        "memory": float(memory if memory > 0 else 732.0) * 1e9,
        "links": links * 1e9,
        "network": _network(item),
        "batch": batch,
        "rounds": rounds,
        "sharded": "FSDP" in str(item.parallelism),  # type: ignore[attr-defined]
        "recompute": "act_ckpt=True" in str(item.parallelism),  # type: ignore[attr-defined]
        "rate": rate / per / gpus,
    }


def _precision(item: object) -> str:
    text = str(item.precision).lower()  # type: ignore[attr-defined]
    if text in ("tf32", "fp32"):
        return text
    if text.startswith("fp32/tf32"):
        modern = str(item.gpu_canon)[0] in "AHGB"  # type: ignore[attr-defined]
        return "tf32" if modern else "fp32"
    older = str(item.gpu_canon) in ("K80", "P100")  # type: ignore[attr-defined]
    no_word = text == "nan" and not str(item.source).startswith("MLPerf")  # type: ignore[attr-defined]
    return "fp32" if older or no_word else "bf16"


def _tokens(item: object, network: Network) -> float:
    if network.attention == 0.0:
        return 1.0
    seq = float(item.seq_len)  # type: ignore[attr-defined]
    if "MLPerf" in str(item.source):  # type: ignore[attr-defined]
        return 512.0
    return seq if seq > 0 else float(SQUAD_TOKENS)


def _batch(item: object, precision: str, gpus: float) -> tuple[float, float]:
    """Samples of one micro-batch and micro-batches per step, of one GPU; (inf, 1) unknown."""
    size = _number(item.batch_per_gpu)  # type: ignore[attr-defined]
    rounds = 1.0
    stated = str(item.grad_accum)  # type: ignore[attr-defined]
    parts = [float(x) for x in re.findall(r"\d+", stated)]
    if str(item.source).startswith("Lambda"):  # type: ignore[attr-defined]
        return size / gpus, 1.0  # Lambda's table holds the batch of all GPUs
    if "and" in stated and len(parts) == 2:
        rounds = parts[1] if precision == "bf16" else parts[0]
        note = str(item.note)  # type: ignore[attr-defined]
        return (size, rounds) if "Accumulated" in note else (size / rounds, rounds)
    if parts:
        rounds = parts[0]
    total = _number(item.global_batch)  # type: ignore[attr-defined]
    if not np.isfinite(size) and np.isfinite(total):
        size = total / gpus / rounds
    return size, rounds


def _network(item: object) -> float:
    """Bytes/s of a machine's network as its submitter describes it; 0 unknown."""
    text = str(item.interconnect_inter)  # type: ignore[attr-defined]
    stated = float(item.inter_node_gbps)  # type: ignore[attr-defined]
    if stated > 0:
        return stated * 1e9 / 8
    if "DGX cluster" in text:
        size = {"V": 400.0, "A": 1600.0}.get(str(item.gpu_canon)[0], 0.0)  # type: ignore[attr-defined]
        return size * 1e9 / 8
    compute = text.split("Compute:")[-1]
    found = [float(a) * float(b) for a, b in LINES.findall(compute)]
    return max(found, default=0.0) * 1e9 / 8


def _number(value: object) -> float:
    text = str(value).replace(",", "").replace(" / ", "").strip()
    match = re.match(r"^(\d+(?:\.\d+)?)(k?)$", text)
    return float(match[1]) * (1024 if match[2] else 1) if match else float("inf")
