"""Traces as tables: what was recorded, what a fit found, which laws are saved."""

from collections.abc import Callable, Iterator, Sequence

from recommender.plan.limits import OfferLaw
from recommender.report import formatting as fmt
from recommender.report.json_output import plain
from recommender.report.page import Page, Rows, headings
from recommender.traces.fit_result import (
    GangSize,
    GroupLosses,
    LawFit,
    MarketLaw,
    PriceStatistics,
    TraceFit,
    Value,
    Watched,
)

SHOW_SCHEMA = "recommend.traces/v1"
_BARS = "▁▂▃▄▅▆▇█"
FIT_SCHEMA = "recommend.trace-fit/v1"
COLUMNS = ("part", "of", "figure", "value", "low", "high", "unit")
_FEW_WEEKS_H = 3 * 7 * 24.0  # below it a law predicted worse than its class (docs/traces.md)
_MAX_PRICES = 6  # series whose prices are printed


def share_bars(shares: Sequence[float]) -> str:
    """Shares from 0 to 1 as bars, one character each; only 0 is the lowest bar."""
    return "".join(_bar(share) for share in shares)


def _bar(share: float) -> str:
    if share <= 1e-9:
        return _BARS[0]
    return _BARS[min(1 + int(share * 7 * (1 - 1e-9)), 7)]


def series_page(found: TraceFit) -> Page:
    """One row per series: duration, share of the time up, and a line over time."""
    columns = headings("series:", "watched", "up", "interruptions", "USD/h")
    return Page(
        title=f"{len(found.series)} series",
        columns=columns,
        rows=tuple(_series_row(series) for series in found.series),
        flexible=0,
        below=_legend(found),
        facts={"schema": SHOW_SCHEMA, "series": plain(found.series)},
    )


def _series_row(s: Watched) -> tuple[str, ...]:
    about = " · ".join(fmt.clean(word) for word in _about(s) if word)
    lines = [fmt.clean(s.name), about, share_bars(s.shares or s.price_line)]
    return (
        "\n".join(line for line in lines if line),
        fmt.duration(s.hours * 3600.0),
        "" if s.availability is None else fmt.percent(s.availability.value),
        "" if s.availability is None else f"{s.interruptions:,}",
        "" if s.prices is None else _price(s.prices),
    )


def _about(s: Watched) -> list[str]:
    place = s.zone or s.region
    known = "" if place and place in s.name else " ".join(w for w in (s.provider, place) if w)
    machines = f"{s.capacity}x " if s.capacity > 1 else ""
    machine = f"{machines}{s.machine or 'machines'}" if s.capacity or s.machine else ""
    kind = {"probe": "probed", "hold": "held"}.get(s.kind, "")
    every = f"every {fmt.duration(s.step_s)}" if s.step_s else ""
    return [known, machine, " ".join(w for w in (kind, every) if w), s.begin[:10]]


def _price(prices: PriceStatistics) -> str:
    if prices.min_usd == prices.most_usd:
        return fmt.number(prices.mean_usd.value)
    return f"{fmt.number(prices.min_usd)}-{fmt.number(prices.most_usd)}"


def _legend(found: TraceFit) -> tuple[str, ...]:
    parts = []
    if any(series.shares for series in found.series):
        parts.append("up: one machine, share of the time; bars: share of the machines up")
    if any(series.price_line and not series.shares for series in found.series):
        parts.append("bars of prices: from the least to the most")
    return tuple(parts)


def laws_page(laws: Sequence[OfferLaw], path: str) -> Page:
    """The saved laws, one row each."""
    columns = headings("offer:", "mean run", "up", "fitted", "trace:")
    return Page(
        title="" if laws else "No spot law of your own is saved.",
        columns=columns,
        rows=tuple(_law_row(law) for law in laws),
        flexible=4,
        below=(f"saved in {fmt.clean(path)}",),
        facts={"path": path, "laws": plain(tuple(laws))},
    )


def _law_row(law: OfferLaw) -> tuple[str, ...]:
    seen = f", {law.seen}" if law.seen else ""
    return (
        fmt.clean(law.offer),
        fmt.duration(law.run_mean_s),
        fmt.percent(law.availability),
        law.fitted,
        f"{fmt.clean(law.trace)}{seen}, {law.interruptions:,} interruptions",
    )


_Row = tuple[str, str, str, str]  # figure, value, limits, note
_Cells = tuple[str, str, str, Value, str]  # part, of, figure, value, unit


