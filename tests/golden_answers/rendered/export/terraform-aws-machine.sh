#!/usr/bin/env bash
# llama3-8b-pretrain: what each machine runs from its first boot. launch.sh sends it, with the
# lines above it that set RUN_ID, LEFT_S, NNODES and CHECKPOINT_BUCKET.

set -euo pipefail
: "${RUN_ID:?}" "${LEFT_S:?}" "${NNODES:?}" "${CHECKPOINT_BUCKET:?}"
export HOME=${HOME:-/root}  # startup scripts have none
# Where the images of the clouds keep PyTorch.
export PATH="/opt/pytorch/bin:/opt/conda/bin:$PATH"
NAME=llama3-8b-pretrain
# your training script; its flags: see the last line
export TRAIN_SCRIPT=train.py
# samples per optimiser step, on all GPUs
export GLOBAL_BATCH=64
# samples per GPU and pass, at most
export MICRO_BATCH=2
# passes per optimiser step
export ACCUMULATION=4
# of weights and states over the GPUs
export SHARDING=fsdp
# 1: activations are recomputed in the backward pass
export ACTIVATION_CHECKPOINTING=1
# of the arithmetic
export PRECISION=bf16
# the run is stopped for good after this
export LONGEST_RUN_S=86400
# 1 run in 100 takes longer: the log says so
export WARN_AFTER_S=50040
# where checkpoints are written and read, and the weights at the end
export CHECKPOINT_DIR=/checkpoints/llama3-8b-pretrain
# seconds between two; 600 to 1200 cost next to nothing more; for saves in the background, far longer if training waits for them
export CHECKPOINT_INTERVAL_S=900
# the same in steps, as estimated
export CHECKPOINT_INTERVAL_STEPS=428
# on the disk: save_total_limit of the Trainer
export CHECKPOINTS_KEPT=2
# of all machines, at the first place; for progress.json of recommender.train
export USD_PER_HOUR=19.9
# seconds of training, as estimated; for the same
export PLANNED_WORK_S=16200
# What your script leaves here is in the bucket at the end.
export OUTPUT_DIR=/checkpoints/llama3-8b-pretrain
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

CHECKPOINTS_GB=336  # on the disk of a machine at most
export UPLOAD_S=0  # until a checkpoint is safe
# On the local disks of the machine where the checkpoints fit: they are faster.
raw=(/dev/disk/by-id/google-local-nvme-ssd-*)
if [ -e "${raw[0]}" ] && ! mountpoint -q /mnt/local-disks; then
  as_root mdadm --create /dev/md0 --level=0 --force --run \
    --raid-devices="${#raw[@]}" "${raw[@]}" &&
    as_root mkfs.ext4 -qF /dev/md0 && as_root mkdir -p /mnt/local-disks &&
    as_root mount /dev/md0 /mnt/local-disks || true
fi
for disk in /opt/dlami/nvme /mnt/resource_nvme /mnt/local-disks; do
  if mountpoint -q "$disk" && [ ! -e /checkpoints ] &&
    [ "$(df --output=avail -B1000000000 "$disk" | tail -n 1)" -ge "$CHECKPOINTS_GB" ]; then
    as_root mkdir -p "$disk/checkpoints" && as_root ln -s "$disk/checkpoints" /checkpoints
  fi
done
as_root mkdir -p /checkpoints && as_root chown "$(id -u)" /checkpoints/
mkdir -p "$CHECKPOINT_DIR"

get_folder() {
  aws s3 sync --quiet "s3://$CHECKPOINT_BUCKET/$1" "/checkpoints/$1"
}

put_folder() {
  aws s3 sync --quiet "/checkpoints/$1" "s3://$CHECKPOINT_BUCKET/$1"
}

put_file() {
  aws s3 cp --quiet "/checkpoints/$1" "s3://$CHECKPOINT_BUCKET/$1"
}

drop_folder() {
  aws s3 rm --quiet --recursive "s3://$CHECKPOINT_BUCKET/$1"
}

show() {
  aws s3 cp --quiet "s3://$CHECKPOINT_BUCKET/$1" - 2> /dev/null
}

end_machine() {
  shutdown -h now
}

token=$(curl -sf -X PUT http://169.254.169.254/latest/api/token \
  -H 'X-aws-ec2-metadata-token-ttl-seconds: 300')
