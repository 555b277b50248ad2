#!/usr/bin/env bash
# llama3-8b-pretrain: 1x p5.48xlarge spot in aws us-east-2, then us-east-1, then us-west-2, then
# eu-north-1.
# Estimate: 98 USD on average (9 runs in 10: 61 to 144), 8 h (9 runs in 10: 4.1 h to 14 h).
# Met with 99 % chance: done within 24 h of the first start.
# Spot is interrupted in 90 % of the runs; 4.2 times on average, and 1 run in 20 has 11 or more.
# List price 19.9 USD/h while everything runs.
# Written by recommend 0.1.0 from plan 1; catalog 2026-11, prices of 2026-08-21. Nothing is rented
# until you start it:
#   CHECKPOINT_BUCKET=YOUR-BUCKET INSTANCE_PROFILE=YOUR-PROFILE bash run/launch.sh
# Quotas needed first:
#   "All P5 Spot Instance Requests" of 192 vCPU in us-east-2 (new accounts have 0)
# No fallback to on-demand: the plan waits for spot, and so does this file.
# launch.sh runs on a machine that stays on, and may be killed and started again; run it in the
# folder of your training script, or name that in CODE_DIR. Names that begin with a dot (.env,
# .venv, .git) are not uploaded.
# Needed first: the bucket; an instance profile that may read and write it, named in
# INSTANCE_PROFILE; default subnets in the regions above, which new accounts have.
# The image is AWS's newest of IMAGE, a public parameter: look whether it has the PyTorch you
# want, or name an AMI in IMAGE (AMIs are of one region).
# A machine ends itself: its shutdown terminates it.
# Checkpoints (checkpoint-* and step-* in CHECKPOINT_DIR) are written to the disk and uploaded
# behind the training by aws s3, counted at 587 MB/s a machine, back at 580 (upload: 8.5 GiB by
# aws s3 cp with the CRT client, r5n.24xlarge (aws-cli issue 6736, 2022-02); restore: 17.4 GB in
# 30 s by the CRT client, g5.12xlarge (s3-connector-for-pytorch issue 199, 2024-04)). What an
# interruption cuts off is not resumed from: the one before is.
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
WARN_AFTER_S=50040  # 1 run in 100 takes longer
BUDGET_USD=''  # for all machines; empty: any
POLL_S=${POLL_S:-60}

here=$(cd "$(dirname "$0")" && pwd)
code=${CODE_DIR:-.}  # the folder of your training script
: "${CHECKPOINT_BUCKET:?export CHECKPOINT_BUCKET=your-bucket first}"
boot_file=$(mktemp)
secrets_file=$(mktemp)  # that you alone can read, for a moment
trap 'rm -f "$boot_file" "$secrets_file"' EXIT
DISK_GB=436
# Asked for in this order, at every start.
PLACES=(
  'us-east-2 use2-az3'
  'us-east-1 use1-az1'
  'us-west-2 usw2-az2'
  'eu-north-1 eun1-az1'
)
nodes() { echo 1; }
: "${INSTANCE_PROFILE:?export INSTANCE_PROFILE=name of an instance profile first}"
IMAGE=${IMAGE:-resolve:ssm:/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-24.04/latest/ami-id}
DISK_SPEED=',"Iops":4000,"Throughput":1000'
REGIONS=(us-east-2 us-east-1 us-west-2 eu-north-1)
zone_filter() {  # default subnets, of a zone by its id if one is given
  local zone=''
  if [ -n "$1" ]; then
    zone=$(printf ',{"Name":"availability-zone-id","Values":["%s"]}' "$1")
  fi
  printf '[{"Name":"default-for-az","Values":["true"]}%s]' "$zone"
}

show() {
  aws s3 cp --quiet "s3://$CHECKPOINT_BUCKET/$1" - 2> /dev/null
}

put() {
  aws s3 cp --quiet "$2" "s3://$CHECKPOINT_BUCKET/$1"
}

