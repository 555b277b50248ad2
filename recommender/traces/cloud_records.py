"""Reads what the clouds' own tools print of a spot market.

    aws-prices       aws ec2 describe-spot-price-history: JSON, CSV with its names, or text
    gcp-operations   gcloud compute operations list --format=json

Azure publishes eviction rates, not events; write its evictions in the project's own format.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from recommender.catalogs.bounds import check_json
from recommender.errors import UsageError, refuse_all, refuse_many
from recommender.inputs.csv_text import refuse_bomb
from recommender.inputs.units import parse_instant
from recommender.text import shown
from recommender.traces.trace import (
    ADDED,
    GIVEN_BACK,
    TAKEN,
    Place,
    Trace,
    changes,
    counted,
    named_events,
)

_AWS_ZONE = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d[a-z]")
_GCP_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
_LINUX = ("linux/unix", "linux/unix (amazon vpc)")
_AWS_COLUMNS = ("availabilityzone", "instancetype", "productdescription", "spotprice", "timestamp")
AWS_TEXT = "SPOTPRICEHISTORY"
_GCP_ADD = ("insert", "start", "resume")
_GCP_TAKEN = "compute.instances.preempted"
_GCP_GIVEN_BACK = ("stop", "delete", "suspend", "compute.instances.guestTerminate")


def place_of_zone(zone: str, **more: Any) -> Place:
    """A location from the form of its zone's name: us-east-1a is AWS, us-central1-a is GCP."""
    if _AWS_ZONE.fullmatch(zone):
        return Place(provider="aws", region=zone[:-1], zone=zone, **more)
    if _GCP_ZONE.fullmatch(zone):
        return Place(provider="gcp", region=zone[:-2], zone=zone, **more)
    return Place(zone=zone, **more)


def tree_of(text: str, name: str) -> Any:
    """Parse a JSON document and refuse invalid numbers."""
    try:
        check_json(text)
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not JSON ({shown(error)})") from None


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def aws_prices(source: Any, name: str) -> tuple[Trace, ...]:
    """Price changes of Linux machines by zone and type, as describe-spot-price-history lists them.

    `source` is a parsed JSON document, or the text of a table. A series begins with its first
    change and is known to hold until the file's last one.
    """
    rows = _aws_rows(source, name)
    problems: list[str] = []
    linux = [r for r in rows if r.get("productdescription", "linux/unix").lower() in _LINUX]
    if not linux:
        raise UsageError(f"{name}: holds no prices of Linux/UNIX machines")
    found: dict[tuple[str, str], dict[datetime, float]] = {}
    for number, row in enumerate(linux, 1):
        try:
            moment = parse_instant(row.get("timestamp", ""), f"{name}, price {number}: timestamp")
            usd = _usd(row.get("spotprice", ""), f"{name}, price {number}")
            key = (row.get("availabilityzone", ""), row.get("instancetype", ""))
            if not all(key):
                raise UsageError(f"{name}, price {number}: no zone or no instance type")
            found.setdefault(key, {})[moment] = usd
        except UsageError as error:
            problems += error.problems
            refuse_many(problems)
    refuse_all(problems)
    last = max(moment for prices in found.values() for moment in prices)
    return tuple(_priced(key, prices, last, name) for key, prices in sorted(found.items()))


def _usd(word: str, where: str) -> float:
    try:
        usd = float(word)
    except ValueError:
        usd = math.nan
    if not (math.isfinite(usd) and usd > 0):
        raise UsageError(f"{where}: '{shown(word)}' is not a price in USD per hour")
    return usd


def _aws_rows(source: Any, name: str) -> list[dict[str, str]]:
    if not isinstance(source, str):
        items = source.get("SpotPriceHistory") if isinstance(source, dict) else source
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UsageError(f"{name}: SpotPriceHistory is not a list of prices")
        return [{str(k).lower(): str(v) for k, v in item.items()} for item in items]
    refuse_bomb(source, name)
    lines = source.splitlines()
    if lines and lines[0].startswith(AWS_TEXT):
        cells = [line.split("\t")[1:6] for line in lines if line.startswith(AWS_TEXT)]
        return [dict(zip(_AWS_COLUMNS, row, strict=False)) for row in cells]
    header, *body = csv.reader(io.StringIO(source, newline=""))
    names = [plain(column) for column in header]
    needed = ("availabilityzone", "instancetype", "spotprice", "timestamp")
    missing = [column for column in needed if column not in names]
    refuse_all(f"{name}, line 1: column {column} is missing" for column in missing)
    return [dict(zip(names, row, strict=False)) for row in body if row]


