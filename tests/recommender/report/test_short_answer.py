"""The short answer: what a row says, what is asked for first, and that nothing else is lost."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from recommender.plan.answer import Pick, SensitivityStep, Trio
from recommender.plan.evidence import Evidence
from recommender.plan.plan import Need, Plan, Terms
from recommender.report import answer_table, explain
from recommender.report.html.short_table import short_table
from recommender.report.layout import drawn
from recommender.report.short_answer import (
    catch,
    contract_words,
    first_words,
    place_words,
    short_answer,
)
from recommender.report.short_forms import short_blocks, short_form, short_object, short_text
from tests.recommender.answers import (
    ANSWER,
    AWS_A100,
    GCP,
    HURT,
    INFEASIBLE,
    ON_DEMAND,
    QUESTION,
    machines,
    plan,
    spread,
)
from tests.recommender.report.full_answers import DEADLINE, FULL

ONCE = Path(__file__).parent / "once_printed"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e\d+)?")
HOUR = 3600.0
LONG = plan(
    machines("Standard_NC96ads_A100_v4_and_more", "A100-80GB-PCIe", "azure:eastus"),
    ("eastus",), (1240.0, 900.0, 1600.0), (30.0, 20.0, 40.0), 0.97,
)  # fmt: skip


@pytest.mark.parametrize("name", FULL)
def test_every_figure_of_the_long_answer_is_in_the_table_or_in_the_explanation(name: str) -> None:
    """`once_printed` holds what was printed by default when everything was."""
    answer, request = FULL[name]
    pages = [
        drawn(answer_table.render(answer, request, 200), 200),
        drawn(explain.render(answer, request, answer.lead, 200), 200),
    ]
    once = figures((ONCE / f"{name}.txt").read_text("utf-8"))
    assert len(once) > 60
    assert once - figures("\n".join(pages)) == set()


def figures(page: str) -> set[float]:
    """The numbers of a page, however they are written."""
    return {float(each.replace(",", "")) for each in NUMBER.findall(page)}


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_it_is_short_and_fits_any_terminal(name: str, width: int) -> None:
    lines = drawn(short_blocks(*FULL[name], width), width).splitlines()
    words = {word for line in lines for word in line.split()}
    assert max(map(len, lines)) <= max(width, 9 + max(map(len, words)))
    assert width < 80 or len(lines) <= 28


def test_the_plans_have_a_frame_only_where_there_are_colours() -> None:
    for width in (40, 80, 120, 200):
        painted = drawn(short_blocks(*FULL["deadline"], width), width, colour=True)
        assert painted.count("╭") == painted.count("╯") == 1
        assert "╭" not in drawn(short_blocks(*FULL["deadline"], width), width)


def test_figures_stand_below_each_other_however_long_a_name_is() -> None:
    trio = Trio(Pick("sensible", 2, ON_DEMAND), Pick("cheapest", 1, LONG), Pick("safest", 3, GCP))
    text = short_text(replace(ANSWER, plans=(LONG, ON_DEMAND, GCP), trio=trio), QUESTION)
    ends = [line.rindex(" USD ") for line in text.splitlines() if re.search(r" USD +\d", line)]
    assert len(ends) == 3
    assert len(set(ends)) == 1


def test_plans_of_several_roles_have_one_row_and_the_first_is_the_one_to_rent() -> None:
    rows = short_answer(DEADLINE, QUESTION).plans
    assert [(row.role, row.rank) for row in rows] == [("rent", 5), ("cheapest", 1), ("now", 0)]
    assert rows[0].where.startswith("also the safest · 8 A100")
    own = tuple(replace(m, provider="own") for m in ON_DEMAND.machines)
    mine = replace(ANSWER, plans=(replace(ON_DEMAND, machines=own),))
    assert short_answer(mine, QUESTION).plans[0].role == "use"


def test_rows_that_say_the_same_are_one() -> None:
    twin = replace(GCP, checkpointing=replace(GCP.checkpointing, interval_s=60.0))
    trio = Trio(Pick("sensible", 3, ON_DEMAND), Pick("cheapest", 1, GCP), Pick("safest", 2, twin))
    rows = short_answer(replace(ANSWER, plans=(GCP, twin, ON_DEMAND), trio=trio), QUESTION).plans
    assert [row.role for row in rows] == ["rent", "cheapest"]


def test_of_the_same_machines_and_places_only_what_differs_is_said() -> None:
    patient = replace(GCP, move_after_s=4 * HOUR)
    trio = Trio(
        Pick("sensible", 1, GCP), Pick("cheapest", 2, patient), Pick("safest", 3, ON_DEMAND)
    )
    found = replace(ANSWER, plans=(GCP, patient, ON_DEMAND), trio=trio)
    rows = short_answer(found, QUESTION).plans
    assert rows[1].where.endswith("; waits 4 h for spot before it moves")
    assert rows[1].catch == ""
    assert place_words(GCP) in rows[0].where
    assert place_words(ON_DEMAND) in rows[2].where


def founded(made: Plan, **grades: str) -> Plan:
    known = Evidence("measured", "fresh", "measured", 5.0, 0.1, 0.1, 0.1)
    return replace(made, evidence=replace(known, **grades))  # type: ignore[arg-type]


def needing(made: Plan, amount: float, *regions: str, fallback: bool = False) -> Plan:
    needs = [Need("Running G", amount, "vcpu", each, 0.0, fallback=fallback) for each in regions]
    return replace(made, needs=(*made.needs, *needs))


PLAIN = replace(ON_DEMAND, needs=())


def test_a_guess_is_the_catch_before_anything_else() -> None:
    guessed = founded(needing(PLAIN, 96.0, "us-east-1"), speed="guessed")
    assert catch(guessed, False) == "its speed was never measured on this GPU"


def test_the_catch_is_what_costs_most_of_quota_tail_and_work() -> None:
    late = replace(PLAIN.estimate, time=spread(5.0, 3.0, 40.0, HOUR))
    assert catch(replace(PLAIN, estimate=late), False) == "1 run in 20 takes over 40 h"
    both = needing(replace(PLAIN, estimate=late), 96.0, "a", "b")
    # 45 min of asking are worth 48 USD; a quarter of 35 h at 8 USD are worth 70.
    assert catch(both, False) == "1 run in 20 takes over 40 h"
    assert catch(needing(PLAIN, 96.0, "a", "b"), False) == (
        "needs a quota of 96 vCPU in each of 2 regions"
    )
    spot = replace(GCP, needs=())
    assert catch(spot, False) == "interrupted in 90 % of the runs"
    assert catch(founded(spot, spot="carried over"), False).endswith(
        ", going by machines of other sizes"
    )


def test_what_is_asked_for_first_is_no_catch_of_the_first() -> None:
    asked = needing(PLAIN, 96.0, "us-east-1")
    assert catch(asked, True) == ""
    assert '"Running G" ≥ 96 vCPU in us-east-1 (new accounts have 0)' in first_words(
        asked, QUESTION
    )


def test_machines_that_new_accounts_may_not_rent_are_asked_for() -> None:
    """As of a cloud without quotas whose terms open its GPUs on request."""
    terms = Terms(60.0, 1.0, None, 0.0, False, 0.1, 0.1, "USD", (), False, False, 0.0, "", "")
    shut = replace(PLAIN, machines=tuple(replace(m, terms=terms) for m in PLAIN.machines))
    assert not shut.startable
    assert "on request" in first_words(shut, QUESTION)
    opened = tuple(replace(m, terms=replace(terms, new_account=9.0)) for m in PLAIN.machines)
    assert replace(PLAIN, machines=opened).startable


def test_one_quota_is_asked_for_in_the_first_region() -> None:
    said = first_words(needing(PLAIN, 96.0, "us-east-1", "us-west-2", "eu-west-1"), QUESTION)
    assert said.count("96 vCPU") == 1
    assert "in us-east-1 (new accounts have 0; the same in 2 other regions for failover" in said
    assert "us-west-2" not in said
    both = needing(needing(PLAIN, 96.0, "us-east-1"), 48.0, "us-east-1", fallback=True)
    assert "≥ 48 vCPU in us-east-1 for the fallback" in first_words(both, QUESTION)


def test_where_quotas_suffice_nothing_is_asked_for() -> None:
    yours = replace(PLAIN, needs=(Need("Running G", 4.0, "vcpu", "us-east-1", 0.0, yours=8.0),))
    assert first_words(yours, QUESTION) == "an account at AWS; no quota to ask for"
    known = replace(QUESTION, choice=replace(QUESTION.choice, quotas_known=True))
    assert first_words(yours, known) == "nothing: your quotas suffice"
    own = tuple(replace(m, provider="own") for m in PLAIN.machines)
    assert first_words(replace(PLAIN, machines=own), QUESTION) == ""


def test_the_place_names_the_cloud_and_counts_other_regions() -> None:
    assert place_words(GCP) == "GCP europe-north1 or 2 other regions"
    assert place_words(ON_DEMAND) == "AWS us-east-1"


def test_what_narrows_the_span_is_what_varies_most() -> None:
    answer = replace(ANSWER, plans=(PLAIN,), trio=None)
    sure = replace(PLAIN.estimate, speed_sigma=0.3, price_sigma=0.01)
    said = {
        "--measured": sure,
        "catalog update": replace(sure, speed_sigma=0.3, price_sigma=0.9),
        "waiting for machines": replace(sure, speed_sigma=0.01),
    }
    for words, estimate in said.items():
        led = replace(answer, plans=(replace(PLAIN, estimate=estimate),))
        assert words in short_answer(led, QUESTION).span


def test_an_agent_reads_two_kilobytes_with_the_same_figures() -> None:
    for answer, request in FULL.values():
        made = short_object(answer, request)
        assert len(json.dumps(made)) <= 2048
        assert made["plans"][0]["plan"] == answer.lead
        lead = answer.plans[answer.lead - 1].estimate
        assert made["plans"][0]["cost_usd"] == pytest.approx(lead.cost.mean)
        assert made["plans"][0]["chance"] == pytest.approx(lead.chance)
    refused = short_object(INFEASIBLE, HURT)
    assert refused["why"] == list(INFEASIBLE.infeasible.binding)  # type: ignore[union-attr]
    assert "--deadline 6h50m" in {each["change"] for each in refused["would_work"]}


def test_a_notebook_shows_what_a_terminal_shows() -> None:
    for answer, request in (*FULL.values(), (INFEASIBLE, HURT)):
        shown = re.sub(r"<[^>]*>", " ", short_table(answer, request)).replace("\u00a0", " ")
        shown = shown.replace("&gt;", ">").replace("&amp;", "&")
        for row in short_answer(answer, request).plans if answer.plans else ():
            assert all(figure in shown for figure in row.figures)
            assert row.catch in shown


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_refusal_names_the_nearest_plan_of_each_way_and_what_to_change(width: int) -> None:
    """By hand: more time costs 267 USD, a higher price 313; what no plan follows is no way."""
    text = short_text(INFEASIBLE, HURT, width)
    assert width < 80 or len(text.splitlines()) <= 20
    short = short_form(INFEASIBLE, HURT)
    assert [row.role for row in short.plans] == ["nearest", "or", "or"]
    ways = ["--deadline 6h50m", "--hourly 221", "--confidence 0.5 --hourly 166"]
    assert sorted(row.where.partition(" · ")[0] for row in short.plans) == sorted(
        f"with {way}" for way in ways
    )
    steps = dict(short.steps)
    assert steps["First"] == f"repeat this call {short.plans[0].where.partition(' · ')[0]}"
    why = INFEASIBLE.infeasible
    assert why is not None
    assert all(each in steps["Why"] for each in why.binding)


def test_a_larger_quota_is_asked_for_before_the_call_is_repeated() -> None:
    asked = needing(PLAIN, 96.0, "us-east-1")
    step = SensitivityStep("AWS quota: 96 vCPU", "", asked, offers=True)
    why = replace(INFEASIBLE.infeasible, relaxed=(step,), fastest=None)  # type: ignore[type-var]
    steps = dict(short_form(replace(INFEASIBLE, infeasible=why), HURT).steps)
    assert steps["First"] == first_words(asked, HURT)
    assert "--quota FILE" in steps["Then"]


def test_of_a_job_for_which_capacity_is_sold_by_contract_its_worth_is_said() -> None:
    """By hand: 9,600 USD for 16 GPUs and 100 h are 6 USD per GPU-hour; the wait is not held."""
    split = replace(PLAIN.estimate.split, start_up_s=3600.0, work_s=99 * HOUR, checkpoint_s=0.0,
                    lost_s=0.0, restart_s=0.0, waiting_s=20 * HOUR)  # fmt: skip
    figures = replace(PLAIN.estimate, split=split, cost=spread(9600.0, 9000.0, 10_000.0),
                      time=spread(120.0, 100.0, 130.0, HOUR))  # fmt: skip
    two = tuple(replace(m, count=2) for m in PLAIN.machines)
    big = replace(PLAIN, machines=two, gpus=16, estimate=figures)
    said = contract_words(replace(ANSWER, plans=(big,), trio=None), big)
    assert "are worth up to 6 USD per GPU-hour" in said
    assert "no spot plan is sound" in said
    assert "no spot plan is sound: " in contract_words(replace(ANSWER, plans=(big, GCP)), big)
    assert contract_words(ANSWER, replace(big, gpus=8)) == ""


def test_a_cluster_says_that_its_machines_are_needed_at_once() -> None:
    four = replace(AWS_A100.machines[0], count=4, market="on_demand")
    assert catch(replace(PLAIN, machines=(four,)), False).startswith("4 machines")
