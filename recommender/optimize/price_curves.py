"""The least price at which machines of a site compute so much, as lines.

Machines that compute R together, at most n of them, within quotas of which those of group g
have room for R_g, cost at least

    price(R) >= min Σ (bill_e + μ)·x_e - μ·n     for every μ >= 0 (for μ < 0 with n at least)
             >= Σ_g β_g·R_g - μ·n,   β_g = min over the group of (bill_e + μ)/speed_e

filled with the groups in the order of β until they compute R (the dual of a linear program
whose rows are the machines and the quotas). Each μ gives a convex curve of straight pieces.
"""

import numpy as np

from recommender.arrays import Bools, Floats, Ints, distinct
from recommender.catalogs.frozen import dataclass
from recommender.optimize.space import Site

Lines = tuple[tuple[Floats, Floats], ...]  # (seconds, samples): step >= seconds + samples/compute

MAX_COMPUTE = 1e30  # where a price is the same for any
WEIGHTS = 5  # of the edges of the lower hull of (speed, bill)


@dataclass(frozen=True, slots=True)
class Curves:
    """Lower bounds of the price of compute; arrays have shape (weights, pieces)."""

    weight: Floats  # (weights,): USD per hour put on each machine
    start: Floats  # compute where each piece begins
    end: Floats
    price: Floats  # at its start
    slope: Floats
    types: Floats  # (entries + 1, types + 1, weights, pieces): what further spot types add, at
    # least, if they are among the entries from a row on


@dataclass(frozen=True, slots=True)
class Groups:
    """Entries that share a quota; entries in none share a group without a limit."""

    of: Ints  # (entries,)
    room: Floats  # (groups,): most compute
    use: Floats  # (entries, groups): of the quota, by one machine
    least: Floats  # (entries, groups): least use of the entries from a row on; inf without any
    amount: Floats  # (groups,): the quota

    def machines(self, chosen: list[int], more: Ints, begin: Ints, most: int) -> Ints:
        """The most machines besides one of each chosen and one more, from `begin` on; (more,)."""
        left = self.amount - self.use[chosen].sum(axis=0) - self.use[more]
        with np.errstate(invalid="ignore"):
            each = np.floor((left + 1e-9) / self.least[begin])
        each = np.where(np.isnan(each), most, np.clip(each, 0, most))
        return np.asarray(each.sum(axis=1), dtype=np.int64)


def groups_of(site: Site, speed: Floats) -> Groups:
    """The first quota of each entry, and the compute possible within it."""
    member = np.full(len(speed), len(site.quota))
    for row in range(len(site.quota) - 1, -1, -1):
        member = np.where(site.quota_use[row] > 0, row, member)
    used, of = np.unique(member, return_inverse=True)
    room = np.full(len(used), np.inf)
    for group, row in enumerate(used[used < len(site.quota)]):
        mine = member == row
        room[group] = site.quota[row] * float((speed[mine] / site.quota_use[row][mine]).max())
    amount = np.append(site.quota, np.inf)[used]
    mine = of.ravel()[:, None] == np.arange(len(used))
    each = np.append(site.quota_use, np.ones((1, len(speed))), axis=0)[used].T
    least = np.minimum.accumulate(np.where(mine, each, np.inf)[::-1], axis=0)[::-1]
    return Groups(of.ravel(), room, np.where(mine, each, 0.0), least, amount)


def curves(
    bill: Floats,
    speed: Floats,
    groups: Groups,
    weights: Floats,
    spot: Bools,
    machines: int,
    types: int = 0,
) -> Curves:
    """One curve for each weight; `bill`, `speed` and `spot` have shape (entries,).

    Pieces that begin beyond the reach of so many `machines` are left out: of two hundred machines
    with a number each, nine in ten.

    On a piece of slope λ every type in use costs at least bill + μ - min(λ, β_g)·speed in addition
    to the line: its reduced cost, because groups cheaper than λ are full.
    """
    weighed = bill + weights[:, None]
    each = np.maximum(weighed / speed, 0.0)  # rounding must not turn the least slope negative
    least = np.stack([each[:, groups.of == g].min(axis=1) for g in range(len(groups.room))], axis=1)
    order = np.argsort(least, axis=1, kind="stable")
    slope, room = np.take_along_axis(least, order, axis=1), groups.room[order]
    end = np.cumsum(room, axis=1)
    start = np.concatenate([np.zeros((len(weights), 1)), end[:, :-1]], axis=1)
    spent = np.where(np.isfinite(room), room, 0.0) * slope
    price = np.where(np.isfinite(start), np.cumsum(spent, axis=1) - spent, np.inf)
    last = int((start < machines * speed.max()).any(axis=0).sum())
    start = np.where(np.isfinite(start), start, 0.0)
    start, end, price, slope = (c[:, :last] for c in (start, end, price, slope))
    paid = np.minimum(slope[:, :, None], least[:, None, groups.of]) * speed
    beyond = np.where(spot, weighed[:, None, :] - paid, np.inf)
    return Curves(weights, start, end, price, slope, sums_from(np.moveaxis(beyond, 2, 0), types))


def sums_from(values: Floats, most: int) -> Floats:
    """Sums of the smallest values among those from each row on, by their number; (rows + 1, most +
    1, ...).

    `values` has shape (rows, ...); only finite values count, and the rest adds nothing.
    """
    found = np.zeros((len(values) + 1, most + 1, *values.shape[1:]))
    for row in range(len(values) if most else 0):
        some = np.sort(values[row:], axis=0)[:most]
        some = np.where(np.isfinite(some), some, 0.0)
        found[row, 1 : len(some) + 1] = np.cumsum(some, axis=0)
        found[row, len(some) + 1 :] = found[row, len(some)]
    return found


