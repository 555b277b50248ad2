"""Every table and picture of a report prints the figures of its JSON, to the printed digit.

What JSON does not hold (single runs, one input changed) is compared with the report data. A table
that no rule below knows fails the test, so that a new one is compared as well.
"""

import html
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from recommender.plan.report_data import ReportData, Segment, Swing, SwingEnd
from recommender.report import formatting as fmt
from recommender.report.html import prices
from recommender.report.html.page import render
from recommender.text import duration, number, usd
from tests.recommender.report.html.reports import LIMITS, asked, facts, page

Rows = list[list[str]]
Json = dict[str, Any]
ANSWERED = sorted(set(LIMITS) - {"infeasible"})
TABLE = re.compile(r"<caption>(.*?)</caption><thead>.*?</thead><tbody>(.*?)</tbody>", re.DOTALL)
CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)
CENTS = re.compile(r"([\d,]+\.\d\d) USD")
SECONDS_OF = {
    "compute": "compute_s", "recomputation": "recompute_s", "network, exposed": "exposed_network_s",
    "intra-node, exposed": "exposed_intra_s", "inside the machine, exposed": "exposed_intra_s",
    "pipeline bubble": "bubble_s", "input": "input_s",
    "start-up": "start_up_s", "work": "work_s", "checkpoints": "checkpoint_s",
    "lost work, repeated": "lost_s", "lost work": "lost_s", "restarts": "restart_s",
    "waiting for capacity": "waiting_s",
}  # fmt: skip


def plainly(text: str) -> str:
    """The text of a cell without its elements, its blanks as blanks."""
    lines = text.replace("<small>", "\n")
    return html.unescape(re.sub(r"<[^>]*>", "", lines)).replace("\u00a0", " ")


def tables(text: str) -> Iterator[tuple[str, Rows]]:
    """Captions and cells of all tables, in the order of the page."""
    for caption, body in TABLE.findall(text):
        rows = (CELL.findall(row) for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL))
        yield plainly(caption), [[plainly(cell) for cell in row] for row in rows]


def of_caption(text: str, start: str) -> Rows:
    """The one table whose caption starts so."""
    (found,) = [rows for caption, rows in tables(text) if caption.startswith(start)]
    return found


def rounded_alike(found: list[tuple[str, Rows]], said: list[tuple[str, Rows]]) -> object:
    """Tables with the cents of JSON: of its six digits, half a cent may be rounded another way."""

    def cell(here: str, there: str) -> str:
        cents = [CENTS.fullmatch(text) for text in (here, there)]
        if not all(cents):
            return here
        one, other = (round(100 * float(each[1].replace(",", ""))) for each in cents if each)
        return there if abs(one - other) <= 1 else here

    if [[len(row) for row in rows] for _, rows in found] != [
        [len(row) for row in rows] for _, rows in said
    ]:
        return found
    return [
        (caption, [list(map(cell, *both)) for both in zip(rows, others, strict=True)])
        for (caption, rows), (_, others) in zip(found, said, strict=True)
    ]


def machines(plan: Json) -> str:
    """As a plan is called: "2× a3-highgpu-1g spot"."""
    market = {"on_demand": "on-demand"}
    return " + ".join(
        f"{m['count']}× {m['instance_type']} {market.get(m['market'], m['market'])}"
        for m in plan["machines"]
    )


def clock(cell: Json) -> tuple[str, str]:
    """The median and the span of a time."""
    return duration(cell["median"]), f"{duration(cell['p05'])} to {duration(cell['p95'])}"


def money(cell: Json) -> tuple[str, str]:
    """The mean and the span of a cost."""
    return usd(cell["mean_of_all_runs"]), f"{usd(cell['p05'])}-{usd(cell['p95'])}"


# What each table has to hold, by the start of its caption; those of plans in their order.


def _limits_table(doc: Json) -> Iterator[list[str]]:
    for plan in doc["plans"]:
        (cost, cost_span), (time, time_span) = money(plan["estimate"]["cost"]), clock(
            plan["estimate"]["time"]
        )  # fmt: skip
        chance = "" if doc["goal"] == "frontier" else fmt.share(plan["estimate"]["chance"])
        yield [f"{cost}\n{cost_span}", f"{time}\n{time_span}", chance,
               number(plan["usd_per_hour"])]  # fmt: skip