def plain(column: str) -> str:
    """A column name without case, blanks and underscores."""
    return re.sub(r"[^a-z]", "", column.lower())


def _priced(
    key: tuple[str, str], prices: dict[datetime, float], last: datetime, name: str
) -> Trace:
    moments = sorted(prices)
    t_s = np.array([(m - moments[0]).total_seconds() for m in moments])
    usd = np.array([prices[m] for m in moments])
    keep = changes(t_s, usd)
    return Trace(
        name=" ".join(key),
        end_s=max((last - moments[0]).total_seconds(), 1.0),
        place=place_of_zone(key[0], instance_type=key[1]),
        start=moments[0],
        source=name,
        price_t_s=t_s[keep],
        usd_per_hour=usd[keep],
    )


def gcp_operations(tree: Any, name: str) -> tuple[Trace, ...]:
    """Machines started, preempted and given back, by zone.

    A machine whose start is not listed was up from the beginning of its zone's series.
    """
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise UsageError(f"{name}: not a list of operations")
    problems: list[str] = []
    zones: dict[str, list[tuple[datetime, int, str]]] = {}
    for item in tree:
        try:
            found = _operation(item, name)
        except UsageError as error:
            problems += error.problems
            refuse_many(problems)
            continue
        if found is not None:
            zones.setdefault(found[0], []).append(found[1:])
    refuse_all(problems)
    if not any(change == TAKEN for rows in zones.values() for _, change, _ in rows):
        raise UsageError(f"{name}: holds no operation {_GCP_TAKEN}; was it filtered?")
    last = max(row[0] for rows in zones.values() for row in rows)
    return tuple(_gcp_zone(zone, rows, last, name) for zone, rows in sorted(zones.items()))


def _operation(item: dict[str, Any], name: str) -> tuple[str, datetime, int, str] | None:
    """Zone, moment, change and machine of an operation that starts or ends a machine."""
    kind, target = str(item.get("operationType", "")), str(item.get("targetLink", ""))
    if "/instances/" not in target or item.get("error"):
        return None
    change = ADDED if kind in _GCP_ADD else TAKEN if kind == _GCP_TAKEN else GIVEN_BACK
    if change == GIVEN_BACK and kind not in _GCP_GIVEN_BACK:
        return None
    node = target.rpartition("/")[2]
    zone = target.partition("/zones/")[2].partition("/")[0]
    when = item.get("endTime" if change == ADDED else "insertTime") or item.get("insertTime")
    moment = parse_instant(str(when or ""), f"{name}, operation on {shown(node)}: time")
    return zone, moment, change, node


def _gcp_zone(
    zone: str, rows: Iterable[tuple[datetime, int, str]], last: datetime, name: str
) -> Trace:
    ordered = sorted(rows, key=lambda row: row[0])
    start = ordered[0][0]
    up: set[str] = set()
    before: list[tuple[float, int, str]] = []
    kept: list[tuple[float, int, str]] = []
    met: set[str] = set()
    for moment, change, node in ordered:
        if change != ADDED and node not in met:
            before.append((0.0, ADDED, node))
            up.add(node)
        met.add(node)
        if (change == ADDED) == (node in up):
            continue  # a delete after a preemption, a start that was requested twice
        (up.add if change == ADDED else up.discard)(node)
        kept.append(((moment - start).total_seconds(), change, node))
    end_s = (last - start).total_seconds()
    return named_machines(zone, [*before, *kept], end_s, place_of_zone(zone), start, name)


def named_machines(
    series: str,
    rows: Sequence[tuple[float, int, str]],
    end_s: float,
    place: Place,
    start: datetime | None,
    name: str,
) -> Trace:
    """A held series of named machines; what does not fit (a second add) is refused."""
    up: set[str] = set()
    problems = []
    for t, change, node in sorted(rows, key=lambda row: row[0]):
        if (change == ADDED) == (node in up):
            state = "is up already" if change == ADDED else "is not up"
            problems.append(f"{name}: '{shown(node)}' {state} at {t:g} s")
            refuse_many(problems)
        (up.add if change == ADDED else up.discard)(node)
    refuse_all(problems)
    events = named_events(rows)
    t_s, machines = counted(events)
    return Trace(
        name=series,
        end_s=max(end_s, 1.0),
        place=place,
        capacity=max(int(machines.max()), 1),
        kind="hold",
        start=start,
        source=name,
        t_s=t_s,
        machines=machines,
        events=events,
    )
