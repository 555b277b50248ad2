"""Applies the table of rules to a fetch: what is offered, held back, refused, failed and gone.

A refused offer is quarantined with the first rule that it broke.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import pandas as pd

from recommender.catalogs.providers.contract import Failed, Fetched, Quarantined
from recommender.catalogs.refresh.new_types import described, doubts
from recommender.catalogs.refresh.price_table import (
    KEY,
    Table,
    add_history,
    add_listed,
    add_new_list,
    add_sizes,
    moves_by,
    price_table,
    records,
    swapped,
)
from recommender.catalogs.refresh.reference import (
    Key,
    Reference,
    Validated,
    failure_reason,
    held_key,
    offer_key,
    offer_name,
)
from recommender.catalogs.refresh.rules import (
    MOVED,
    MOVES,
    PARTS,
    PRICES,
    ROWS,
    SPOT,
    Night,
    Rule,
)
from recommender.catalogs.rentable import sold_as
from recommender.catalogs.schema import InstanceType, Offer

# A row that is there, and is not what it was: no machine withdrawn, none sold at the list price.
_DAMAGED = frozenset({"price", "duplicate", "zone", "date", "product"})
_AT_FLOOR = 0.0005
# Blocks of capacity are bookings: all of them may be taken, which is no fault of the reading.
_SELLS_OUT = frozenset({"reserved_block"})
_LOST = 0.05  # of a provider's rows in a market since the last refresh
_LOST_IN_REGION, _SMALL_REGION = 0.20, 10  # in a smaller one a machine withdrawn is a fifth
_QUARANTINED, _FEW = 0.10, 20  # of the offers handed over


@dataclass(slots=True)
class _Verdicts:
    """Collects what the rules find."""

    night: Night
    quarantined: list[Quarantined] = field(default_factory=list)
    held: set[Key] = field(default_factory=set)
    holds: Counter[str] = field(default_factory=Counter)  # by rule
    failed: list[Failed] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)

    def left(self, table: Table, rules: Iterable[Rule]) -> Table:
        """The rows that break none of the rules."""
        scoped: dict[Any, Table] = {}
        for rule in rules:
            if rule.severity == "wait" and self.night.reference.accept:
                continue
            if rule.scopes not in scoped:
                inside = table["scope"].isin(rule.scopes)
                inside |= ("offer" in rule.scopes) & (table["scope"] != "part")
                scoped[rule.scopes] = table[inside]
            rows = scoped[rule.scopes]
            broken = rows[rule.breaks(rows, self.night)] if len(rows) else rows
            if len(broken):
                for row in records(broken):
                    self._note(rule, row)
                table = table.drop(broken.index)
                scoped.clear()
        return table

    def refuse(self, row: Mapping[str, Any], rule: str, reason: str) -> None:
        """Quarantine an offer or a part."""
        what = f"{row['instance_type']} {row['zone'] or row['region']} {row['market']}"
        message = f"{row['usd_per_hour']!r} USD/h: {reason}"
        self.quarantined.append(Quarantined(self.night.reference.provider, what, message, rule))

    def _note(self, rule: Rule, row: Mapping[str, Any]) -> None:
        if rule.severity == "ignore":
            self.ignored[rule.name] += 1
            return
        accept = "; --accept takes it after a look" if rule.severity == "wait" else ""
        self.refuse(row, rule.name, rule.reason.format_map(row) + accept)
        if rule.severity in ("hold", "wait") and rule.name != "new_region":
            zone = "" if row["market"] == "on_demand" else row["zone"]
            self.holds[rule.name] += 1
            self.held.add((row["instance_type"], row["region"], zone, row["market"]))

    def judge(self, groups: Table) -> None:
        """Apply the rules about regions and markets."""
        for rule in MOVES:
            rows = groups[groups["scope"].isin(rule.scopes)]
            broken = rows[rule.breaks(rows, self.night)] if len(rows) else rows
            for row in records(broken) if len(broken) else ():
                said = rule.reason.format_map(row)
                if rule.severity == "flag":
                    self.alerts.append(said)
                elif rule.severity == "keep":
                    self.problems.append(said)
                else:
                    market: Any = row["market"] if "market" in rule.scopes else ""
                    self.failed.append(Failed(row["region"], market, said))


def validate(fetched: Fetched, reference: Reference) -> Validated:
    """Accept the offers of a fetch that break no rule."""
    new, refused = described(fetched, reference)
    night = Night(fetched, reference, {**reference.types, **new})
    verdicts = _Verdicts(night, refused)
    sound = [o for o in fetched.offers if _is_sound(o, verdicts)]
    read = verdicts.left(price_table(sound, fetched.parts, night.machines), ROWS)
    read = read.drop_duplicates([*KEY, "scope"]).copy()
    add_history(read, reference)
    add_new_list(read, night.spot)
    if not reference.accept:
        verdicts.judge(_groups(read, night))
    kept = _priced(read, new, verdicts)
    offers = tuple(_offers(kept, sound, night))
    _hold_damaged(verdicts, {offer_key(offer) for offer in offers})
    return _result(read, offers, new, verdicts)


def _is_sound(offer: Offer, verdicts: _Verdicts) -> bool:
    """Whether the fields of an offer are of their types, and its price is one."""
    texts = (
        offer.provider, offer.instance_type, offer.region, offer.zone, offer.market,
        offer.obtainable, offer.kind, offer.flag, offer.as_of,
    )  # fmt: skip
    usd, row = offer.usd_per_hour, {name: getattr(offer, name) for name in (*KEY, "usd_per_hour")}
    if not (all(isinstance(t, str) for t in texts) and isinstance(offer.uncertainty, float)):
        verdicts.refuse(row, "words", "a field is of the wrong type")
    elif not (isinstance(usd, float) and isfinite(usd) and usd > 0):
        verdicts.refuse(row, "price", "the price is not a positive number")
    else:
        return True
    return False


def _groups(read: Table, night: Night) -> Table:
    """One row for each region and market, and one for each market, that has a last price."""
    rows = read[(read["scope"] != "part") & (read["days"] <= 31)]
    regions = moves_by(rows, ["market", "region"]).assign(scope="region", other="", jumped=0.0)
    jump = night.spot.jump if night.spot else float("inf")
    markets = moves_by(rows, ["market"]).assign(scope="market", region="", other="", of="prices")
    parts = moves_by(read[read["scope"] == "part"], ["market"]).assign(scope="market", of="parts")
    far = (rows["change"] + 1).clip(lower=1e-9)
    jumped = ((far > jump) | (far < 1 / jump)).groupby(rows["market"]).mean()
    markets["jumped"] = markets["market"].map(jumped)
    others = swapped(rows, night.reference.last)
    swaps = pd.DataFrame({"region": list(others), "other": list(others.values())})
    named = swaps.assign(scope="region", market="")
    return pd.concat([regions, markets, parts, named], ignore_index=True)


def _priced(read: Table, new: Mapping[str, InstanceType], verdicts: _Verdicts) -> Table:
    """The rows whose price is believed: parts first, then on demand, then spot."""
    night = verdicts.night
    table = verdicts.left(read, PARTS).copy()
    _add_odd_parts(table, verdicts)
    add_sizes(table, "on_demand", night.reference, 0.05)
    table = verdicts.left(table, PRICES)
    table = _without_doubted_types(table, new, verdicts)
    if night.spot is not None:
        table = table.copy()
        add_sizes(table, "spot", night.reference, night.spot.family)
        listed = table[table["scope"] == "on_demand"]
        add_listed(table, listed, night.reference, night.spot)
        table = verdicts.left(table, SPOT)
    return table[table["scope"] != "part"]


def _add_odd_parts(table: Table, verdicts: _Verdicts) -> None:
    held = verdicts.held
    odd = {
        (name, part.region, part.market): part.part
        for part in verdicts.night.fetched.parts
        if (part.part, part.region, "", part.market) in held
        for name in part.machines
    }
    places = zip(table["instance_type"], table["region"], table["market"], strict=True)
    table["odd_part"] = [odd.get(place, "") for place in places]


def _without_doubted_types(
    table: Table, new: Mapping[str, InstanceType], verdicts: _Verdicts
) -> Table:
    """Drop the offers of new machines that wait for a person, and report each."""
    if verdicts.night.reference.accept or not new:
        return table
    offered = table[table["instance_type"].isin(list(new))]
    listed = offered[offered["scope"] == "on_demand"]
    typical: dict[Any, float] = listed.groupby("instance_type")["usd_per_hour"].median().to_dict()
    named = set(offered["instance_type"])
    reasons = {n: why for n, why in doubts(new, typical, verdicts.night.reference) if n in named}
    for name in sorted(named):
        machine = new[name]
        hardware = f"{machine.gpus} {machine.gpu}" if machine.gpu else "no GPU"
        said = f"waits: {reasons[name]}; --accept takes it" if name in reasons else "is taken"
        which = name if name in reasons else f"{name} ({hardware})"
        verdicts.alerts.append(f"new machine {which} {said}")
    doubted = offered[offered["instance_type"].isin(list(reasons))]
    for row in records(doubted):
        verdicts.refuse(row, "new_type", reasons[row["instance_type"]])
    return table.drop(doubted.index)


def _offers(kept: Table, sound: Sequence[Offer], night: Night) -> Iterable[Offer]:
    """The accepted offers, with what the catalog knows of a type's sale, and flags."""
    spot = night.spot
    for row in records(kept):
        offer = sound[int(row["position"])]
        # It wins over a price list, which lists anything.
        really = sold_as(offer.provider, offer.instance_type, offer.market, offer.region)
        if really is not None:
            offer = replace(offer, obtainable=really)
        elif row["status"] in ("retired", "reservation_only", "on_request", "spot_only"):
            offer = replace(offer, obtainable=row["status"])
        if offer.market == "spot" and spot is not None:
            moved = max(1 + row["change"], 1 / (1 + row["change"]))
            offer = replace(offer, flag="jump") if moved > spot.jump else offer
            at_floor = spot.floor is not None and abs(row["share"] - spot.floor) < _AT_FLOOR
            offer = replace(offer, flag="floor") if at_floor else offer
        yield offer


