"""The rules that prices are believed by: name, scope, predicate, severity, one table for all.

Bounds that differ between providers are in `recommender.catalogs.registry`. Where a number below
was measured on recorded prices, its line or docs/research/refresh.md says on which.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from recommender.catalogs.providers.contract import Fetched
from recommender.catalogs.refresh.price_table import KEY, PLACE, Table
from recommender.catalogs.refresh.reference import MAX_SPOT_SHARE, Reference
from recommender.catalogs.registry import CLOUDS, PriceBounds, SpotBounds
from recommender.catalogs.schema import InstanceType, Kind, Obtainable

MOVED = 0.001  # what is at the last good price is no news, however odd
_HELD = 0.10  # on-demand prices changed in 8 of 3,599 nightly steps (GCP 2022-2026)
_HELD_FAR = 0.25  # with a new list, or since a price older than a month
_ONE_NIGHT, _MORE_A_NIGHT, _MAX = 1.25, 1.12, 3.0  # how far a spot price may move
_ROUNDED = 1e-3  # a fall to 0.8 is 1.2502 in prices of four digits
_MONTH, _AGAIN, _STEP = 31, 0.05, 0.05
_MIN, _MIN_IN_REGION, _ALIKE = 20, 8, 0.8
_ALIKE_PARTS = 0.95  # on one date 76 % of the sums that Google changed took one step of 5 %
_STILL = 0.02  # of a quote in a week
_SPOT_STEP = 0.2  # of a region's posted spot prices; Google's were 0.85 to 1.15

Scope = Literal["offer", "on_demand", "spot", "part", "region", "market"]
# refuse: not offered. hold: the last good price stays. wait: held until --accept. ignore: only
# counted. flag: published and counted. fail: the place counts as not read. keep: nothing of the
# provider is believed.
Severity = Literal["refuse", "hold", "wait", "ignore", "flag", "fail", "keep"]


@dataclass(frozen=True, slots=True)
class Night:
    """What the rules know beside the table."""

    fetched: Fetched
    reference: Reference
    machines: dict[str, InstanceType]

    @property
    def bounds(self) -> PriceBounds:
        """The plausible ranges of the provider."""
        return CLOUDS[self.reference.provider].bounds

    @property
    def spot(self) -> SpotBounds | None:
        """Those of its spot prices."""
        return self.bounds.spot

    @property
    def posted(self) -> bool:
        """Whether it sets spot prices itself; bids move each price of an auction alone."""
        return self.spot is not None and not self.spot.auction


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: where its predicate is true, something is wrong."""

    name: str
    scopes: tuple[Scope, ...]
    breaks: Callable[[Table, Night], "pd.Series[bool]"]
    severity: Severity
    reason: str  # a template over the columns of the table


def allowed_factor(days: "pd.Series[int]") -> "pd.Series[float]":
    """The allowed move of a spot price since it was read, from 1.25 within a night.

    Measured on 107 series of AWS (P2 and P3, 92 days of 2020 and 45 of 2023): of 9,249 nights none
    moved a price by more than 1.22, of 9,142 pairs of nights by more than 1.35, of 8,607 weeks
    0.5 % by more than 1.42 and the farthest by 2.34. What lasts is believed.
    """
    return (_ONE_NIGHT * _MORE_A_NIGHT ** (days.clip(lower=1) - 1)).clip(upper=_MAX)


def _fullmatch(column: "pd.Series[str]", pattern: str) -> "pd.Series[bool]":
    known = {each: re.fullmatch(pattern, each) is not None for each in column.unique()}
    return column.map(known).astype(bool)


def _new_region(t: Table, n: Night) -> "pd.Series[bool]":
    """A region may be new, or one whose name was changed on the way: a person looks first."""
    known = n.reference.regions
    return ~t["region"].isin(known) if known else pd.Series(False, t.index)


def _zone(t: Table, n: Night) -> "pd.Series[bool]":
    info = CLOUDS[n.reference.provider]
    named = t["zone"] != ""
    if info.zones == "id":
        good = (t["market"] != "on_demand") & _fullmatch(t["zone"], info.zone_pattern)
    elif info.zones == "region":
        pairs = zip(t["zone"], t["region"], strict=True)
        good = pd.Series([zone.startswith(f"{region}-") for zone, region in pairs], t.index)
    else:
        good = ~named
    pairs = zip(t["zone"], t["region"], strict=True)
    here = [n.reference.zones.get(zone, region) == region for zone, region in pairs]
    return named & ~(good & pd.Series(here, t.index))


