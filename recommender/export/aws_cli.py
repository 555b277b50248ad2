"""A plan by the AWS CLI: `aws ec2 run-instances` at each place of the failover list.

Zones are found by their ids, as their names differ between accounts: the default subnet of the
zone is taken. The image is AWS's own for PyTorch, by its public parameter (AWS Deep Learning AMIs,
"Retrieve the latest AMI ID", 2026-11).
"""

import json

from recommender.export.checkpoint_upload import COMMANDS, ROOT
from recommender.export.cloud_script import (
    RUN_KEY,
    CloudSteps,
    cloud_files,
    why_not_one_cloud,
)
from recommender.export.cluster_network import efa_types
from recommender.export.description import RunDescription
from recommender.export.files import ExportFile
from recommender.export.header import large_disk
from recommender.export.machine_script import MachineSteps
from recommender.export.quoting import shell
from recommender.export.watch_script import assignment, shell_function

# CUDA 13 and driver 595, which know B300 and RTX PRO 6000; AWS patches PyTorch 2.7 (CUDA 12.8) no
# more since 2026-04-23 (DLAMI support policy and release notes, 2026-10).
IMAGE = (
    "resolve:ssm:/aws/service/deeplearning/ami/x86_64/"
    "oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-24.04/latest/ami-id"
)
_SPOT = {
    "MarketType": "spot",
    "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
}
# A block that was bought is named by its id ("Launch instances using Capacity Blocks", 2026-11).
_BLOCK = {"MarketType": "capacity-block"}
_RESERVATION = '{"CapacityReservationTarget":{"CapacityReservationId":"%s"}}'
_BUY = (
    "The block is bought first: aws ec2 describe-capacity-block-offerings, then "
    "purchase-capacity-block; its id (cr-...) goes into CAPACITY_RESERVATION. It is paid whole."
)
_DISK = (
    '[{"DeviceName":"/dev/sda1",'
    '"Ebs":{"VolumeSize":%s,"VolumeType":"gp3"%s,"DeleteOnTermination":true}}]'
)
# One address for the machine, so that a default subnet gives it a public one, and EFA without
# addresses on each network card that has it (EC2 User Guide, "Maximize network bandwidth on Amazon
# EC2 instances with multiple network cards", use case 1; 2026-11). Of 17 cards of p6-b300.48xlarge
# the first has none.
_INTERFACE = (
    '{"NetworkCardIndex":%s,"DeviceIndex":%s,"InterfaceType":"%s",'
    '"SubnetId":"%s","Groups":["%s"],"DeleteOnTermination":true}'
)
_FROM_ITSELF = '[{"IpProtocol":"-1","UserIdGroupPairs":[{"GroupId":"%s"}]}]'
_EFA_GROUP = "recommend-efa"  # a security group of each network
_FAST_DISK = ',"Iops":4000,"Throughput":1000'  # 5 cents an hour; gp3 does 125 MB/s by default
_ALIVE = '[{"Name":"tag:%s","Values":["%s"]},{"Name":"instance-state-name","Values":%s}]'
_TAGS = (
    '[{"ResourceType":"instance","Tags":[{"Key":"Name","Value":"%s"},{"Key":"%s","Value":"%s"}]}]'
)
_REMARKS = (
    "Needed first: the bucket; an instance profile that may read and write it, named in "
    "INSTANCE_PROFILE; default subnets in the regions above, which new accounts have.",
    "The image is AWS's newest of IMAGE, a public parameter: look whether it has the PyTorch you "
    "want, or name an AMI in IMAGE (AMIs are of one region).",
    "A machine ends itself: its shutdown terminates it.",
)
_RIGHTS = "To start several machines you need the right to call ec2:DescribeInstanceTypes{}."
_EFA_RIGHTS = (
    ", and for EFA ec2:DescribeSecurityGroups, CreateSecurityGroup, AuthorizeSecurityGroupIngress, "
    "AuthorizeSecurityGroupEgress and CreatePlacementGroup"
)
_METADATA = "http://169.254.169.254/latest"
_IF_SEVERAL = '  if [ "$count" -gt 1 ]; then fast_network || return 1; fi'


def files(run: RunDescription, folder: str) -> tuple[ExportFile, ...]:
    """`launch.sh` and what the machines run."""
    return cloud_files(run, folder, "aws-cli", _cloud(run), MACHINE_STEPS)


def why_not(run: RunDescription) -> str:
    """Why the AWS CLI cannot run a plan; empty where it can."""
    return why_not_one_cloud(run, "aws", "aws-cli")


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


