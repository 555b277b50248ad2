#: setup
here=$(dirname "$0")
@ASKED_FOR@
export @BUCKET@
job_state() {  # of the newest managed job of this name
  sky jobs queue --all -o json | python3 -c '
import json, sys
jobs = [job for job in json.load(sys.stdin) if job["job_name"] == sys.argv[1]]
newest = max(jobs, key=lambda job: job["job_id"], default={})
print(str(newest.get("status", "NONE")).rpartition(".")[2])' "$1"
}
start_job() {
  local secret secrets=()
  for secret in @SECRETS_GIVEN@; do
    if [ -n "${!secret:-}" ]; then secrets+=(--secret "$secret"); fi
  done
  sky jobs launch --yes --detach-run --name "$1" @NAMED@ "${secrets[@]}" "$2"
}
ROUND_S=@ROUND_S@ since=""
owed=""  # an on-demand job that was to be started
show() {
  @SHOW@
}
#: state
case "$(job_state "$NAME-$began-$phase")" in
  SUCCEEDED) echo "done" ;;
  NONE) echo missing ;;
  FAILED* | CANCELLED) if [ -n "$owed" ]; then echo missing; else echo failed; fi ;;
  RUNNING) echo running ;;
  *) echo waiting ;;
esac
#: no_spot
# SkyPilot has looked for machines for as long as it takes to ask at all places.
if [ "$current" != waiting ]; then since=""; return 1; fi
since=${since:-$(date +%s)}
[ $(( $(date +%s) - since )) -ge "$ROUND_S" ] && since=""
