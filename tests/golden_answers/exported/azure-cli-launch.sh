#!/usr/bin/env bash
# llama3-8b-pretrain: 1x Standard_ND96isr_H100_v5 spot in azure eastus2, then westus3, then
# swedencentral.
# Estimate: 113 USD on average (9 runs in 10: 71 to 166), 9.1 h (9 runs in 10: 4.2 h to 17 h).
# Met with 98 % chance: done within 24 h of the first start.
# Spot is interrupted in 90 % of the runs; 4.2 times on average, and 1 run in 20 has 11 or more.
# List price 18.2 USD/h while everything runs.
# Written by recommend 0.1.0 from plan 1; catalog 2026-11, prices of 2026-08-21. Nothing is rented
# until you start it:
#   CHECKPOINT_BUCKET=YOUR-BUCKET RESOURCE_GROUP=YOUR-GROUP AZURE_STORAGE_ACCOUNT=YOUR-ACCOUNT IDENTITY=ITS-ID bash run/launch.sh
# No fallback to on-demand: the plan waits for spot, and so does this file.
# launch.sh runs on a machine that stays on, and may be killed and started again; run it in the
# folder of your training script, or name that in CODE_DIR. Names that begin with a dot (.env,
# .venv, .git) are not uploaded.
# Needed first: a resource group, named in RESOURCE_GROUP; a storage account, named in
# AZURE_STORAGE_ACCOUNT, with the container CHECKPOINT_BUCKET; a user-assigned identity, its id in
# IDENTITY, that may write blobs there (Storage Blob Data Contributor) and delete machines of the
# group (Virtual Machine Contributor). So may you.
# The image is the newest of IMAGE, Azure's own for GPUs: PyTorch comes with your
# requirements.txt.
# A machine deletes itself; its public address, which it needs to reach the bucket, goes when
# launch.sh stops.
# Checkpoints (checkpoint-* and step-* in CHECKPOINT_DIR) are written to the disk and uploaded
# behind the training by azcopy, counted at 300 MB/s a machine, back at 300 (upload: AzCopy 10
# from a VM to an account of its region (azure-storage-azcopy issue 494, 2019-07); restore:
# assumed to be as fast). What an interruption cuts off is not resumed from: the one before is.
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
# warns after 17 h, which 1 run in 100 exceeds. It resumes from what is in CHECKPOINT_DIR: empty
# that for another training.

set -euo pipefail
NAME=llama3-8b-pretrain
LONGEST_RUN_S=86400  # since the first start
WARN_AFTER_S=60480  # 1 run in 100 takes longer
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
  'eastus2 eastus2-a'
  'westus3 westus3-a'
  'swedencentral swedencentral-a'
)
nodes() { echo 1; }
: "${RESOURCE_GROUP:?export RESOURCE_GROUP=name of a resource group first}"
: "${AZURE_STORAGE_ACCOUNT:?export AZURE_STORAGE_ACCOUNT=your account first}"
: "${IDENTITY:?export IDENTITY=id of a user-assigned identity first}"
IMAGE=${IMAGE:-microsoft-dsvm:ubuntu-hpc:2204:latest}
export AZURE_STORAGE_ACCOUNT AZURE_STORAGE_AUTH_MODE=login

show() {
  az storage blob download --container-name "$CHECKPOINT_BUCKET" --name "$1" \
    --no-progress --only-show-errors 2> /dev/null
}

put() {
  az storage blob upload --container-name "$CHECKPOINT_BUCKET" --name "$1" --file "$2" \
    --overwrite --only-show-errors --output none
}

drop() {
  az storage blob delete --container-name "$CHECKPOINT_BUCKET" --name "$1" --only-show-errors --output none
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
  local copy
  copy=$(mktemp -d)
  (cd "$code" && find . -type f ! -path '*/.*' ! -path '*/__pycache__/*' -print0 |
    tar --null -T - -c) | tar -C "$copy" -x
  az storage blob upload-batch --destination "$CHECKPOINT_BUCKET" --overwrite \
    --destination-path "$NAME/code" --source "$copy" --only-show-errors --output none
}

start_machines() {
  local rank pid failed=0 options=() pids=()
  az network vnet create --resource-group "$RESOURCE_GROUP" --name "$NAME-$region" \
    --location "$region" --subnet-name train --only-show-errors --output none || return 1
  if [ "$market" = spot ]; then
    options+=(--priority Spot --eviction-policy Delete --max-price -1)
  fi
  if [ -n "$zone" ]; then
    options+=(--zone "$zone")
  fi
  for ((rank = 0; rank < count; rank++)); do
    az vm create --resource-group "$RESOURCE_GROUP" --name "${run_tag:0:58}-$rank" \
      --location "$region" --size "$machine_type" --image "$IMAGE" \
      --assign-identity "$IDENTITY" --custom-data "$boot_file" \
      --vnet-name "$NAME-$region" --subnet train --nsg "" --public-ip-sku Standard \
      --admin-username azureuser --generate-ssh-keys --nic-delete-option Delete \
      --os-disk-size-gb "$DISK_GB" --os-disk-delete-option Delete \
      --storage-sku os=Premium_LRS \
      --tags "recommend-run=$run_tag" "${options[@]}" --only-show-errors --output none &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return "$failed"
}

running_machines() {
  local run_tag=$1
  az vm list --resource-group "$RESOURCE_GROUP" --output tsv \
    --query "[?tags.\"recommend-run\"=='$run_tag'].name"
}

stop_machines() {
  local run_tag=$1
  local kind found
  for kind in vm 'network public-ip'; do
    # shellcheck disable=SC2086  # two words are a group and its command
    found=$(az $kind list --resource-group "$RESOURCE_GROUP" --output tsv \
      --query "[?tags.\"recommend-run\"=='$run_tag'].id") || return 1
    [ -n "$found" ] || continue
    if [ "$kind" = vm ]; then
      xargs az vm delete --yes --only-show-errors --output none --ids <<< "$found" || return 1
    else
      xargs az network public-ip delete --only-show-errors --output none --ids <<< "$found" || return 1
    fi
  done
}

write_boot_file() {
  left_s=$(left_s)
  {
    printf '#!/usr/bin/env bash\nexport RUN_ID=%s RUN_TAG=%s' \
      "$began" "$run_tag"
    printf ' LEFT_S=%s NNODES=%s\n' "$left_s" "$1"
    printf 'export CHECKPOINT_BUCKET=%s AZURE_STORAGE_ACCOUNT=%s\n' "$(printf %q "$CHECKPOINT_BUCKET")" "$(printf %q "$AZURE_STORAGE_ACCOUNT")"
    if [ $# -gt 1 ]; then printf 'export %s\n' "${@:2}"; fi
    cat "$here/machine.sh"
  } > "$boot_file"
}

keep_plan() {
  local place region zone
  local machine_type=Standard_ND96isr_H100_v5 market=spot count=1 run_tag=$NAME-$began-plan
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
  usd_per_hour=18.2
  # until a cap: of time, or of what the machines of this phase may still cost
  awk -v left="$(( began + LONGEST_RUN_S - $(date +%s) ))" -v most="$BUDGET_USD" \
    -v spent="$spent" -v price="$usd_per_hour" 'BEGIN {
      if (most != "") paid = (most - spent) / price * 3600
      printf "%d", (most != "" && paid < left ? paid : left) }'
}

count_cost() {
  local usd_per_hour now
  usd_per_hour=18.2
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