def _date(t: Table, n: Night) -> "pd.Series[bool]":
    """A price is of the day it was read; of a public list, of no day before the list's."""
    today = n.reference.today.isoformat()
    return ~t["as_of"].between(n.fetched.since or today, today)


def _words(t: Table, n: Night) -> "pd.Series[bool]":
    numbers = [source.source for source in n.fetched.sources]
    good = t["kind"].isin(get_args(Kind)) & t["obtainable"].isin(get_args(Obtainable))
    return ~(good & t["uncertainty"].between(0, 1, inclusive="left") & t["source"].isin(numbers))


def _beyond(change: "pd.Series[float]", room: "float | np.ndarray") -> "pd.Series[bool]":
    """Whether prices rose or fell by a factor of more than 1 + room."""
    return (change > room) | (change < 1 / (1 + room) - 1)


def _zones_differ(t: Table, n: Night) -> "pd.Series[bool]":
    usd = t.groupby(PLACE)["usd_per_hour"]
    return usd.transform("max") > usd.transform("min") * (1 + 1e-6)


def _price_change(t: Table, n: Night) -> "pd.Series[bool]":
    far = t["new_list"] | (t["days"] > _MONTH)
    return _beyond(t["change"], np.where(far, _HELD_FAR, _HELD))


def _creep(t: Table, n: Night) -> "pd.Series[bool]":
    now, moves = t["usd_per_hour"], t["change"].abs() > MOVED
    near = _beyond(now / t["week"] - 1, _HELD) | _beyond(now / t["month"] - 1, _HELD)
    far = _beyond(now / t["shipped"] - 1, _HELD_FAR)
    return moves & (near | far) & ~t["new_list"]


def _spot_move(t: Table, n: Night) -> "pd.Series[bool]":
    """A posted price may move farther with a new list, which moves most of them."""
    moved, most = 1 + t["change"], allowed_factor(t["days"])
    inside = ((1 - _ROUNDED) / most <= moved) & (moved <= most)
    return moved.notna() & ~inside & (most < _MAX) & ~t["new_list"]


def _spot_alone(t: Table, n: Night) -> "pd.Series[bool]":
    """Of 846 moves of Google's spot prices by a tenth none came alone; of AWS's 2,364 five did."""
    return t["quiet"] & _beyond(t["change"], _HELD) & (t["days"] <= (7 if n.posted else 1))


def _spot_again(t: Table, n: Night) -> "pd.Series[bool]":
    """A list was followed by another one within 7 nights once in 2022-2026 (Google)."""
    before, now = (t["last"] / t["week"] - 1).abs(), t["change"].abs()
    since = t["usd_per_hour"] / t["week"] - 1
    twice = (now > _AGAIN) & (before > _AGAIN)
    crept = (now > MOVED) & (before > _AGAIN / 5) & _beyond(since, _HELD)
    return (twice | (crept & ~t["new_list"])) & n.posted


def _spot_creep(t: Table, n: Night) -> "pd.Series[bool]":
    """Of AWS's 239 changes that were more than a tenth in a week, 12 came step by step alone."""
    since, before = t["usd_per_hour"] / t["week"] - 1, t["last"] / t["week"] - 1
    crept = (t["change"].abs() > MOVED) & (before.abs() > _STILL / 2)
    return crept & _beyond(since, _HELD) & (t["kin"] < _STILL) & (t["days"] <= 7)


def _family(t: Table, n: Night) -> "pd.Series[bool]":
    news = ~(t["change"].abs() <= MOVED)
    posted = (t["scope"] == "on_demand") | n.posted
    return news & posted & (2 * t["odd_sizes"] > t["sizes"])


def _region_spread(t: Table, n: Night) -> "pd.Series[bool]":
    low, high = n.bounds.region_spread
    news = ~(t["change"].abs() <= _HELD / 2)
    return news & (t["gpu"] != "") & ~(t["usd_per_hour"] / t["typical"]).between(low, high)


