"""The one table that the rules of a refresh look at.

A row for each offer that was read, and for each part of a sum (`scope` "part"): today's price next
to the last good one, to those of 7 and 30 nights ago and to the shipped one, and to what other
regions, sizes and markets say. A price that is not known is NaN, and breaks no rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from recommender.catalogs.providers.contract import PartPrice
from recommender.catalogs.refresh.reference import Key, Reference, held_key, place_of
from recommender.catalogs.registry import SpotBounds
from recommender.catalogs.schema import InstanceType, Offer

Table = pd.DataFrame
PLACE = ["instance_type", "region"]
KEY = [*PLACE, "zone", "market"]
_COMPARABLE_DAYS = {"on_demand": 400, "spot": 31}  # an older price is no measure of today's
_UNKNOWN_DAYS = 10_000  # of a date that cannot be read
_REGIONS = 3  # in which a proportion between two sizes must be known
_GIVES = 0.01  # a posted price that moved by less says nothing of a new list
_FRESH_DAYS = 7
_MIN_POSTED = 20
_SAME_FACTOR = 0.002
_QUIET = 0.05  # of Google's and Azure's spot prices 6 % moved at least on a date with moves


def price_table(
    offers: Sequence[Offer], parts: Iterable[PartPrice], machines: Mapping[str, InstanceType]
) -> Table:
    """What was read, with the machines that it is about."""
    table = pd.DataFrame(
        {each.name: [getattr(o, each.name) for o in offers] for each in fields(Offer)}
    )
    table["scope"] = table["market"]
    table["position"] = range(len(offers))
    more = pd.DataFrame(
        [(p.part, p.region, "", p.market, p.usd_per_hour, "part", p.machines) for p in parts],
        columns=[*KEY, "usd_per_hour", "scope", "machines"],
    )
    table = pd.concat([table, more], ignore_index=True) if len(more) else table
    for name, unknown in (("family", ""), ("gpu", ""), ("gpus", 0), ("status", "")):
        facts = {key: getattr(machine, name) for key, machine in machines.items()}
        table[name] = [facts.get(key, unknown) for key in table["instance_type"]]
    table["usd_per_hour"] = table["usd_per_hour"].astype(float)
    return table


def records(table: Table) -> list[dict[str, Any]]:
    """The rows as plain data."""
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def days_old(as_of: str, today: date) -> int:
    """How many days ago a price was read; at least one."""
    try:
        return max(1, (today - date.fromisoformat(as_of[:10])).days)
    except ValueError:  # of an imported catalog
        return _UNKNOWN_DAYS


def add_history(table: Table, reference: Reference) -> None:
    """Add the last good price with its age, and older ones."""
    zones = table["zone"].where(table["market"] != "on_demand", "")
    keys: list[Key] = list(
        zip(table["instance_type"], table["region"], zones, table["market"], strict=True)
    )
    last = comparable(reference)
    night = reference.today.isoformat()
    parts = {key: (usd, night) for key, usd in reference.history.parts.items()}
    known = {key: (o.usd_per_hour, o.as_of) for key, o in last.items()} | parts
    nothing = (float("nan"), "")
    table["last"] = [known.get(key, nothing)[0] for key in keys]
    table["since"] = [known.get(key, nothing)[1] for key in keys]
    table["days"] = [days_old(since, reference.today) for since in table["since"]]
    for name in ("week", "month", "shipped"):
        older = getattr(reference.history, name)
        table[name] = [older.get(key, float("nan")) for key in keys]
    table["change"] = table["usd_per_hour"] / table["last"] - 1


def comparable(reference: Reference) -> dict[Key, Offer]:
    """The last good prices that were read, and not too long ago, by what is held back with them."""
    return {
        held_key(o): o
        for o in reference.last
        if o.kind in ("quote", "composed")
        and days_old(o.as_of, reference.today) <= _COMPARABLE_DAYS.get(o.market, 0)
    }


def add_new_list(table: Table, bounds: SpotBounds | None) -> None:
    """Add what other posted spot prices did: whether there is a `new_list`, or all was `quiet`.

    Of an auction, `quiet` says that this price itself stood still for a week, and `kin` how far the
    other quotes of its family in the region moved in that time.
    """
    table["new_list"], table["quiet"], table["kin"] = False, False, np.nan
    if bounds is None:
        return
    if bounds.auction:
        table["quiet"] = (table["last"] / table["week"] - 1).abs() < 0.1
        since = (table["usd_per_hour"] / table["week"] - 1).abs().where(table["scope"] == "spot")
        place = [table["family"], table["region"]]
        later = since.groupby(place).rank(method="first", ascending=False) > 1
        farthest, next_far = (
            each.groupby(place).transform("max") for each in (since, since.where(later))
        )
        table["kin"] = farthest.where(later, next_far)
        return
    posted = table[(table["scope"] == "spot") & (table["days"] <= _FRESH_DAYS)]
    if len(posted) < _MIN_POSTED:
        table["quiet"] = True  # too few to show a new list
        return
    moved = posted["change"].abs() > _GIVES
    of_family = moved.groupby(posted["family"]).agg(["sum", "size"])
    mine = of_family.reindex(table["family"]).fillna(0).set_axis(table.index)
    elsewhere = (len(posted) - mine["size"]).replace(0, np.nan)
    table["new_list"] = (moved.sum() - mine["sum"]) / elsewhere >= bounds.new_list
    parts = table[table["scope"] == "part"]
    for users in set(parts["machines"]) if len(parts) else ():
        used = [each == users for each in parts["machines"]]
        others = moved[~posted["instance_type"].isin(users)].mean()
        table.loc[parts.index[used], "new_list"] = others >= bounds.new_list
    table["quiet"] = moved.mean() < _QUIET


def add_sizes(table: Table, market: str, reference: Reference, most: float) -> None:
    """Add how on-demand or spot prices compare with other regions, and sizes of their family.

    A cloud prices the sizes of one family (g5.xlarge to g5.48xlarge) in the same proportion in
    every region. Measured on the prices of 2026 that ship, as the ratio of two sizes over its
    median over regions: on-demand AWS 2,138 ratios within 0.1 %, Azure 611 within 0.2 %, GCP 855
    within 3 %; spot Azure 587 within 0.2 %, GCP 969 within 3 %. Spot prices of AWS keep no
    proportion (22 % of the ratios are within 5 %).
    """
    rows = table["scope"] == market
    places = _places(table[rows], market, reference)
    typical = places["last"].groupby("instance_type").median()
    typical = typical.fillna(places["now"].groupby("instance_type").median())
    places["typical"] = typical.reindex(places.index.get_level_values(0)).to_numpy()
    sizes = places[places["gpu"] != ""].reset_index()
    found = places.join(_off(sizes, most)).join(_per_gpu(sizes))
    at = found.reindex(pd.MultiIndex.from_frame(table.loc[rows, PLACE]))
    for name in ("typical", "off", "odd_sizes", "sizes", "least", "most"):
        table.loc[rows, name] = at[name].to_numpy(dtype=float)


def _places(rows: Table, market: str, reference: Reference) -> Table:
    """Today's and the last prices of each machine and region; the last ones are the usual ones."""
    last = {} if reference.accept else comparable(reference)
    before = [
        (o.instance_type, o.region, o.usd_per_hour) for o in last.values() if o.market == market
    ]
    old = pd.DataFrame(before, columns=[*PLACE, "last"]).drop_duplicates(PLACE, keep="last")
    now = rows[[*PLACE, "usd_per_hour"]].drop_duplicates(PLACE, keep="last")
    places = now.rename(columns={"usd_per_hour": "now"}).merge(old, on=PLACE, how="outer")
    places["here"] = places["now"].fillna(places["last"])
    places["usual"] = places["last"].fillna(places["now"])
    for name in ("family", "gpu", "gpus"):
        facts = {t.instance_type: getattr(t, name) for t in reference.types.values()}
        facts |= zip(rows["instance_type"], rows[name], strict=True)
        places[name] = [facts[key] for key in places["instance_type"]]
    return places.set_index(PLACE)


