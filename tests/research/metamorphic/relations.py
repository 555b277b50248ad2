"""The relations: pairs of questions drawn from a random one, and how their answers compare.

In a pair the plans of the second question are plans of the first as well, at the same figures or
at worse ones: so the first is answered no worse. Where both are one question asked in two ways, the
answers are equal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from recommender.catalogs.catalog import extended
from recommender.market.offer_facts import Facts
from recommender.plan.limits import GpuFilter, Limits, Progress
from tests.research.leads import NOW
from tests.research.metamorphic.catalogs import own_twin, permuted, repriced, scaled, with_offer
from tests.research.metamorphic.questions import Asking, between
from tests.speed.optimiser import quotas_of

HOUR_S = 3600.0
ABOVE = (1.005, 1.02, 1.1)  # of what 95 % of the runs of a plan need
BOOT_S = 300.0
TWO = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions; `times` the goal of the first is at most that of the second, or equal.

    `most` where it is to be compared with another figure than the goal of the second.
    """

    drawn: str  # which case of its relation
    first: Asking
    second: Asking
    times: float = 1.0
    equal: bool = False
    most: float | None = None


Relation = Callable[[Asking, Random], Iterator[Pair]]


def restrict(asked: Asking, random: Random) -> Iterator[Pair]:
    """Fewer offers, machines or ways to save are never better."""
    narrower = dict(_narrower(asked, random))
    for drawn in random.sample(sorted(narrower), min(TWO, len(narrower))):
        yield Pair(drawn, asked, narrower[drawn])


