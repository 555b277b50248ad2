#!/usr/bin/env bash
# One whole run on this machine, in an empty folder: bash examples/whole_run/run.sh
# From a model and a data set to a plan, to files that run it, to a training that is interrupted,
# to the question whether to stay, to its end. Rented is nothing: fake_provider.py takes the machine
# away, torchrun in this folder starts the script without PyTorch and GPUs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# What you have, and a plan for it.
recommend init --yes --model Qwen/Qwen2.5-7B --method lora \
  --examples 50k --tokens-per-example 600 --epochs 3 --batch 64
recommend --deadline 24h --market spot --json > answer.json
recommend export answer.json --to torchrun -o run
export CHECKPOINT_DIR="$PWD/checkpoints"  # a folder of this machine instead of a mounted bucket

# What the plan's machine would do. The exported price makes the progress file say what was spent.
cp "$here/train.py" .
export PATH="$here:$PATH" GPUS_PER_NODE=1
echo "== the machine is taken away"
python "$here/fake_provider.py" bash run/train.sh || echo "ended with status $?"

echo "== stay or move?"
recommend replan answer.json --progress checkpoints/progress.json

echo "== it goes on"
bash run/train.sh