metadata() {
  curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}
# Whatever happens below, this machine ends when the time of the run is over.
(sleep "$LEFT_S"; end_machine) &
if ! aws --version 2> /dev/null | grep -q aws-cli/2; then
  curl -sfo /tmp/aws.zip https://awscli.amazonaws.com/awscli-exe-linux-x86_64.zip
  (cd /tmp && python3 -m zipfile -e aws.zip . && chmod -R +x aws)
  as_root /tmp/aws/install --update > /dev/null
fi
aws configure set default.s3.preferred_transfer_client crt
aws configure set default.s3.target_bandwidth 100Gb/s
: "${NODE_RANK:?}"  # main.tf sets it
finish() {
  put_folder "$NAME" || true
  echo "$ended" > "$OUTPUT_DIR/ended-$RUN_ID-$NODE_RANK"
  put_file "$NAME/ended-$RUN_ID-$NODE_RANK" || true
  if [ "$NODE_RANK" = 0 ]; then
    local rank tries=0
    for ((rank = 1; rank < NNODES; rank++)); do
      until [ -n "$(show "$NAME/ended-$RUN_ID-$rank")" ] || [ "$((tries++))" -ge 360 ]; do
        sleep 10
      done
    done
    echo "$ended" > "$OUTPUT_DIR/ended-$RUN_ID"
    put_file "$NAME/ended-$RUN_ID" || true
  fi
  end_machine
}

ended=failed  # unless training ends well
trap finish EXIT
# An interrupted machine ends while it sleeps, and nothing has failed.
trap 'sleep 600' TERM
MASTER_ADDR=${MASTER_ADDR:-localhost}  # main.tf sets it but on the first
export NODE_RANK MASTER_ADDR
GPUS_PER_NODE=$(nvidia-smi -L | wc -l)
export GPUS_PER_NODE
get_folder "$NAME/code"
cd "$OUTPUT_DIR/code"
# Your packages, torch among them: of conda, then of pip.
if [ -f environment.yml ]; then conda env update --name base --file environment.yml; fi
if [ -f requirements.txt ]; then pip install -r requirements.txt; fi
eval "$(show "$NAME/secrets" || true)"  # of your environment, by launch.sh

echo "$RUN_ID" > "$CHECKPOINT_DIR/began"  # the cap counts from the first start
# Every machine notes the newest checkpoint that it has uploaded whole, 0 for none; the
# first one notes the oldest of these for all.
newest_saved() {
  show "$NAME/saved" || true
}

note_last() {
  echo "$last" > "$CHECKPOINT_DIR/saved-$NODE_RANK"
  put_file "$NAME/saved-$NODE_RANK"
}

is_quiet() {
  [ -z "$(find "$CHECKPOINT_DIR/$1" -newermt '30 seconds ago' | head -n 1)" ]
}

newest_complete() {
  find "$CHECKPOINT_DIR" -mindepth 2 -maxdepth 2 -size +0 \
    \( -path "$CHECKPOINT_DIR/checkpoint-*" -o -path "$CHECKPOINT_DIR/step-*" \) \
    \( -name trainer_state.json -o -name random_states_0.pkl -o -name complete.json \) \
    -printf '%h\n' | sort -V | tail -n 1
}

