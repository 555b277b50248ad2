"""Benchmarks as tables: own speeds, FLOP per dollar, a comparison of two records."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from recommender.performance.measurements.pool import (
    Compared,
    Links,
    OfferFlopp,
    Pooled,
    Rate,
    StallVector,
)
from recommender.report import formatting as fmt
from recommender.report.page import Column, Page, headings

_SOURCES = {
    "yours": "yours",
    "measured": "published",
    "derived": "similar GPUs",
    "fallback": "vendor's peak *",
}


def speeds_page(speeds: Sequence[Pooled], title: str, below: tuple[str, ...] = ()) -> Page:
    """Own matrix speeds, one row per GPU and precision."""
    columns = headings("GPU:", "precision:", "TFLOP/s", "range", "of peak", "machines", "as of")
    rows = tuple(
        (
            fmt.clean(s.gpu),
            s.precision,
            fmt.number(s.tflops),
            f"{fmt.number(s.low)}-{fmt.number(s.high)}",
            fmt.percent(s.share) if s.share is not None else "unknown",
            f"{s.machines}{f', {s.outliers} off' if s.outliers else ''}",
            s.as_of,
        )
        for s in speeds
    )
    return Page(title, columns, rows, 0, below)


def rates_page(rates: Sequence[Rate]) -> Page:
    """Everything else that was measured."""
    columns = headings("machine:", "what:", "rate", "as of")
    rows = tuple(
        (
            fmt.clean(r.machine),
            f"{fmt.clean(r.name)}{' (disturbed)' if r.doubtful else ''}",
            f"{fmt.number(r.value)} {r.unit}",
            r.as_of,
        )
        for r in rates
    )
    return Page("Memory, links, disk and input", columns, rows, 1)


def offers_page(found: Sequence[OfferFlopp], most: int, precision: str) -> Page:
    """Offers by FLOP per dollar, the best first."""
    columns = headings("#", "offer:", "market:", "USD/h", "TFLOP/s", "FLOP/USD", "speed:")
    rows = tuple(_offer(rank, each) for rank, each in enumerate(found[:most], 1))
    below = [f"{len(found) - most:,} more: --top {len(found)}"] if len(found) > most else []
    if any(each.kind == "fallback" for each in found[:most]):
        below.append("* not measured: the vendor's peak times the share that similar GPUs reach")
    title = f"Matrix multiplication in {precision} per dollar"
    return Page(title, columns, rows, 1, tuple(below))


def _offer(rank: int, each: OfferFlopp) -> tuple[str, ...]:
    where = fmt.clean(each.zone or each.region)
    return (
        str(rank),
        f"{fmt.clean(each.instance_type)}\n{each.gpus} {fmt.clean(each.gpu)} · "
        f"{each.provider} {where}",
        fmt.market(each.market),
        f"{each.usd_per_hour:,.4g}",
        fmt.number(each.gpus * each.tflops),
        fmt.scientific(each.flop_per_usd),
        _SOURCES[each.kind],
    )


def measured_page(
    speeds: Sequence[Pooled],
    rates: Sequence[Rate],
    found: Sequence[OfferFlopp],
    most: int,
    precision: str,
) -> Page:
    """What was measured, then offers by FLOP per dollar."""
    own = [speeds_page(speeds, "Your own speeds")] if speeds else []
    own += [rates_page(rates)] if rates else []
    first, *rest = (*own, offers_page(found, most, precision))
    facts = {
        "measured": [asdict(each) for each in speeds],
        "rates": [asdict(each) for each in rates],
        "offers": [asdict(each) for each in found[:most]],
        "more": max(len(found) - most, 0),
    }
    return replace(first, then=tuple(rest), facts=facts)


def import_page(
    added: Sequence[str],
    speeds: Sequence[Pooled],
    links: Sequence[Links],
    warnings: Sequence[str],
    folder: str,
) -> Page:
    """The result of an import, and the speeds that plans now use."""
    kept = tuple(f"read {fmt.clean(line)}" for line in added)
    doubts = tuple(f"warning: {fmt.clean(line)}" for line in warnings)
    use = "recommend plans with these speeds from now on" if speeds else "no speed of a GPU in it"
    below = (*map(_link_line, links), *doubts, f"{use}; saved in {fmt.clean(folder)}")
    page = speeds_page(speeds, "Your own speeds", (*kept, *below))
    if not speeds:
        records = tuple((fmt.clean(line),) for line in added)
        page = Page("", (Column("record", right=False),), records, 0, below)
    facts = {
        "added": list(added),
        "measured": [asdict(each) for each in speeds],
        "links": [asdict(each) for each in links],
        "warnings": list(warnings),
        "folder": folder,
    }
    return replace(page, facts=facts)


def _link_line(each: Links) -> str:
    rates = {
        "between its GPUs": each.intra_gb_per_s,
        "between machines": each.network_gb_per_s,
        "to the host": each.host_gb_per_s,
    }
    text = ", ".join(f"{fmt.number(x)} GB/s {where}" for where, x in rates.items() if x)
    return f"links of {fmt.clean(each.provider)}/{fmt.clean(each.instance_type)}: {text}"


def stalls_page(found: StallVector, written: str) -> Page:
    """A stall vector: what each step waits for, what would help, and what is unknown."""
    columns = headings("stall:", "ms/step", "95 % limits", "of the step")
    rows = tuple(
        (
            each.name,
            fmt.number(1e3 * each.seconds),
            f"{fmt.number(1e3 * each.low)} to {fmt.number(1e3 * each.high)}",
            fmt.percent(each.share),
        )
        for each in found.stalls
    )
    then = (f"with {change}: {fmt.number(1e3 * s)} ms a step" for change, s in found.what_ifs)
    unknown = (f"not known, {line}" for line in found.missing)
    kept = (f"written to {fmt.clean(written)}; recommend calibrate JOB reads it",)
    gpus = f"{found.gpus} {fmt.clean(found.device)}"
    where = gpus if found.machines == 1 else f"{gpus} on {found.machines} machines"
    name = fmt.clean(found.training) or "a training"
    title = f"Stalls of {name}, {where}: {fmt.number(1e3 * found.step_s)} ms a step"
    below = (*then, *unknown, *(kept if written else ()))
    return Page(title, columns, rows, 0, below, asdict(found))


def compare_page(found: Sequence[Compared], first: str, second: str) -> Page:
    """Two records case by case; differences within noise are marked."""
    columns = headings("case:", "unit:", "A", "B", "B/A", ":")
    rows = tuple(
        (
            fmt.clean(c.name),
            c.unit,
            fmt.number(c.first),
            fmt.number(c.second),
            f"{c.ratio:.2f}",
            "" if c.beyond_noise else "noise",
        )
        for c in found
    )
    below = (f"A: {fmt.clean(first)}", f"B: {fmt.clean(second)}",
             "noise: the 95 % intervals of the two medians overlap")  # fmt: skip
    return Page(
        "Two records, the cases found in both",
        columns,
        rows,
        0,
        below,
        [{**asdict(c), "ratio": c.ratio} for c in found],
    )