def _hold_damaged(verdicts: _Verdicts, read: set[Key]) -> None:
    """Keep the last good spot price where today's row is there but damaged.

    Else a zone would forget its price for a night, and a wrong one be measured by nothing.
    """
    rows = (*verdicts.night.fetched.quarantined, *verdicts.quarantined)
    names = {row.what.partition(" (")[0] for row in rows if row.rule in _DAMAGED}
    for offer in verdicts.night.reference.last:
        if offer.market == "spot" and offer_name(offer) in names and offer_key(offer) not in read:
            verdicts.held.add(held_key(offer))


def _result(
    read: Table, offers: tuple[Offer, ...], new: Mapping[str, InstanceType], verdicts: _Verdicts
) -> Validated:
    night = verdicts.night
    odd = {place.region for place in verdicts.failed if not place.market}
    markets = {place.market for place in verdicts.failed if not place.region}
    offers = tuple(o for o in offers if o.region not in odd and o.market not in markets)
    if not night.reference.accept:
        verdicts.failed += _lost_regions(offers, verdicts)
    verdicts.problems += _lost(offers, verdicts)
    gone = _gone(offers, verdicts)
    verdicts.alerts += [*_moved(read, offers), *_held(verdicts), *_by_type(gone)]
    used = {offer.instance_type for offer in offers}
    return Validated(
        offers=offers,
        types=tuple(replace(t, source=0) for name, t in new.items() if name in used),
        held=frozenset(verdicts.held),
        quarantined=tuple(verdicts.quarantined),
        failed=tuple(verdicts.failed),
        problems=tuple(verdicts.problems),
        alerts=tuple(verdicts.alerts),
        ignored=dict(verdicts.ignored),
        gone=tuple(offer_name(offer) for offer in gone),
    )


