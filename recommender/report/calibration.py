"""A calibration as tables: the constants with their uncertainty, and every run."""

from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from recommender.job.calibration_section import section
from recommender.job.job import Calibration, Fitted, TimedRun
from recommender.performance.measured import MAX_OF_MATMUL, UNIT_ERROR
from recommender.report import formatting as fmt
from recommender.report.json_output import CALIBRATION_SCHEMA
from recommender.report.page import Page, headings

SAME_STEP = 0.1  # by which runs may be quicker than those that have less to do
SAME_BATCH = 0.05  # by which batches per GPU may differ in a stall vector
UNDETERMINED_SD = 7.0  # sd of ln from which a constant is not known at all: a factor of a thousand
FAR = 30.0  # times what is shipped: 10 Gbit/s TCP to InfiniBand, 50 to 2 µs


def calibration_page(
    own: Calibration,
    efficiency: float,
    tensor_s: float,
    runs: tuple[TimedRun, ...],
    predicted_s: tuple[float, ...],
    written: str,
) -> Page:
    """Every run, then every constant."""
    return replace(
        runs_page(runs, predicted_s),
        then=(constants_page(own, efficiency, tensor_s, written),),
        facts=calibration_facts(own, runs, predicted_s, written),
    )


def constants_page(own: Calibration, efficiency: float, tensor_s: float, written: str) -> Page:
    """Every constant, as shipped and as fitted, with its uncertainty."""
    columns = headings("constant:", "what it is:", "shipped", "yours", "spread")
    rows = _constants(own, efficiency, tensor_s)
    below = (
        *_doubts(own, efficiency),
        f"Speed of one machine whose GPU was timed: ± {fmt.percent(own.sigma)}; of several: "
        f"± {fmt.percent(own.sigma_several)}{_larger(own)}; of other GPUs of its "
        f"generation: ± {fmt.percent(own.sigma_other)}. One standard deviation.",
        "×/÷ 2: known to within a factor of two. Where yours equals shipped, no run informs it.",
        f"Written to {fmt.clean(written)}; recommend plans with it from now on.",
    )
    return Page(_title(own), columns, rows, 1, below)


def _constants(own: Calibration, efficiency: float, tensor_s: float) -> tuple[tuple[str, ...], ...]:
    """A row for each constant: its name, what it is, as shipped, as fitted, its spread."""
    return (
        *((f"efficiency, {gpu}", "share of achieved FLOP/s", *_value(value, efficiency))
          for gpu, value in own.gpus),
        ("efficiency, others", "of GPUs not timed", *_value(own.compute, efficiency)),
        ("tensor_s", "µs per gradient tensor", *_value(own.tensor, tensor_s * 1e6)),
        *([("small batches", "loss per micro-batch", *_time(own.penalty))] if own.penalty else ()),
        ("latency", "of the network", *_time(own.latency)),
        ("network", "sustained bandwidth", *_factor(own.network)),
        ("links", "bandwidth inside a machine", *_factor(own.links)),
        *([("servers", "time of an update", *_time(own.service))] if own.service else ()),
        *([("workers", "CPU time of an update", *_time(own.worker))] if own.worker else ()),
        ("overlap", "share overlapped; 0 until runs show it", "", fmt.number(round(own.overlap, 4)),
         f"± {fmt.number(own.overlap_sd)}"),
        *((f"samples/s, {feed.machine}", "prepared, fetched", "",
           f"{_rate(feed.prepare_per_s)}, {_rate(feed.fetch_per_s)}", "")
          for feed in own.feeds),
    )  # fmt: skip


def _doubts(own: Calibration, efficiency: float) -> tuple[str, ...]:
    """Constants that no sound run would give: GPUs too slow or too fast, links far off."""
    links = (("latency", own.latency), ("network", own.network), ("links", own.links))
    return (
        *(_slow(gpu, fitted) for gpu, fitted in own.gpus if fitted.factor < 1.0 / UNIT_ERROR),
        *(
            _fast(gpu, efficiency * fitted.factor)
            for gpu, fitted in own.gpus
            if efficiency * fitted.factor > MAX_OF_MATMUL
        ),
        *(
            _far(name, fitted.factor)
            for name, fitted in links
            if not 1.0 / FAR <= fitted.factor <= FAR
            if fitted.sd <= UNDETERMINED_SD or (name == "latency" and fitted.factor > FAR)
        ),
    )


def runs_page(runs: tuple[TimedRun, ...], predicted_s: tuple[float, ...]) -> Page:
    """Every run next to the calibrated model, and the difference."""
    columns = headings("run:", "machines:", "GPUs", "batch", "data:", "measured", "model", "off by")
    rows = tuple(
        (
            fmt.clean(run.place.rpartition(", ")[2]),
            f"{run.machines} × {run.machine}",
            str(run.gpus),
            f"{run.batch:,}",
            run.data,
            _seconds(run.step_s),
            _seconds(step),
            f"{100 * (step / run.step_s - 1):+.1f} %",
        )
        for run, step in zip(runs, predicted_s, strict=True)
    )
    fed = all(run.data in ("cached", "cold") for run in runs)
    unfed = "No run is on synthetic data: what waits for its input counts as compute."
    return Page("", columns, rows, 1, (*stalls(runs), *([unfed] if fed else [])))


