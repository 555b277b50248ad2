"""Reads the quotas of a user's file: `--quota FILE`, CSV or YAML."""

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from recommender.catalogs.registry import CLOUDS, OWN
from recommender.errors import UsageError, refuse_all
from recommender.inputs.csv_text import (
    CsvRow,
    chosen_cell,
    needed_cell,
    read_csv,
    read_each,
)
from recommender.inputs.files import read_text
from recommender.inputs.printed_quotas import AWS_CODES, printed_quotas
from recommender.inputs.units import PROVIDERS, count_of
from recommender.inputs.units.machines import MARKETS
from recommender.inputs.yaml_text import load_yaml
from recommender.plan.limits import OTHERS, QuotaLimit
from recommender.text import shown, unknown

QuotaUnit = Literal["vcpu", "gpu", "machine"]
QuotaMarket = Literal["on_demand", "spot", "any"]

_UNITS: dict[str, QuotaUnit] = {
    "vcpu": "vcpu", "vcpus": "vcpu", "cpu": "vcpu", "gpu": "gpu", "gpus": "gpu",
    "machine": "machine", "machines": "machine", "instances": "machine",
}  # fmt: skip
_MARKETS: dict[str, QuotaMarket] = {"any": "any", "both": "any", **MARKETS}
_USUAL_UNIT: dict[str, QuotaUnit] = {
    **{info.name: info.quota_unit for info in CLOUDS.values()},
    OWN: "machine",
}
_REQUIRED = ("provider", "family", "amount")
_OPTIONAL = ("market", "region", "unit", "usage")
_SYNONYMS = {
    "quota": "family", "quota_family": "family", "quota_name": "family", "name": "family",
    "limit": "amount", "value": "amount", "in_use": "usage", "used": "usage",
}  # fmt: skip
_AMOUNT = count_of("192", most=1e7)
_UNLIMITED = "unlimited"


def read_quotas(path: Path, names: Collection[tuple[str, str]] = ()) -> tuple[QuotaLimit, ...]:
    """Read the quotas of an account from a CSV or YAML file, or as a cloud's command prints them.

    Columns: provider, family (or the quota's own name or code), amount; optional market (any, spot,
    on-demand), region (empty: every region), unit (vcpu, gpu, machine; by default the provider's
    unit) and usage, which is subtracted. Unlisted quotas of a listed provider are 0, unless a row
    of the family "others" says "unlimited". `names` are the quotas of the catalog, by provider.
    """
    known = {(provider, folded(name)): name for provider, name in names}
    if path.suffix.lower() in (".yaml", ".yml", ".json"):
        rows = _yaml_rows(path, known)
    else:
        rows = list(read_csv(path, _REQUIRED, _OPTIONAL, _SYNONYMS))
    return read_each(rows, lambda row: _quota(row, known))


def folded(name: str) -> str:
    """A quota's name without what interfaces write differently: NVIDIA_A100_GPUS."""
    bare = re.sub(r"[^a-z0-9]", "", name.lower())
    return bare if bare in ("cpus", "vcpus") else bare.removesuffix("vcpus")


def _yaml_rows(path: Path, known: Mapping[tuple[str, str], str]) -> list[CsvRow]:
    tree = load_yaml(read_text(path), shown(path.name))
    printed = printed_quotas(tree, shown(path.name))
    if printed is not None:  # everything that the account has: most limit no machine of ours
        ours = [r for r in printed if (r.cells["provider"], folded(r.cells["family"])) in known]
        if not ours:
            raise UsageError(
                f"{shown(path.name)}: none of its quotas limits a machine that is known"
            )
        return ours
    if isinstance(tree, dict):
        tree = tree.get("quotas")
    if not isinstance(tree, list):
        raise UsageError(f"{shown(path.name)}: not a list of quotas; write quotas: [{{…}}, …]")
    rows: list[CsvRow] = []
    problems: list[str] = []
    for number, item in enumerate(tree, 1):
        place = f"{shown(path.name)}, entry {number}"
        found, cells = _entry(item, place)
        problems += found
        rows.append(CsvRow(place, cells))
    refuse_all(problems)
    return rows


def _entry(item: object, place: str) -> tuple[list[str], dict[str, str]]:
    if not isinstance(item, dict):
        return [f"{place}: not a quota; write {{provider: aws, family: …, amount: …}}"], {}
    known = (*_REQUIRED, *_OPTIONAL)
    cells = {_SYNONYMS.get(str(k), str(k)): v for k, v in item.items() if v is not None}
    odd = [k for k, v in cells.items() if not isinstance(v, str)]
    problems = [f"{place}: {unknown('key', k, known)}" for k in cells if k not in known]
    problems += [f"{place}, column {k}: is missing" for k in _REQUIRED if k not in cells]
    problems += [f"{place}, column {k}: must be one value" for k in odd]
    return problems, cells


def _quota(row: CsvRow, known: Mapping[tuple[str, str], str]) -> QuotaLimit:
    try:
        return _read_quota(row, known)
    except UsageError:
        _refuse_cells(row)
        raise


def _read_quota(row: CsvRow, known: Mapping[tuple[str, str], str]) -> QuotaLimit:
    region, provider = row.cells.get("region", ""), _provider(row)
    family = AWS_CODES.get(_family(row), _family(row)) if provider == "aws" else _family(row)
    return QuotaLimit(
        provider=provider,
        quota_family=known.get((provider, folded(family)), family),
        market=_market(row),
        region="" if region.lower() in ("*", "any", "all") else region,
        unit=_unit(row),
        amount=_amount(row),
        place=row.place,
    )


def _refuse_cells(row: CsvRow) -> None:
    """Refuse a row with every cell that is wrong, not with the first."""
    problems: list[str] = []
    for read in (_provider, _family, _market, _unit, _amount):
        try:
            read(row)
        except UsageError as error:
            problems += error.problems
    refuse_all(dict.fromkeys(problems))


def _provider(row: CsvRow) -> str:
    return chosen_cell(row, "provider", {p: p for p in PROVIDERS}, needed_cell(row, "provider"))


def _family(row: CsvRow) -> str:
    return needed_cell(row, "family")


def _market(row: CsvRow) -> QuotaMarket:
    return chosen_cell(row, "market", _MARKETS, "any")


def _unit(row: CsvRow) -> QuotaUnit:
    return chosen_cell(row, "unit", _UNITS, _USUAL_UNIT[_provider(row)])


def _amount(row: CsvRow) -> float:
    word = needed_cell(row, "amount").lower()
    if word in ("0", "0.0"):  # the usual state of a new account, and no mistake
        return 0.0
    if word == _UNLIMITED:
        return math.inf
    if row.cells.get("family", "").lower() == OTHERS:
        raise UsageError(f"{row.where('amount')} {shown(word)} of all others; write unlimited or 0")
    used = row.cells.get("usage", "").strip()
    amount = _AMOUNT(word, row.where("amount"))
    return max(
        amount - (0.0 if used in ("", "0", "0.0") else _AMOUNT(used, row.where("usage"))), 0.0
    )
