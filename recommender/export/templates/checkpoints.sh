#: disk
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

CHECKPOINTS_GB=@GB@  # on the disk of a machine at most
export UPLOAD_S=@UPLOAD_S@  # until a checkpoint is safe
## Google's own recipe for several local SSDs as one disk (Compute Engine, "Format and mount a Local
## SSD device", read 2026-11); its images leave them raw. The first two are mounted by AWS's Deep
## Learning AMIs, and by Azure's HPC images where their RAID service runs
## (github.com/Azure/azhpc-images, pull requests 212 and 222, 2023; read 2026-11).
# On the local disks of the machine where the checkpoints fit: they are faster.
raw=(/dev/disk/by-id/google-local-nvme-ssd-*)
if [ -e "${raw[0]}" ] && ! mountpoint -q /mnt/local-disks; then
  as_root mdadm --create /dev/md0 --level=0 --force --run \
    --raid-devices="${#raw[@]}" "${raw[@]}" &&
    as_root mkfs.ext4 -qF /dev/md0 && as_root mkdir -p /mnt/local-disks &&
    as_root mount /dev/md0 /mnt/local-disks || true
fi
for disk in /opt/dlami/nvme /mnt/resource_nvme /mnt/local-disks; do
  if mountpoint -q "$disk" && [ ! -e @ROOT@ ] &&
    [ "$(df --output=avail -B1000000000 "$disk" | tail -n 1)" -ge "$CHECKPOINTS_GB" ]; then
    as_root mkdir -p "$disk@ROOT@" && as_root ln -s "$disk@ROOT@" @ROOT@
  fi
done
as_root mkdir -p @ROOT@ && as_root chown "$(id -u)" @ROOT@/
mkdir -p "$CHECKPOINT_DIR"

#: training
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
  [ -z "$(find "$CHECKPOINT_DIR/$1" -newermt '@QUIET_S@ seconds ago' | head -n 1)" ]
}

newest_complete() {
  @NEWEST@
}

save_new() {
  local newest file saved rank
  for file in progress progress.json @PAID@; do  # the second is of recommender.train
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
  (while sleep @POLL_S@; do save_new || true; done) &
  saving=$!
}

restore
for file in progress.json @PAID@; do
  show "$NAME/$file" > "$CHECKPOINT_DIR/$file" || true
done
start_saving

@AGAIN@
@TRAIN@
if [ "$code" -eq @CAPPED@ ]; then sleep "$UPLOAD_S"; fi  # what was saved last
kill "$saving" || true
#: restore_again
# Once nobody uploads any more, the newest that all have uploaded is the newest for all.
local before=''
until [ "$(newest_saved)" = "$before" ]; do before=$(newest_saved); sleep 120; done
kill "$saving" || true
restore
start_saving
#: task
set -euo pipefail
@NAME@
NNODES="@NODES@" NODE_RANK="@RANK@"
@DISK@
@SETUP@
@FUNCTIONS@
# When the first machine began: the cap counts from it.
began="$CHECKPOINT_DIR/began"
show "$NAME/began" > "$began" || true
if [ ! -s "$began" ]; then
  date +%s > "$began"
  [ "$NODE_RANK" != 0 ] || put_file "$NAME/began"
fi
@TRAIN@
put_folder "$NAME" || code=1  # the weights, and what training leaves besides
exit "$code"
