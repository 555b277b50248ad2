#: bucket_setup
## The CRT client moves a file in parallel parts, as many as the target needs; it is the default on
## some types only (AWS CLI 2, "AWS CLI S3 Configuration", read 2026-11).
if ! aws --version 2> /dev/null | grep -q aws-cli/2; then
  curl -sfo /tmp/aws.zip https://awscli.amazonaws.com/awscli-exe-linux-x86_64.zip
  (cd /tmp && python3 -m zipfile -e aws.zip . && chmod -R +x aws)
  as_root /tmp/aws/install --update > /dev/null
fi
aws configure set default.s3.preferred_transfer_client crt
aws configure set default.s3.target_bandwidth 100Gb/s
#: bucket_get_folder
aws s3 sync --quiet "s3://$CHECKPOINT_BUCKET/$1" "@ROOT@/$1"
#: bucket_put_folder
aws s3 sync --quiet "@ROOT@/$1" "s3://$CHECKPOINT_BUCKET/$1"
#: bucket_put_file
aws s3 cp --quiet "@ROOT@/$1" "s3://$CHECKPOINT_BUCKET/$1"
#: bucket_drop_folder
aws s3 rm --quiet --recursive "s3://$CHECKPOINT_BUCKET/$1"
#: bucket_show
aws s3 cp --quiet "s3://$CHECKPOINT_BUCKET/$1" - 2> /dev/null
#: zone_filter
zone_filter() {  # default subnets, of a zone by its id if one is given
  local zone=''
  if [ -n "$1" ]; then
    zone=$(printf ',{"Name":"availability-zone-id","Values":["%s"]}' "$1")
  fi
  printf '[{"Name":"default-for-az","Values":["true"]}%s]' "$zone"
}
#: fast_network
## EFA passes a group by that lets all traffic from itself in, and out to itself (Amazon EC2 User
## Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards" and
## efa-start.md; 2026-11).
efa_group() {
  local vpc group way reply
  vpc=$(aws ec2 describe-subnets --region "$region" --output text \
    --subnet-ids "$subnet" --query 'Subnets[0].VpcId') || return 1
  group=$(aws ec2 describe-security-groups --region "$region" --output text \
    --query 'SecurityGroups[0].GroupId' --filters "$(printf \
      '[{"Name":"vpc-id","Values":["%s"]},{"Name":"group-name","Values":["recommend-efa"]}]' "$vpc")") || return 1
  if [ "$group" = None ]; then
    group=$(aws ec2 create-security-group --region "$region" --output text \
      --query GroupId --group-name recommend-efa --vpc-id "$vpc" \
      --description 'Training machines reach each other by EFA') || return 1
  fi
  # At every start: an earlier one may have ended before. Rules that are there are refused.
  for way in ingress egress; do
    reply=$(aws ec2 "authorize-security-group-$way" --region "$region" --output text \
      --group-id "$group" --ip-permissions "$(printf '[{"IpProtocol":"-1","UserIdGroupPairs":[{"GroupId":"%s"}]}]' \
      "$group")" 2>&1) || case "$reply" in
      *InvalidPermission.Duplicate*) ;;
      *) echo "$reply" >&2; return 1 ;;
    esac
  done
  echo "$group"
}
## One address for the machine, so that a default subnet gives it a public one, and EFA without
## addresses on each network card that has it (the same guide, use case 1). Of 17 cards of
## p6-b300.48xlarge the first has none.
fast_network() {
  # sets network: EFA on each network card that has it, machines close to each other
  local efa cards card group interfaces
  read -r efa cards < <(aws ec2 describe-instance-types --region "$region" \
    --instance-types "$machine_type" --output text --query \
    'InstanceTypes[0].NetworkInfo.[EfaInfo.MaximumEfaInterfaces,MaximumNetworkCards]') ||
    return 1
  if [ "$efa" = None ]; then return; fi
  group=$(efa_group) || return 1
  interfaces=$(printf '{"NetworkCardIndex":%s,"DeviceIndex":%s,"InterfaceType":"%s","SubnetId":"%s","Groups":["%s"],"DeleteOnTermination":true}' \
    0 0 interface "$subnet" "$group")
  for ((card = cards - efa; card < cards; card++)); do
    interfaces+=,$(printf '{"NetworkCardIndex":%s,"DeviceIndex":%s,"InterfaceType":"%s","SubnetId":"%s","Groups":["%s"],"DeleteOnTermination":true}' \
      "$card" "$((card == 0))" efa-only "$subnet" "$group")
  done
  aws ec2 create-placement-group --region "$region" --group-name "$NAME" \
    --strategy cluster > /dev/null 2>&1 || true  # it may be there
  network=(--network-interfaces "[$interfaces]" \
    --placement "$(printf '{"GroupName":"%s"}' "$NAME")")
}
#: in_block
## A block that was bought is named by its id ("Launch instances using Capacity Blocks", 2026-11).
  market_options=(--instance-market-options '{"MarketType":"capacity-block"}' \
    --capacity-reservation-specification "$(printf '{"CapacityReservationTarget":{"CapacityReservationId":"%s"}}' \
    "$CAPACITY_RESERVATION")")