def _quantiles(doc: Json) -> Iterator[list[str]]:
    for plan in doc["plans"]:
        cost, time = plan["estimate"]["cost"], plan["estimate"]["time"]
        names = ("p05", "median", "p95", "p99")
        yield [
            f"plan {plan['rank']}",
            *(usd(cost[name]) for name in (*names, "mean_of_all_runs")),
            *(duration(time[name]) for name in names),
            fmt.share(plan["estimate"]["chance"]),
        ]


def _steps(doc: Json) -> Iterator[list[str]]:
    for step in doc["sensitivity"]:
        yield [step["change"], step["effect"], machines(step["plan"]) if step["plan"] else ""]


def _baseline(doc: Json) -> Iterator[list[str]]:
    for plan in doc["baselines"]:
        estimate = plan["estimate"]
        yield [plan["labels"][0], machines(plan), money(estimate["cost"])[0],
               clock(estimate["time"])[0], fmt.share(estimate["chance"])]  # fmt: skip


def _shares(doc: Json) -> Iterator[list[str]]:
    for each in doc["program"]["shares"]:
        yield [each["configuration"], fmt.percent(each["share"])]


def _worth(doc: Json) -> Iterator[list[str]]:
    for each in doc["program"]["worth"]:
        gain = (
            duration(3600 * each["gain"]) if doc["goal"] == "time" else f"{usd(each['gain'])} USD"
        )
        saved = f"saves {gain}" if each["gain"] > 0 else "saves nothing"
        yield [each["limit"], f"one more {each['unit']} {saved} ({each['source']})"]


def _founded(doc: Json) -> Iterator[list[str]]:
    for plan in doc["plans"]:
        estimate, spot = plan["estimate"], plan["spot"]
        yield [
            f"plan {plan['rank']}",
            f"(±{fmt.percent(estimate['speed_sigma'])})",
            f"(±{fmt.percent(plan['evidence']['price_sd'])})",
            min(m["as_of"][:10] for m in plan["machines"]),
            spot["as_of"] if spot else "no spot",
        ]


def _step_terms(plan: Json) -> Iterator[list[str]]:
    step = plan["estimate"]["step"]
    for name, key in list(SECONDS_OF.items())[:7]:
        if step[key] and name != "inside the machine, exposed":
            yield [name, duration(step[key]), fmt.percent(step[key] / step["step_s"])]
    where = "replica" if "tensor" in step["sharding"] or "pipeline" in step["sharding"] else "GPU"
    yield [
        "micro-batch",
        f"{step['micro_batch']} samples per {where}, accumulation {step['accumulation']}",
        f"sharding: {step['sharding']}",
    ]


def _memory_terms(plan: Json) -> Iterator[list[str]]:
    step = plan["estimate"]["step"]
    for name, gib in step["memory_parts_gib"]:
        if gib:
            yield [name, f"{number(gib)} GiB", fmt.percent(gib / step["memory_gib"])]


def _time_terms(plan: Json) -> Iterator[list[str]]:
    split = plan["estimate"]["split"]
    whole = sum(split.values())
    for name in ("start-up", "work", "checkpoints", "lost work, repeated", "restarts",
                 "waiting for capacity"):  # fmt: skip
        seconds = split[SECONDS_OF[name]]
        if seconds > 1e-6 * whole:
            yield [name, duration(seconds), fmt.percent(seconds / whole)]


def _bill_terms(plan: Json) -> Iterator[list[str]]:
    bill = plan["estimate"]["bill"]
    whole = sum(item["usd"] for item in bill)
    for item in bill:
        yield [item["item"], f"{item['usd']:,.2f} USD", fmt.percent(item["usd"] / whole)]