save_new() {
  local newest file saved rank
  for file in progress progress.json paid_minutes; do  # the second is of recommender.train
    if [ "$NODE_RANK" = 0 ] && [ -s "$CHECKPOINT_DIR/$file" ]; then put_file "$NAME/$file"; fi
  done
  # checkpoint-* of the Trainer of Hugging Face, step-* of recommender.train. The first machine
  # has the file that they end with; the others what their own processes write.
  if [ "$NODE_RANK" = 0 ]; then newest=$(newest_complete); else
    newest=$(find "$CHECKPOINT_DIR" -maxdepth 1 -name "checkpoint-*" -o -name "step-*" |
      sort -V | tail -n 1)
  fi
  newest=${newest##*/}
  if [ -n "$newest" ] && [ "$newest" != "$last" ] && is_quiet "$newest"; then
    put_folder "$NAME/$newest" || return
    last=$newest
    note_last || return
    # The disk has room for this one and the next; those before are of no use here.
    find "$CHECKPOINT_DIR" -maxdepth 1 \( -name "checkpoint-*" -o -name "step-*" \) |
      sort -V | sed "/\/$last\$/Q" | xargs -r rm -rf
  fi
  if [ "$NODE_RANK" != 0 ]; then return; fi
  # What every machine has uploaded is resumed from; the one before is dropped.
  saved=$(for ((rank = 0; rank < NNODES; rank++)); do show "$NAME/saved-$rank" || true; done)
  if [ "$(grep -c . <<< "$saved")" -lt "$NNODES" ]; then return; fi
  saved=$(sort -V <<< "$saved" | head -n 1)
  if [ "$saved" = "$safe" ]; then return; fi
  echo "$saved" > "$CHECKPOINT_DIR/saved"
  put_file "$NAME/saved" || return
  if [ "$safe" != 0 ]; then drop_folder "$NAME/$safe"; fi
  safe=$saved
}

restore() {
  last=$(newest_saved)
  last=${last:-0} safe=${last:-0}
  # After a crash of the script each machine has other new checkpoints on its disk.
  find "$CHECKPOINT_DIR" -maxdepth 1 \( -name "checkpoint-*" -o -name "step-*" \) \
    ! -name "$last" -exec rm -rf {} +
  if [ "$last" != 0 ]; then get_folder "$NAME/$last"; fi
  note_last
}

start_saving() {
  (while sleep 10; do save_new || true; done) &
  saving=$!
}

restore
for file in progress.json paid_minutes; do
  show "$NAME/$file" > "$CHECKPOINT_DIR/$file" || true
done
start_saving

cat > /tmp/train.sh <<'EOF'
set -euo pipefail
# The cap counts from the first start, through all restarts.
mkdir -p "$CHECKPOINT_DIR"
began="$CHECKPOINT_DIR/began" paid="$CHECKPOINT_DIR/paid_minutes"
[ -s "$began" ] || date +%s > "$began"
left=$(( $(cat "$began") + LONGEST_RUN_S - $(date +%s) ))
left=$(( left - ${UPLOAD_S:-0} ))  # for the upload of the last checkpoint
if [ "$left" -le 0 ]; then
  echo "stopped for good by a cap; to start over remove $began and $paid" >&2
  exit 124
fi
# Resume from the newest checkpoint that is complete; at the first start there is none.
newest=$(
  find "$CHECKPOINT_DIR" -mindepth 2 -maxdepth 2 -size +0 \
    -path "$CHECKPOINT_DIR/checkpoint-*" \
    \( -name trainer_state.json -o -name random_states_0.pkl -o -name complete.json \) \
    -printf '%h\n' | sort -V | tail -n 1
)
if [ "$NODE_RANK" = 0 ]; then
  (
    while sleep 60 > /dev/null 2>&1; do
      echo "$USD_PER_HOUR" >> "$paid"
      late=$(( $(date +%s) - $(cat "$began") - WARN_AFTER_S ))
      if [ "$late" -ge 0 ] && [ "$late" -lt 60 ]; then
        echo "warning: 99 runs in 100 were expected to be done by now" >&2
      fi
    done
  ) &
  counting=$!
  trap 'kill "$counting" 2> /dev/null || true' EXIT
fi
for name in HF_TOKEN WANDB_API_KEY; do
  if [ -z "${!name:-}" ]; then unset "$name"; fi  # not given
done
# recommender.train, where it lies beside these files.
helper=$(find "$PWD" -maxdepth 2 -name recommender-train.zip | head -n 1)
export PYTHONPATH="$helper${PYTHONPATH:+:$PYTHONPATH}"
export RESUME_FROM=$newest
timeout --kill-after=60 "$left" torchrun \
  --nnodes "$NNODES" --nproc-per-node "$GPUS_PER_NODE" \
  --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" \
  --master-port 29500 \
  "$TRAIN_SCRIPT" ${newest:+--resume_from_checkpoint "$newest"}
EOF
# A crash of the script is tried again, as often as three times.
for _ in 1 2 3 4; do
  code=0
  bash /tmp/train.sh || code=$?
  if [ "$code" -eq 0 ] || [ "$code" -eq 124 ]; then break; fi
  sleep 60
done
if [ "$code" -eq 124 ]; then sleep "$UPLOAD_S"; fi  # what was saved last
kill "$saving" || true
case "$code" in 0) ended='done' ;; 124) ended=stopped ;; esac
