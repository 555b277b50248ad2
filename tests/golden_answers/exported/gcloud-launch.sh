#!/usr/bin/env bash
# llama3-8b-pretrain: 1x a3-highgpu-8g spot in gcp europe-north1, then europe-west9, then
# asia-south2.
# Estimate: 64 USD on average (9 runs in 10: 38 to 108), 8 h (9 runs in 10: 4.2 h to 14 h).
# Met with 99 % chance: done within 24 h of the first start.
# Spot is interrupted in 90 % of the runs; 4.2 times on average, and 1 run in 20 has 11 or more.
# List price 10.2 USD/h while everything runs.
# Written by recommend 0.1.0 from plan 1; catalog 2026-11, prices of 2026-08-21. Nothing is rented
# until you start it:
#   CHECKPOINT_BUCKET=YOUR-BUCKET bash run/launch.sh
# Quotas needed first:
#   "Preemptible NVIDIA H100 GPUs" of 8 GPUs in europe-north1 (new accounts have 0)
# Fallback: 1x a3-highgpu-8g on-demand in europe-north1, when the time left is down to the work
# left on them + 24 min; needed in 1 % of the runs. launch.sh makes the switch.
# launch.sh runs on a machine that stays on, and may be killed and started again; run it in the
# folder of your training script, or name that in CODE_DIR. Names that begin with a dot (.env,
# .venv, .git) are not uploaded.
# Needed first: the bucket; a project in gcloud config; a default network. The machines' service
# account (the project's default one, or SERVICE_ACCOUNT) may read and write the bucket, and
# delete machines (roles/compute.instanceAdmin.v1).
# The image is the newest of IMAGE_FAMILY: look which there are with gcloud compute images list
# --project deeplearning-platform-release, as their names carry versions.
# A machine deletes itself, and Google deletes it after its --max-run-duration.
# Checkpoints (checkpoint-* and step-* in CHECKPOINT_DIR) are written to the disk and uploaded
# behind the training by gcloud storage, counted at 298 MB/s a machine, back at 300 (restore:
# gcloud storage cp (skypilot issue 8457, 2025-12); upload: 100 GB in 336 s in parallel parts,
# n2-standard-4 (cloud-pipeline issue 1374, 2020-09); 8B to a bucket took 6 min (torchtitan issue
# 1301)). What an interruption cuts off is not resumed from: the one before is.
# Disks of 436 GB hold the last checkpoints of 112 GB: older ones are deleted when a newer one is
# in the bucket. The estimate counts 100 GiB.
# Your training: TRAIN_SCRIPT (no software stated: stack in the job file). Its environment:
# environment.yml (conda) and requirements.txt are installed at start. HF_TOKEN and WANDB_API_KEY
# by name: launch.sh puts those of your environment into the bucket ($NAME/secrets), from which
# machines read them, and removes them at the end; their values are in no file.
# recommender-train.zip holds the checkpoint helper.
# Stopped for good 24 h after its first start: the deadline is over (raise LONGEST_RUN_S in
# launch.sh and machine.sh to let a late run end); it ends with status 124 and is not started
# again. launch.sh counts USD from the start of machines on; they end themselves as well. The log
# warns after 14 h, which 1 run in 100 exceeds. It resumes from what is in CHECKPOINT_DIR: empty
# that for another training.

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
FALLBACK_WORK_S=4006  # the whole job on demand
CAUTION=1  # times the need before a step
WAIT_ABOVE=0
BACK_ABOVE=''  # never
CHANGEOVER_S=0  # from there to spot
SAVE_S=600  # to save, once given up

