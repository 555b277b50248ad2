#!/usr/bin/env bash
# llama3-8b-pretrain: starts train.yaml and applies the plan's fallback rule: on-demand.yaml takes
# over when the time left is down to the work left.
# Start it on a machine that stays on:
#   CHECKPOINT_BUCKET=YOUR-BUCKET bash run/launch.sh
# It may be killed and started again. Progress is the share of the work that is done, which the
# training script writes to $CHECKPOINT_DIR/progress (0.4 for 40 %).

set -euo pipefail
NAME=llama3-8b-pretrain
LONGEST_RUN_S=86400  # since the first start
POLL_S=${POLL_S:-60}
DEADLINE_S=86400  # since the first start
FALLBACK_WORK_S=16200  # the whole job on the fallback
RESERVE_S=1440  # its start, and a reserve

here=$(dirname "$0")
: "${CHECKPOINT_BUCKET:?export CHECKPOINT_BUCKET=your-bucket first}"
export CHECKPOINT_BUCKET
job_state() {  # of the newest managed job of this name
  sky jobs queue --all -o json | python3 -c '
import json, sys
jobs = [job for job in json.load(sys.stdin) if job["job_name"] == sys.argv[1]]
newest = max(jobs, key=lambda job: job["job_id"], default={})
print(str(newest.get("status", "NONE")).rpartition(".")[2])' "$1"
}
start_job() {
  sky jobs launch --yes --detach-run --name "$1" --env CHECKPOINT_BUCKET "$2"
}

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
    FAILED* | CANCELLED) echo failed ;;
    *) echo running ;;
  esac
}

progress() {
  gcloud storage cat "gs://$CHECKPOINT_BUCKET/$NAME/progress" 2> /dev/null
}

keep_fallback() {
  start_job "$NAME-$began-fallback" "$here/on-demand.yaml"
}

stop_fallback() {
  sky jobs cancel --yes --graceful --name "$NAME-$began-fallback" || true
}

# Without a word on progress nothing counts as done: the switch comes early, never late.
time_is_short() {
  local share left
  share=$(progress || true)
  left=$(( began + DEADLINE_S - $(date +%s) ))
  awk -v share="${share:-0}" -v left="$left" -v work="$FALLBACK_WORK_S" \
    -v reserve="$RESERVE_S" \
    'BEGIN { if (share < 0 || share > 1) share = 0; exit !(left <= (1 - share) * work + reserve) }'
}

memory="${STATE_DIR:-.}/.$NAME.state"  # first start and phase, for a new start
[ -s "$memory" ] || echo "$(date +%s) plan" > "$memory"
read -r began phase < "$memory"
stop_all() {
  stop_plan
  stop_fallback
}
while :; do
  current=$(state || true)
  case "$current" in
    done) echo "$NAME: done"; stop_all; rm -f "$memory"; exit 0 ;;
    failed) echo "$NAME: failed" >&2; stop_all; rm -f "$memory"; exit 1 ;;
  esac
  if [ $(( $(date +%s) - began )) -ge "$LONGEST_RUN_S" ]; then
    echo "$NAME: stopped for good after $LONGEST_RUN_S s" >&2
    stop_all; rm -f "$memory"; exit 124
  fi
  if [ "$phase" = plan ] && time_is_short; then
    echo "$NAME: time is short, on-demand machines take over"
    stop_plan
    phase=fallback
    echo "$began $phase" > "$memory"
    current=missing
  fi
  if [ "$current" = missing ]; then
    if [ "$phase" = plan ]; then
      keep_plan || echo "$NAME: not started, tried again" >&2
    else
      keep_fallback || echo "$NAME: on-demand not started, tried again" >&2
    fi
  fi
  sleep "$POLL_S"
done
