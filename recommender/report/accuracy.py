"""The errors of the models on published measurements: a line of figures per study."""

from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table

from recommender.plan.accuracy import SPANS, Finding, PublishedRun, Score
from recommender.report.formatting import large
from recommender.report.json_output import picked
from recommender.report.layout import BLANK, FAINT, STRONG, Block, add_row, inset, sheet, text
from recommender.report.page import Page, headings

_TITLE = "Errors on published measurements, by what the models had seen of them"
_HEADS = ("points", "mean", "median", "p90", "bias", "in span")
_FIGURE = 6  # columns of a figure at least
_NARROW = 76  # columns below which figures go on a line of their own


# Studies whose keys begin alike, and what they predict; one line each on the first screen.
GROUPS = {
    "training": "speed, nothing measured",
    "later": "runs published after the fit",
    "finetuning": "speed, nothing measured",
    "runs": "whole runs; lengths of spot runs",
    "other": "speed in another precision",
    "scaling": "speed of larger clusters",
    "one": "speed at other numbers of GPUs",
    "deepvm": "ResNet-18, up to 32 machines",
    "gavel": "four models on 4 and 8 GPUs",
    "collectives": "all-reduce",
    "parcae": "pipelines on 32 machines",
    "parallel": "model parallelism",
    "recipes": "Hopper and Blackwell",
    "layout": "the fastest parallelism",
    "cmdare": "parameter servers",
    "spot": "availability, gangs, jobs",
    "lifetimes": "preemptible machines",
}
_COLUMNS = ("studies", "points", "error", "in span", "missed")


def accuracy_page(
    findings: Sequence[Finding], runs: Sequence[PublishedRun], by_group: bool
) -> Page:
    """Published runs, then studies one by one or by their groups."""
    made = facts(findings, runs=runs)
    if by_group:
        return replace(groups_page(findings), facts=made)
    studies = Page(
        view=lambda width: render(findings, width),
        sheet=lambda: [
            ("study", "predicted", *_HEADS),
            *((each.key, each.subject, *_figures(each.score)) for each in findings),
        ],
    )
    if not runs:
        return replace(studies, facts=made)
    gap = (Page(view=lambda _: [BLANK]), studies) if findings else ()
    return replace(runs_page(runs), then=gap, facts=made)


def groups_page(findings: Sequence[Finding]) -> Page:
    """One line for each group of studies: error and share in the span over all their points."""
    groups: dict[str, list[Finding]] = {}
    for each in findings:
        if each.score is not None:
            groups.setdefault(each.key.partition("-")[0], []).append(each)
    return Page(
        title=_TITLE,
        columns=headings("group: what is predicted:", *_COLUMNS),
        rows=tuple(_group_row(name, studies) for name, studies in groups.items()),
        flexible=0,
        below=(
            "Error: mean absolute error in per cent; in span: share of the measurements inside "
            "the 5-95 % span that an answer would print (ideal: 90 %); missed: targets.",
            "recommend accuracy GROUP shows its studies with targets and sources; runs: published "
            "runs one by one.",
        ),
    )


def _group_row(name: str, studies: Sequence[Finding]) -> tuple[str, ...]:
    scores = [each.score for each in studies if each.score is not None]
    errors = [(s.points, s.mean) for s in scores if s.unit == "%" and s.mean is not None]
    spans = [(s.points, 100.0 * s.coverage) for s in scores if s.coverage is not None]
    asked = [e for e in studies if e.target.words and e.score is not None]
    missed = sum(not e.target.met_by(e.score) for e in asked if e.score is not None)
    return (
        f"{name}: {GROUPS[name]}",
        f"{len(studies)}",
        f"{sum(s.points for s in scores):,}",
        _weighted(errors),
        _weighted(spans),
        f"{missed} of {len(asked)}" if asked else "",
    )


def _weighted(parts: Sequence[tuple[int, float]]) -> str:
    """The mean over all points, in per cent; "" where there is none."""
    points = sum(count for count, _ in parts)
    return f"{sum(count * x for count, x in parts) / points:.0f} %" if points else ""


def render(findings: Sequence[Finding], width: int, reference: str = "") -> list[Block]:
    """Each study: what is predicted, its figures, and the target and published figure below."""
    run = [each for each in findings if each.score is not None]
    blocks: list[Block] = [text(_TITLE, STRONG), BLANK]
    for i, each in enumerate(run):
        blocks += _stacked(each) if width < _NARROW else [_study(each, width, header=not i)]
        blocks.append(inset(text(_finding_notes(each), FAINT)))
    return [*blocks, BLANK, *map(text, _below(findings, reference))]


def _study(each: Finding, width: int, header: bool) -> Table:
    """One study as a table of one row, so that its words below have the whole width."""
    heads = [*headings("predicted:", *_HEADS)]
    table = sheet(heads, flexible=0)
    table.show_header = header
    widths = [max(_FIGURE, len(head)) for head in _HEADS]
    for column, least in zip(table.columns[1:], widths, strict=True):
        column.min_width = least  # with or without a header, so that the studies align
    table.columns[0].min_width = width - sum(least + 2 for least in widths)
    add_row(table, [(cell,) for cell in (each.subject, *_figures(each.score))], first=STRONG)
    return table


