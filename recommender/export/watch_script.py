"""The script that keeps a plan running: starts it, turns to the fallback in time, stops it.

One loop for all targets; a target says in shell functions how its machines are started, looked at
and stopped. All state is in the bucket, in the cloud and in one small file, so a script that was
killed goes on where it was when it is started again.
"""

import math

from recommender.catalogs.frozen import dataclass
from recommender.export.description import RunDescription
from recommender.export.header import commented
from recommender.export.quoting import shell
from recommender.export.train_command import CAPPED

# Besides its upload: to see the request, the last save, and the 30 s that torchrun gives processes.
SAVED_S = 600  # assumed (2026-11)
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
    lines = ["#!/usr/bin/env bash", *commented(head), "", "set -euo pipefail", *_figures(run)]
    lines += ["", *steps.setup, ""]
    lines += shell_function("keep_plan", steps.keep_plan)
    lines += shell_function("stop_plan", steps.stop_plan)
    lines += shell_function("state", steps.state)
    if run.fallback is not None:
        lines += shell_function("keep_fallback", steps.keep_fallback)
        lines += shell_function("stop_fallback", steps.stop_fallback)
        lines += shell_function("no_spot", steps.no_spot)
        lines += shell_function("let_plan_end", steps.let_plan_end)
        lines += shell_function("let_fallback_end", steps.let_fallback_end)
        for name, body in _POLICY.items():
            lines += shell_function(name, body)
    lines += _loop(run)
    return "\n".join(lines) + "\n"


def assignment(name: str, value: str | int | float) -> str:
    """A variable of the script, quoted."""
    return f"{name}={shell(value)}"


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


def shell_function(name: str, body: tuple[str, ...]) -> list[str]:
    """A function of bash, and an empty line after it."""
    return [f"{name}() {{", *(f"  {line}" if line else "" for line in body), "}", ""]


# Without a word on progress nothing counts as done: the switch comes early, never late.
_POLICY = {
    "choice": (
        "# now: on demand; without_spot: on demand if no spot is there; back: to spot, once the",
        "# on-demand machines have noted something; stay",
        'awk -F \'[":, ]+\' -v trains="$([ "$noticed" = "$before" ] || echo 1)" \\',
        '  -v left="$(( began + DEADLINE_S - RESERVE_S - $(date +%s) ))" -v phase="$phase" \\',
        '  -v work="$FALLBACK_WORK_S" -v wait="$WAIT_ABOVE" -v back="$BACK_ABOVE" \\',
        '  -v caution="$CAUTION" -v changeover="$CHANGEOVER_S" \'',
        "  NF == 1 && $1 + 0 > 0 && $1 + 0 <= 1 { share = $1 }  # a plain share",
        "  { noted[$2] = $3 + 0 }",
        "  END {",
        '    steps = noted["total_steps"]',
        '    if (steps > 0) share = noted["step"] / steps',
        "    # What the steps take, of what was planned for the machines that they were timed on.",
        '    if (noted["planned_work_s"] > 0) slower = noted["step_s"] * steps / '
        'noted["planned_work_s"]',
        "    need = (1 - share) * work * (slower > 0 ? slower : 1)",
        "    slack = left - need",
        "    careful = need * (slower > 0 ? 1 : caution)",
        '    if (phase == "plan" && slack <= 0) print "now"',
        '    else if (phase == "plan" && left - careful <= wait * careful) print "without_spot"',
        '    else if (phase != "plan" && trains && back != "" && slack - changeover > back * need)',
        '      print "back"',
        '    else print "stay"',
        '  }\' <<< "$noticed"',
    ),
    "go_on_demand": (
        'echo "$NAME: $1, on-demand machines take over"',
        "let_plan_end",
        "leaving=plan end_by=$(( $(date +%s) + SAVE_S ))",
        "phase=fallback current=missing",
        "remember",
    ),
    "go_back": (
        'echo "$NAME: back to spot"',
        "let_fallback_end",
        "leaving=fallback end_by=$(( $(date +%s) + SAVE_S ))",
        "phase=plan current=started",
        "remember",
    ),
    "spot_is_there": (
        "# beside the on-demand machines; else it is asked for, at every look",
        'if [ "$leaving" = plan ]; then return 1; fi  # those that are there end',
        "local phase=plan there",
        "there=$(state || true)",
        'case "$there" in',
        "  missing | failed) keep_plan || return 1; there=$(state || true) ;;",
        "esac",
        '[ "$there" = running ]',
    ),
}


