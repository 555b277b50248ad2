"""Spot laws that the user saved for offers: one JSON file in the user's data folder."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recommender.catalogs.catalog import Catalog
from recommender.catalogs.files import parse_json, replace_file
from recommender.catalogs.schema import InstanceType
from recommender.errors import UsageError, refuse_all
from recommender.inputs.files import read_text
from recommender.inputs.units import PROVIDERS
from recommender.plan.limits import OfferLaw
from recommender.text import shown, shown_path, unknown

if TYPE_CHECKING:
    from recommender.traces.fit_result import MarketLaw, TraceFit

ANYWHERE = "*"
_INSTEAD = "write PROVIDER:PLACE:MACHINE such as gcp:us-central1-a:a3-highgpu-8g or aws:*:H100:8"
_AWS_ZONE_NAME = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d[a-z]")
_MAX, _MIN = 0.9999, 1e-4  # a share seen as 1 or 0 in a trace is neither for ever
SCHEMA = "recommend.spot-laws/v2"
_OLDER = "recommend.spot-laws/v1"  # slopes per log2(n)
_INSTEAD_OF_STORE = "correct it, or remove it and fit again with recommend trace fit --store"
_OPTIONAL = ("zone_sd", "availability_slope", "co_interruption", "short_runs")


def parse_offer(text: str, name: str) -> tuple[str, str, str]:
    """Read `gcp:us-central1:a3-highgpu-8g`: provider, zone or region or `*`, type or GPU."""
    parts = text.strip().split(":", 2)
    if len(parts) < 3 or not all(part.strip() for part in parts):
        raise UsageError(f"{name} {shown(text)} is not an offer; {_INSTEAD}")
    provider, place, machine = (part.strip() for part in parts)
    if provider not in PROVIDERS:
        raise UsageError(f"{name}: {unknown('provider', provider, PROVIDERS)}")
    return provider, place, machine


def check_offer(
    offer: tuple[str, str, str], found: "TraceFit", catalog: Catalog, name: str
) -> None:
    """Refuse an offer that matches no spot row of the catalog, or has other machines."""
    provider, place, machine = offer
    o = catalog.offers
    rows = [r for r in range(len(o)) if o.provider[r] == provider and o.market[r] == "spot"]
    places = {o.zone[r] for r in rows} | {o.region[r] for r in rows}
    if place != ANYWHERE and place not in places - {""}:
        raise UsageError(f"{name}: {_unknown_place(provider, place, places - {''})}")
    types = {o.instance_type[r] for r in rows}
    of_machine = {t for t in types if machine.lower() in words_of(catalog, provider, t)}
    if not of_machine:
        known = sorted(types | {catalog.instance_types[provider, t].gpu for t in types})
        listing = f"see recommend catalog show --provider {provider} --market spot"
        raise UsageError(f"{name}: {unknown('machine', machine, known, listing)}")
    here = {o.instance_type[r] for r in rows if place in (ANYWHERE, o.zone[r], o.region[r])}
    if not of_machine & here:
        raise UsageError(
            f"{name}: no spot offer of {shown(machine)} in {shown(place)} of {provider}; "
            f"write {provider}:*:{shown(machine)} to use the law everywhere"
        )
    _refuse_others(machine, [catalog.instance_types[provider, t] for t in of_machine], found, name)


def _refuse_others(
    machine: str, types: Sequence[InstanceType], found: "TraceFit", name: str
) -> None:
    """Refuse machines unlike those that were watched: larger ones are taken far more often."""
    counts = sorted({t.gpus for t in types})
    if len(counts) > 1:
        message = ", ".join(map(str, counts))
        raise UsageError(
            f"{name}: {shown(machine)} stands for machines of {message} GPUs; name one: "
            f"{shown(machine)}:{counts[0]}"
        )
    seen = {(s.gpu.lower(), s.gpus) for s in found.series if s.gpu and s.gpus}
    wrong = [f"{gpus}x {gpu.upper()}" for gpu, gpus in sorted(seen) if not _alike(gpu, gpus, types)]
    if wrong:
        raise UsageError(
            f"{name}: {shown(machine)} has {counts[0]}x {types[0].gpu}, the trace watched "
            f"{', '.join(wrong)}; larger machines are reclaimed several times as often"
        )


def _alike(gpu: str, gpus: int, types: Sequence[InstanceType]) -> bool:
    """Traces write V100 where the catalog distinguishes V100-32GB."""
    return any(t.gpus == gpus and t.gpu.lower().startswith(gpu.partition("-")[0]) for t in types)


def words_of(catalog: Catalog, provider: str, instance_type: str) -> tuple[str, str, str]:
    """What an instance type is called in an offer, in lower case."""
    t = catalog.instance_types[provider, instance_type]
    return instance_type.lower(), t.gpu.lower(), f"{t.gpu}:{t.gpus}".lower()


def _unknown_place(provider: str, place: str, known: set[str]) -> str:
    if provider == "aws" and _AWS_ZONE_NAME.fullmatch(place):
        return (
            f"'{shown(place)}' is another zone in every account; write its id, such as use1-az1 "
            "(aws ec2 describe-availability-zones), or the region"
        )
    region = place[:-2] if place[-2:-1] == "-" else ""
    if region in known:
        return f"the catalog has no prices of zone '{shown(place)}'; write the region {region}"
    return unknown("zone or region", place, sorted(known), "see recommend catalog show")


def laws_for(
    offers: Sequence[tuple[str, str, str]], found: "TraceFit", today: date
) -> tuple[OfferLaw, ...]:
    """The law of a fit, to save for some offers; raises `UsageError` if there is none."""
    law = found.law
    if law is None:
        raise UsageError(f"--store: the trace gives no law: {found.no_law}")
    watched = [series for series in found.series if series.availability is not None]
    days = sorted(day[:10] for s in watched for day in (s.begin, s.end) if day)
    names = ", ".join(series.name for series in watched)
    return tuple(
        OfferLaw(
            provider=provider,
            place=place,
            machine=machine,
            run_mean_s=law.run_mean_s.value,
            run_sigma=law.run_sigma.value,
            outage_sigma=law.outage_sigma.value,
            availability=min(max(law.availability.value, _MIN), _MAX),
            zone_sd=level_sd(law),
            availability_slope=(
                None if law.availability_slope is None else law.availability_slope.value
            ),
            co_interruption=None if law.co_interruption is None else law.co_interruption.value,
            short_runs=None if law.short_runs is None else law.short_runs.value,
            held=law.held,
            trace=names if len(names) <= 60 else f"{len(watched)} series",
            seen=f"{days[0]} to {days[-1]}" if days else "",
            hours=sum(series.hours for series in watched),
            interruptions=sum(series.interruptions for series in watched),
            fitted=today.isoformat(),
        )
        for provider, place, machine in offers
    )


def level_sd(law: "MarketLaw") -> float | None:
    """The sd of a future day's level: between days, and of the estimate."""
    # Every plan reads the stored laws; only fitting one needs the fits.
    from recommender.traces.law_fit import Z95
    from recommender.traces.market_law import logit

    if law.zone_sd is None:
        return None
    low, high = law.availability.low, law.availability.high
    unsure = 0.0 if low is None or high is None else (logit(high) - logit(low)) / (2.0 * Z95)
    return math.hypot(law.zone_sd.value, unsure)