here=$(cd "$(dirname "$0")" && pwd)
code=${CODE_DIR:-.}  # the folder of your training script
: "${CHECKPOINT_BUCKET:?export CHECKPOINT_BUCKET=your-bucket first}"
boot_file=$(mktemp)
secrets_file=$(mktemp)  # that you alone can read, for a moment
trap 'rm -f "$boot_file" "$secrets_file"' EXIT
DISK_GB=436
# Asked for in this order, at every start.
PLACES=(
  'europe-north1 europe-north1-a'
  'europe-west9 europe-west9-a'
  'asia-south2 asia-south2-a'
)
FALLBACK_PLACES=(
  'europe-north1 europe-north1-a'
)
nodes() { if [ "$phase" = plan ]; then echo 1; else echo 1; fi; }
IMAGE_FAMILY=${IMAGE_FAMILY:-pytorch-2-9-cu129-ubuntu-2204-nvidia-580}
IMAGE_PROJECT=${IMAGE_PROJECT:-deeplearning-platform-release}

show() {
  gcloud storage cat "gs://$CHECKPOINT_BUCKET/$1" 2> /dev/null
}

put() {
  gcloud storage cp --no-user-output-enabled "$2" "gs://$CHECKPOINT_BUCKET/$1"
}

drop() {
  gcloud storage rm --no-user-output-enabled "gs://$CHECKPOINT_BUCKET/$1"
}

pass_secrets() {
  local name done=0
  for name in HF_TOKEN WANDB_API_KEY; do
    if [ -n "${!name:-}" ]; then printf 'export %s=%q\n' "$name" "${!name}"; fi
  done > "$secrets_file"
  if [ -s "$secrets_file" ]; then put "$NAME/secrets" "$secrets_file" || done=1; fi
  : > "$secrets_file"
  return "$done"
}

upload_code() {
  gcloud storage rsync --recursive --exclude='(^|.*/)([.]|__pycache__/).*' "$code" \
    "gs://$CHECKPOINT_BUCKET/$NAME/code"
}

start_machines() {
  local rank names=() options=() zones=()
  for ((rank = 0; rank < count; rank++)); do
    names+=("${run_tag:0:58}-$rank")
  done
  local disk_type=pd-balanced
  if [[ "$machine_type" =~ ^(a3-ultragpu|a4x?|g4)- ]]; then disk_type=hyperdisk-balanced; fi
  if [ "$left_s" -gt 10368000 ]; then left_s=10368000; fi
  if [ "$market" = spot ]; then
    options+=(--provisioning-model=SPOT)
  fi
  if [ -n "${SERVICE_ACCOUNT:-}" ]; then
    options+=("--service-account=$SERVICE_ACCOUNT")
  fi
  if [ -n "$zone" ]; then
    zones=("$zone")
  else  # the plan names the region alone
    mapfile -t zones < <(gcloud compute machine-types list --format='value(zone)' \
      --filter="name=$machine_type AND zone ~ ^$region-")
  fi
  for zone in "${zones[@]}"; do
    if gcloud compute instances create "${names[@]}" --zone="$zone" --quiet \
      --machine-type="$machine_type" --network-interface=nic-type=GVNIC "${options[@]}" \
      --instance-termination-action=DELETE --max-run-duration="${left_s}s" \
      --maintenance-policy=TERMINATE --no-restart-on-failure \
      --image-family="$IMAGE_FAMILY" --image-project="$IMAGE_PROJECT" \
      --boot-disk-size="${DISK_GB}GB" --boot-disk-type="$disk_type" \
      --scopes=cloud-platform \
      --labels="recommend-run=$run_tag" --metadata=install-nvidia-driver=True \
      --metadata-from-file="startup-script=$boot_file"; then return 0; fi
  done
  return 1
}

running_machines() {
  local run_tag=$1
  local filter="labels.recommend-run=$run_tag AND status:(PROVISIONING STAGING RUNNING)"
  gcloud compute instances list --filter="$filter" --format='value(name)'
}

stop_machines() {
  local run_tag=$1
  local filter="labels.recommend-run=$run_tag AND status:(PROVISIONING STAGING RUNNING)"
  local found
  found=$(gcloud compute instances list --filter="$filter" --uri) || return 1
  if [ -z "$found" ]; then return 0; fi
  xargs gcloud compute instances delete --quiet <<< "$found"
}

ask_to_end() {
  # once they have saved and uploaded what they trained
  echo asked > "$boot_file"
  put "$NAME/end-$1" "$boot_file" || stop_machines "$1" || true
}

