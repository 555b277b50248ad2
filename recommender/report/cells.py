"""The cells of one plan, shared by every format of an answer."""

import math
from collections.abc import Iterable, Sequence

from recommender.plan.plan import Checkpointing, Machines, Need, Plan, Spread
from recommender.report import formatting as fmt
from recommender.text import NO_MONEY

_PATHS = {
    "object_store": "bucket",
    "anchor": "anchor",
    "memory_tier": "memory tier",
    "none": "none",
}
_FLAGS = {
    "floor": "at the lowest price allowed",
    "zone_median": "price derived: median of zones",
    "sibling": "price derived from other sizes of the family",
    "advisor": "price derived from AWS's spot advisor",
    "imported": "price from your own offers",
}
_FAR = 10.0  # times apart, from which on one unit does not suit a whole column
_TIMES = ((5400.0, 60.0, "min"), (360_000.0, 3600.0, "h"), (math.inf, 86_400.0, "d"))


def machines_lines(plan: Plan) -> tuple[str, ...]:
    """What is rented and where: "1× a3-highgpu-8g spot", "8 H100 · gcp europe-north1 +2"."""
    groups = [group_line(m) for m in plan.machines]
    extra = [f"+ {group_line(m)} ({_PATHS[plan.checkpointing.path]})" for m in _extra(plan)]
    return (*groups, *extra, f"{gpus(plan.machines)} · {place(plan)}", *remarks(plan))


def group_line(m: Machines) -> str:
    """One kind of machine: "2× p5.48xlarge spot"."""
    return f"{m.count}× {fmt.clean(m.instance_type)} {fmt.market(m.market)}"


def short_machines(plan: Plan) -> str:
    """All machines of a plan in a few words, for use in a sentence."""
    return " + ".join(group_line(m) for m in plan.machines)


def gpus(machines: Sequence[Machines]) -> str:
    """GPUs of a cluster by name: "8 H100 + 4 A10G"."""
    counts: dict[str, int] = {}
    for m in machines:
        counts[m.gpu] = counts.get(m.gpu, 0) + m.count * m.gpus
    return " + ".join(f"{n} {fmt.clean(name)}" for name, n in counts.items())


def amount_of(need: Need) -> str:
    """How much of a quota is needed: "192 vCPU", "1 GPU", "4 machines"."""
    if need.unit in ("gpu", "machine"):
        return fmt.plural(need.amount, {"gpu": "GPU"}.get(need.unit, need.unit))
    unit = {"vcpu": "vCPU"}.get(need.unit, fmt.clean(need.unit))
    return f"{fmt.exact(need.amount)} {unit}".rstrip()


def counted(machines: Sequence[Machines]) -> str:
    """How many of which type: "2× p5.48xlarge + 1× g6.xlarge"."""
    return " + ".join(f"{m.count}× {fmt.clean(m.instance_type)}" for m in machines)


def first_region(plan: Plan) -> str:
    """Where the cluster starts."""
    return plan.sites[0].region if plan.sites else plan.machines[0].region


def place(plan: Plan) -> str:
    """The first region of the cluster, and the number of other regions on its list."""
    first, region = plan.machines[0], first_region(plan)
    others = {site.region for site in plan.sites} - {region}
    more = f" +{len(others)}" if others else ""
    named = fmt.clean(first.provider)
    return (named if named == region else f"{named} {fmt.clean(region)}") + more


def fallback_of(plan: Plan, plans: Sequence[Plan]) -> tuple[str, ...]:
    """The fallback, where other plans rent the same machines and differ in theirs."""
    alike = (each for each in plans if each is not plan and each.machines == plan.machines)
    if all(_fallback_machines(each) == _fallback_machines(plan) for each in alike):
        return ()
    late = _fallback_machines(plan)
    return (f"fallback {' + '.join(map(group_line, late))}" if late else "no fallback",)


def _fallback_machines(plan: Plan) -> tuple[Machines, ...]:
    return () if plan.fallback is None else plan.fallback.machines


def remarks(plan: Plan) -> tuple[str, ...]:
    """What distinguishes this plan: derived prices, patience before it moves."""
    flags = {m.price_flag or m.price_kind for m in plan.machines if _is_derived(m)}
    words = [_FLAGS.get(flag, f"price {fmt.clean(flag)}") for flag in sorted(flags)]
    if plan.move_after_s:
        words.append(f"{fmt.duration(plan.move_after_s)} without spot: next region")
    return tuple(words)  # each on a line of its own, which leaves room for more figures


def _is_derived(m: Machines) -> bool:
    return m.price_kind == "derived" or bool(m.price_flag)


def _extra(plan: Plan) -> tuple[Machines, ...]:
    return plan.checkpointing.machines