def _off(sizes: Table, most: float) -> Table:
    """How far each price is from what the other sizes of its family here suggest."""
    pairs = sizes.merge(sizes, on=["family", "gpu", "region"], suffixes=("", "_other"))
    pairs = pairs[pairs["instance_type"] != pairs["instance_type_other"]]
    ratios = (pairs["usual"] / pairs["usual_other"]).groupby(
        [pairs["instance_type"], pairs["instance_type_other"]]
    )
    usual = ratios.transform("median").where(ratios.transform("count") >= _REGIONS)
    pairs["off"] = pairs["here"] / (pairs["here_other"] * usual) - 1
    pairs = pairs.dropna(subset=["off"])
    pairs["odd"] = pairs["off"].abs() > most
    return pairs.groupby(PLACE).agg(
        off=("off", "median"), odd_sizes=("odd", "sum"), sizes=("off", "size")
    )


def _per_gpu(sizes: Table) -> Table:
    """USD per GPU of the cheapest size of each number of GPUs: the least and the most."""
    usd = (sizes["here"] / sizes["gpus"]).groupby(
        [sizes["family"], sizes["gpu"], sizes["region"], sizes["gpus"]]
    )
    by_family = usd.transform("min").groupby([sizes["family"], sizes["gpu"], sizes["region"]])
    found = sizes[PLACE].assign(least=by_family.transform("min"), most=by_family.transform("max"))
    return found.set_index(PLACE)


