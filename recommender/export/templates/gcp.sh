#: bucket_setup
export CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD_ENABLED=True
#: bucket_get_folder
mkdir -p "@ROOT@/$1"
gcloud storage rsync --recursive --no-user-output-enabled "gs://$CHECKPOINT_BUCKET/$1" "@ROOT@/$1"
#: bucket_put_folder
gcloud storage rsync --recursive --no-user-output-enabled "@ROOT@/$1" "gs://$CHECKPOINT_BUCKET/$1"
#: bucket_put_file
gcloud storage cp --no-user-output-enabled "@ROOT@/$1" "gs://$CHECKPOINT_BUCKET/$1"
#: bucket_drop_folder
gcloud storage rm --recursive --no-user-output-enabled "gs://$CHECKPOINT_BUCKET/$1"
#: bucket_show
gcloud storage cat "gs://$CHECKPOINT_BUCKET/$1" 2> /dev/null
#: setup
IMAGE_FAMILY=${IMAGE_FAMILY:-@IMAGE_FAMILY@}
IMAGE_PROJECT=${IMAGE_PROJECT:-@IMAGE_PROJECT@}
#: start
## --max-run-duration: 120 days at most ("Limit the run time of a VM",
## docs.cloud.google.com/compute, 2026-11)
local rank names=() options=() zones=()
@FLEX_START@
for ((rank = 0; rank < count; rank++)); do
  names+=("${run_tag:0:58}-$rank")
done
local disk_type=pd-balanced
if [[ "$machine_type" =~ @HYPERDISK@ ]]; then disk_type=hyperdisk-balanced; fi
if [ "$left_s" -gt 10368000 ]; then left_s=10368000; fi
if [ "$market" = spot ]; then
  options+=(--provisioning-model=SPOT)
fi
if [ -n "${SERVICE_ACCOUNT:-}" ]; then
  options+=("--service-account=$SERVICE_ACCOUNT")
fi
if [ -n "$zone" ]; then
  zones=("$zone")
else  # the plan names the region alone
  mapfile -t zones < <(gcloud compute machine-types list --format='value(zone)' \
    --filter="name=$machine_type AND zone ~ ^$region-")
fi
for zone in "${zones[@]}"; do
  if gcloud compute instances create "${names[@]}" --zone="$zone" --quiet \
    --machine-type="$machine_type" --network-interface=nic-type=GVNIC "${options[@]}" \
    --instance-termination-action=DELETE --max-run-duration="${left_s}s" \
    --maintenance-policy=TERMINATE --no-restart-on-failure \
    --image-family="$IMAGE_FAMILY" --image-project="$IMAGE_PROJECT" \
    --boot-disk-size="${DISK_GB}GB" --boot-disk-type="$disk_type" \
    --scopes=cloud-platform \
    --labels="@RUN_KEY@=$run_tag" --metadata=install-nvidia-driver=True \
    --metadata-from-file="startup-script=$boot_file"; then return 0; fi
done
return 1
#: running
local filter="labels.@RUN_KEY@=$run_tag AND status:(PROVISIONING STAGING RUNNING)"
gcloud compute instances list --filter="$filter" --format='value(name)'
#: stop
local filter="labels.@RUN_KEY@=$run_tag AND status:(PROVISIONING STAGING RUNNING)"
local found
found=$(gcloud compute instances list --filter="$filter" --uri) || return 1
if [ -z "$found" ]; then return 0; fi
xargs gcloud compute instances delete --quiet <<< "$found"
#: upload_code
gcloud storage rsync --recursive --exclude='(^|.*/)([.]|__pycache__/).*' "$code" \
  "gs://$CHECKPOINT_BUCKET/$NAME/code"
#: put
gcloud storage cp --no-user-output-enabled "$2" "gs://$CHECKPOINT_BUCKET/$1"
#: drop
gcloud storage rm --no-user-output-enabled "gs://$CHECKPOINT_BUCKET/$1"
#: flex_start
## A request waits for capacity up to two hours, and then is made again; machines run for up to seven
## days ("Create flex-start VMs", docs.cloud.google.com/compute, 2026-11).
options+=(--provisioning-model=FLEX_START --request-valid-for-duration=2h --reservation-affinity=none)
if [ "$left_s" -gt 604800 ]; then left_s=604800; fi
#: machine_itself
metadata() {
  curl -sf -H "Metadata-Flavor: Google" "http://metadata.google.internal/computeMetadata/v1/instance/$1"
}
machine=$(metadata name)
zone=$(metadata zone)
#: machine_setup
#: machine_rank
NODE_RANK=${machine##*-}  # the names end in it
#: machine_master
MASTER_ADDR=${machine%-*}-0  # names of one zone are known to its machines
#: machine_end_machine
gcloud compute instances delete "$machine" --zone="${zone##*/}" --quiet ||
  shutdown -h now