def _is_read(offer: Offer, verdicts: _Verdicts) -> bool:
    """Whether an offer of the last version would have to be replaced by one of today."""
    fetched = verdicts.night.fetched
    if held_key(offer) in verdicts.held:
        return False
    failed = failure_reason((*fetched.failed, *verdicts.failed), offer.region, offer.market)
    return offer.market not in _SELLS_OUT and fetched.replaces(offer) and not failed


def _lost_regions(offers: Sequence[Offer], verdicts: _Verdicts) -> list[Failed]:
    """Regions that silently lost a fifth of their rows."""
    reference = verdicts.night.reference
    now = Counter((o.market, o.region) for o in offers)
    then = Counter((o.market, o.region) for o in reference.last if _is_read(o, verdicts))
    return [
        Failed(region, market, f"{now[market, region]} offers, {count} before")
        for (market, region), count in sorted(then.items())
        if reference.comparable(market)
        and count >= _SMALL_REGION
        and now[market, region] < (1 - _LOST_IN_REGION) * count
    ]


def _lost(offers: Sequence[Offer], verdicts: _Verdicts) -> Iterable[str]:
    """Find whether too many rows were lost or refused."""
    reference = verdicts.night.reference
    now = Counter(offer.market for offer in offers)
    then = Counter(o.market for o in reference.last if _is_read(o, verdicts))
    for market, count in sorted(then.items()):
        few = now[market] < (1 - _LOST) * count
        if few and reference.comparable(market) and not reference.accept:
            yield f"{market}: {now[market]} offers, {count} in the last refresh"
    handed, refused = len(verdicts.night.fetched.offers), verdicts.quarantined
    if not offers:
        yield f"{handed} offers, of which none is believed"
    if len(refused) > max(_FEW, _QUARANTINED * handed):
        counts = Counter(row.rule for row in refused).most_common()
        rules = ", ".join(f"{count} {rule}" for rule, count in counts)
        yield f"{len(refused)} of {handed} offers are not believed ({rules})"