def _confidence(plan: Json) -> Iterator[list[str]]:
    estimate, known, od = plan["estimate"], plan["evidence"], plan["on_demand"]
    yield ["all limits met", fmt.share(estimate["chance"]), ""]
    yield ["all limits met, if the speed is as predicted",
           fmt.share(estimate["chance_if_speed_known"]), ""]  # fmt: skip
    if od:
        yield ["all limits met, if on-demand is available", fmt.share(od["chance_if_at_once"]),
               "at once"]  # fmt: skip
        yield ["on-demand machines are needed", fmt.percent(od["needed"]), "of all runs"]
        yield ["not available within an hour", fmt.percent(od["late"]), "of all runs"]
        yield ["available at once", fmt.percent(od["at_once"]), "of the time (assumed)"]
    yield ["speed uncertainty", f"±{fmt.percent(estimate['speed_sigma'])}",
           f"one sigma, {known['speed']}"]  # fmt: skip
    yield ["price drift", f"±{fmt.percent(known['price_sd'])}",
           f"one sigma, {known['price']} ({known['price_age_days']:.0f} days)"]  # fmt: skip
    yield ["work per dollar", f"{fmt.scientific(plan['flopp'])} FLOP/USD", "at list price"]
    if plan["best_share"] is not None:
        yield ["best of the table", f"{fmt.percent(plan['best_share'])} of draws",
               "of GPU speeds and prices"]  # fmt: skip


def _spot_terms(plan: Json) -> Iterator[list[str]]:
    spot, estimate = plan["spot"], plan["estimate"]
    often = round(estimate["interruptions"], 1)
    yield ["one machine runs", duration(spot["run_mean_s"]), "on average, until reclaimed"]
    yield ["this cluster runs", duration(spot["gang_run_mean_s"]), "until one is reclaimed"]
    yield ["reclaimed together", fmt.percent(spot["co_interruption"]), "of interruptions"]
    yield ["a run is interrupted", f"{number(often)} time{'' if often == 1 else 's'}", "on average"]
    yield ["runs that never wait", fmt.percent(spot["never_waits"]), "of all runs"]
    if spot["waiting_p50_s"] > 0:
        yield ["half of the runs wait", duration(spot["waiting_p50_s"]), "or less in total"]
    yield ["1 run in 20 waits", duration(spot["waiting_p95_s"]), "or more in total"]
    waiting = estimate["split"]["waiting_s"] / estimate["time"]["median"]
    yield ["waiting takes", fmt.percent(waiting), "of the time above"]
    yield ["basis", f"{spot['basis']}, {spot['as_of']}", ""]


def _step_title(plan: Json, job: Json) -> str:
    step = plan["estimate"]["step"]
    batch = job["global_batch"] * (plan["gpus"] if job["batch_per_gpu"] else 1)
    rate = batch * job["tokens_per_sample"] / step["step_s"]
    return f"One step: {duration(step['step_s'])}, {fmt.large(rate)} {job['sample_unit']}s/s"


def _time_title(plan: Json, _: Json) -> str:
    time = plan["estimate"]["time"]
    median, span = clock(time)
    return f"Time: half of the runs take {median} or less, 9 in 10 {span}; a usual run"


def _bill_title(plan: Json, _: Json) -> str:
    cost = plan["estimate"]["cost"]
    mean, span = money(cost)
    half = f"Bill: half of the runs cost {usd(cost['median'])} USD or less"
    return f"{half}, 9 in 10 {span} USD; on average {mean} USD"


def _memory_title(plan: Json, _: Json) -> str:
    return f"Memory of one GPU: {number(plan['estimate']['step']['memory_gib'])} GiB"


def _spot_title(plan: Json, _: Json) -> str:
    return f"Spot capacity of class {plan['spot']['name']}"


OF_ANSWER: dict[str, Callable[[Json], Iterator[list[str]]]] = {
    "Cost in USD and time of each plan": _quantiles,
    "Other limits, planned again": _steps,
    "Baselines": _baseline,
    "Shares of the work": _shares,
    "Shadow prices": _worth,
}
OF_PLAN: dict[str, tuple[Callable[[Json], Iterator[list[str]]], Callable[[Json, Json], str]]] = {
    "One step": (_step_terms, _step_title),
    "Memory of one GPU": (_memory_terms, _memory_title),
    "Time: ": (_time_terms, _time_title),
    "Bill: ": (_bill_terms, _bill_title),
    "Confidence": (_confidence, lambda plan, job: "Confidence"),
    "Spot capacity": (_spot_terms, _spot_title),
}  # fmt: skip
ELSEWHERE = ("in words", "Plans under these limits", "How well founded", "Three runs",
             "if one input changes")  # fmt: skip