def _median(values: Sequence[float]) -> float:
    """The middle value; `statistics` would import fractions and decimals at every start."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else 0.5 * (ordered[half - 1] + ordered[half])


def decimals(values: Iterable[float], digits: int = 2) -> int:
    """Decimals of a column: `digits` digits of its middle figure, one of its smallest."""
    sizes = [abs(v) for v in values if abs(v) >= NO_MONEY and math.isfinite(v)] or [1.0]
    middle = digits - 1 - math.floor(math.log10(_median(sizes)))
    return max(0, middle, -math.floor(math.log10(min(sizes))))


def figure(x: float, places: int) -> str:
    """A figure of a column, at most three significant digits."""
    if not math.isfinite(x):
        return "unknown"
    if abs(x) >= 1000:
        x = round(x, 2 - math.floor(math.log10(abs(x))))
    return f"{x:,.{places}f}"


def span(spread: Spread, unit: float, places: int) -> str:
    """The span that contains nine runs in ten."""
    return f"{figure(spread.p05 / unit, places)}-{figure(spread.p95 / unit, places)}"


def time_unit(plans: Sequence[Plan]) -> tuple[float, str]:
    """Seconds per unit and its name, one for a whole column."""
    return unit_of([plan.estimate.time.p50 for plan in plans])


def unit_of(seconds: Sequence[float]) -> tuple[float, str]:
    """The unit that suits the middle one of some times, in seconds, and its name."""
    middle = _median(seconds) if seconds else 3600.0
    return next((unit, name) for limit, unit, name in _TIMES if middle < limit)


def cost_cells(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    """Expected cost (the mean, by which plans are ordered and compared) and its span."""
    means = [p.estimate.cost.mean for p in plans]
    return spread_cells(means, [p.estimate.cost for p in plans], 1.0)


def time_column(times: Sequence[Spread]) -> tuple[str, list[tuple[str, ...]]]:
    """Heading and cells of median times; each has its own unit if they differ a lot."""
    medians = [time.p50 for time in times]
    if max(medians) < _FAR * min(medians):
        unit, name = unit_of(medians)
        return f"time {name}", spread_cells(medians, times, unit)
    return "time", [_with_unit(time) for time in times]


def duration_with_tail(time: Spread) -> str:
    """The median, and what one run in twenty takes where that is of another order."""
    tail = f" (1 run in 20 over {fmt.duration(time.p95)})" if time.has_tail else ""
    return fmt.duration(time.p50) + tail


def _with_unit(time: Spread) -> tuple[str, ...]:
    unit, name = unit_of([time.p50])
    ((middle, ends),) = spread_cells([time.p50], [time], unit)
    return f"{middle} {name}", ends


def spread_cells(
    middles: Sequence[float], spreads: Sequence[Spread], unit: float = 1.0
) -> list[tuple[str, ...]]:
    """A column of figures, each with its span, one cell per plan."""
    places = decimals(middle / unit for middle in middles)
    return [
        (figure(middle / unit, places), span(spread, unit, places))
        for middle, spread in zip(middles, spreads, strict=True)
    ]


def price_cells(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    """List price of everything that runs, per hour."""
    places = decimals((p.usd_per_hour for p in plans), digits=3)
    return [(figure(p.usd_per_hour, places),) for p in plans]


def interval(seconds: float) -> str:
    """An interval in its usual unit: 1 min, 10 min, 2 h."""
    return fmt.duration(seconds) if seconds >= 3600.0 else f"{fmt.number(seconds / 60.0)} min"


def intervals(checkpointing: Checkpointing) -> str:
    """The intervals that are as good as the best: 5 to 20 min; one if no other is."""
    low, high = checkpointing.as_good_s
    if not low < high:
        return interval(checkpointing.interval_s)
    first, last = interval(low), interval(high)
    same = first.rpartition(" ")[2] == last.rpartition(" ")[2]
    return f"{first.rpartition(' ')[0] if same else first} to {last}"


def checkpoint_cell(checkpointing: Checkpointing) -> tuple[str, ...]:
    """Where checkpoints go and how often."""
    if checkpointing.path == "none":
        return ("none",)
    return (_PATHS[checkpointing.path], f"every {intervals(checkpointing)}")


def saving_cell(plan: Plan) -> tuple[str, ...]:
    """The saving against the best on-demand plan, or the extra cost."""
    if plan.saving is None:
        return ("",)
    return (fmt.percent(plan.saving) if plan.saving >= 0.0 else more_expensive(plan.saving),)


def more_expensive(saving: float) -> str:
    """A negative saving in words: 12 % more, 11× the cost."""
    if saving > -0.5:
        return f"{fmt.percent(-saving)} more"
    return f"{fmt.number(1.0 - saving)}× the cost"


def compared_row(
    name: str, plan: Plan, cost: Spread, time: Spread, chance: float, unit: float
) -> tuple[str, ...]:
    """A plan next to another: its machines, its cost and time with their spans, its chance."""
    places = decimals([time.p50 / unit])
    return (
        name,
        "\n".join(machines_lines(plan)),
        f"{fmt.usd(cost.mean)}\n{fmt.usd_span(cost.p05, cost.p95)}",
        f"{figure(time.p50 / unit, places)}\n{span(time, unit, places)}",
        fmt.share(chance),
    )