write_boot_file() {
  left_s=$(left_s)
  {
    printf '#!/usr/bin/env bash\nexport RUN_ID=%s RUN_TAG=%s' \
      "$began" "$run_tag"
    printf ' LEFT_S=%s NNODES=%s\n' "$left_s" "$1"
    printf 'export CHECKPOINT_BUCKET=%s\n' "$(printf %q "$CHECKPOINT_BUCKET")"
    if [ $# -gt 1 ]; then printf 'export %s\n' "${@:2}"; fi
    cat "$here/machine.sh"
  } > "$boot_file"
}

keep_plan() {
  local place region zone
  local machine_type=a3-highgpu-8g market=spot count=1 run_tag=$NAME-$began-plan
  stop_machines "$run_tag" || return 1  # what is left of a cluster that lost a machine
  drop "$NAME/end-$run_tag" > /dev/null 2>&1 || true
  upload_code && pass_secrets || return 1
  write_boot_file "$count"
  for place in "${PLACES[@]}"; do
    read -r region zone <<< "$place"
    echo "$NAME: asking for $count x $machine_type $market in $region $zone"
    if start_machines; then return 0; fi
    stop_machines "$run_tag" || true  # some of them may have started
  done
  return 1
}

stop_plan() {
  stop_machines "$NAME-$began-plan" || true
  drop "$NAME/secrets" > /dev/null 2>&1 || true  # there may be none
}

state() {
  local ended tag=$NAME-$began-$phase machines
  ended=$(show "$NAME/ended-$began" || true)
  case "$ended" in done | failed | stopped) echo "$ended"; return ;; esac
  # Where the cloud does not answer nothing is started twice.
  if ! machines=$(running_machines "$tag"); then echo unknown; return; fi
  if [ "$(grep -c . <<< "$machines")" -ge "$(nodes)" ]; then echo running; return; fi
  echo missing
}

keep_fallback() {
  local place region zone
  local machine_type=a3-highgpu-8g market=on-demand count=1 run_tag=$NAME-$began-fallback
  stop_machines "$run_tag" || return 1  # what is left of a cluster that lost a machine
  drop "$NAME/end-$run_tag" > /dev/null 2>&1 || true
  upload_code && pass_secrets || return 1
  write_boot_file "$count" CHECKPOINT_INTERVAL_S=1200 CHECKPOINT_INTERVAL_STEPS=571 USD_PER_HOUR=97
  for place in "${FALLBACK_PLACES[@]}"; do
    read -r region zone <<< "$place"
    echo "$NAME: asking for $count x $machine_type $market in $region $zone"
    if start_machines; then return 0; fi
    stop_machines "$run_tag" || true  # some of them may have started
  done
  return 1
}

stop_fallback() {
  stop_machines "$NAME-$began-fallback" || true
}

no_spot() {
  [ "$current" = missing ]
}

let_plan_end() {
  ask_to_end "$NAME-$began-plan"
}

let_fallback_end() {
  ask_to_end "$NAME-$began-fallback"
}

choice() {
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
}

go_on_demand() {
  echo "$NAME: $1, on-demand machines take over"
  let_plan_end
  leaving=plan end_by=$(( $(date +%s) + SAVE_S ))
  phase=fallback current=missing
  remember
}

go_back() {
  echo "$NAME: back to spot"
  let_fallback_end
  leaving=fallback end_by=$(( $(date +%s) + SAVE_S ))
  phase=plan current=started
  remember
}

spot_is_there() {
  # beside the on-demand machines; else it is asked for, at every look
  if [ "$leaving" = plan ]; then return 1; fi  # those that are there end
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
  { echo "$began $phase $spent $counted" > "$memory.new" && mv "$memory.new" "$memory"; } ||
    echo "$NAME: $memory was not written" >&2
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
before=""  # what was noted before they were there
leaving=""  # machines that are given up, until they have ended
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
    if keep_plan; then current=started; else echo "$NAME: not started, tried again" >&2; fi
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
  sleep "$POLL_S"
done
