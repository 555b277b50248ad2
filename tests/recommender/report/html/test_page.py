"""A report is one file that holds the answer to the printed digit, and nothing can break out."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from importlib import resources

import pytest

from recommender.report import formatting as fmt
from recommender.report.answer_frame import PlanRequest
from recommender.report.html.page import MAX_BYTES, render
from recommender.report.json_output import document, plain
from recommender.text import duration
from tests.recommender.report.html.reports import LIMITS, Read, asked, facts, page

ALL = sorted(LIMITS)
ANSWERED = [which for which in ALL if which != "infeasible"]


@pytest.mark.parametrize("which", ALL)
def test_a_page_is_one_well_formed_file_of_bounded_size(which: str):
    text = page(which)
    read = Read(text)
    assert read.open == []  # each element is closed
    assert len(text.encode()) <= MAX_BYTES
    fetched = [
        (tag, name, value)
        for tag, attributes in read.elements
        for name, value in attributes.items()
        if name in ("src", "srcset", "action", "poster", "data")
        or (name == "href" and not (value or "").startswith("#"))
    ]
    assert fetched == []
    assert "@import" not in text.partition("</style>")[0]
    assert not re.search(r"url\(", text.partition("</style>")[0])


@pytest.mark.parametrize("which", ALL)
def test_nothing_but_the_scripts_and_the_style_of_the_file_may_run(which: str):
    read = Read(page(which))
    (policy,) = [a["content"] for tag, a in read.elements if a.get("http-equiv")]
    run = [text for path, own, text in read.texts if path[-1] == "script" and not own]
    digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in run]
    assert len(run) == 2
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    hashes = " ".join(f"'sha256-{each}'" for each in digests)
    assert f"script-src {hashes};" in policy
    assert "unsafe" not in policy
    handlers = [name for _, own in read.elements for name in own if name.startswith("on")]
    assert handlers == []
    assert [own for _, own in read.elements if "style" in own] == []


def test_the_same_answer_gives_the_same_bytes():
    assert render(*asked("deadline")) == page("deadline")


@pytest.mark.parametrize("which", ALL)
def test_the_answer_for_programs_is_in_the_page(which: str):
    assert facts(page(which), "answer") == json.loads(json.dumps(document(*asked(which))))


@pytest.mark.parametrize("which", ANSWERED)
def test_figures_are_those_of_the_json_to_the_printed_digit(which: str):
    text = page(which)
    read, reported = Read(text), facts(text, "answer")
    plans = reported["plans"]
    cards = read.of("strong")
    for pick in {p["rank"]: p for p in reported["trio"]}.values():
        estimate = plans[pick["rank"] - 1]["estimate"]
        assert f"{fmt.usd(estimate['cost']['mean_of_all_runs'])} USD" in cards
        assert duration(estimate["time"]["median"]) in cards
        assert (fmt.share(estimate["chance"]) in cards) is (which != "frontier")
    drawn = [row for row in facts(text, "page-data")["plans"] if row["kind"] == "table"]
    assert len(drawn) == len(plans)
    for row in drawn:
        cost, time = (plans[row["number"] - 1]["estimate"][name] for name in ("cost", "time"))
        assert row["cost"] == fmt.usd(cost["mean_of_all_runs"])
        assert row["cost_span"] == fmt.usd_span(cost["p05"], cost["p95"])
        assert row["time"] == duration(time["median"])
        assert row["time_span"] == f"{duration(time['p05'])} to {duration(time['p95'])}"
        assert row["price"] == fmt.number(plans[row["number"] - 1]["usd_per_hour"])


@pytest.mark.parametrize("which", ANSWERED)
def test_every_picture_has_its_figures_as_a_table_and_in_words(which: str):
    read = Read(page(which))
    pictures = [own for tag, own in read.elements if own.get("class") == "chart"]
    assert {own["role"] for own in pictures} == {"img"}
    assert all(own["aria-label"] for own in pictures)
    assert {own["id"] for own in pictures} == set(facts(page(which), "pictures")["specs"])
    assert read.of("caption")
    tables = [tag for tag, _ in read.elements if tag == "table"]
    assert len(tables) >= len(read.of("caption")) >= 5


@pytest.mark.parametrize("evil", ["</script><script>alert(1)</script>", '"><img src=x onerror=y>'])
def test_no_name_can_break_out_of_its_place(evil: str):
    answer, request = asked("deadline")
    lead = answer.plans[0]
    machines = tuple(replace(m, instance_type=evil) for m in lead.machines)
    plan = replace(lead, machines=machines, notes=(evil,), labels=(evil,))
    reported = replace(
        answer, plans=(plan, *answer.plans[1:]), warnings=(evil,), assumptions=(evil,)
    )
    text = render(
        reported, PlanRequest(replace(request.job, name=evil), request.limits, catalog=evil)
    )
    read = Read(text)
    assert read.open == []
    assert len([1 for tag, own in read.elements if tag == "script" and not own]) == 2
    assert [tag for tag, _ in read.elements if tag == "img"] == []
    assert any(evil in words for words in read.of("p"))  # as text, whole


def test_an_answer_without_a_plan_says_why_and_what_would_do():
    answer, _ = asked("infeasible")
    assert answer.infeasible is not None
    read = Read(page("infeasible"))
    said = " ".join(text for _, _, text in read.texts)
    assert answer.infeasible.binding
    assert all(fmt.clean(each) in said for each in answer.infeasible.binding)
    assert facts(page("infeasible"), "page-data")["plans"]


def test_the_bundle_is_the_one_that_is_recorded():
    folder = resources.files("recommender.report.html") / "static"
    recorded = json.loads((folder / "vega.json").read_text("utf-8"))
    bundle = (folder / recorded["file"]).read_bytes()
    assert hashlib.sha256(bundle).hexdigest() == recorded["sha256"]


def test_a_plain_answer_holds_nothing_of_a_report():
    answer, request = asked("deadline")
    without = replace(answer, report=None)
    assert plain(document(without, request)) == plain(document(answer, request))