def add_listed(table: Table, kept: Table, reference: Reference, bounds: SpotBounds) -> None:
    """Add what spot prices are measured by: the on-demand price, and the usual shares of it.

    A machine that is not sold on demand is measured by its GPU's price elsewhere, with the
    tolerance that the clouds keep among each other (0.4 to 2.5).
    """
    listed = {place_of(o): o.usd_per_hour for o in reference.last if o.market == "on_demand"}
    today = zip(kept["instance_type"], kept["region"], kept["usd_per_hour"], strict=True)
    listed |= {(name, region): usd for name, region, usd in today}
    places = zip(table["instance_type"], table["region"], strict=True)
    table["listed"] = [listed.get(place, float("nan")) for place in places]
    per_gpu = [reference.usd_per_gpu.get(gpu, 0.0) for gpu in table["gpu"]]
    typical = pd.Series(per_gpu, table.index) * table["gpus"]
    alone = table["listed"].isna() & (table["status"] == "spot_only")
    table["listed"] = table["listed"].fillna(typical.where(alone & (typical > 0)))
    low, high = bounds.share
    table["low"], table["high"] = np.where(alone, 0.4 * low, low), np.where(alone, 1.0, high)
    table["share"] = table["usd_per_hour"] / table["listed"]


def moves_by(rows: Table, by: Sequence[str]) -> Table:
    """How the comparable prices of each group moved, one row for each group."""
    known = rows[rows["change"].notna()].assign(far=lambda r: r["change"].abs())
    known = known.assign(moved=known["far"] > _GIVES / 2, far=known["far"] > 3 * _GIVES)
    found = known.groupby(list(by)).agg(
        rows=("change", "size"),
        families=("family", "nunique"),
        middle=("change", "median"),
        moved=("moved", "mean"),
        far=("far", "mean"),
    )
    movers = known[known["moved"]]
    common = movers.groupby(list(by)).agg(movers=("moved", "size"), common=("change", "median"))
    alike = {"alike": _alike(known, by), "movers_alike": _alike(movers, by)}
    return found.join(common).assign(**alike).reset_index()


def _alike(rows: Table, by: Sequence[str]) -> "pd.Series[Any]":
    """The share of each group's prices that moved by its median factor."""
    ratio, groups = 1 + rows["change"], [rows[name] for name in by]
    same = (ratio / ratio.groupby(groups).transform("median") - 1).abs() <= _SAME_FACTOR
    return same.groupby(groups).mean()


def swapped(rows: Table, last: Sequence[Offer]) -> dict[str, str]:
    """Regions whose on-demand prices moved to those that another had, and which."""
    moved = rows[(rows["scope"] == "on_demand") & (rows["change"].abs() > 1e-6)]
    moved = moved[[*PLACE, "usd_per_hour"]].drop_duplicates(PLACE)
    before = pd.DataFrame(
        [(o.instance_type, o.region, o.usd_per_hour) for o in last if o.market == "on_demand"],
        columns=["instance_type", "other", "had"],
    ).drop_duplicates(["instance_type", "other"])
    pairs = moved.merge(before, on="instance_type")
    pairs = pairs[
        (pairs["region"] != pairs["other"])
        & ((pairs["usd_per_hour"] / pairs["had"] - 1).abs() <= 1e-6)
    ]
    same = pairs.groupby(["region", "other"]).size().reset_index(name="same")
    same = same.join(moved.groupby("region").size().rename("moved"), on="region")
    same = same[(same["moved"] >= 3) & (same["same"] >= 0.95 * same["moved"])]
    found = dict(zip(same["region"], same["other"], strict=True))
    # Else its prices were aligned with those of a region that stayed.
    return {region: other for region, other in found.items() if other in found}