def _narrower(asked: Asking, random: Random) -> Iterator[tuple[str, Asking]]:
    choice, limits = asked.choice, asked.limits

    lead, pools = asked.lead, asked.pools
    if lead is None:
        return
    one, o = random.choice(pools), asked.catalog.offers
    yield "one type", _chosen(asked, instances=(one.type.instance_type,))
    yield "one GPU", _chosen(asked, gpus=(GpuFilter(one.type.gpu),))
    yield "one region", _chosen(asked, regions=(o.region[one.rows[0]],))
    yield "large memory", _chosen(asked, gpus=(GpuFilter(memory_gib=random.choice((40.0, 80.0))),))
    yield "quoted prices", _chosen(asked, quoted_only=True)
    yield "to an object store", _chosen(asked, checkpoint_to="object_store")
    yield (
        "fewer machines",
        replace(asked, limits=replace(limits, max_machines=max(1, limits.max_machines // 2))),
    )
    if choice.market == "any":
        yield "spot", _chosen(asked, market="spot")
        yield "on demand", _chosen(asked, market="on_demand")
    if not choice.providers:
        yield "one provider", _chosen(asked, providers=(random.choice(("aws", "gcp", "azure")),))
    yield "its types", _chosen(asked, instances=lead.instances)
    yield "without its types", _chosen(asked, deny=lead.instances)
    yield "its regions", _chosen(asked, regions=lead.regions)
    yield "in a region", _chosen(asked, failover="zone")
    yield "in a zone", _chosen(asked, failover="none")


def relax(asked: Asking, random: Random) -> Iterator[Pair]:
    """More of what limits bound is never worse."""
    limits, more = asked.limits, random.choice((1.01, 1.1, 1.5, 3.0))
    looser = {
        name: replace(limits, **{name: value * more})
        for name in ("deadline_s", "budget_usd", "hourly_usd", "max_overhead")
        if (value := getattr(limits, name)) is not None
    }
    drawn = random.choice(sorted(looser))
    yield Pair(f"{drawn} x {more}", replace(asked, limits=looser[drawn]), asked)


def dual(asked: Asking, random: Random) -> Iterator[Pair]:
    """The budget that a plan needs buys one as fast, and the time of that one costs no more.

    Without fallbacks, which only a deadline has: on demand, or one of the two markets alone where
    the plan that leads has none.
    """
    limits = replace(asked.limits, hourly_usd=None, max_overhead=None, confidence=0.95)
    if limits.deadline_s is None:
        limits = replace(limits, budget_usd=None, deadline_s=24.0 * HOUR_S)
    due = replace(asked, limits=limits)
    cheapest, above = due.lead, random.choice(ABOVE)
    if cheapest is None or cheapest.fallback:
        return
    paid = Limits(budget_usd=above * cheapest.p95_usd, max_machines=limits.max_machines)
    richer = replace(due, limits=paid)
    yield Pair("deadline to budget", richer, due, most=cheapest.time_s)
    fastest = richer.lead
    if fastest is not None:
        again = replace(paid, budget_usd=None, deadline_s=above * fastest.p95_s)
        yield Pair("budget to deadline", replace(due, limits=again), richer, most=fastest.usd)


def permute(asked: Asking, random: Random) -> Iterator[Pair]:
    """The order of a catalog's rows means nothing."""
    other = replace(asked, catalog=permuted(asked.catalog, random))
    yield Pair("rows", asked, other, equal=True)


def scale(asked: Asking, random: Random) -> Iterator[Pair]:
    """Prices and limits in another currency change costs by the rate, and nothing else."""
    rate, limits = between(random, 0.1, 10.0), asked.limits
    limits = replace(
        limits,
        budget_usd=None if limits.budget_usd is None else rate * limits.budget_usd,
        hourly_usd=None if limits.hourly_usd is None else rate * limits.hourly_usd,
    )
    other = replace(asked, limits=limits, catalog=scaled(asked.catalog, rate))
    times = rate if limits.goal == "cost" else 1.0
    yield Pair(f"prices x {rate:.4g}", asked, other, times, equal=True)


def own_instance(asked: Asking, random: Random) -> Iterator[Pair]:
    """An own machine with all columns of a catalog machine, fees in its price, is as good as it.

    Both in one region: the own one stands nowhere else, so no other region is requested it.
    """
    o, job = asked.catalog.offers, replace(asked.job, setup_s=BOOT_S)
    plain = replace(asked.choice, market="on_demand", failover="zone", prices_as_quoted=True)
    there = replace(asked, job=job, choice=plain)
    if there.lead is None:
        return
    name = there.lead.instances[0]
    offers = [
        (o.usd_per_hour[row], row)
        for row in range(len(o))
        if o.instance_type[row] == name and o.market[row] == "on_demand"
        if o.region[row] in there.lead.regions
    ]
    row = min(offers)[1]
    facts = Facts(asked.catalog, plain, job, NOW)
    usd = facts.planning_price(row) + facts.running_fees(o.provider[row], "on_demand")
    machine = asked.catalog.instance_types[o.provider[row], name]
    own = own_twin(asked.catalog, machine, usd)
    catalog = extended(asked.catalog, own.hardware, own.offers)
    twin = replace(there, catalog=catalog, choice=replace(plain, providers=("own",)))
    one = replace(there, choice=replace(plain, instances=(name,)))
    yield Pair(name, twin, one)
    both = replace(plain, providers=(*plain.providers, "own") if plain.providers else ())
    yield Pair(f"beside {name}", replace(there, catalog=catalog, choice=both), twin)


def add_offer(asked: Asking, random: Random) -> Iterator[Pair]:
    """One more on-demand offer, or a lower price of one, is never worse."""
    o = asked.catalog.offers
    rows = [
        row
        for row in range(len(o))
        if o.market[row] == "on_demand" and o.obtainable[row] == "open"
        if asked.catalog.type_of(o[row]).gpu
        if not asked.choice.providers or o.provider[row] in asked.choice.providers
    ]
    row = random.choice(rows)
    share = between(random, 0.2, 1.1)
    new = replace(o[row], region="another-1", usd_per_hour=share * o.usd_per_hour[row])
    drawn = f"{o.instance_type[row]} at {share:.2f} of its price"
    yield Pair(drawn, replace(asked, catalog=with_offer(asked.catalog, new)), asked)
    if asked.lead is not None and share < 1.0:
        mine = [r for r in rows if o.instance_type[r] in asked.lead.instances] or rows
        row = random.choice(mine)
        cheaper = repriced(asked.catalog, row, share * o.usd_per_hour[row])
        drawn = f"{o.instance_type[row]} in {o.region[row]} cheaper by {1 - share:.0%}"
        yield Pair(drawn, replace(asked, catalog=cheaper), asked)


def mix(asked: Asking, random: Random) -> Iterator[Pair]:
    """Mixes of types and markets are more plans, under quotas as well."""
    choice = asked.choice
    if random.random() < 0.3:
        vcpus = random.choice((96.0, 192.0, 384.0))
        choice = replace(choice, quotas=quotas_of(asked.catalog, vcpus), quotas_known=True)
    some = replace(asked, choice=replace(choice, mix=random.choice(("auto", "yes"))))
    yield Pair("mixes", some, replace(asked, choice=replace(choice, mix="no")))


def elastic(asked: Asking, random: Random) -> Iterator[Pair]:
    """A job that goes on with its on-demand part is never worse off than one that waits."""
    choice = replace(asked.choice, mix="yes" if random.random() < 0.5 else "auto")
    one = replace(asked, job=replace(asked.job, elastic=True), choice=choice)
    yield Pair("elastic", one, replace(one, job=replace(asked.job, elastic=False)))


def confidence(asked: Asking, random: Random) -> Iterator[Pair]:
    """A higher chance is never cheaper."""
    limits, other = asked.limits, random.choice((0.5, 0.7, 0.9, 0.97, 0.99))
    less, more = sorted((limits.confidence, other))
    if less == more:
        more = 0.995
    loose, tight = (replace(asked, limits=replace(limits, confidence=c)) for c in (less, more))
    yield Pair(f"{less:.3g} and {more:.3g}", loose, tight)


def done(asked: Asking, random: Random) -> Iterator[Pair]:
    """A job that is further on, or has used up less of its limits, is never worse off."""
    share, limits = random.choice((0.1, 0.5, 0.9)), asked.limits
    begun = replace(asked, progress=Progress(done_share=share))
    yield Pair(f"{share:.0%} done", begun, asked)
    less = replace(asked, job=replace(asked.job, samples=asked.job.samples * (1.0 - share)))
    yield Pair(f"a job of {1.0 - share:.0%}", begun, less, equal=True)
    if limits.deadline_s is not None:
        late = replace(asked, progress=Progress(elapsed_s=0.1 * limits.deadline_s))
        yield Pair("elapsed", asked, late)
    if limits.budget_usd is not None:
        spent = replace(asked, progress=Progress(spent_usd=0.1 * limits.budget_usd))
        yield Pair("spent", asked, spent)


def at_once(asked: Asking, random: Random) -> Iterator[Pair]:
    """On-demand machines that are there at once more often are never worse.

    Longer runs of spot machines may be: they come as often, so the outages are longer too.
    """
    seldom, often = sorted(random.uniform(0.02, 1.0) for _ in range(2))
    yield Pair(
        f"{often:.2f} and {seldom:.2f}",
        _chosen(asked, on_demand_obtainable=often),
        _chosen(asked, on_demand_obtainable=seldom),
    )


def _chosen(asked: Asking, **changes: Any) -> Asking:
    return replace(asked, choice=replace(asked.choice, **changes))


RELATIONS: dict[str, Relation] = {
    each.__name__: each
    for each in (
        restrict,
        relax,
        dual,
        permute,
        scale,
        own_instance,
        add_offer,
        mix,
        elastic,
        confidence,
        done,
        at_once,
    )
}