#: if_several
  if [ "$count" -gt 1 ]; then fast_network || return 1; fi
#: start
local subnet subnets market_options=() network=()
subnets=$(aws ec2 describe-subnets --region "$region" --output text \
  --query 'Subnets[].SubnetId' --filters \
  "$(zone_filter "$zone")") || return 1
if [ "${subnets:-None}" = None ]; then
  echo "$NAME: no default subnet in $region $zone" >&2
  return 1
fi
if [ "$market" = spot ]; then
  market_options=(--instance-market-options '{"MarketType":"spot","SpotOptions":{"SpotInstanceType":"one-time","InstanceInterruptionBehavior":"terminate"}}')
fi
# Where the plan names a region alone: all of its zones, as not each has the type.
for subnet in $subnets; do
  network=(--subnet-id "$subnet")
@IN_BLOCK@
@IF_SEVERAL@
  if aws ec2 run-instances --region "$region" --count "$count" \
    --instance-type "$machine_type" --image-id "$IMAGE" \
    "${network[@]}" "${market_options[@]}" \
    --instance-initiated-shutdown-behavior terminate \
    --iam-instance-profile "$(printf '{"Name":"%s"}' "$INSTANCE_PROFILE")" \
    --block-device-mappings "$(printf '[{"DeviceName":"/dev/sda1","Ebs":{"VolumeSize":%s,"VolumeType":"gp3"%s,"DeleteOnTermination":true}}]' "$DISK_GB" "$DISK_SPEED")" \
    --metadata-options '{"HttpTokens":"required"}' \
    --tag-specifications "$(printf '[{"ResourceType":"instance","Tags":[{"Key":"Name","Value":"%s"},{"Key":"%s","Value":"%s"}]}]' \
      "$NAME" @RUN_KEY@ "$run_tag")" \
    --user-data "file://$boot_file" --output text \
    --query 'Instances[].InstanceId'; then return 0; fi
done
return 1
#: running
local region
for region in "${REGIONS[@]}"; do
  aws ec2 describe-instances --output text --region "$region" \
    --query 'Reservations[].Instances[].[InstanceId]' --filters "$(printf '[{"Name":"tag:%s","Values":["%s"]},{"Name":"instance-state-name","Values":%s}]' @RUN_KEY@ "$run_tag" '["pending","running"]')" || return 1
done
#: stop
local region found
for region in "${REGIONS[@]}"; do
  found=$(aws ec2 describe-instances --output text --region "$region" \
    --query 'Reservations[].Instances[].[InstanceId]' --filters "$(printf '[{"Name":"tag:%s","Values":["%s"]},{"Name":"instance-state-name","Values":%s}]' @RUN_KEY@ "$run_tag" '["pending","running","stopping","stopped"]')") || return 1
  [ -n "$found" ] || continue
  xargs aws ec2 terminate-instances --region "$region" --output text --query \
    'TerminatingInstances[].InstanceId' --instance-ids <<< "$found" || return 1
done
#: upload_code
aws s3 sync --only-show-errors --exclude '.*' --exclude '*/.*' \
  --exclude '*__pycache__/*' "$code" \
  "s3://$CHECKPOINT_BUCKET/$NAME/code"
#: put
aws s3 cp --quiet "$2" "s3://$CHECKPOINT_BUCKET/$1"
#: drop
aws s3 rm --quiet "s3://$CHECKPOINT_BUCKET/$1"
#: machine_itself
token=$(curl -sf -X PUT http://169.254.169.254/latest/api/token \
  -H 'X-aws-ec2-metadata-token-ttl-seconds: 300')
metadata() {
  curl -sf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}
#: machine_setup
#: machine_rank
NODE_RANK=$(metadata ami-launch-index)
#: machine_master
# The first machine notes its address in the bucket for the others.
note=$NAME/master-$(metadata reservation-id)
if [ "$NODE_RANK" = 0 ]; then
  metadata local-ipv4 > "@ROOT@/$note"
  put_file "$note"
fi
until MASTER_ADDR=$(show "$note") && [ -n "$MASTER_ADDR" ]; do sleep 5; done
#: machine_end_machine
shutdown -h now
