"""One line that rents a plan's machines, to copy into a shell."""

import shlex

from recommender.plan import Machines, Plan
from recommender.report.text import clean

_SKY = ("aws", "gcp", "azure")


def launch_words(plan: Plan) -> tuple[str, ...]:
    """The words of the launch line, quoted; empty where one line cannot rent the plan."""
    kinds = {(m.provider, m.instance_type, m.market) for m in plan.machines}
    if len(kinds) != 1 or plan.machines[0].provider not in _SKY:
        return ()
    first = plan.machines[0]
    nodes = sum(m.count for m in plan.machines)
    return tuple(shlex.quote(clean(word)) for word in _sky(first, _region(plan, first), nodes))


def launch_line(plan: Plan) -> str:
    """The launch line on one line, or nothing."""
    return " ".join(launch_words(plan))


def _region(plan: Plan, first: Machines) -> str:
    return plan.sites[0].region if plan.sites else first.region


def _sky(machines: Machines, region: str, nodes: int) -> list[str]:
    spot = machines.market == "spot"
    return [
        "sky",
        "launch",
        *(["--use-spot"] if spot else []),
        *("--infra", f"{machines.provider}/{region}"),
        *("--instance-type", machines.instance_type),
        *(["--num-nodes", str(nodes)] if nodes > 1 else []),
        *(["--retry-until-up"] if spot else []),
        "train.yaml",
    ]


def folded(words: tuple[str, ...], width: int, indent: str) -> list[str]:
    """The words on lines that end in a backslash, so that they can still be copied."""
    lines, current = [], ""
    for word in _pairs(words):
        if current and len(current) + 1 + len(word) > width - 2:
            lines.append(current + " \\")
            current = indent + word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current] if current else lines


def _pairs(words: tuple[str, ...]) -> list[str]:
    """Options with their values: a flag is never parted from what belongs to it."""
    taking = {"--infra", "--instance-type", "--num-nodes"}
    joined, waiting = [], ""
    for word in words:
        if word in taking:
            waiting = word
        else:
            joined.append(f"{waiting} {word}".strip())
            waiting = ""
    return joined
