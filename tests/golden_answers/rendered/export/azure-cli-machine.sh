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
export LONGEST_RUN_S=75600
# where checkpoints are written and read, and the weights at the end
export CHECKPOINT_DIR=/checkpoints/llama3-8b-pretrain
# seconds between two; 600 to 1200 cost next to nothing more; for saves in the background, far longer if training waits for them
export CHECKPOINT_INTERVAL_S=900
# of all machines, at the first place; for progress.json of recommender.train
export USD_PER_HOUR=18.2
# What your script leaves here is in the bucket at the end.
export OUTPUT_DIR=/checkpoints/llama3-8b-pretrain
# On the local disks of the machine, where its image has mounted them: they are faster.
for disk in /opt/dlami/nvme /mnt/resource_nvme; do
  if mountpoint -q "$disk" && [ ! -e /checkpoints ]; then
    mkdir -p "$disk/checkpoints" && ln -s "$disk/checkpoints" /checkpoints
  fi
done
mkdir -p "$OUTPUT_DIR"

get_folder() {
  az storage blob download-batch --source "$CHECKPOINT_BUCKET" --pattern "$1/*" \
    --destination "/checkpoints" --overwrite --only-show-errors --output none
}

put_folder() {
  az storage blob upload-batch --destination "$CHECKPOINT_BUCKET" --destination-path "$1" \
    --source "/checkpoints/$1" --overwrite --only-show-errors --output none
}

put_file() {
  az storage blob upload --container-name "$CHECKPOINT_BUCKET" --name "$1" \
    --file "/checkpoints/$1" --overwrite --only-show-errors --output none
}

drop_folder() {
  az storage blob delete-batch --source "$CHECKPOINT_BUCKET" --pattern "$1/*" --only-show-errors --output none
}

show() {
  az storage blob download --container-name "$CHECKPOINT_BUCKET" --name "$1" --no-progress \
    --only-show-errors 2> /dev/null
}

end_machine() {
  az vm delete --yes --ids "$(metadata resourceId)" --only-show-errors --output none ||
    shutdown -h now
}

metadata() {
  curl -sf -H Metadata:true "http://169.254.169.254/metadata/instance/compute/$1?api-version=2021-02-01&format=text"
}
machine=$(metadata name)
# Whatever happens below, this machine ends when the time of the run is over.
(sleep "$LEFT_S"; end_machine) &
export AZURE_STORAGE_AUTH_MODE=login
command -v az > /dev/null || curl -sfL https://aka.ms/InstallAzureCLIDeb | bash > /dev/null
az login --identity --only-show-errors --output none
NODE_RANK=${machine##*-}  # the names end in it
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
MASTER_ADDR=${machine%-*}-0  # names of a network are known to its machines
export NODE_RANK MASTER_ADDR
GPUS_PER_NODE=$(nvidia-smi -L | wc -l)
export GPUS_PER_NODE
get_folder "$NAME/code"
cd "$OUTPUT_DIR/code"
[ ! -f requirements.txt ] || pip install -r requirements.txt

# Every machine notes the newest checkpoint that it has uploaded whole; the oldest of
# these notes is one that all of them have.
newest_saved() {
  local rank
  for ((rank = 0; rank < NNODES; rank++)); do show "$NAME/saved-$rank" || true; done |
    sort -V | head -n 1
}
echo "$RUN_ID" > "$CHECKPOINT_DIR/began"  # the cap counts from the first start
last=$(newest_saved)
[ -z "$last" ] || get_folder "$NAME/$last"
show "$NAME/progress.json" > "$CHECKPOINT_DIR/progress.json" || true

newest_complete() {
  find "$CHECKPOINT_DIR" -mindepth 2 -maxdepth 2 -size +0 \
    \( -path "$CHECKPOINT_DIR/checkpoint-*" -o -path "$CHECKPOINT_DIR/step-*" \) \
    \( -name trainer_state.json -o -name random_states_0.pkl -o -name complete.json \) \
    -printf '%h\n' | sort -V | tail -n 1
}

save_new() {
  local newest noted before
  local file
  for file in progress progress.json; do  # the second is of recommender.train
    if [ "$NODE_RANK" = 0 ] && [ -s "$CHECKPOINT_DIR/$file" ]; then put_file "$NAME/$file"; fi
  done
  # checkpoint-* of the Trainer of Hugging Face, step-* of recommender.train. The first machine
  # has the file that they end with; the others what their own processes write.
  if [ "$NODE_RANK" = 0 ]; then newest=$(newest_complete); else
    newest=$(find "$CHECKPOINT_DIR" -maxdepth 1 -name "checkpoint-*" -o -name "step-*" |
      sort -V | tail -n 1)
  fi
  noted="$CHECKPOINT_DIR/saved-$NODE_RANK" before=$last
  if [ -z "$newest" ] || [ "${newest##*/}" = "$last" ]; then return; fi
  # Still being written?
  if [ -n "$(find "$newest" -newermt '30 seconds ago' | head -n 1)" ]; then return; fi
  put_folder "$NAME/${newest##*/}" || return
  echo "${newest##*/}" > "$noted"
  put_file "$NAME/saved-$NODE_RANK" || return
  last=${newest##*/}
  # Keep two: another machine may have got no further than the one before.
  if [ -n "${older:-}" ]; then drop_folder "$NAME/$older"; fi
  older=$before
}

(while sleep 20; do save_new || true; done) &
saving=$!

cat > /tmp/train.sh <<'EOF'
set -euo pipefail
# The cap counts from the first start, through all restarts.
mkdir -p "$CHECKPOINT_DIR"
began="$CHECKPOINT_DIR/began"
[ -s "$began" ] || date +%s > "$began"
left=$(( $(cat "$began") + LONGEST_RUN_S - $(date +%s) ))
if [ "$left" -le 0 ]; then
  echo "stopped for good after LONGEST_RUN_S; to start over remove $began" >&2
  exit 124
fi
# Resume from the newest checkpoint that is complete; at the first start there is none.
newest=$(
  find "$CHECKPOINT_DIR" -mindepth 2 -maxdepth 2 -size +0 \
    -path "$CHECKPOINT_DIR/checkpoint-*" \
    \( -name trainer_state.json -o -name random_states_0.pkl -o -name complete.json \) \
    -printf '%h\n' | sort -V | tail -n 1
)
timeout --kill-after=60 "$left" torchrun \
  --nnodes "$NNODES" --nproc-per-node "$GPUS_PER_NODE" \
  --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR" \
  --master-port 29500 \
  "$TRAIN_SCRIPT" ${newest:+--resume_from_checkpoint "$newest"}
EOF
# A crash of the script is tried again, as often as three times.
for _ in 1 2 3 4; do
  if bash /tmp/train.sh; then ended='done'; break; fi
  sleep 60
done
kill "$saving" || true
