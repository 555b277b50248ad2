#: script
#!/usr/bin/env bash
@HEAD@

set -euo pipefail
@FIGURES@

@SETUP@

keep_plan() {
  @KEEP_PLAN@
}

stop_plan() {
  @STOP_PLAN@
}

state() {
  @STATE@
}

@POLICY@
# For a new start: first start, phase, USD so far, and when they were counted.
memory="${STATE_DIR:-.}/.$NAME.state"
[ -s "$memory" ] || echo "$(date +%s) plan" > "$memory"
read -r began phase spent counted < "$memory"
spent=${spent:-0} counted=${counted:-$(date +%s)}
remember() {
## whole or not at all: it may be killed at any moment
  { echo "$began $phase $spent $counted" > "$memory.new" && mv "$memory.new" "$memory"; } ||
    echo "$NAME: $memory was not written" >&2
}

left_s() {
  local usd_per_hour
  usd_per_hour=@USD@
  @LATE@
  # until a cap: of time, or of what the machines of this phase may still cost
  awk -v left="$(( began + LONGEST_RUN_S - $(date +%s) ))" -v most="$BUDGET_USD" \
    -v spent="$spent" -v price="$usd_per_hour" 'BEGIN {
      if (most != "") paid = (most - spent) / price * 3600
      printf "%d", (most != "" && paid < left ? paid : left) }'
}

count_cost() {
  local usd_per_hour now
  usd_per_hour=@USD@
  @LATE@
  # since the last look; where the cloud does not answer they run
  now=$(date +%s)
  if [ "$current" = running ] || [ "$current" = unknown ]; then
    spent=$(awk -v s="$(( now - counted ))" -v spent="$spent" -v price="$usd_per_hour" \
      'BEGIN { printf "%.6f", spent + s / 3600 * price }')
  fi
  if [ $(( now - began )) -ge "$WARN_AFTER_S" ] &&
    [ $(( counted - began )) -lt "$WARN_AFTER_S" ]; then
    echo "$NAME: warning: 99 runs in 100 were expected to be done by now" >&2
  fi
  counted=$now
  remember
}

stop_all() {
  stop_plan
  @STOP_FALLBACK@
}
@MEMORY@
while :; do
  current=$(state || true)
  case "$current" in
    done) echo "$NAME: done, for about ${spent%????} USD"
      stop_all; rm -f "$memory"; exit 0 ;;
    failed) echo "$NAME: failed" >&2; stop_all; rm -f "$memory"; exit 1 ;;
  esac
  count_cost
  if [ "$current" = stopped ] || [ "$(left_s)" -le 0 ]; then
    echo "$NAME: stopped for good at a cap, after $(( counted - began )) s and about" \
      "${spent%????} USD; to let it go on raise that cap and remove $memory" >&2
    stop_all; exit @CAPPED@
  fi
@FOLLOW@
  sleep "$POLL_S"
done
#: late_price
if [ "$phase" = fallback ]; then usd_per_hour=@USD@; fi
#: choice
## Without a word on progress nothing counts as done: the switch comes early, never late.
# now: on demand; without_spot: on demand if no spot is there; back: to spot, once the
# on-demand machines have noted something; stay
awk -F '[":, ]+' -v trains="$([ "$noticed" = "$before" ] || echo 1)" \
  -v left="$(( began + DEADLINE_S - RESERVE_S - $(date +%s) ))" -v phase="$phase" \
  -v work="$FALLBACK_WORK_S" -v wait="$WAIT_ABOVE" -v back="$BACK_ABOVE" \
  -v caution="$CAUTION" -v changeover="$CHANGEOVER_S" '
  NF == 1 && $1 + 0 > 0 && $1 + 0 <= 1 { share = $1 }  # a plain share
  { noted[$2] = $3 + 0 }
  END {
    steps = noted["total_steps"]
    if (steps > 0) share = noted["step"] / steps
    # What the steps take, of what was planned for the machines that they were timed on.
    if (noted["planned_work_s"] > 0) slower = noted["step_s"] * steps / noted["planned_work_s"]
    need = (1 - share) * work * (slower > 0 ? slower : 1)
    slack = left - need
    careful = need * (slower > 0 ? 1 : caution)
    if (phase == "plan" && slack <= 0) print "now"
    else if (phase == "plan" && left - careful <= wait * careful) print "without_spot"
    else if (phase != "plan" && trains && back != "" && slack - changeover > back * need)
      print "back"
    else print "stay"
  }' <<< "$noticed"
#: go_on_demand
echo "$NAME: $1, on-demand machines take over"
let_plan_end
leaving=plan end_by=$(( $(date +%s) + SAVE_S ))
phase=fallback current=missing
remember
#: go_back
echo "$NAME: back to spot"
let_fallback_end
leaving=fallback end_by=$(( $(date +%s) + SAVE_S ))
phase=plan current=started
remember
#: spot_is_there
# beside the on-demand machines; else it is asked for, at every look
if [ "$leaving" = plan ]; then return 1; fi  # those that are there end
local phase=plan there
there=$(state || true)
case "$there" in
  missing | failed) keep_plan || return 1; there=$(state || true) ;;
esac
[ "$there" = running ]
#: memory_of_the_policy
asked=$BACK_ABOVE  # for spot beside on-demand machines, perhaps
before=""  # what was noted before they were there
leaving=""  # machines that are given up, until they have ended
#: follow_policy
  if [ -n "$leaving" ]; then
    case "$(phase=$leaving state || true)" in
      running | waiting | unknown)
        if [ "$(date +%s)" -ge "$end_by" ]; then "stop_$leaving"; leaving=""; fi ;;
      *) leaving="" ;;
    esac
  fi
  noticed=$(show "$NAME/progress.json" || show "$NAME/progress" || true)
  if [ "$phase $current" != "fallback running" ]; then before=$noticed; fi
  choice=$(choice)
  if [ "$phase" = plan ] && [ "$choice" != now ] && [ "$current" = missing ]; then
    if keep_plan; then current=started; else @NOT_STARTED@; fi
  fi
  case "$phase $choice" in
    "plan now") go_on_demand "time is short" ;;
    "plan without_spot") if no_spot; then go_on_demand "no spot is there"; fi ;;
    "fallback back") asked=yes; if spot_is_there; then go_back; fi ;;
    "fallback stay") if [ -n "$asked" ]; then asked=""; stop_plan; fi ;;
  esac
  if [ "$phase $current" = "fallback missing" ]; then
    keep_fallback || echo "$NAME: on-demand not started, tried again" >&2
  fi
#: keep_plan
  if [ "$current" = missing ]; then keep_plan || @NOT_STARTED@; fi