def fit_page(found: TraceFit, stored: Sequence[str]) -> Page:
    """The figures as a table; `stored` names the offers for which the law was saved."""
    columns = headings("figure:", "value", "95 % limits", "note:")
    below = [f"no law for the planner: {found.no_law}"] if found.no_law else []
    below += [f"saved for {fmt.clean(offer)}; recommend uses it from now on" for offer in stored]
    longest = max(series.hours for series in found.series)
    if stored and longest < _FEW_WEEKS_H:
        seen = fmt.duration(longest * 3600.0)
        below.append(f"warning: watched for only {seen}; availability moves from week to week")
    return Page(
        title=_title(found),
        columns=columns,
        rows=tuple(_rows(found)),
        flexible=3,
        below=tuple(below),
        facts={"schema": FIT_SCHEMA, "stored": list(stored), **plain(found)},
        sheet=lambda: _sheet(found),
    )


def _sheet(found: TraceFit) -> Rows:
    """Every figure with its confidence limits, one row each."""
    body = (
        (part, of, figure, _exact(v.value), _exact(v.low), _exact(v.high), unit)
        for part, of, figure, v, unit in _cells(found)
    )
    return [COLUMNS, *body]


def _exact(number: float | None) -> str:
    found = plain(number)
    return "" if found is None else str(found)


def _title(found: TraceFit) -> str:
    hours = sum(series.hours for series in found.series)
    machines = fmt.listing(sorted({fmt.clean(s.machine) for s in found.series if s.machine}))
    kinds = {"probe": "probed", "hold": "held"}
    kind = fmt.listing(sorted({kinds[s.kind] for s in found.series if s.kind}))
    counted = f"{len(found.series)} series, {fmt.duration(hours * 3600.0)} watched"
    return ", ".join(word for word in (counted, machines, kind) if word)


def _rows(found: TraceFit) -> Iterator[_Row]:
    yield from (_fit_row(law) for law in found.laws)
    yield from (_size_row(size) for size in found.sizes)
    if found.co_interruption is not None:
        yield _row("gang: reclaimed together", found.co_interruption, "co-interruption ρ")
    if found.groups is not None:
        yield from _group_rows(found.groups)
    if found.zones is not None:
        z = found.zones
        note = f"{fmt.clean(z.lowest)} {fmt.percent(z.low)}, "
        note += f"{fmt.clean(z.highest)} {fmt.percent(z.high)}"
        yield _row("series differ by", z.sd, f"sd of the share up; {note}", fmt.percent)
    yield from _hour_rows(found.hours)
    priced = [series for series in found.series if series.prices is not None]
    yield from (row for series in priced[:_MAX_PRICES] for row in _price_rows(series))
    if len(priced) > _MAX_PRICES:
        yield f"prices of {len(priced) - _MAX_PRICES} more series", "", "", "-o csv"
    if found.law is not None:
        yield from _market_rows(found.law)


def _row(
    figure: str, value: Value, note: str = "", written: Callable[[float], str] = fmt.number
) -> _Row:
    limits = ""
    if value.low is not None and value.high is not None:
        limits = f"{written(value.low)} to {written(value.high)}"
    return figure, written(value.value), limits, note


def _hours(hours: float) -> str:
    return fmt.duration(hours * 3600.0)


def _fit_row(law: LawFit) -> _Row:
    shape, s = "", law.shape
    if s.low is not None and s.high is not None:
        name = "σ" if law.family == "lognormal" else "k"
        shape = f", {name} {fmt.number(s.value)} ({fmt.number(s.low)} to {fmt.number(s.high)})"
    counted = f"{law.seen:,} observed, {law.unfinished} censored"
    note = f"mean {_hours(law.mean_h.value)}{shape}, AIC {fmt.number(law.aic)}"
    best = "; best" if law.best else ""
    return _row(
        f"{law.what}: {law.family} median", law.median_h, f"{note}{best}; {counted}", _hours
    )


def _size_row(size: GangSize) -> _Row:
    name = "one machine up" if size.machines == 1 else f"gang of {size.machines} up"
    run = size.run_mean_h
    if run is None:
        note = "never interrupted" if size.availability.value > 0.0 else "never up"
        return _row(name, size.availability, note, fmt.percent)
    limits = "" if run.low is None or run.high is None else f" ({_span(run.low, run.high)})"
    note = f"runs {_hours(run.value)}{limits}, {size.interruptions:,} interruptions"
    return _row(name, size.availability, note, fmt.percent)


def _span(low: float, high: float) -> str:
    return f"{_hours(low)} to {_hours(high)}"


def _group_rows(groups: GroupLosses) -> Iterator[_Row]:
    note = f"machines at once; {groups.lost:,} reclaimed at {groups.moments:,} moments"
    yield _row("reclaimed in groups of", groups.mean_group, note)
    yield _row(
        "reclaimed with another", groups.share_in_groups, "of reclaimed machines", fmt.percent
    )
    yield _row("reclaims", groups.per_machine_hour, "per machine-hour up")
    if groups.co_interruption is not None:
        yield _row("named machines: ρ", groups.co_interruption, "co-interruption")


