"""What to do when spot goes away: the policy of a plan, its cost beside simpler rules, a grid."""

from recommender.plan import PolicyFacts
from recommender.report import text
from recommender.report.lines import Line, paragraph

_SHORT = {"on-demand": "od", None: "late"}
_GAP = 2


def policy_lines(facts: PolicyFacts | None, width: int) -> list[Line]:
    """The block of `--explain`; one line where the programme cannot express the plan."""
    if facts is None:
        return []
    title = Line("When spot goes away", "strong")
    if facts.why_not:
        said = f"No policy was computed: {text.clean(facts.why_not)}."
        return [Line(""), title, *paragraph(said, width)]
    step = text.duration(facts.tick_s)
    lines = [Line(""), title, *_costs(facts, width), Line("")]
    lines += paragraph(
        f"By time left and work left, in steps of {step}: what to do while spot is up / away "
        "(od is on-demand).",
        width,
    )
    return lines + _grid(facts, width)


def _costs(facts: PolicyFacts, width: int) -> list[Line]:
    """Expected costs under one law, from a random moment of the market on."""
    rows = [("safety net, the plan's own", facts.net_usd)]
    if facts.rule_usd is not None:
        rows.append(("two thresholds, the rule above", facts.rule_usd))
    rows.append(("cost-optimal, at the least", facts.full_usd))
    first = max(len(name) for name, _ in rows)
    amounts = [f"{text.usd(usd)} USD" for _, usd in rows]
    second = max(map(len, amounts))
    said = "Expected cost by the law of the zones, at the predicted speed:"
    return [
        *paragraph(said, width),
        *(
            Line(f"  {n.ljust(first)}  {a.rjust(second)}")
            for (n, _), a in zip(rows, amounts, strict=True)
        ),
    ]


def _grid(facts: PolicyFacts, width: int) -> list[Line]:
    """Rows by time left, columns by work left; the rightmost columns go where it is narrow."""
    heads = ["", *(text.duration(s) for s in facts.work_left_s)]
    rows = [
        [text.duration(time_s), *(_cell(a, b) for a, b in zip(up, away, strict=True))]
        for time_s, up, away in zip(facts.time_left_s, facts.spot_up, facts.spot_away, strict=True)
    ]
    table = [heads, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    while len(widths) > 2 and 2 + sum(widths) + _GAP * (len(widths) - 1) > width:
        widths.pop()
    made = [
        "  " + (" " * _GAP).join(c.rjust(w) for c, w in zip(row, widths, strict=False))
        for row in table
    ]
    above = Line("  time left, by work left", "faint")
    return [above, Line(made[0], "faint"), *(Line(line) for line in made[1:])]


def _cell(up: str | None, away: str | None) -> str:
    names = [_SHORT.get(each, each) or "" for each in (up, away)]
    return names[0] if names[0] == names[1] else "/".join(names)