drop() {
  aws s3 rm --quiet "s3://$CHECKPOINT_BUCKET/$1"
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
  aws s3 sync --only-show-errors --exclude '.*' --exclude '*/.*' \
    --exclude '*__pycache__/*' "$code" \
    "s3://$CHECKPOINT_BUCKET/$NAME/code"
}

start_machines() {
  local subnet subnets market_options=() network=()
  subnets=$(aws ec2 describe-subnets --region "$region" --output text \
    --query 'Subnets[].SubnetId' --filters \
    "$(zone_filter "$zone")") || return 1
  if [ "${subnets:-None}" = None ]; then
    echo "$NAME: no default subnet in $region $zone" >&2
    return 1
  fi
  if [ "$market" = spot ]; then
    market_options=(--instance-market-options '{"MarketType":"spot","SpotOptions":{"SpotInstanceType":"one-time","InstanceInterruptionBehavior":"terminate"}}')
  fi
  # Where the plan names a region alone: all of its zones, as not each has the type.
  for subnet in $subnets; do
    network=(--subnet-id "$subnet")
    if aws ec2 run-instances --region "$region" --count "$count" \
      --instance-type "$machine_type" --image-id "$IMAGE" \
      "${network[@]}" "${market_options[@]}" \
      --instance-initiated-shutdown-behavior terminate \
      --iam-instance-profile "$(printf '{"Name":"%s"}' "$INSTANCE_PROFILE")" \
      --block-device-mappings "$(printf '[{"DeviceName":"/dev/sda1","Ebs":{"VolumeSize":%s,"VolumeType":"gp3"%s,"DeleteOnTermination":true}}]' "$DISK_GB" "$DISK_SPEED")" \
      --metadata-options '{"HttpTokens":"required"}' \
      --tag-specifications "$(printf '[{"ResourceType":"instance","Tags":[{"Key":"Name","Value":"%s"},{"Key":"%s","Value":"%s"}]}]' \
        "$NAME" recommend-run "$run_tag")" \
      --user-data "file://$boot_file" --output text \
      --query 'Instances[].InstanceId'; then return 0; fi
  done
  return 1
}

running_machines() {
  local run_tag=$1
  local region
  for region in "${REGIONS[@]}"; do
    aws ec2 describe-instances --output text --region "$region" \
      --query 'Reservations[].Instances[].[InstanceId]' --filters "$(printf '[{"Name":"tag:%s","Values":["%s"]},{"Name":"instance-state-name","Values":%s}]' recommend-run "$run_tag" '["pending","running"]')" || return 1
  done
}

stop_machines() {
  local run_tag=$1
  local region found
  for region in "${REGIONS[@]}"; do
    found=$(aws ec2 describe-instances --output text --region "$region" \
      --query 'Reservations[].Instances[].[InstanceId]' --filters "$(printf '[{"Name":"tag:%s","Values":["%s"]},{"Name":"instance-state-name","Values":%s}]' recommend-run "$run_tag" '["pending","running","stopping","stopped"]')") || return 1
    [ -n "$found" ] || continue
    xargs aws ec2 terminate-instances --region "$region" --output text --query \
      'TerminatingInstances[].InstanceId' --instance-ids <<< "$found" || return 1
  done
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
  local machine_type=p5.48xlarge market=spot count=1 run_tag=$NAME-$began-plan
  stop_machines "$run_tag" || return 1  # what is left of a cluster that lost a machine
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
  usd_per_hour=19.9
  # until a cap: of time, or of what the machines of this phase may still cost
  awk -v left="$(( began + LONGEST_RUN_S - $(date +%s) ))" -v most="$BUDGET_USD" \
    -v spent="$spent" -v price="$usd_per_hour" 'BEGIN {
      if (most != "") paid = (most - spent) / price * 3600
      printf "%d", (most != "" && paid < left ? paid : left) }'
}

count_cost() {
  local usd_per_hour now
  usd_per_hour=19.9
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
}
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
  if [ "$current" = missing ]; then keep_plan || echo "$NAME: not started, tried again" >&2; fi
  sleep "$POLL_S"
done