def weights_of(bill: Floats, speed: Floats) -> Floats:
    """Weights at which curves touch: zero, minus the cheapest machine, edges of the lower hull."""
    order = np.lexsort((bill, speed))
    hull: list[tuple[float, float]] = []
    for x, y in zip(speed[order].tolist(), bill[order].tolist(), strict=True):
        while hull and hull[-1][1] >= y:  # no cheaper, and slower
            hull.pop()
        while len(hull) > 1 and _above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    edges = [
        (y1 - y0) / (x1 - x0) * x0 - y0
        for (x0, y0), (x1, y1) in zip(hull, hull[1:], strict=False)
        if x1 > x0
    ]
    found = distinct(np.array([w for w in edges if w > 0.0]))
    if len(found) > WEIGHTS:
        found = found[np.linspace(0, len(found) - 1, WEIGHTS).round().astype(int)]
    return np.concatenate([[-float(bill.min()), 0.0], found])


def _above(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether the middle point lies on or above the line of its neighbours."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


@dataclass(frozen=True, slots=True)
class OtherMachines:
    """The other machines of supports, by case of their number; (supports or none, cases)."""

    own_price: Floats  # price of one machine of each entry of the support
    share: Floats  # of the prices of others that counts
    own_speed: Floats  # (supports,): compute of the same
    min_machines: Ints  # others; (cases,), or (supports, cases)
    max_machines: Ints
    min_types: Ints  # spot types that they add at least; (supports, cases)
    begin: Ints  # (supports,): of the entries from here on

    def at(self, c: Curves) -> tuple[Floats, Floats]:
        """Price at zero compute, and slope, of every piece; (supports, cases, weights, pieces)."""
        fewest, most = self.min_machines[..., None], self.max_machines[..., None]
        machines = np.where(c.weight < 0.0, fewest, most)
        begin = self.own_speed[:, None, None, None] + c.start
        more = c.types[self.begin[:, None], np.minimum(self.min_types, c.types.shape[1] - 1)]
        share = self.share[:, :, None, None]
        own = self.own_price[:, :, None, None] + share * (more - (c.weight * machines)[..., None])
        slope = share * c.slope
        return own + share * c.price - slope * begin, slope

    def pairs(self, support: Ints, case: Ints) -> "OtherMachines":
        """Some pairs of a support and a case; shape (pairs, 1) for (supports, cases)."""
        return OtherMachines(
            own_price=self.own_price[support, case][:, None],
            share=self.share[support, case][:, None],
            own_speed=self.own_speed[support],
            min_machines=self.min_machines[case][:, None],
            max_machines=self.max_machines[case][:, None],
            min_types=self.min_types[support, case][:, None],
            begin=self.begin[support],
        )


def reach(c: Curves, o: OtherMachines, money: Floats) -> Floats:
    """The most compute for a sum in each case, 0 if the support itself is more expensive.

    Shape (supports, cases).
    """
    intercept, slope = o.at(c)
    begin, end = (o.own_speed[:, None, None, None] + part for part in (c.start, c.end))
    bought = np.minimum((money[:, None, None] - intercept) / np.maximum(slope, 1e-200), end)
    bought = np.where(bought >= begin * (1.0 - 1e-12), bought, 0.0)
    return np.asarray(bought.max(axis=3).min(axis=2))


def min_product(c: Curves, o: OtherMachines, lines: Lines, low: Floats, high: Floats) -> Floats:
    """The smallest product of price and step with a compute between two values; (supports, cases).

    On a piece (p + b·R)·(t + a/R) has its minimum at R = √(p·a/(b·t)), or at an end.
    """
    intercept, slope = o.at(c)
    begin, end = (o.own_speed[:, None, None, None] + part for part in (c.start, c.end))
    begin = np.maximum(begin, low[:, :, None, None])
    end = np.minimum(end, high[:, :, None, None])
    last, most = np.minimum(end, MAX_COMPUTE), np.zeros(begin.shape)
    for seconds, samples in lines:
        t, a = seconds[:, :, None, None], samples[:, :, None, None]
        with np.errstate(over="ignore", invalid="ignore"):
            at = np.sqrt(np.maximum(intercept, 0.0) * a / np.maximum(slope * t, 1e-300))
        at = np.fmax(np.minimum(at, last), begin)  # not a number where no price reaches the piece
        most = np.maximum(most, (intercept + slope * at) * (t + a / at))
    most = np.where(begin <= end * (1.0 + 1e-12), most, np.inf)
    return np.asarray(most.min(axis=3).max(axis=2))


def within(c: Curves, o: OtherMachines, lines: Lines, most: float) -> Floats:
    """The most compute at which price times step is at most this; 0 if it never is.

    (p + b·R)·(t + a/R) <= most is a quadratic in R on every piece. Shape (supports, cases).
    """
    intercept, slope = o.at(c)
    begin, end = (o.own_speed[:, None, None, None] + part for part in (c.start, c.end))
    found = np.full((len(o.own_speed), len(o.min_machines)), np.inf)
    for seconds, samples in lines:
        t, a = seconds[:, :, None, None], samples[:, :, None, None]
        square = np.maximum(slope * t, 1e-200)
        linear = intercept * t + slope * a - most
        inside = linear**2 - 4.0 * square * intercept * a
        root = np.sqrt(np.maximum(inside, 0.0))
        upper = np.minimum((root - linear) / (2.0 * square), end) * (1.0 + 1e-9)
        lower = np.where(intercept > 0.0, (-linear - root) / (2.0 * square), 0.0) * (1.0 - 1e-9)
        good = (inside >= 0.0) & (upper >= begin) & (upper >= lower) & (upper > 0.0)
        piece = np.where(good, upper, 0.0)
        found = np.minimum(found, piece.max(axis=3).min(axis=2))
    return found