@pytest.mark.parametrize("which", ANSWERED)
def test_every_table_of_the_answer_prints_the_figures_of_the_json(which: str):
    text = page(which)
    doc, compared = facts(text, "answer"), 0
    for caption, rows in tables(text):
        rule = [name for name in OF_ANSWER if caption.startswith(name)]
        if rule:
            wanted = list(OF_ANSWER[rule[0]](doc))
            assert [row[: len(wanted[0])] for row in rows] == wanted
            compared += 1
        else:
            known = any(caption.startswith(name) for name in OF_PLAN)
            assert known or any(name in caption for name in ELSEWHERE), f"{caption} is not compared"
    assert compared >= 3


@pytest.mark.parametrize("which", ANSWERED)
@pytest.mark.parametrize("part", OF_PLAN)
def test_every_table_of_a_plan_prints_the_figures_of_the_json(which: str, part: str):
    """Terms of a step, of memory, time and the bill, chances, the spot law: titles and cells."""
    text = page(which)
    doc, (wanted, title) = facts(text, "answer"), OF_PLAN[part]
    plans = [plan for plan in doc["plans"] if part != "Spot capacity" or plan["spot"]]
    found = [(caption, rows) for caption, rows in tables(text) if caption.startswith(part)]
    said = [(title(plan, doc["inputs"]["job"]), list(wanted(plan))) for plan in plans]
    assert rounded_alike(found, said) == said


@pytest.mark.parametrize("which", ANSWERED)
def test_the_plans_under_the_requested_limits_are_those_of_the_json(which: str):
    """The table as it reads without scripts; the script rewrites it."""
    text = page(which)
    doc = facts(text, "answer")
    rows = of_caption(text, "Plans under these limits")[: len(doc["plans"])]
    assert [row[2:] for row in rows] == list(_limits_table(doc))
    for row, plan in zip(rows, doc["plans"], strict=True):
        assert row[1].startswith(machines(plan))


@pytest.mark.parametrize("which", ANSWERED)
def test_evidence_and_dates_of_prices_are_those_of_the_json(which: str):
    text = page(which)
    doc = facts(text, "answer")
    rows = of_caption(text, "How well founded")
    for row, wanted in zip(rows, _founded(doc), strict=True):
        assert all(cell.endswith(part) for cell, part in zip(row, wanted, strict=True))
    items = [plainly(each) for each in re.findall(r"<li>(.*?)</li>", text, re.DOTALL)]
    for price in doc["provenance"]["prices"]:
        listed = f"{price['offers']:,} offers, prices of {price['as_of'][:10]}"
        assert any(item.endswith(listed) for item in items)


def test_limits_that_leave_a_plan_are_those_of_the_json():
    text = page("infeasible")
    nearest = facts(text, "answer")["infeasible"]["nearest"]
    assert of_caption(text, "Limits that leave a plan") == [
        [step["change"], machines(step["plan"]), money(step["plan"]["estimate"]["cost"])[0],
         clock(step["plan"]["estimate"]["time"])[0]]
        for step in nearest
    ]  # fmt: skip


@pytest.mark.parametrize("which", ANSWERED)
def test_bars_are_as_long_as_the_figures_and_say_them(which: str):
    """Time, bill and step of each plan; a bar ends where the JSON's figures add up to."""
    text = page(which)
    plans, drawn = facts(text, "answer")["plans"], facts(text, "pictures")["rows"]
    unit = facts(text, "page-data")["scale"]["unit_s"]
    for plan in plans:
        estimate = plan["estimate"]
        label = f"plan {plan['rank']}: {machines(plan)}"
        time, bill, step = (
            [part for part in drawn[name]["parts"] if part["plan"] == label]
            for name in ("time-parts", "bill-parts", "step-parts")
        )
        for parts, seconds, whole in (
            (time, estimate["split"], unit),
            (step, estimate["step"], estimate["step"]["step_s"]),
        ):
            for part in parts:
                figure = seconds[SECONDS_OF[part["part"]]]
                assert part["words"] == duration(figure)
                assert part["amount"] == pytest.approx(figure / whole, rel=1e-3)
        paid = sum(item["usd"] for item in estimate["bill"])
        assert sum(part["amount"] for part in bill) == pytest.approx(paid, rel=1e-4)
        assert all(part["words"] == f"{usd(part['amount'])} USD" for part in bill)
        assert paid == pytest.approx(estimate["cost"]["mean_of_all_runs"], rel=1e-3)
        assert bill[-1]["whole"] == f"{money(estimate['cost'])[0]} USD"
        assert time[-1]["whole"] == clock(estimate["time"])[0]
        assert sum(part["amount"] for part in step) == pytest.approx(1.0)


