#: script
#!/usr/bin/env bash
@HEAD@

set -euo pipefail
@ENVIRONMENT@
@DISK@
@FUNCTIONS@
@END_MACHINE@
@ITSELF@
# Whatever happens below, this machine ends when the time of the run is over.
(sleep "$LEFT_S"; end_machine) &
@SETUP@
@RANK@
@FINISH@
ended=failed  # unless training ends well
trap finish EXIT
# An interrupted machine ends while it sleeps, and nothing has failed.
trap 'sleep 600' TERM
@MASTER@
export NODE_RANK MASTER_ADDR
GPUS_PER_NODE=$(nvidia-smi -L | wc -l)
export GPUS_PER_NODE
get_folder "$NAME/code"
cd "$OUTPUT_DIR/code"
@INSTALL@
eval "$(show "$NAME/secrets" || true)"  # of your environment, by launch.sh
@END_IF_ASKED@

echo "$RUN_ID" > "$CHECKPOINT_DIR/began"  # the cap counts from the first start
@TRAIN@
case "$code" in 0) ended='done' ;; @CAPPED@) ended=stopped ;; esac
#: environment
: "${RUN_ID:?}" "${LEFT_S:?}" "${NNODES:?}" "${CHECKPOINT_BUCKET:?}"
export HOME=${HOME:-/root}  # startup scripts have none
# Where the images of the clouds keep PyTorch.
export PATH="/opt/pytorch/bin:/opt/conda/bin:$PATH"
@NAME@
@VARIABLES@
# What your script leaves here is in the bucket at the end.
export OUTPUT_DIR=@FOLDER@
#: end_if_asked
if [ -n "${RUN_TAG:-}" ]; then
  (until [ -n "$(show "$NAME/end-$RUN_TAG" || true)" ]; do sleep 30; done
  touch @ASKED@; pkill -TERM -s 0 -x timeout || true) &
fi
#: given_up
if [ -e @ASKED@ ]; then end_machine; return; fi  # the job goes on elsewhere
#: finish
## The first machine waits an hour for what the others have to upload; then launch.sh stops all.
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
