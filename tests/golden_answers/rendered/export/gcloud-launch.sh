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
# Disks of 436 GB hold the last checkpoints of 112 GB: have your script keep two (save_total_limit
# of the Trainer). The estimate counts 100 GiB.
# Stopped for good 24 h after its first start: the deadline is over (raise LONGEST_RUN_S in
# launch.sh and machine.sh to let a late run end). It resumes from what is in CHECKPOINT_DIR:
# empty that for another training.

set -euo pipefail
NAME=llama3-8b-pretrain
LONGEST_RUN_S=86400  # since the first start
POLL_S=${POLL_S:-60}
DEADLINE_S=86400  # since the first start
FALLBACK_WORK_S=16200  # the whole job on the fallback
RESERVE_S=1440  # its start, and a reserve

here=$(cd "$(dirname "$0")" && pwd)
code=${CODE_DIR:-.}  # the folder of your training script
: "${CHECKPOINT_BUCKET:?export CHECKPOINT_BUCKET=your-bucket first}"
boot_file=$(mktemp)
trap 'rm -f "$boot_file"' EXIT
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

upload_code() {
  gcloud storage rsync --recursive --exclude='(^|.*/)([.]|__pycache__/).*' "$code" \
    "gs://$CHECKPOINT_BUCKET/$NAME/code"
}

start_machines() {
  local rank names=() options=() zones=()
  for ((rank = 0; rank < count; rank++)); do
    names+=("${run_tag:0:58}-$rank")
  done
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
      --boot-disk-size="${DISK_GB}GB" --scopes=cloud-platform \
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

write_boot_file() {
  left_s=$(( began + LONGEST_RUN_S - $(date +%s) ))
  {
    printf '#!/usr/bin/env bash\nexport RUN_ID=%s LEFT_S=%s NNODES=%s\n' \
      "$began" "$left_s" "$1"
    printf 'export CHECKPOINT_BUCKET=%s\n' "$(printf %q "$CHECKPOINT_BUCKET")"
    if [ $# -gt 1 ]; then printf 'export %s\n' "${@:2}"; fi
    cat "$here/machine.sh"
  } > "$boot_file"
}

keep_plan() {
  local place region zone
  local machine_type=a3-highgpu-8g market=spot count=1 run_tag=$NAME-$began-plan
  stop_machines "$run_tag" || return 1  # what is left of a cluster that lost a machine
  upload_code || return 1
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
}

state() {
  local ended tag=$NAME-$began-$phase machines
  ended=$(show "$NAME/ended-$began" || true)
  case "$ended" in done | failed) echo "$ended"; return ;; esac
  # Where the cloud does not answer nothing is started twice.
  if ! machines=$(running_machines "$tag"); then echo unknown; return; fi
  if [ "$(grep -c . <<< "$machines")" -ge "$(nodes)" ]; then echo running; return; fi
  echo missing
}

progress() {
  gcloud storage cat "gs://$CHECKPOINT_BUCKET/$NAME/progress" 2> /dev/null
}

keep_fallback() {
  local place region zone
  local machine_type=a3-highgpu-8g market=on-demand count=1 run_tag=$NAME-$began-fallback
  stop_machines "$run_tag" || return 1  # what is left of a cluster that lost a machine
  upload_code || return 1
  write_boot_file "$count" USD_PER_HOUR=97
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
