"""A report in a real browser: moved limits, keyboard, phone, dark, paper, and what axe finds.

Needs Playwright (extra `browser`) and Chromium: Debian's, or that of
`playwright install chromium`. Run with `pytest -m slow tests/recommender/report/html`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recommender.plan.plan import Machines
from recommender.plan.report_data import SimulatedPlan
from recommender.report import formatting as fmt
from recommender.report.axis import ticks
from recommender.report.html.page import render
from recommender.text import duration, number, usd
from tests.recommender.chromium import DESK, PHONE, chromium
from tests.recommender.report.html.reports import asked, page

pytestmark = pytest.mark.slow
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

Open = Callable[..., Any]


browser = pytest.fixture(scope="module")(chromium)


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a report; whatever the page complains of or asks for fails the test."""
    complaints: list[str] = []
    contexts = []

    def opened(
        which: str = "deadline",
        size: dict[str, int] = DESK,
        scheme: str = "light",
        made: Callable[[str], str] = page,
    ) -> Any:
        file = tmp_path / "report.html"
        file.write_text(made(which), "utf-8")
        context = browser.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        made = context.new_page()
        made.on("console", lambda said: complaints.append(said.text) if _bad(said) else None)
        made.on("pageerror", lambda error: complaints.append(str(error)))
        made.on(
            "request", lambda request: complaints.append(request.url) if _far(request) else None
        )
        made.goto(file.as_uri())
        made.wait_for_function("document.documentElement.dataset.drawn === 'yes'")
        return made

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _bad(said: Any) -> bool:
    return said.type == "error" or "Content Security" in said.text


def _far(request: Any) -> bool:
    return not request.url.startswith(("file:", "data:", "blob:"))


def settle(made: Any) -> None:
    """Let the page count and draw what was asked of it by hand."""
    for _ in range(2):
        made.evaluate("new Promise(requestAnimationFrame)")
    made.evaluate(
        "Promise.all([...views.values()].map((each) => each.view.runAsync())).then(() => {})"
    )


def chance_met(plan: SimulatedPlan, deadline_s: float | None, budget: float | None) -> float:
    """The chance that a plan meets both limits, counted on the exact figures of its runs."""
    time, cost = np.array(plan.time_s), np.array(plan.cost_usd)
    due, most = (math.inf if x is None else x for x in (deadline_s, budget))
    return float(np.mean((time <= due) & (cost <= most)))


@pytest.mark.parametrize("which", ["deadline", "budget", "frontier", "infeasible"])
def test_every_picture_is_drawn_without_a_complaint(open_page: Open, which: str):
    made = open_page(which)
    empty = made.evaluate(
        "[...document.querySelectorAll('.chart')].filter(e => !e.querySelector('svg')).length"
    )
    assert empty == 0
    assert made.locator("#frontier svg path").count() > 20


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["deadline", "infeasible"])
def test_axe_finds_nothing(open_page: Open, which: str, scheme: str, size: dict[str, int]):
    made = open_page(which, size, scheme)
    made.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = axe.Axe().run(made)
    assert found.violations_count == 0, found.generate_report()


def test_the_numbers_of_the_script_are_written_as_those_of_the_command_line(open_page: Open):
    made = open_page()
    numbers = [x * 10.0**e for e in range(-3, 6) for x in (1.0, 1.25, 3.337, 5.5, 9.4, 9.96)]
    pairs = ((number, "three"), (usd, "usd"), (duration, "duration"))
    for write, name in pairs:
        assert made.evaluate(f"xs => xs.map({name})", numbers) == [write(x) for x in numbers]
    shares = [0.0, 0.004, 0.01, 0.3, 0.9499, 0.95, 0.951, 0.9949, 0.995, 1.0]
    assert made.evaluate("xs => xs.map(share)", shares) == [fmt.share(x) for x in shares]


@pytest.mark.parametrize("span", [(0.5, 250.0), (14.0, 17.0), (2.9, 31.0), (1234.0, 1250.0)])
def test_axes_that_move_have_the_ticks_of_those_that_do_not(
    open_page: Open, span: tuple[float, float]
):
    found = ticks(*span)
    assert open_page().evaluate("span => ticks(...span)", span) == found
    assert len(found) >= 3
    assert span[0] <= found[0] <= found[-1] <= span[1]


