#: bucket_setup
export AZCOPY_AUTO_LOGIN_TYPE=AZCLI AZURE_STORAGE_AUTH_MODE=login
if ! command -v azcopy > /dev/null; then
  curl -sfL https://aka.ms/downloadazcopy-v10-linux |
    as_root tar -xz -C /usr/local/bin --strip-components=1 --wildcards '*/azcopy'
fi
#: bucket_get_folder
mkdir -p "@ROOT@/$1"
azcopy sync "https://$AZURE_STORAGE_ACCOUNT.blob.core.windows.net/$CHECKPOINT_BUCKET/$1" "@ROOT@/$1" --recursive --output-level=quiet
#: bucket_put_folder
azcopy sync "@ROOT@/$1" "https://$AZURE_STORAGE_ACCOUNT.blob.core.windows.net/$CHECKPOINT_BUCKET/$1" --recursive --output-level=quiet
#: bucket_put_file
azcopy copy "@ROOT@/$1" "https://$AZURE_STORAGE_ACCOUNT.blob.core.windows.net/$CHECKPOINT_BUCKET/$1" --output-level=quiet
#: bucket_drop_folder
azcopy remove "https://$AZURE_STORAGE_ACCOUNT.blob.core.windows.net/$CHECKPOINT_BUCKET/$1" --recursive --output-level=quiet
#: bucket_show
az storage blob download --container-name "$CHECKPOINT_BUCKET" --name "$1" \
  --no-progress --only-show-errors 2> /dev/null
#: setup
: "${RESOURCE_GROUP:?export RESOURCE_GROUP=name of a resource group first}"
: "${AZURE_STORAGE_ACCOUNT:?export AZURE_STORAGE_ACCOUNT=your account first}"
: "${IDENTITY:?export IDENTITY=id of a user-assigned identity first}"
IMAGE=${IMAGE:-microsoft-dsvm:ubuntu-hpc:2204:latest}
export AZURE_STORAGE_ACCOUNT AZURE_STORAGE_AUTH_MODE=login
#: start
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
    --tags "@RUN_KEY@=$run_tag" "${options[@]}" --only-show-errors --output none &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
return "$failed"
#: running
az vm list --resource-group "$RESOURCE_GROUP" --output tsv \
  --query "[?tags.\"@RUN_KEY@\"=='$run_tag'].name"
#: stop
local kind found
for kind in vm 'network public-ip'; do
  # shellcheck disable=SC2086  # two words are a group and its command
  found=$(az $kind list --resource-group "$RESOURCE_GROUP" --output tsv \
    --query "[?tags.\"@RUN_KEY@\"=='$run_tag'].id") || return 1
  [ -n "$found" ] || continue
  if [ "$kind" = vm ]; then
    xargs az vm delete --yes --only-show-errors --output none --ids <<< "$found" || return 1
  else
    xargs az network public-ip delete --only-show-errors --output none --ids <<< "$found" || return 1
  fi
done
#: upload_code
local copy
copy=$(mktemp -d)
(cd "$code" && find . -type f ! -path '*/.*' ! -path '*/__pycache__/*' -print0 |
  tar --null -T - -c) | tar -C "$copy" -x
az storage blob upload-batch --destination "$CHECKPOINT_BUCKET" --overwrite \
  --destination-path "$NAME/code" --source "$copy" --only-show-errors --output none
#: put
az storage blob upload --container-name "$CHECKPOINT_BUCKET" --name "$1" --file "$2" \
  --overwrite --only-show-errors --output none
#: drop
az storage blob delete --container-name "$CHECKPOINT_BUCKET" --name "$1" --only-show-errors --output none
#: machine_itself
metadata() {
  curl -sf -H Metadata:true "http://169.254.169.254/metadata/instance/compute/$1?api-version=2021-02-01&format=text"
}
machine=$(metadata name)
#: machine_setup
command -v az > /dev/null || curl -sfL https://aka.ms/InstallAzureCLIDeb | bash > /dev/null
az login --identity --only-show-errors --output none
#: machine_rank
NODE_RANK=${machine##*-}  # the names end in it
#: machine_master
MASTER_ADDR=${machine%-*}-0  # names of a network are known to its machines
#: machine_end_machine
az vm delete --yes --ids "$(metadata resourceId)" --only-show-errors --output none ||
  shutdown -h now