def _stacked(each: Finding) -> list[Block]:
    figures = zip(_HEADS, _figures(each.score), strict=True)
    words = ", ".join(f"{head} {figure}" for head, figure in figures if figure)
    return [text(each.subject, STRONG), inset(text(words))]


def _finding_notes(each: Finding) -> str:
    """Its key, the split, the target, what others reached, and the source."""
    nothing = each.published.startswith("none")
    published = f"published {each.published}" if each.published and not nothing else ""
    return " · ".join(w for w in (each.key, each.split, _asked(each), published, each.source) if w)


def _figures(score: Score | None) -> tuple[str, ...]:
    if score is None:
        return ("",) * len(_HEADS)
    digits, unit = (1, " %") if score.unit == "%" else (3, "")
    each = (score.mean, score.median, score.p90)
    absolute = tuple("" if x is None else f"{x:.{digits}f}{unit}" for x in each)
    span = "" if score.coverage is None else f"{100 * score.coverage:.0f} %"
    bias = "" if score.bias is None else f"{score.bias:+.{digits}f}{unit}"
    return (str(score.points), *absolute, bias, span)


def _asked(each: Finding) -> str:
    """The target, and whether it was reached."""
    if each.score is None:
        return ""
    unit = f" {each.score.unit}" if each.score.unit != "share" else ""
    parts = []
    if each.target.words:
        parts.append(
            f"target {each.target.words}{unit}: {_verdict(each.target.met_by(each.score))}"
        )
    if each.score.spans_met is not None:
        parts.append(f"span {_verdict(each.score.spans_met)}")
    return ", ".join(parts)


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _below(findings: Sequence[Finding], reference: str) -> list[str]:
    run = [(each.target, each.score) for each in findings if each.score is not None]
    with_target = [(target, score) for target, score in run if target.words]
    met = sum(target.met_by(score) for target, score in with_target)
    spans = [score.spans_met for _, score in run if score.spans_met is not None]
    least, most = (round(100 * share) for share in SPANS)
    parts = [
        f"{len(run)} of {len(findings)} studies run, {met} of {len(with_target)} targets met, "
        f"spans met by {sum(spans)} of {len(spans)}. "
        "Mean, median, p90: absolute error; bias: median, signed; in span: share of "
        "the measurements inside the 5-95 % span that an answer would print "
        f"(ideal: 90 %, target: {least} to {most} %, in whole measurements)."
    ]
    if reference:
        parts.append(f"Large tables read from {reference}.")
    return [*parts, *_skipped(findings)]


def _skipped(findings: Sequence[Finding]) -> list[str]:
    """The studies that did not run, by what they lack."""
    skipped = [each for each in findings if each.score is None]
    return [
        f"Skipped, {why}: {', '.join(each.key for each in skipped if each.skipped == why)}."
        for why in dict.fromkeys(each.skipped for each in skipped)
    ]


_RUN_HEADS = headings("run:", "GPUs", "published", "predicted", "ratio", "span", "in it")


def runs_page(runs: Sequence[PublishedRun]) -> Page:
    """Each published run: its GPU-hours, those predicted, and their source."""
    inside = sum(each.in_span for each in runs)
    mean = 100.0 * sum(abs(each.ratio - 1.0) for each in runs) / len(runs)
    return Page(
        title="GPU-hours of published training runs, with nothing measured",
        columns=_RUN_HEADS,
        rows=tuple(map(_run_row, runs)),
        flexible=0,
        below=(
            f"{len(runs)} runs, mean error {mean:.1f} %, {inside} in their span. Ratio: predicted "
            "over published; span: predicted for 9 runs in 10. Published hours include "
            "evaluations, stops and repeated work.",
            "Sources:",
            *(f"{each.run}: {each.source}" for each in runs),
        ),
        facts=[_run_facts(each) for each in runs],
    )


def _run_row(each: PublishedRun) -> tuple[str, ...]:
    low, high = each.span
    return (
        each.run,
        f"{each.gpus:,} {each.gpu}",
        large(each.published_gpu_hours),
        large(each.predicted_gpu_hours),
        f"{each.ratio:.2f}",
        f"{large(low)}-{large(high)}",
        "yes" if each.in_span else "no",
    )


def _run_facts(each: PublishedRun) -> dict[str, object]:
    return {
        **picked(each, "run", "gpu", "gpus"),
        **picked(each, "published_gpu_hours", "predicted_gpu_hours", "ratio"),
        "span_gpu_hours": each.span,
        **picked(each, "in_span", "source"),
    }


def facts(
    findings: Sequence[Finding], reference: str = "", runs: Sequence[PublishedRun] = ()
) -> dict[str, object]:
    """The page's facts as plain objects, for programs."""
    found: dict[str, object] = {"runs": runs_page(runs).facts} if runs else {}
    studies = [_facts(each) for each in findings]
    return {**found, "studies": studies, "reference": reference or None}


def _facts(each: Finding) -> dict[str, object]:
    return {
        **picked(each, "key", "subject", "split"),
        "asked": each.target.words,
        **picked(each, "published", "source"),
        "skipped": each.skipped or None,
        "score": None if each.score is None else _score(each.score, each),
    }


def _score(score: Score, each: Finding) -> dict[str, object]:
    return {
        **picked(score, "points", "unit", "mean", "median", "p90", "bias", "coverage", "near"),
        "met": each.target.met_by(score) if each.target.words else None,
        "spans_met": score.spans_met,
    }