# What a number of a law may be, ends included.
_RANGES = {
    "run_mean_s": (1.0, 1e9),
    "run_sigma": (0.01, 10.0),
    "outage_sigma": (0.01, 10.0),
    "availability": (1e-6, 1.0 - 1e-6),
    "zone_sd": (0.0, 10.0),
    "availability_slope": (-5.0, 200.0),  # two sizes, one seen always, the other never: 108
    "co_interruption": (0.0, 1.0),
    "short_runs": (0.0, 1.0),
    "hours": (0.0, 1e9),
}


def store_path() -> Path:
    """The path of the user's spot laws."""
    from platformdirs import user_data_path

    return user_data_path("recommend", appauthor=False) / "spot-laws.json"


def stored(path: Path | None = None) -> tuple[OfferLaw, ...]:
    """The saved laws, in the order of their offers; empty without a file.

    Raises `UsageError` for a file that was damaged.
    """
    path = path or store_path()
    if not os.path.exists(path):
        return ()
    name = shown_path(path)
    try:
        tree = parse_json(read_text(path))
    except ValueError as error:
        raise UsageError(f"{name}: not JSON ({shown(error)}); {_INSTEAD_OF_STORE}") from None
    if isinstance(tree, dict) and tree.get("schema") == _OLDER:
        raise UsageError(
            f"{name}: written by an older version, whose laws made gangs too reliable; remove "
            "it and fit the traces again with recommend trace fit --store"
        )
    if not isinstance(tree, dict) or tree.get("schema") != SCHEMA:
        raise UsageError(f"{name}: schema is not {SCHEMA}; {_INSTEAD_OF_STORE}")
    rows = tree.get("laws")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{name}: laws is not a list of laws; {_INSTEAD_OF_STORE}")
    refuse_all(
        f"{name}, law {i}: {p}; {_INSTEAD_OF_STORE}"
        for i, r in enumerate(rows, 1)
        for p in _wrong(r)
    )
    return tuple(OfferLaw(**row) for row in rows)