def report_data(which: str) -> ReportData:
    """What the report holds in addition to the answer."""
    report = asked(which)[0].report
    assert report is not None
    return report


def spanned(swing: Swing, write: Callable[[SwingEnd], str]) -> str:
    low, high = write(swing.low), write(swing.high)
    return low if low == high else f"{low} to {high}"


def moved(factor: float) -> str:
    """A factor in words, by hand: +21 %, −18 %, ×2, half."""
    if factor == 0.5:
        return "half"
    if factor >= 1.995:
        return f"×{number(round(factor, 1))}"
    return f"{'+' if factor >= 1 else '−'}{fmt.percent(abs(factor - 1))}"


@pytest.mark.parametrize("which", ANSWERED)
def test_what_one_changed_input_does_is_drawn_and_printed_alike(which: str):
    """The middle of the bars is the JSON's figure; their ends are those that were simulated."""
    text, swings = page(which), report_data(which).swings
    doc, ends = facts(text, "answer"), facts(text, "pictures")["rows"]["tornado"]["ends"]
    estimate = doc["plans"][doc["lead"] - 1]["estimate"]
    in_time, unit = doc["goal"] == "time", facts(text, "page-data")["scale"]["unit_s"]
    figure = estimate["time"]["median"] / unit if in_time else estimate["cost"]["mean_of_all_runs"]
    rows = {row[0]: row[1:] for row in of_caption(text, f"Plan {doc['lead']} if one input changes")}
    assert len(rows) == len(swings)
    assert len(ends) == 2 * len(swings)
    for swing in swings:
        cells = rows[f"{swing.what} ({swing.why})"]
        assert cells[:5] == [
            moved(swing.low.factor), moved(swing.high.factor),
            spanned(swing, lambda end: usd(end.cost_usd)),
            spanned(swing, lambda end: duration(end.time_s)),
            spanned(swing, lambda end: fmt.share(end.chance)),
        ]  # fmt: skip
        for even in swing.break_evens:
            assert f"from {moved(even.factor)} on" in cells[5]
        drawn = {end["side"]: end for end in ends if end["what"] == swing.what}
        for end, side in ((swing.low, "lower"), (swing.high, "higher")):
            mark = drawn[side]
            assert mark["base"] == pytest.approx(figure, rel=1e-4)
            assert mark["end"] == pytest.approx(
                end.time_s / unit if in_time else end.cost_usd, rel=1e-4
            )
            assert mark["words_at_end"] == (duration(end.time_s) if in_time else usd(end.cost_usd))
            assert (mark["cost"], mark["time"]) == (
                f"{usd(end.cost_usd)} USD",
                duration(end.time_s),
            )
            assert (mark["factor"], mark["chance"]) == (moved(end.factor), fmt.share(end.chance))


@pytest.mark.parametrize("which", ANSWERED)
def test_single_runs_are_runs_of_their_plan_and_printed_as_drawn(which: str):
    """Each is one of the plan's simulated runs; its parts fill it without a gap."""
    text, report = page(which), report_data(which)
    drawn, unit = facts(text, "pictures")["runs"], facts(text, "page-data")["scale"]["unit_s"]
    rows = of_caption(text, "Three runs of each plan")
    plans = {plan.number: plan for plan in report.simulated_plans if plan.kind == "table"}
    for timeline, row, strip in zip(report.timelines, rows, drawn, strict=True):
        plan = plans[timeline.number]
        runs = zip(plan.time_s, plan.cost_usd, strict=True)
        assert any(
            math.isclose(time_s, timeline.time_s, rel_tol=1e-6)
            and math.isclose(cost, timeline.cost_usd, rel_tol=1e-6)
            for time_s, cost in runs
        )
        ends = [0.0, *(segment.end_s for segment in timeline.segments)]
        rounding_s = ends[-1] * 2.0**-22  # differences of times in single precision
        starts = [segment.start_s for segment in timeline.segments]
        assert starts == pytest.approx(ends[:-1], abs=rounding_s)
        assert row == [
            f"plan {timeline.number}, {timeline.luck}", duration(ends[-1]), usd(timeline.cost_usd),
            str(len(timeline.interruptions_s)), str(timeline.saves),
            *(spent(timeline.segments, *doing) for doing in (
                ("start-up", "restart"), ("lost work",), ("waiting",), ("fallback",))),
        ]  # fmt: skip
        assert strip["run"] == f"{timeline.luck}: {row[1]}, {row[2]} USD"
        assert [end for *_, end in strip["segments"]] == pytest.approx(
            [end / unit for end in ends[1:]], rel=1e-4
        )
        assert strip["interruptions"] == pytest.approx(
            [at / unit for at in timeline.interruptions_s], rel=1e-4
        )


