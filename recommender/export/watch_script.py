"""The script that keeps a plan running: starts it, turns to the fallback in time, stops it.

One loop for all targets; a target says in shell functions how its machines are started, looked at
and stopped. All state is in the bucket, in the cloud and in one small file, so a script that was
killed goes on where it was when it is started again.
"""

import math

from recommender.catalogs.frozen import dataclass
from recommender.export.description import RunDescription
from recommender.export.header import commented
from recommender.export.quoting import assignment
from recommender.export.templates import part, shell_function

# Besides its upload: to see the request, the last save, and the 30 s that torchrun gives processes.
SAVED_S = 600  # assumed (2026-11)
_POLICY = ("choice", "go_on_demand", "go_back", "spot_is_there")
_NOT_STARTED = 'echo "$NAME: not started, tried again" >&2'


@dataclass(frozen=True, slots=True)
class Steps:
    """What a target does, as lines of bash."""

    setup: tuple[str, ...]  # variables, functions of its own, `show` of a file of the bucket
    keep_plan: tuple[str, ...]  # start what is missing of the plan's machines
    stop_plan: tuple[str, ...]
    state: tuple[str, ...]  # print running, waiting, missing, unknown, done, failed or stopped
    no_spot: tuple[str, ...] = ('[ "$current" = missing ]',)  # it was asked for, and none came
    let_plan_end: tuple[str, ...] = ()  # as soon as it has saved what it trained
    let_fallback_end: tuple[str, ...] = ()
    keep_fallback: tuple[str, ...] = ()
    stop_fallback: tuple[str, ...] = ()


def watch_script(run: RunDescription, steps: Steps, head: list[str]) -> str:
    """The whole script; `head` is its header."""
    has_fallback, later = run.fallback is not None, run.on_fallback
    late = () if later is None else part("watch.sh", "late_price", USD=f"{later.usd_per_hour:.6g}")
    follow = "follow_policy" if has_fallback else "keep_plan"
    lines = part(
        "watch.sh",
        "script",
        HEAD=commented(head),
        FIGURES=_figures(run),
        SETUP=steps.setup,
        KEEP_PLAN=steps.keep_plan,
        STOP_PLAN=steps.stop_plan,
        STATE=steps.state,
        POLICY=_policy(steps) if has_fallback else (),
        USD=f"{run.usd_per_hour:.6g}",
        LATE=late,
        STOP_FALLBACK=("stop_fallback",) if has_fallback else (),
        MEMORY=part("watch.sh", "memory_of_the_policy") if has_fallback else (),
        FOLLOW=part("watch.sh", follow, NOT_STARTED=_NOT_STARTED),
    )
    return "\n".join(lines) + "\n"


def _policy(steps: Steps) -> list[str]:
    """The functions of a plan with a fallback."""
    functions = {
        "keep_fallback": steps.keep_fallback,
        "stop_fallback": steps.stop_fallback,
        "no_spot": steps.no_spot,
        "let_plan_end": steps.let_plan_end,
        "let_fallback_end": steps.let_fallback_end,
        **{name: part("watch.sh", name) for name in _POLICY},
    }
    return [line for name, body in functions.items() for line in shell_function(name, body)]


def _figures(run: RunDescription) -> list[str]:
    budget = "" if run.budget_usd is None else f"{run.budget_usd:.10g}"
    found = [
        assignment("NAME", run.name),
        f"{assignment('LONGEST_RUN_S', f'{run.longest_s:.0f}')}  # since the first start",
        f"{assignment('WARN_AFTER_S', f'{run.usual_s:.0f}')}  # 1 run in 100 takes longer",
        f"{assignment('BUDGET_USD', budget)}  # for all machines; empty: any",
        "POLL_S=${POLL_S:-60}",
    ]
    fallback, later, deadline_s = run.fallback, run.on_fallback, run.limits.deadline_s
    if fallback is None or later is None or deadline_s is None:
        return found
    back = "" if fallback.back_above is None else f"{fallback.back_above:.6g}"
    return [
        *found,
        "# The policy of the plan: need, the time to finish on demand; slack, what is left without",
        "# it and the reserve. On demand when no slack is left, or no spot is there and the slack",
        "# is at most WAIT_ABOVE of the need; back to spot when it is above BACK_ABOVE of it.",
        f"{assignment('DEADLINE_S', f'{deadline_s:.0f}')}  # since the first start",
        f"{assignment('RESERVE_S', math.ceil(fallback.reserve_s))}  # to start on demand, and more",
        f"{assignment('FALLBACK_WORK_S', math.ceil(later.work_s))}  # the whole job on demand",
        f"{assignment('CAUTION', f'{fallback.caution:.6g}')}  # times the need before a step",
        assignment("WAIT_ABOVE", f"{fallback.wait_above or 0.0:.6g}"),
        f"{assignment('BACK_ABOVE', back)}{'' if back else '  # never'}",
        f"{assignment('CHANGEOVER_S', math.ceil(fallback.changeover_s))}  # from there to spot",
        f"{assignment('SAVE_S', math.ceil(run.safe_after_s) + SAVED_S)}  # to save, once given up",
    ]