@pytest.mark.parametrize("limited", [False, True])
def test_bins_hold_every_run_once_and_a_limit_parts_them(open_page: Open, limited: bool):
    made, (answer, _) = open_page(), asked("deadline")
    assert answer.report is not None
    plan = next(
        p for p in answer.report.simulated_plans if (p.kind, p.number) == ("table", answer.lead)
    )
    limit = plan.time.p50 if limited else None
    made.evaluate("limit => { limits.deadline = limit; }", limit)
    found = made.evaluate("rowsOf('times')")
    assert sum(each["share"] for each in found["bins"]) == pytest.approx(1.0)
    late = sum(each["share"] for each in found["bins"] if each["beyond"])
    assert late == pytest.approx(1.0 - chance_met(plan, limit, None), abs=2 / len(plan.time_s))
    assert bool(found["limits"]) is limited


@pytest.mark.parametrize("most", [1.5, 40.0])
def test_runs_of_like_length_share_an_axis_and_others_have_their_own(open_page: Open, most: float):
    made = open_page()
    made.evaluate(
        """most => {
             const mine = pictures.runs.filter((each) => each.plan === data.plans[chosen].number);
             mine.forEach((run, i) => {
               const end = i === mine.length - 1 ? most : 1;
               run.segments = [["work", 0, end]];
               run.interruptions = [end / 2];
             });
           }""",
        most,
    )
    found = made.evaluate("strips(data.plans[chosen])")
    ends = [each["end"] for each in found["segments"]]
    assert ends == (pytest.approx([1 / most, 1 / most, 1]) if most < 5 else [1, 1, 1])
    assert [each["at"] for each in found["interruptions"]] == pytest.approx([x / 2 for x in ends])
    named = {each["run"] for each in found["ticks"]}
    assert len(named) == (1 if most < 5 else 3)


def test_moved_limits_count_runs_as_the_figures_have_them(open_page: Open):
    made, (answer, request) = open_page(), asked("deadline")
    assert answer.report is not None
    made.locator("#budget").focus()
    made.keyboard.press("Home")
    for _ in range(4):
        made.keyboard.press("PageUp")
    for deadline_steps in (0, 2):
        made.locator("#deadline").focus()
        for _ in range(deadline_steps):
            made.keyboard.press("PageDown")
        settle(made)
        moved = made.evaluate("limits")
        assert moved["budget"] is not None
        chances = made.evaluate("data.plans.map(p => [p.kind, p.number, p.name, p.chance])")
        exact = {(p.kind, p.number): p for p in answer.report.simulated_plans if p.kind != "other"}
        seen = 0
        for kind, rank, _, chance in chances:
            if (kind, rank) in exact:
                plan, seen = exact[kind, rank], seen + 1
                assert chance == pytest.approx(
                    chance_met(plan, moved["deadline"], moved["budget"]), abs=2 / len(plan.time_s)
                )
        assert seen >= len(answer.plans)
    assert made.locator("#as-asked").is_visible()
    made.locator("#as-asked").click()
    settle(made)
    assert made.evaluate("limits.deadline") == request.limits.deadline_s
    assert made.evaluate("limits.budget") is None
    assert not made.locator("#as-asked").is_visible()
    best = answer.plans[answer.best - 1].estimate
    said = made.locator("#verdict").inner_text().replace("\u00a0", " ")
    assert fmt.share(best.chance) in said


def test_impossible_limits_are_reported_as_such(open_page: Open):
    made = open_page()
    made.locator("#budget").focus()
    made.keyboard.press("Home")
    settle(made)
    assert made.locator("#verdict").inner_text().startswith("None of the")
    assert made.locator("#count").inner_text().startswith("0 of ")
    closest = made.evaluate("missing().slice(0, 10).map(titleOf)")
    names = made.locator("#plans tbody button").all()
    assert [each.get_attribute("aria-label") for each in names] == [f"Show {x}" for x in closest]


def test_a_plan_is_chosen_with_the_keyboard_alone(open_page: Open):
    made = open_page()
    before = made.locator("#costs svg").inner_html()
    for _ in range(60):
        made.keyboard.press("Tab")
        name = made.evaluate("document.activeElement.getAttribute('aria-label') ?? ''")
        if name.startswith("Show") and not made.evaluate(
            "document.activeElement.getAttribute('aria-pressed') === 'true'"
        ):
            break
    made.keyboard.press("Enter")
    settle(made)
    assert made.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    said = made.locator(".chosen-name").first.inner_text().replace("\u00a0", " ")
    assert name.removeprefix("Show ") in said
    assert made.locator("#costs svg").inner_html() != before