def _loop(run: RunDescription) -> list[str]:
    has_fallback = run.fallback is not None
    later = run.on_fallback
    prices = [f"usd_per_hour={run.usd_per_hour:.6g}"]
    if later is not None:
        late = f"usd_per_hour={later.usd_per_hour:.6g}"
        prices.append(f'if [ "$phase" = fallback ]; then {late}; fi')
    return [
        "# For a new start: first start, phase, USD so far, and when they were counted.",
        'memory="${STATE_DIR:-.}/.$NAME.state"',
        '[ -s "$memory" ] || echo "$(date +%s) plan" > "$memory"',
        'read -r began phase spent counted < "$memory"',
        "spent=${spent:-0} counted=${counted:-$(date +%s)}",
        *shell_function("remember", _REMEMBER),
        *shell_function("left_s", ("local usd_per_hour", *prices, *_LEFT_S)),
        *shell_function("count_cost", ("local usd_per_hour now", *prices, *_COUNT_COST)),
        "stop_all() {",
        "  stop_plan",
        *(["  stop_fallback"] if has_fallback else []),
        "}",
        *(_MEMORY_OF_THE_POLICY if has_fallback else []),
        "while :; do",
        "  current=$(state || true)",
        '  case "$current" in',
        '    done) echo "$NAME: done, for about ${spent%????} USD"',
        '      stop_all; rm -f "$memory"; exit 0 ;;',
        '    failed) echo "$NAME: failed" >&2; stop_all; rm -f "$memory"; exit 1 ;;',
        "  esac",
        "  count_cost",
        '  if [ "$current" = stopped ] || [ "$(left_s)" -le 0 ]; then',
        '    echo "$NAME: stopped for good at a cap, after $(( counted - began )) s and about" \\',
        '      "${spent%????} USD; to let it go on raise that cap and remove $memory" >&2',
        f"    stop_all; exit {CAPPED}",
        "  fi",
        *(_FOLLOW_POLICY if has_fallback else _KEEP_PLAN),
        '  sleep "$POLL_S"',
        "done",
    ]


_REMEMBER = (  # whole or not at all: it may be killed at any moment
    '{ echo "$began $phase $spent $counted" > "$memory.new" && mv "$memory.new" "$memory"; } ||',
    '  echo "$NAME: $memory was not written" >&2',
)
_LEFT_S = (
    "# until a cap: of time, or of what the machines of this phase may still cost",
    'awk -v left="$(( began + LONGEST_RUN_S - $(date +%s) ))" -v most="$BUDGET_USD" \\',
    '  -v spent="$spent" -v price="$usd_per_hour" \'BEGIN {',
    '    if (most != "") paid = (most - spent) / price * 3600',
    '    printf "%d", (most != "" && paid < left ? paid : left) }\'',
)
_COUNT_COST = (
    "# since the last look; where the cloud does not answer they run",
    "now=$(date +%s)",
    'if [ "$current" = running ] || [ "$current" = unknown ]; then',
    '  spent=$(awk -v s="$(( now - counted ))" -v spent="$spent" -v price="$usd_per_hour" \\',
    "    'BEGIN { printf \"%.6f\", spent + s / 3600 * price }')",
    "fi",
    'if [ $(( now - began )) -ge "$WARN_AFTER_S" ] &&',
    '  [ $(( counted - began )) -lt "$WARN_AFTER_S" ]; then',
    '  echo "$NAME: warning: 99 runs in 100 were expected to be done by now" >&2',
    "fi",
    "counted=$now",
    "remember",
)
_KEEP_PLAN = [
    f'  if [ "$current" = missing ]; then keep_plan || {_NOT_STARTED}; fi',
]
_MEMORY_OF_THE_POLICY = [
    "asked=$BACK_ABOVE  # for spot beside on-demand machines, perhaps",
    'before=""  # what was noted before they were there',
    'leaving=""  # machines that are given up, until they have ended',
]
_FOLLOW_POLICY = [
    '  if [ -n "$leaving" ]; then',
    '    case "$(phase=$leaving state || true)" in',
    "      running | waiting | unknown)",
    '        if [ "$(date +%s)" -ge "$end_by" ]; then "stop_$leaving"; leaving=""; fi ;;',
    '      *) leaving="" ;;',
    "    esac",
    "  fi",
    '  noticed=$(show "$NAME/progress.json" || show "$NAME/progress" || true)',
    '  if [ "$phase $current" != "fallback running" ]; then before=$noticed; fi',
    "  choice=$(choice)",
    '  if [ "$phase" = plan ] && [ "$choice" != now ] && [ "$current" = missing ]; then',
    f"    if keep_plan; then current=started; else {_NOT_STARTED}; fi",
    "  fi",
    '  case "$phase $choice" in',
    '    "plan now") go_on_demand "time is short" ;;',
    '    "plan without_spot") if no_spot; then go_on_demand "no spot is there"; fi ;;',
    '    "fallback back") asked=yes; if spot_is_there; then go_back; fi ;;',
    '    "fallback stay") if [ -n "$asked" ]; then asked=""; stop_plan; fi ;;',
    "  esac",
    '  if [ "$phase $current" = "fallback missing" ]; then',
    '    keep_fallback || echo "$NAME: on-demand not started, tried again" >&2',
    "  fi",
]
