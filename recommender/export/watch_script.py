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

# The file of the bucket in which the training script notes how much is done.
_PROGRESS = {
    "aws": 'aws s3 cp --quiet "s3://$CHECKPOINT_BUCKET/$NAME/progress" - 2> /dev/null',
    "gcp": 'gcloud storage cat "gs://$CHECKPOINT_BUCKET/$NAME/progress" 2> /dev/null',
    "azure": (
        'az storage blob download --container-name "$CHECKPOINT_BUCKET" '
        '--name "$NAME/progress" --no-progress --only-show-errors 2> /dev/null'
    ),
}
_KEEP_PLAN = 'keep_plan || echo "$NAME: not started, tried again" >&2'


@dataclass(frozen=True, slots=True)
class Steps:
    """What a target does, as lines of bash."""

    setup: tuple[str, ...]  # variables, functions of its own
    keep_plan: tuple[str, ...]  # start what is missing of the plan's machines
    stop_plan: tuple[str, ...]
    state: tuple[str, ...]  # print running, waiting, missing, unknown, done, failed or stopped
    progress: tuple[str, ...]  # print the share of the work that is done, or nothing
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
        lines += shell_function("progress", steps.progress)
        lines += shell_function("keep_fallback", steps.keep_fallback)
        lines += shell_function("stop_fallback", steps.stop_fallback)
        lines += _TIME_IS_SHORT
    lines += _loop(run)
    return "\n".join(lines) + "\n"


def progress_line(run: RunDescription) -> str:
    """Print the share of the work that the training script has noted in the bucket."""
    return _PROGRESS[run.machines.provider]


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
    fallback, deadline_s = run.fallback, run.limits.deadline_s
    if fallback is None or deadline_s is None:
        return found
    work_s = math.ceil(run.work_s / fallback.speed)
    return [
        *found,
        f"{assignment('DEADLINE_S', f'{deadline_s:.0f}')}  # since the first start",
        f"{assignment('FALLBACK_WORK_S', work_s)}  # the whole job on the fallback",
        f"{assignment('RESERVE_S', math.ceil(fallback.reserve_s))}  # its start, and a reserve",
    ]


def shell_function(name: str, body: tuple[str, ...]) -> list[str]:
    """A function of bash, and an empty line after it."""
    return [f"{name}() {{", *(f"  {line}" if line else "" for line in body), "}", ""]


_TIME_IS_SHORT = [
    "# Without a word on progress nothing counts as done: the switch comes early, never late.",
    "time_is_short() {",
    "  local share left",
    "  share=$(progress || true)",
    "  left=$(( began + DEADLINE_S - $(date +%s) ))",
    '  awk -v share="${share:-0}" -v left="$left" -v work="$FALLBACK_WORK_S" \\',
    '    -v reserve="$RESERVE_S" \\',
    "    'BEGIN { if (share < 0 || share > 1) share = 0"
    "; exit !(left <= (1 - share) * work + reserve) }'",
    "}",
    "",
]


def _loop(run: RunDescription) -> list[str]:
    has_fallback = run.fallback is not None
    later = run.on_fallback
    prices = [f"usd_per_hour={run.plan.usd_per_hour:.6g}"]
    if later is not None:
        late = f"usd_per_hour={later.plan.usd_per_hour:.6g}"
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
        *(_SWITCH if has_fallback else []),
        '  if [ "$current" = missing ]; then',
        *(_KEEP_EITHER if has_fallback else [f"    {_KEEP_PLAN}"]),
        "  fi",
        '  sleep "$POLL_S"',
        "done",
    ]


_REMEMBER = (  # whole or not at all: it may be killed at any moment
    'echo "$began $phase $spent $counted" > "$memory.new"',
    'mv "$memory.new" "$memory"',
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
_SWITCH = [
    '  if [ "$phase" = plan ] && time_is_short; then',
    '    echo "$NAME: time is short, on-demand machines take over"',
    "    stop_plan",
    "    phase=fallback",
    "    remember",
    "    current=missing",
    "  fi",
]
_KEEP_EITHER = [
    '    if [ "$phase" = plan ]; then',
    f"      {_KEEP_PLAN}",
    "    else",
    '      keep_fallback || echo "$NAME: on-demand not started, tried again" >&2',
    "    fi",
]
