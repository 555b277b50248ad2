#: try
echo "$NAME: asking for $count x $machine_type $market in $region $zone"
if start_machines; then return 0; fi
stop_machines "$run_tag" || true  # some of them may have started
#: try_and_note
echo "$NAME: asking for $count x $machine_type $market in $region $zone"
if start_machines; then echo "$region" > "$held"; return 0; fi
stop_machines "$run_tag" || true  # some of them may have started
#: pass_secrets
## Not with the boot file, which whoever may look at a machine can read.
local name done=0
for name in @SECRETS@; do
  if [ -n "${!name:-}" ]; then printf 'export %s=%q\n' "$name" "${!name}"; fi
done > "$secrets_file"
if [ -s "$secrets_file" ]; then put "$NAME/secrets" "$secrets_file" || done=1; fi
: > "$secrets_file"
return "$done"
#: ask_to_end
# once they have saved and uploaded what they trained
echo asked > "$boot_file"
put "$NAME/end-$1" "$boot_file" || stop_machines "$1" || true
#: gone
## Of the region that holds the checkpoints: its name, and since when it has no machines.
if [ -s "$held" ] && [ "$(wc -w < "$held")" -eq 1 ]; then
  echo "$(< "$held") $(date +%s)" > "$held"
fi
#: is_too_early
local last since
[ -s "$held" ] || return 1
read -r last since < "$held"
[ "$region" != "$last" ] && [ $(( $(date +%s) - since )) -lt "$MOVE_AFTER_S" ]
#: state
local ended tag=$NAME-$began-$phase machines
ended=$(show "$NAME/ended-$began" || true)
case "$ended" in done | failed | stopped) echo "$ended"; return ;; esac
# Where the cloud does not answer nothing is started twice.
if ! machines=$(running_machines "$tag"); then echo unknown; return; fi
if [ "$(grep -c . <<< "$machines")" -ge "$(nodes)" ]; then echo running; return; fi
echo missing
#: skip_if_too_early
if is_too_early; then continue; fi
#: drop_end
drop "$NAME/end-$run_tag" > /dev/null 2>&1 || true
#: stop_plan
stop_machines "$NAME-$began-plan" || true
drop "$NAME/secrets" > /dev/null 2>&1 || true  # there may be none
#: stop_fallback
stop_machines "$NAME-$began-fallback" || true
#: keep
local place region zone
local @MACHINE_TYPE@ market=@MARKET@ count=@COUNT@ run_tag=$NAME-$began-@PHASE@
stop_machines "$run_tag" || return 1  # what is left of a cluster that lost a machine
@DROP_END@
upload_code && pass_secrets || return 1
@WRITE@
@GONE@
for place in "${@PLACES@[@]}"; do
  read -r region zone <<< "$place"
  @TOO_EARLY@
  @TRY@
done
return 1
#: write_boot_file
left_s=$(left_s)
{
  printf '#!/usr/bin/env bash\nexport RUN_ID=%s RUN_TAG=%s' \
    "$began" "$run_tag"
  printf ' LEFT_S=%s NNODES=%s\n' "$left_s" "$1"
  printf 'export @NAMES@\n' @PASSED@
  if [ $# -gt 1 ]; then printf 'export %s\n' "${@:2}"; fi
  cat "$here/@MACHINE@"
} > "$boot_file"