def _hour_rows(hours: Sequence[Value]) -> Iterator[_Row]:
    if not hours:
        return
    ranked = sorted(range(24), key=lambda hour: hours[hour].value)
    for word, hour in (("worst", ranked[0]), ("best", ranked[-1])):
        name = f"{word} hour of the day"
        yield _row(name, hours[hour], f"from {hour:02d}:00 UTC, one machine up", fmt.percent)


def _price_rows(series: Watched) -> Iterator[_Row]:
    p = series.prices
    assert p is not None  # only priced series come here
    moves = "".join(
        f", moves {fmt.percent(move.value)} in {days} d"
        for days, move in ((1, p.moves_1d), (7, p.moves_7d))
        if move is not None
    )
    span = f"{fmt.number(p.min_usd)} to {fmt.number(p.most_usd)}"
    note = f"USD/h, {span}; {fmt.number(p.changes_per_day.value)} changes a day{moves}"
    yield _row(f"price {fmt.clean(series.name)}", p.mean_usd, note)


def _market_rows(law: MarketLaw) -> Iterator[_Row]:
    yield _row("law: mean run", law.run_mean_s, "of one machine, until reclaimed", fmt.duration)
    yield _row("law: σ of runs", law.run_sigma, "of ln(run), keeps the mean")
    yield _row("law: σ of outages", law.outage_sigma, "of ln(outage)")
    yield _row("law: median day up", law.availability, "median of the days", fmt.percent)
    untold = as_class = "not identified by this trace; that of the GPU's class"
    if law.short_runs is not None:
        yield _row("law: short runs", law.short_runs, "of 20 min at most", fmt.percent)
        untold = "that of the GPU's class, adjusted by the short runs"
    for name, value, note, otherwise in (
        ("law: days differ by", law.zone_sd, "sd of the logit of a day's availability", as_class),
        ("law: gang loses", law.availability_slope, "logits from one machine to nine", untold),
        ("law: ρ", law.co_interruption, "co-interruption", as_class),
    ):
        yield (name, "", "", otherwise) if value is None else _row(name, value, note)


def _of(part: str, of: str, **figures: tuple[Value | float | None, str]) -> Iterator[_Cells]:
    """The figures that are known of one thing, each with its unit."""
    for name, (value, unit) in figures.items():
        if value is not None:
            yield part, of, name, value if isinstance(value, Value) else Value(value), unit


def _cells(found: TraceFit) -> Iterator[_Cells]:
    for law in found.laws:
        yield from _of(
            "law", f"{law.what} {law.family}", median=(law.median_h, "h"), mean=(law.mean_h, "h"),
            shape=(law.shape, ""), aic=(law.aic, ""), seen=(law.seen, "intervals"),
            unfinished=(law.unfinished, "intervals"),
        )  # fmt: skip
    for size in found.sizes:
        yield from _of(
            "gang", str(size.machines), availability=(size.availability, "share"),
            run_mean=(size.run_mean_h, "h"), interruptions=(size.interruptions, ""),
        )  # fmt: skip
    yield from _of("gang", "all", co_interruption=(found.co_interruption, ""))
    if found.groups is not None:
        g = found.groups
        yield from _of(
            "groups", "all", mean_group=(g.mean_group, "machines"),
            share_in_groups=(g.share_in_groups, "share"),
            per_machine_hour=(g.per_machine_hour, "1/h"), co_interruption=(g.co_interruption, ""),
        )  # fmt: skip
    if found.zones is not None:
        yield from _of("series", "all", sd_of_availability=(found.zones.sd, "share"))
    for hour, value in enumerate(found.hours):
        yield from _of("hour", f"{hour:02d} UTC", availability=(value, "share"))
    for series in found.series:
        yield from _series_cells(series)
    if found.law is not None:
        yield from _market_cells(found.law)


def _series_cells(series: Watched) -> Iterator[_Cells]:
    up, p = series.availability, series.prices
    yield from _of(
        "series", series.name, watched=(series.hours, "h"), availability=(up, "share"),
        interruptions=(None if up is None else series.interruptions, ""),
    )  # fmt: skip
    if p is not None:
        yield from _of(
            "price", series.name, mean=(p.mean_usd, "USD/h"), least=(p.min_usd, "USD/h"),
            most=(p.most_usd, "USD/h"), changes_per_day=(p.changes_per_day, "1/d"),
            moves_1d=(p.moves_1d, "rms of ln"), moves_7d=(p.moves_7d, "rms of ln"),
        )  # fmt: skip


def _market_cells(law: MarketLaw) -> Iterator[_Cells]:
    return _of(
        "planner", "law", run_mean=(law.run_mean_s, "s"), run_sigma=(law.run_sigma, ""),
        outage_sigma=(law.outage_sigma, ""), availability=(law.availability, "share"),
        zone_sd=(law.zone_sd, "logit"), availability_slope=(law.availability_slope, "logit"),
        co_interruption=(law.co_interruption, ""), short_runs=(law.short_runs, "share"),
    )  # fmt: skip