def stalls(runs: tuple[TimedRun, ...]) -> tuple[str, ...]:
    """The stall vector of each machine that ran on synthetic, cached and cold data.

    Differences of one step time: interconnect T1 - T0 at the same batch per GPU, preparation
    T3 - T1, fetching T2 - T3, as shares of the step on cold data (Stash, ICDCS 2023).
    """
    phrases = []
    for name in dict.fromkeys(run.machine for run in runs if run.data):
        own = [run for run in runs if run.machine == name]
        whole_run = max(own, key=lambda run: run.gpus)
        all_gpus, each = whole_run.gpus, whole_run.batch / whole_run.gpus
        steps = {
            (run.data, run.gpus == all_gpus): run.step_s
            for run in own
            if run.gpus in (1, all_gpus) and abs(run.batch / run.gpus / each - 1.0) < SAME_BATCH
        }
        cold, cached = steps.get(("cold", True)), steps.get(("cached", True))
        many, one = steps.get(("synthetic", True)), steps.get(("synthetic", False))
        order = [("synthetic", many), ("cached", cached), ("cold", cold)]
        wrong = _out_of_order([(data, step) for data, step in order if step])
        if wrong:
            phrases.append(f"Runs on {name} contradict each other: {wrong}; are rows exchanged?")
            continue
        parts = (("interconnect", many, one), ("preparation", cached, many),
                 ("fetching", cold, cached))  # fmt: skip
        whole = cold or cached
        found = [
            f"{what} {fmt.percent(max(after - before, 0.0) / whole)}"
            for what, after, before in parts
            if whole and after and before
        ]
        if found:
            phrases.append(f"Of a step on {name}: {', '.join(found)}.")
    return tuple(phrases)


def _out_of_order(steps: list[tuple[str, float]]) -> str:
    """Which of two runs is quicker though it has more to do; empty where none is, within noise."""
    for (less, before), (more, after) in pairwise(steps):
        if after < (1.0 - SAME_STEP) * before:
            return f"{more} data {_seconds(after)}, {less} data {_seconds(before)}"
    return ""


def calibration_facts(
    own: Calibration, runs: tuple[TimedRun, ...], predicted_s: tuple[float, ...], written: str
) -> dict[str, Any]:
    """The page's facts as plain objects, for programs."""
    return {
        "schema": CALIBRATION_SCHEMA,
        "calibration": section(own),
        "runs": [
            {**asdict(run), "predicted_s": step}
            for run, step in zip(runs, predicted_s, strict=True)
        ],
        "written": written,
    }


def _larger(own: Calibration) -> str:
    """How unsure clusters are that are larger than the timed ones; empty where no more so."""
    text = fmt.percent(own.sigma_several)
    larger = [(n, fmt.percent(sd)) for n, sd in own.sigma_larger if fmt.percent(sd) != text]
    if not larger:
        return ""
    (first, _), (last, most) = larger[0], larger[-1]
    return f" up to {first}, ± {most} beyond {last}"


def _title(own: Calibration) -> str:
    family = own.constants.partition(",")[0].rpartition(" ")[0]
    return (
        f"Calibration on {fmt.plural(own.rows, 'run')}, {own.as_of}: constants of "
        f"{family}, residuals ± {fmt.percent(own.noise)}"
    )


def _value(fitted: Fitted, shipped: float) -> tuple[str, str, str]:
    return fmt.number(shipped), fmt.number(shipped * fitted.factor), _known(fitted)


def _slow(gpu: str, fitted: Fitted) -> str:
    return (
        f"Your runs on {gpu} are {fmt.number(1.0 / fitted.factor)} times slower than expected: is "
        "step_s in seconds, and batch that of all GPUs?"
    )


def _fast(gpu: str, share: float) -> str:
    return (
        f"Your runs on {gpu} reach {fmt.number(share)} times what matrix multiplication does "
        "there: is batch that of all GPUs, and are the job's FLOP per sample right?"
    )


def _far(name: str, factor: float) -> str:
    return (
        f"{name} × {fmt.number(factor)}: no such network is known; the runs rather waited for "
        "something else (data, stragglers, start-up), or a unit is wrong."
    )


def _factor(fitted: Fitted) -> tuple[str, str, str]:
    """A factor of the rate that is shipped; runs may show no bound of it."""
    if fitted.sd > UNDETERMINED_SD and fitted.factor > 1.0:
        return "× 1", "no limit seen", ""
    return "× 1", f"× {fmt.number(fitted.factor)}", _known(fitted)


def _time(fitted: Fitted) -> tuple[str, str, str]:
    """A factor of the time that is shipped; runs may show none."""
    if fitted.sd > UNDETERMINED_SD and fitted.factor < 1.0:
        return "× 1", "none seen", ""
    return "× 1", f"× {fmt.number(fitted.factor)}", _known(fitted)


def _known(fitted: Fitted) -> str:
    """A small sd in per cent, a large one as a factor."""
    if fitted.sd < 0.5:
        return f"± {fmt.percent(fitted.sd)}"
    return f"×/÷ {fmt.number(min(2.718281828**fitted.sd, 1e6))}"


def _seconds(step_s: float) -> str:
    """Three digits: 22 s would hide what the fit is about."""
    return f"{fmt.number(step_s)} s" if step_s >= 1 else f"{fmt.number(step_s * 1e3)} ms"


def _rate(per_s: float) -> str:
    return fmt.number(per_s) if per_s < float("inf") else "no limit seen"