def test_everything_can_be_reached_with_the_keyboard(open_page: Open):
    made = open_page()
    reached = set()
    for _ in range(400):
        made.keyboard.press("Tab")
        reached.add(made.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
    wanted = made.evaluate(
        "[...document.querySelectorAll('a, button, input, summary')]"
        ".filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 200))"
    )
    assert set(wanted) - reached == set()


@pytest.mark.parametrize("which", ["deadline", "budget", "infeasible"])
def test_a_phone_shows_it_without_scrolling_sideways(open_page: Open, which: str):
    made = open_page(which, PHONE)
    wide = made.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE["width"]


def renamed(name: str) -> Callable[[str], str]:
    """Pages whose machines of every plan have this name."""

    def made(which: str) -> str:
        answer, request = asked(which)
        assert answer.report is not None

        def named(machines: tuple[Machines, ...]) -> tuple[Machines, ...]:
            return tuple(replace(m, instance_type=name) for m in machines)

        plans = tuple(replace(plan, machines=named(plan.machines)) for plan in answer.plans)
        assert answer.trio is not None
        trio = replace(
            answer.trio,
            **{role: replace(pick, plan=plans[pick.rank - 1])
               for role in ("sensible", "cheapest", "third")
               for pick in [getattr(answer.trio, role)]},
        )  # fmt: skip
        simulated = tuple(
            replace(p, machines=named(p.machines)) for p in answer.report.simulated_plans
        )
        report = replace(answer.report, simulated_plans=simulated)
        return render(replace(answer, plans=plans, trio=trio, report=report), request)

    return made


BROKEN = """() => {
  const found = [];
  for (const name of document.querySelectorAll('.name')) {
    const walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const [node, lines] = [walker.currentNode, document.createRange()];
      for (const word of node.data.matchAll(/\\S+/g)) {
        lines.setStart(node, word.index);
        lines.setEnd(node, word.index + word[0].length);
        const tops = new Set([...lines.getClientRects()].map((each) => each.top));
        if (tops.size > 1) found.push(word[0]);
      }
    }
  }
  return found;
}"""  # words of names that stand on two lines


@pytest.mark.parametrize("width", [360, 768])
@pytest.mark.parametrize(
    "name", ["Standard_NC96ads_A100_v4", "n1-standard-16+2xT4", "a3-megagpu-8g"]
)
def test_names_of_machines_are_not_broken_within_a_word(open_page: Open, name: str, width: int):
    """They were, letter by letter where a column was narrow; the last columns stay in sight."""
    made = open_page("deadline", {"width": width, "height": 800}, made=renamed(name))
    assert made.locator("#plans .name").count() > 2
    assert made.evaluate(BROKEN) == []
    assert made.evaluate("document.documentElement.scrollWidth") <= width
    table = made.locator(".scroll:has(#plans)")
    assert table.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_names_longer_than_a_phone_do_not_widen_the_page(open_page: Open):
    made = open_page("deadline", PHONE, made=renamed("averyverylongnameofamachine" * 3))
    assert made.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_names_on_a_phone_leave_the_bars_their_room(open_page: Open):
    """What one figure otherwise does: the longest name once took two thirds of the picture."""
    made = open_page(size=PHONE)
    axis, picture = (
        made.locator(f"#tornado {part}").first.bounding_box()["width"]
        for part in (".role-axis-domain line", "svg")
    )
    assert axis > 0.9 * picture


def test_in_the_dark_it_is_dark_and_on_paper_it_is_white(open_page: Open):
    made = open_page(scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert made.evaluate(paper) == "rgb(19, 26, 34)"
    made.emulate_media(media="print", color_scheme="dark")
    assert made.evaluate(paper) == "rgb(255, 255, 255)"


def test_on_paper_everything_folded_is_open(open_page: Open):
    made = open_page()
    made.evaluate("paper(true)")
    assert made.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    made.evaluate("paper(false)")
    assert made.evaluate("[...document.querySelectorAll('details')].some(d => d.open)") is False
    assert made.pdf(format="A4")[:5] == b"%PDF-"


def test_without_scripts_the_tables_remain(browser: Any, tmp_path: Path):
    file = tmp_path / "report.html"
    file.write_text(page("deadline"), "utf-8")
    context = browser.new_context(java_script_enabled=False)
    made = context.new_page()
    made.goto(file.as_uri())
    answer, _ = asked("deadline")
    assert made.locator("article.card").count() >= 2
    assert made.locator("#plans tbody tr").count() >= len(answer.plans)
    assert not made.locator(".controls").is_visible()
    context.close()