def _gone(offers: Sequence[Offer], verdicts: _Verdicts) -> list[Offer]:
    """Offers that were read before, and are not offered today, or only as no bargain."""
    kept = {offer_key(offer) for offer in offers}
    refused = {row.what for row in verdicts.quarantined}
    return [
        offer
        for offer in verdicts.night.reference.last
        if offer.kind in ("quote", "composed")
        and _is_read(offer, verdicts)
        and offer_key(offer) not in kept
        and offer_name(offer) not in refused
    ]


def _by_type(gone: Sequence[Offer]) -> list[str]:
    counts = Counter((o.instance_type, o.market) for o in gone)
    if not counts:
        return []
    said = ", ".join(f"{count} {name} {market}" for (name, market), count in counts.most_common(8))
    more = f" and {len(counts) - 8} others" if len(counts) > 8 else ""
    return [f"{len(gone)} offers are gone: {said}{more}"]


def _held(verdicts: _Verdicts) -> list[str]:
    said = ", ".join(f"{count} {rule}" for rule, count in verdicts.holds.most_common())
    return [f"{verdicts.holds.total()} prices are held back: {said}"] if said else []


def _moved(read: Table, offers: Sequence[Offer]) -> list[str]:
    """How many of the prices that are published moved, and how far."""
    keys = pd.MultiIndex.from_tuples([offer_key(o) for o in offers], names=KEY)
    kept = read[read["scope"] != "part"].set_index(KEY)
    moved = kept[kept.index.isin(keys) & (kept["change"].abs() > MOVED)]
    return [
        f"{len(rows)} {market} prices moved, by {rows['change'].min():+.1%} to "
        f"{rows['change'].max():+.1%}"
        for market, rows in moved.groupby("scope")
    ]
