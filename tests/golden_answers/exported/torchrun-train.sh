#!/usr/bin/env bash
# llama3-8b-pretrain: 1x a3-highgpu-8g spot in gcp europe-north1, then europe-west9, then
# asia-south2.
# Estimate: 64 USD on average (9 runs in 10: 38 to 108), 8 h (9 runs in 10: 4.2 h to 14 h).
# Met with 99 % chance: done within 24 h of the first start.
# Spot is interrupted in 90 % of the runs; 4.2 times on average, and 1 run in 20 has 11 or more.
# List price 10.2 USD/h while everything runs.
# Written by recommend 0.1.0 from plan 1; catalog 2026-11, prices of 2026-08-21. Nothing is rented
# until you start it:
#   bash run/train.sh
# Quotas needed first:
#   "Preemptible NVIDIA H100 GPUs" of 8 GPUs in europe-north1 (new accounts have 0)
# Run it on every machine with NODE_RANK and MASTER_ADDR set; machines are started, replaced after
# an interruption and stopped by you.
# Fallback: 1x a3-highgpu-8g on-demand in europe-north1, when the time left is down to the work
# left on them + 24 min; needed in 1 % of the runs. You make the switch: start this script on
# those machines.
# CHECKPOINT_DIR is a mounted bucket or a shared disk, the same on every machine.
# Without the switch: 61 USD on average, 9 h, limits met with 91 % chance (no switch).
# The plan counts on 298 MB/s from each machine to CHECKPOINT_DIR, 0 s a checkpoint: raise
# CHECKPOINT_INTERVAL_S for a slower one.
# Your training: TRAIN_SCRIPT (no software stated: stack in the job file). Its environment:
# activate it before. HF_TOKEN and WANDB_API_KEY by name: the script passes your environment on;
# their values are in no file. recommender-train.zip holds the checkpoint helper.
# Stopped for good 24 h after its first start: the deadline is over (raise LONGEST_RUN_S to let a
# late run end); it ends with status 124 and is not started again. That ends the training; the
# machines are yours to stop. The log warns after 14 h, which 1 run in 100 exceeds. It resumes
# from what is in CHECKPOINT_DIR: empty that for another training.

export NNODES=${NNODES:-1}
export NODE_RANK=${NODE_RANK:-0}  # 0 on the first machine, then 1, 2, ...
export MASTER_ADDR=${MASTER_ADDR:-localhost}  # address of the first machine
GPUS_PER_NODE=${GPUS_PER_NODE:-$(nvidia-smi -L | wc -l)}
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
export WARN_AFTER_S=49680
# where checkpoints are written and read, and the weights at the end
export CHECKPOINT_DIR="${CHECKPOINT_DIR:-/mnt/checkpoints/llama3-8b-pretrain}"
# seconds between two; 600 to 1200 cost next to nothing more; for saves in the background, far longer if training waits for them
export CHECKPOINT_INTERVAL_S=900
# the same in steps, as estimated
export CHECKPOINT_INTERVAL_STEPS=428
# on the disk: save_total_limit of the Trainer
export CHECKPOINTS_KEPT=2
# of all machines, at the first place; for progress.json of recommender.train
export USD_PER_HOUR=10.2
# seconds of training, as estimated; for the same
export PLANNED_WORK_S=4005

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
      echo "$USD_PER_HOUR" >> "$paid" || echo "$paid was not written" >&2
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
