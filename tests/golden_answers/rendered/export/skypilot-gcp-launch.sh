#!/usr/bin/env bash
# llama3-8b-pretrain: starts train.yaml and follows the plan's policy: on-demand.yaml takes over
# when the time left is down to the work left on them + 24 min.
# Start it on a machine that stays on:
#   CHECKPOINT_BUCKET=YOUR-BUCKET bash run/launch.sh
# It may be killed and started again. Progress and speed are those of progress.json in
# $CHECKPOINT_DIR, which recommender.train writes; without it, progress is the share of the work
# that is done, from $CHECKPOINT_DIR/progress (0.4 for 40 %), and the speed the estimate's.

set -euo pipefail
NAME=llama3-8b-pretrain
LONGEST_RUN_S=86400  # since the first start
WARN_AFTER_S=49680  # 1 run in 100 takes longer
BUDGET_USD=''  # for all machines; empty: any
POLL_S=${POLL_S:-60}
# The policy of the plan: need, the time to finish on demand; slack, what is left without
# it and the reserve. On demand when no slack is left, or no spot is there and the slack
# is at most WAIT_ABOVE of the need; back to spot when it is above BACK_ABOVE of it.
DEADLINE_S=86400  # since the first start
RESERVE_S=1440  # to start on demand, and more
FALLBACK_WORK_S=16200  # the whole job on demand
CAUTION=1  # times the need before a step
WAIT_ABOVE=0
BACK_ABOVE=''  # never
CHANGEOVER_S=0  # from there to spot

here=$(dirname "$0")
: "${CHECKPOINT_BUCKET:?export CHECKPOINT_BUCKET=YOUR-BUCKET first}"
export CHECKPOINT_BUCKET
job_state() {  # of the newest managed job of this name
  sky jobs queue --all -o json | python3 -c '
import json, sys
jobs = [job for job in json.load(sys.stdin) if job["job_name"] == sys.argv[1]]
newest = max(jobs, key=lambda job: job["job_id"], default={})
print(str(newest.get("status", "NONE")).rpartition(".")[2])' "$1"
}
start_job() {
  local secret secrets=()
  for secret in HF_TOKEN WANDB_API_KEY; do
    if [ -n "${!secret:-}" ]; then secrets+=(--secret "$secret"); fi
  done
  sky jobs launch --yes --detach-run --name "$1" --env CHECKPOINT_BUCKET "${secrets[@]}" "$2"
}
ROUND_S=240 since=""

keep_plan() {
  start_job "$NAME-$began-plan" "$here/train.yaml"
}

stop_plan() {
  sky jobs cancel --yes --graceful --name "$NAME-$began-plan" || true
}

state() {
  case "$(job_state "$NAME-$began-$phase")" in
    SUCCEEDED) echo "done" ;;
    NONE) echo missing ;;
    FAILED* | CANCELLED) if [ -n "$owed" ]; then echo missing; else echo failed; fi ;;
    RUNNING) echo running ;;
    *) echo waiting ;;
  esac
}

noted() {
  gcloud storage cat "gs://$CHECKPOINT_BUCKET/$NAME/$1" 2> /dev/null
}

keep_fallback() {
  start_job "$NAME-$began-fallback" "$here/on-demand.yaml"
}

stop_fallback() {
  sky jobs cancel --yes --graceful --name "$NAME-$began-fallback" || true
}

no_spot() {
  # SkyPilot has looked for machines for as long as it takes to ask at all places.
  if [ "$current" != waiting ]; then since=""; return 1; fi
  since=${since:-$(date +%s)}
  [ $(( $(date +%s) - since )) -ge "$ROUND_S" ] && since=""
}

choice() {
  # now: on demand; without_spot: on demand if no spot is there; back: to spot; stay
  { noted progress.json || noted progress || true; } | awk -F '[":, ]+' \
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
      else if (phase != "plan" && back != "" && slack - changeover > back * need) print "back"
      else print "stay"
    }'
}

go_on_demand() {
  echo "$NAME: $1, on-demand machines take over"
  stop_plan
  phase=fallback current=missing owed=yes
  remember
}

go_back() {
  echo "$NAME: back to spot"
  stop_fallback
  phase=plan current=started
  remember
}

spot_is_there() {
  # beside the on-demand machines; else it is asked for, at every look
  local phase=plan there
  there=$(state || true)
  case "$there" in
    missing | failed) keep_plan || return 1; there=$(state || true) ;;
  esac
  [ "$there" = running ]
}

# For a new start: first start, phase, USD so far, and when they were counted.
memory="${STATE_DIR:-.}/.$NAME.state"
[ -s "$memory" ] || echo "$(date +%s) plan" > "$memory"
read -r began phase spent counted < "$memory"
spent=${spent:-0} counted=${counted:-$(date +%s)}
remember() {
  echo "$began $phase $spent $counted" > "$memory.new"
  mv "$memory.new" "$memory"
}

left_s() {
  local usd_per_hour
  usd_per_hour=10.2
  if [ "$phase" = fallback ]; then usd_per_hour=97; fi
  # until a cap: of time, or of what the machines of this phase may still cost
  awk -v left="$(( began + LONGEST_RUN_S - $(date +%s) ))" -v most="$BUDGET_USD" \
    -v spent="$spent" -v price="$usd_per_hour" 'BEGIN {
      if (most != "") paid = (most - spent) / price * 3600
      printf "%d", (most != "" && paid < left ? paid : left) }'
}

count_cost() {
  local usd_per_hour now
  usd_per_hour=10.2
  if [ "$phase" = fallback ]; then usd_per_hour=97; fi
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
  stop_fallback
}
asked=$BACK_ABOVE  # for spot beside on-demand machines, perhaps
owed=""  # on-demand machines that were to be started
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
    stop_all; exit 124
  fi
  choice=$(choice)
  if [ "$phase" = plan ] && [ "$choice" != now ] && [ "$current" = missing ]; then
    if keep_plan; then current=started; else echo "$NAME: not started, tried again" >&2; fi
  fi
  case "$phase $choice" in
    "plan now") go_on_demand "time is short" ;;
    "plan without_spot") if no_spot; then go_on_demand "no spot is there"; fi ;;
    "fallback back") asked=yes; if spot_is_there; then go_back; fi ;;
    "fallback stay") if [ -n "$asked" ]; then asked=""; stop_plan; fi ;;
  esac
  if [ "$phase $current" = "fallback missing" ]; then
    if keep_fallback; then owed=""
    else echo "$NAME: on-demand not started, tried again" >&2; fi
  fi
  sleep "$POLL_S"
done