# EFA passes a group by that lets all traffic from itself in, and out to itself (efa-start.md of the
# same guide).
_EFA_GROUP_LINES = (
    "local vpc group way reply",
    'vpc=$(aws ec2 describe-subnets --region "$region" --output text \\',
    "  --subnet-ids \"$subnet\" --query 'Subnets[0].VpcId') || return 1",
    'group=$(aws ec2 describe-security-groups --region "$region" --output text \\',
    "  --query 'SecurityGroups[0].GroupId' --filters \"$(printf \\",
    '    \'[{"Name":"vpc-id","Values":["%s"]},'
    f'{{"Name":"group-name","Values":["{_EFA_GROUP}"]}}]\' "$vpc")") || return 1',
    'if [ "$group" = None ]; then',
    '  group=$(aws ec2 create-security-group --region "$region" --output text \\',
    f'    --query GroupId --group-name {_EFA_GROUP} --vpc-id "$vpc" \\',
    "    --description 'Training machines reach each other by EFA') || return 1",
    "fi",
    "# At every start: an earlier one may have ended before. Rules that are there are refused.",
    "for way in ingress egress; do",
    '  reply=$(aws ec2 "authorize-security-group-$way" --region "$region" --output text \\',
    f'    --group-id "$group" --ip-permissions "$(printf \'{_FROM_ITSELF}\' \\',
    '    "$group")" 2>&1) || case "$reply" in',
    "    *InvalidPermission.Duplicate*) ;;",
    '    *) echo "$reply" >&2; return 1 ;;',
    "  esac",
    "done",
    'echo "$group"',
)
_FAST_NETWORK_LINES = (
    "# sets network: EFA on each network card that has it, machines close to each other",
    "local efa cards card group interfaces",
    'read -r efa cards < <(aws ec2 describe-instance-types --region "$region" \\',
    '  --instance-types "$machine_type" --output text --query \\',
    "  'InstanceTypes[0].NetworkInfo.[EfaInfo.MaximumEfaInterfaces,MaximumNetworkCards]') ||",
    "  return 1",
    'if [ "$efa" = None ]; then return; fi',
    "group=$(efa_group) || return 1",
    f"interfaces=$(printf '{_INTERFACE}' \\",
    '  0 0 interface "$subnet" "$group")',
    "for ((card = cards - efa; card < cards; card++)); do",
    f"  interfaces+=,$(printf '{_INTERFACE}' \\",
    '    "$card" "$((card == 0))" efa-only "$subnet" "$group")',
    "done",
    'aws ec2 create-placement-group --region "$region" --group-name "$NAME" \\',
    "  --strategy cluster > /dev/null 2>&1 || true  # it may be there",
    'network=(--network-interfaces "[$interfaces]" \\',
    '  --placement "$(printf \'{"GroupName":"%s"}\' "$NAME")")',
)
_FIND = (
    "local subnet subnets market_options=() network=()",
    'subnets=$(aws ec2 describe-subnets --region "$region" --output text \\',
    "  --query 'Subnets[].SubnetId' --filters \\",
    '  "$(zone_filter "$zone")") || return 1',
    'if [ "${subnets:-None}" = None ]; then',
    '  echo "$NAME: no default subnet in $region $zone" >&2',
    "  return 1",
    "fi",
    'if [ "$market" = spot ]; then',
    f"  market_options=(--instance-market-options '{_compact(_SPOT)}')",
    "fi",
    "# Where the plan names a region alone: all of its zones, as not each has the type.",
    "for subnet in $subnets; do",
    '  network=(--subnet-id "$subnet")',
)
_START = (
    '  if aws ec2 run-instances --region "$region" --count "$count" \\',
    '    --instance-type "$machine_type" --image-id "$IMAGE" \\',
    '    "${network[@]}" "${market_options[@]}" \\',
    "    --instance-initiated-shutdown-behavior terminate \\",
    '    --iam-instance-profile "$(printf \'{"Name":"%s"}\' "$INSTANCE_PROFILE")" \\',
    f'    --block-device-mappings "$(printf \'{_DISK}\' "$DISK_GB" "$DISK_SPEED")" \\',
    '    --metadata-options \'{"HttpTokens":"required"}\' \\',
    f"    --tag-specifications \"$(printf '{_TAGS}' \\",
    f'      "$NAME" {RUN_KEY} "$run_tag")" \\',
    '    --user-data "file://$boot_file" --output text \\',
    "    --query 'Instances[].InstanceId'; then return 0; fi",
    "done",
    "return 1",
)


_IN_BLOCK = (
    f"  market_options=(--instance-market-options '{_compact(_BLOCK)}' \\",
    f"    --capacity-reservation-specification \"$(printf '{_RESERVATION}' \\",
    '    "$CAPACITY_RESERVATION")")',
)