def spent(segments: tuple[Segment, ...], *doing: str) -> str:
    """A time in whole seconds at least: what is below half a second is rounding."""
    seconds = sum(each.end_s - each.start_s for each in segments if each.doing in doing)
    return "0 s" if seconds < 0.5 else duration(seconds)


def test_price_history_is_printed_as_drawn():
    answer, request = asked("deadline")
    offers = prices.offers_of(answer)
    known = {offer: [("2026-08-01", 0.2 + n), ("2026-08-20", 0.25 + n)]
             for n, offer in enumerate(offers)}  # fmt: skip
    text = render(answer, request, prices=known)
    drawn = facts(text, "pictures")["rows"]["prices"]["prices"]
    rows = of_caption(text, "USD per machine and hour")
    assert [row[0] for row in rows] == ["2026-08-01", "2026-08-20"]
    for row in rows:
        today = [each for each in drawn if each["date"] == row[0]]
        assert [each["usd"] for each in today] == [dict(known[offer])[row[0]] for offer in offers]
        assert row[1:] == [number(each["usd"]) for each in today]
        assert [each["words"] for each in today] == [f"{cell} USD/h" for cell in row[1:]]


@pytest.mark.parametrize("which", ANSWERED)
def test_cards_and_words_hold_no_figure_that_the_json_has_not(which: str):
    """What a sentence says is a figure of a plan, of what sets two apart, or of a name."""
    text = page(which)
    doc = facts(text, "answer")
    cards = re.findall(r'<article class="card[^"]*">(.*?)</article>', text, re.DOTALL)
    picks = {pick["rank"]: pick for pick in doc["trio"]}
    looser = {step["change"]: step["plan"] for step in doc["sensitivity"]}
    numbered = [re.findall(r"<h3>.* plan (\d+)</h3>", card) for card in cards]
    assert [int(*found) for found in numbered if found] == [*picks]
    for card, found in zip(cards, numbered, strict=True):
        said, effort_h = plainly(card), 0.0
        if found:
            rank = int(*found)
            plan, effort_h = doc["plans"][rank - 1], picks[rank]["effort_h"]
        else:  # what a looser limit allows
            plan = next(plan for change, plan in looser.items() if f"with {change}" in said)
        (cost, cost_span), (time, time_span) = (
            money(plan["estimate"]["cost"]), clock(plan["estimate"]["time"])
        )  # fmt: skip
        for words in (f"{cost} USD", time, f"9 in 10 runs: {cost_span}",
                      f"9 in 10 runs: {time_span}", f"{number(plan['usd_per_hour'])} USD/h",
                      machines(plan)):  # fmt: skip
            assert words in said
        if effort_h >= 0.05:
            assert f"{duration(3600 * effort_h)} of your own work" in said
    for caption, rows in tables(text):
        if caption.endswith("in words"):
            plan = doc["plans"][doc["lead"] - 1]
            spoken = " ".join(words for name, words in rows if name == "time")
            wanted = {duration(plan["estimate"]["time"][name]) for name in ("median", "p95")}
            split = plan["estimate"]["split"]
            wanted |= {duration(x) for x in (*split.values(), split["restart_s"] + split["lost_s"])}
            reported = re.findall(r"\d[\d.,]* (?:ms|s|min|h|d)\b", spoken)
            assert reported
            assert set(reported) <= wanted