def _in_step(t: Table, n: Night) -> "pd.Series[bool]":
    """Sizes of one family may move as one: a region needs two families to be judged."""
    enough = (t["rows"] >= _MIN_IN_REGION) & (t["families"] > 1)
    return enough & (t["alike"] >= _ALIKE) & (t["middle"].abs() > _STEP)


def _usual_step(t: Table, n: Night) -> "pd.Series[bool]":
    """On 31 of 124 dates Google moved all spot prices of a region by one step."""
    low = 1 / (1 + _SPOT_STEP) - 1
    return (t["market"] == "spot") & n.posted & t["middle"].between(low, _SPOT_STEP)


def _one_factor(t: Table, n: Night) -> "pd.Series[bool]":
    """A tax, a currency, a discount; a small part of a list counts only if it moved far."""
    alike = t["movers_alike"] >= np.where(t["of"] == "parts", _ALIKE_PARTS, _ALIKE)
    enough = (t["movers"] >= _MIN) & alike
    far = (t["moved"] > 0.1) & (t["common"].abs() > _STEP / 2)
    return enough & ((t["moved"] > 0.25) | far)


_OFFER: tuple[Scope, ...] = ("offer",)

ROWS = (
    Rule("provider", _OFFER, lambda t, n: t["provider"] != n.reference.provider, "refuse",
         "an offer of {provider}"),
    Rule("market", _OFFER, lambda t, n: ~t["market"].isin(n.fetched.markets), "refuse",
         "market {market} was not read"),
    Rule("unknown_type", _OFFER, lambda t, n: ~t["instance_type"].isin(n.machines), "refuse",
         "no such instance type is known"),
    Rule("region", _OFFER,
         lambda t, n: ~_fullmatch(t["region"], CLOUDS[n.reference.provider].region_pattern),
         "refuse", "{region!r} is no region of {provider}"),
    Rule("new_region", _OFFER, _new_region, "wait", "{region!r} was no region so far"),
    Rule("zone", _OFFER, _zone, "refuse",
         "{zone!r} is no zone of {region} that {market} prices hold for"),
    Rule("date", _OFFER, _date, "refuse",
         "read today, but dated {as_of!r}"),
    Rule("words", _OFFER, _words, "refuse",
         "one of these is not allowed: kind {kind!r}, obtainable {obtainable!r}, uncertainty "
         "{uncertainty!r}, source {source!r}"),
    Rule("not sold on demand", ("on_demand",),
         lambda t, n: t["status"].isin(["spot_only", "reservation_only"]), "ignore", ""),
    Rule("market", ("spot",), lambda t, n: pd.Series(n.spot is None, t.index), "refuse",
         "{provider} is not known to sell spot machines"),
    Rule("duplicate", _OFFER,
         lambda t, n: t.groupby(KEY)["usd_per_hour"].transform("nunique") > 1, "refuse",
         "offered twice at different prices"),
)  # fmt: skip
PARTS = (
    Rule("part", ("part",),
         lambda t, n: (t["market"] == "on_demand") & (_price_change(t, n) | _creep(t, n)), "wait",
         "{change:+.0%} since {since}"),
    Rule("part", ("part",), lambda t, n: (t["market"] == "spot") & _spot_move(t, n), "wait",
         "{change:+.0%} since {since}"),
)  # fmt: skip
PRICES = (
    Rule("older", ("on_demand", "spot"),
         lambda t, n: (t["as_of"] < t["since"]) & bool(n.fetched.since), "hold",
         "the list is of {as_of}; the last good price is of {since}"),
    Rule("composition", ("on_demand",),
         lambda t, n: t["instance_type"].isin(n.fetched.contradicted), "hold",
         "the provider's own spot prices of it are not this sum's"),
    Rule("part", ("on_demand", "spot"), lambda t, n: t["odd_part"] != "", "hold",
         "its part {odd_part} is held back"),
    Rule("zones_differ", ("on_demand",), _zones_differ, "hold",
         "on-demand prices of one region differ"),
    Rule("price_change", ("on_demand",), _price_change, "wait", "{change:+.0%} since {since}"),
    Rule("creep", ("on_demand",), _creep, "wait",
         "it was {week:g} USD/h 7 nights ago, {month:g} 30 nights ago, {shipped:g} as shipped"),
    Rule("region_spread", ("on_demand",), _region_spread, "hold",
         "the median over regions is {typical:g}"),
    Rule("family", ("on_demand",), _family, "hold",
         "{off:+.0%} next to {odd_sizes:.0f} of {sizes:.0f} sizes of its family"),
    Rule("per_gpu", ("on_demand",),
         lambda t, n: ~(t["change"].abs() <= MOVED) & (t["most"] > 3.5 * t["least"]), "hold",
         "{least:.4g} to {most:.4g} USD per GPU in one family; usual is a factor of 3.3"),
)  # fmt: skip
SPOT = (
    Rule("no_on_demand", ("spot",), lambda t, n: t["listed"].isna(), "refuse",
         "spot without an on-demand price to measure it by"),
    Rule("spot_above_on_demand", ("spot",), lambda t, n: t["share"] > 1 + 1e-9, "refuse",
         "more expensive than on-demand ({listed:.6g})"),
    Rule("spot_share", ("spot",), lambda t, n: t["share"] < t["low"], "hold",
         "{share:.3f} of on-demand; usual is {low} to {high}"),
    Rule("spot_share", ("spot",),
         lambda t, n: (t["share"] > t["high"]) & (t["share"] < MAX_SPOT_SHARE), "refuse",
         "{share:.3f} of on-demand; usual is {low} to {high}"),
    Rule("spot at the on-demand price", ("spot",), lambda t, n: t["share"] >= MAX_SPOT_SHARE,
         "ignore", ""),
    Rule("family", ("spot",), _family, "hold",
         "{off:+.0%} next to {odd_sizes:.0f} of {sizes:.0f} sizes of its family"),
    Rule("spot_move", ("spot",), _spot_move, "wait",
         "{change:+.0%} since {since}; a move that lasts is believed"),
    Rule("spot_alone", ("spot",), _spot_alone, "wait",
         "{change:+.0%} since {since}, when all else stood still; a move that lasts is believed"),
    Rule("spot_creep", ("spot",), _spot_creep, "wait",
         "it was {week:g} USD/h 7 nights ago, and the others of its family stood still"),
    Rule("spot_again", ("spot",), _spot_again, "wait",
         "{change:+.0%} since {since}, and it was {week:g} 7 nights ago"),
)  # fmt: skip
MOVES = (
    Rule("in_step", ("region",), lambda t, n: _in_step(t, n) & ~_usual_step(t, n), "fail",
         "{alike:.0%} of its {market} prices moved by the same factor, {middle:+.1%}"),
    Rule("step", ("region",), lambda t, n: _in_step(t, n) & _usual_step(t, n), "flag",
         "{region}: {alike:.0%} of its {market} prices moved by the same factor, {middle:+.1%}"),
    Rule("moved", ("region",),
         lambda t, n: (t["market"] == "on_demand") & (t["rows"] >= _MIN_IN_REGION)
         & (t["families"] > 1) & (t["moved"] > 0.7), "fail",  # at most 0.67 in GCP's history
         "{moved:.0%} of its {market} prices moved at once"),
    Rule("swapped", ("region",), lambda t, n: t["other"] != "", "fail",
         "its prices are those that {other} had"),
    Rule("one_factor", ("market",), _one_factor, "keep",
         "{market}: {movers_alike:.0%} of {movers:.0f} {of} that moved did so by the same factor, "
         "{common:+.1%}; a tax, a currency, a discount?"),
    Rule("moved", ("market",),
         lambda t, n: (t["market"] == "on_demand") & (t["of"] == "prices")
         & (t["rows"] >= _MIN) & (t["moved"] > 0.25),
         "keep", "{market}: {moved:.0%} of {rows:.0f} prices moved at once"),  # at most 0.225 (GCP)
    Rule("moved", ("market",),
         lambda t, n: (t["market"] == "spot") & (t["rows"] >= _MIN)
         & (t["far"] > (n.spot.at_once if n.spot else 0)), "fail",
         "{far:.0%} of {rows:.0f} {market} prices moved by more than 3 % at once"),
    Rule("jumped", ("market",),
         lambda t, n: (t["market"] == "spot") & (t["rows"] >= _MIN) & (t["jumped"] > 0.2), "keep",
         "{jumped:.0%} of {rows:.0f} {market} prices jumped at once"),
)  # fmt: skip
