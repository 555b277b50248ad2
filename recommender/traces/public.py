"""Readers of public trace formats; what 1 means differs between them, so each says it.

    spot-traces      {"metadata": {"gap_seconds"}, "data": [...]}: machines UP at each tick
                     (skypilot-org/spot-traces, "Can't Be Late", NSDI'24)
    preempted        the same shape, but 1 = PREEMPTED and 0 = up: converted SkyNomad files (with
                     prices), skypilot-spot-strategy, Frontier-CS
    skynomad-probes  a JSON list of probe rounds, each with the machines got in every zone
    aws-prices       describe-spot-price-history as JSON, as CSV with its names, or as text
    bamboo           milliseconds,add|remove,node without a header (uclasystem/bamboo, NSDI'23)
    gcp-operations   gcloud compute operations list --format=json

Azure publishes eviction rates, not events; write its evictions in the project's own format.
"""

import re
from pathlib import Path
from typing import Any

from recommender.errors import UsageError
from recommender.text import shown, unknown
from recommender.traces.aws import AWS_TEXT, aws_prices, plain
from recommender.traces.nodes import bamboo, gcp_operations
from recommender.traces.probes import skynomad_probes
from recommender.traces.series import is_number, kind_of, preempted, spot_traces, tree_of

FORMATS = {
    "spot-traces": spot_traces,
    "preempted": preempted,
    "skynomad-probes": skynomad_probes,
    "aws-prices": aws_prices,
    "bamboo": bamboo,
    "gcp-operations": gcp_operations,
}


def recognised(text: str, path: Path) -> str:
    """Which public format a text has; raises `UsageError` where it cannot be told."""
    name, head = shown(path.name), text.lstrip()[:1]
    if head in ("{", "["):
        return _recognised_json(tree_of(text, name), path)
    first = text.lstrip("\r\n").partition("\n")[0]
    if first.startswith(AWS_TEXT) or {"spotprice", "timestamp"} <= set(
        map(plain, first.split(","))
    ):
        return "aws-prices"
    if re.match(r"\d+,(add|remove),", first):
        return "bamboo"
    raise UsageError(f"{name}: no known trace format; known: recommend, {', '.join(FORMATS)}")


def _recognised_json(tree: Any, path: Path) -> str:
    name = shown(path.name)
    if isinstance(tree, dict) and "SpotPriceHistory" in tree:
        return "aws-prices"
    if isinstance(tree, list) and any(isinstance(t, dict) and "operationType" in t for t in tree):
        return "gcp-operations"
    if isinstance(tree, list) and any(isinstance(t, dict) and "zone_results" in t for t in tree):
        return "skynomad-probes"
    if isinstance(tree, list) and any(isinstance(t, dict) and "SpotPrice" in t for t in tree):
        return "aws-prices"
    if not (isinstance(tree, dict) and isinstance(tree.get("data"), list)):
        raise UsageError(f"{name}: no known trace format; known: recommend, {', '.join(FORMATS)}")
    data, meta = tree["data"], tree.get("metadata")
    if "prices" in tree or (isinstance(meta, dict) and "price_info" in meta):
        return "preempted"
    if kind_of(path) or any(is_number(v) and v > 1 for v in data):
        return "spot-traces"
    ones = sum(1 for v in data if v == 1) / max(len(data), 1)
    raise UsageError(
        f"{name}: 1 can mean up (--format spot-traces: up {ones:.0%} of the time) or preempted "
        f"(--format preempted: up {1 - ones:.0%}); public files of this shape use both, say which"
    )


def named_format(word: str) -> str:
    """Check the name of a format."""
    known = ("recommend", *FORMATS)
    if word not in known:
        raise UsageError(f"--format: {unknown('format', word, known)}")
    return word