def _setup(run: RunDescription) -> tuple[str, ...]:
    fast_network = (
        *shell_function("efa_group", _EFA_GROUP_LINES)[:-1],
        *shell_function("fast_network", _FAST_NETWORK_LINES)[:-1],
    )
    later = () if run.on_fallback is None else run.on_fallback.locations
    regions = dict.fromkeys(location.region for location in (*run.locations, *later))
    block = ': "${CAPACITY_RESERVATION:?export CAPACITY_RESERVATION=id of the block first}"'
    return (
        *((block,) if run.machines.market == "reserved_block" else ()),
        ': "${INSTANCE_PROFILE:?export INSTANCE_PROFILE=name of an instance profile first}"',
        f"IMAGE=${{IMAGE:-{IMAGE}}}",
        assignment("DISK_SPEED", _FAST_DISK if large_disk(run) else ""),
        f"REGIONS=({' '.join(map(shell, regions))})",
        "zone_filter() {  # default subnets, of a zone by its id if one is given",
        "  local zone=''",
        '  if [ -n "$1" ]; then',
        '    zone=$(printf \',{"Name":"availability-zone-id","Values":["%s"]}\' "$1")',
        "  fi",
        '  printf \'[{"Name":"default-for-az","Values":["true"]}%s]\' "$zone"',
        "}",
        *(fast_network if run.trains_on_several else ()),
    )


def _instances(states: tuple[str, ...]) -> str:
    quoted = _compact(states)
    filters = f"\"$(printf '{_ALIVE}' {RUN_KEY} \"$run_tag\" '{quoted}')\""
    return (
        'aws ec2 describe-instances --output text --region "$region" \\\n    --query '
        f"'Reservations[].Instances[].[InstanceId]' --filters {filters}"
    )


def _cloud(run: RunDescription) -> CloudSteps:
    several, block = run.trains_on_several, run.machines.market == "reserved_block"
    alive = _instances(("pending", "running")).split("\n")
    all_left = _instances(("pending", "running", "stopping", "stopped")).split("\n")
    return CloudSteps(
        remarks=(
            *((_BUY,) if block else ()),
            *_REMARKS,
            *((_RIGHTS.format(_EFA_RIGHTS if efa_types(run) else ""),) if several else ()),
        ),
        setup=_setup(run),
        start=(
            *_FIND,
            *(_IN_BLOCK if block else ()),
            *((_IF_SEVERAL,) if several else ()),
            *_START,
        ),
        running=(
            "local region",
            'for region in "${REGIONS[@]}"; do',
            f"  {alive[0]}",
            f"{alive[1]} || return 1",
            "done",
        ),
        stop=(
            "local region found",
            'for region in "${REGIONS[@]}"; do',
            f"  found=$({all_left[0]}",
            f"{all_left[1]}) || return 1",
            '  [ -n "$found" ] || continue',
            '  xargs aws ec2 terminate-instances --region "$region" --output text --query \\',
            "    'TerminatingInstances[].InstanceId' --instance-ids <<< \"$found\" || return 1",
            "done",
        ),
        upload_code=(
            "aws s3 sync --only-show-errors --exclude '.*' --exclude '*/.*' \\",
            "  --exclude '*__pycache__/*' \"$code\" \\",
            '  "s3://$CHECKPOINT_BUCKET/$NAME/code"',
        ),
        show=COMMANDS["aws"].show,
        put=('aws s3 cp --quiet "$2" "s3://$CHECKPOINT_BUCKET/$1"',),
        drop=('aws s3 rm --quiet "s3://$CHECKPOINT_BUCKET/$1"',),
    )


MACHINE_STEPS = MachineSteps(
    itself=(
        f"token=$(curl -sf -X PUT {_METADATA}/api/token \\",
        "  -H 'X-aws-ec2-metadata-token-ttl-seconds: 300')",
        "metadata() {",
        f'  curl -sf -H "X-aws-ec2-metadata-token: $token" "{_METADATA}/meta-data/$1"',
        "}",
    ),
    setup=(),
    rank=("NODE_RANK=$(metadata ami-launch-index)",),
    master=(
        "# The first machine notes its address in the bucket for the others.",
        "note=$NAME/master-$(metadata reservation-id)",
        'if [ "$NODE_RANK" = 0 ]; then',
        f'  metadata local-ipv4 > "{ROOT}/$note"',
        '  put_file "$note"',
        "fi",
        'until MASTER_ADDR=$(show "$note") && [ -n "$MASTER_ADDR" ]; do sleep 5; done',
    ),
    end_machine=("shutdown -h now",),
)