def _wrong(row: dict[str, Any]) -> list[str]:
    """What is wrong with one law."""
    names = [each.name for each in fields(OfferLaw)]
    problems = [f"{name} is missing" for name in names if name not in row]
    problems += [f"unknown key '{shown(name)}'" for name in row if name not in names]
    for each in fields(OfferLaw):
        value = row.get(each.name)
        if each.name not in row or (value is None and each.name in _OPTIONAL):
            continue
        if each.name in _RANGES:
            low, high = _RANGES[each.name]
            if not _between(value, low, high):
                problems.append(
                    f"{each.name} {shown(value)} is not a number of {low:g} to {high:g}"
                )
        elif not isinstance(value, each.type if isinstance(each.type, type) else str):
            problems.append(f"{each.name} {shown(value)} is no {each.type}")
    return problems


def _between(value: Any, low: float, high: float) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return math.isfinite(value) and low <= value <= high


def save_laws(laws: Sequence[OfferLaw], path: Path | None = None) -> Path:
    """Save laws, replacing those of the same offers."""
    new = {law.offer.lower() for law in laws}

    def added(known: tuple[OfferLaw, ...]) -> Iterable[OfferLaw]:
        return [*(law for law in known if law.offer.lower() not in new), *laws]

    return _changed(added, path or store_path())


def forget(offers: Sequence[str], path: Path | None = None) -> Path:
    """Remove the laws of some offers; raises `UsageError` for one that has none."""
    forgotten = {offer.lower() for offer in offers}

    def left(known: tuple[OfferLaw, ...]) -> Iterable[OfferLaw]:
        kept = {law.offer.lower() for law in known}
        missing = [offer for offer in offers if offer.lower() not in kept]
        if missing:
            listed = ", ".join(law.offer for law in known) or "none"
            message = [
                f"no law is saved for '{shown(offer)}'; saved: {listed}" for offer in missing
            ]
            raise UsageError(*message)
        return [law for law in known if law.offer.lower() not in forgotten]

    return _changed(left, path or store_path())


def _changed(change: Callable[[tuple[OfferLaw, ...]], Iterable[OfferLaw]], path: Path) -> Path:
    """Write what a function makes of the laws kept, in one step: no reader sees half a file."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        laws = sorted(change(stored(path)), key=lambda law: law.offer)
        text = json.dumps({"schema": SCHEMA, "laws": [asdict(law) for law in laws]}, indent=2)
        replace_file(path, f"{text}\n".encode())
    return path
