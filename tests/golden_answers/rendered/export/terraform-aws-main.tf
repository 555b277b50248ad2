# llama3-8b-pretrain: 1x p5.48xlarge spot in aws us-east-2, then us-east-1, then us-west-2, then
# eu-north-1.
# Estimate: 98 USD on average (9 runs in 10: 61 to 144), 8 h (9 runs in 10: 4.1 h to 14 h).
# Met with 99 % chance: done within 24 h of the first start.
# Spot is interrupted in 90 % of the runs; 4.2 times on average, and 1 run in 20 has 11 or more.
# List price 19.9 USD/h while everything runs.
# Written by recommend 0.1.0 from plan 1; catalog 2026-11, prices of 2026-08-21. Nothing is rented
# until you start it:
#   terraform -chdir=run init && terraform -chdir=run apply -var checkpoint_bucket=YOUR-BUCKET -var code_dir="$PWD"
# Quotas needed first:
#   "All P5 Spot Instance Requests" of 192 vCPU in us-east-2 (new accounts have 0)
# Needed first: the bucket, and Terraform 1.5 or OpenTofu with credentials of the cloud.
# Terraform creates missing machines only on apply: apply again after an interruption; with -var
# place=1 and so on where the place before has no capacity, which ends what runs there; terraform
# destroy at the end. Keep its state, which holds the first start.
# No fallback to on-demand: the plan waits for spot, and so does this file.
# CODE_DIR's files (variable code_dir) are put into the bucket for the machines.
# Checkpoints (checkpoint-* and step-* in CHECKPOINT_DIR) are written to the disk and uploaded
# behind the training by aws s3, counted at 587 MB/s a machine, back at 580, as others measured.
# What an interruption cuts off is not resumed from: the one before is.
# Disks of 436 GB hold the last checkpoints of 112 GB: older ones are deleted when a newer one is
# in the bucket. The estimate counts 100 GiB.
# Your training: TRAIN_SCRIPT (no software stated: stack in the job file). Its environment:
# environment.yml (conda) and requirements.txt are installed at start. HF_TOKEN and WANDB_API_KEY
# by name: put lines like export HF_TOKEN=... into the file secrets of the bucket's folder
# llama3-8b-pretrain, where your machines alone read it; Terraform would keep them in its state;
# their values are in no file. recommender-train.zip holds the checkpoint helper.
# Stopped for good 24 h after its first start: the deadline is over (raise longest_run_s here and
# LONGEST_RUN_S in machine.sh to let a late run end); it ends with status 124 and is not started
# again. USD are counted while it trains: boots come on top. Destroy the machines yourself. The
# log warns after 14 h, which 1 run in 100 exceeds. It resumes from what is in CHECKPOINT_DIR:
# empty that for another training.

variable "checkpoint_bucket" {
  description = "Your bucket for checkpoints, which exists"
  type        = string
}

variable "code_dir" {
  description = "Folder of your training script"
  type        = string
  default     = "."
}

variable "place" {
  description = "Which place of the failover list, from 0 on"
  type        = number
  default     = 0
  validation {
    condition     = var.place >= 0 && var.place <= 3
    error_message = "The plan has places 0 to 3."
  }
}

locals {
  name          = "llama3-8b-pretrain"
  longest_run_s = 86400 # since the first start
  disk_gb       = 436
  fast_disk     = true # else 125 MB/s
  # Where the machines are requested, in this order.
  places = [
    { region = "us-east-2", zone = "use2-az3" },
    { region = "us-east-1", zone = "use1-az1" },
    { region = "us-west-2", zone = "usw2-az2" },
    { region = "eu-north-1", zone = "eun1-az1" },
  ]
  place        = local.places[var.place]
  machine_type = "p5.48xlarge"
  nodes        = 1
  spot         = true
  # Without caches, checkpoints and Terraform's own files.
  code = toset([
    for path in fileset(var.code_dir, "**") : path
    if !can(regex("(^|/)([.]|__pycache__)|[.]tfstate|[.]tf$", path))
  ])
  script = file("${path.module}/machine.sh")
  head = join("\n", [
    "#!/usr/bin/env bash",
    "RUN_ID=$(date -d '${terraform_data.began.output}' +%s)",
    "LEFT_S=$(( RUN_ID + ${local.longest_run_s} - $(date +%s) ))",
    "export RUN_ID LEFT_S NNODES=${local.nodes}",
    "export CHECKPOINT_BUCKET=${var.checkpoint_bucket}",
  ])
}

# When the first machine was requested: the cap counts from it, through all applies.
resource "terraform_data" "began" {
  input = timestamp()
  lifecycle {
    ignore_changes = [input]
  }
}

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

provider "aws" {
  region = local.places[0].region
}

variable "image" {
  description = "Public parameter of AWS that names the image; it has to hold PyTorch"
  type        = string
  default     = "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-24.04/latest/ami-id"
}

data "aws_ssm_parameter" "image" {
  region = local.place.region
  name   = var.image
}

# The default subnet of the place; zones of AWS go by their ids, which are of no account.
data "aws_subnets" "place" {
  region = local.place.region
  filter {
    name   = "default-for-az"
    values = ["true"]
  }
  dynamic "filter" {
    for_each = local.place.zone == "" ? [] : [local.place.zone]
    content {
      name   = "availability-zone-id"
      values = [filter.value]
    }
  }
}

# Several machines of a type with EFA have it on each network card, and are close to each other.
data "aws_ec2_instance_type" "train" {
  region        = local.place.region
  instance_type = local.machine_type
}

data "aws_subnet" "place" {
  region = local.place.region
  id     = data.aws_subnets.place.ids[0]
}

locals {
  efa        = local.nodes > 1 && data.aws_ec2_instance_type.train.efa_supported
  cards      = data.aws_ec2_instance_type.train.maximum_network_cards
  first_card = local.efa ? local.cards - data.aws_ec2_instance_type.train.efa_maximum_interfaces : 0
  # One address for the machine, so that the subnet gives it a public one; EFA needs none.
  interfaces = concat(
    [{ card = 0, device = 0, type = "interface" }],
    [
      for card in range(local.first_card, local.cards) :
      { card = card, device = card == 0 ? 1 : 0, type = "efa-only" }
    ],
  )
}

resource "aws_placement_group" "train" {
  count    = local.efa ? 1 : 0
  region   = local.place.region
  name     = "${local.name}-${local.place.region}"
  strategy = "cluster"
}

# EFA passes a group by that lets all traffic from itself in, and out to itself.
resource "aws_security_group" "efa" {
  count       = local.efa ? 1 : 0
  region      = local.place.region
  name_prefix = "recommend-efa-"
  vpc_id      = data.aws_subnet.place.vpc_id
  ingress {
    from_port = 0
    to_port   = 0
    protocol  = "-1"
    self      = true
  }
  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    self        = true
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_launch_template" "efa" {
  count       = local.efa ? 1 : 0
  region      = local.place.region
  name_prefix = "recommend-efa-"
  dynamic "network_interfaces" {
    for_each = local.interfaces
    content {
      network_card_index    = network_interfaces.value.card
      device_index          = network_interfaces.value.device
      interface_type        = network_interfaces.value.type
      subnet_id             = data.aws_subnets.place.ids[0]
      security_groups       = [aws_security_group.efa[0].id]
      delete_on_termination = true
    }
  }
}

# The machines may read and write the bucket, and nothing else.
resource "aws_iam_role" "train" {
  name_prefix = "recommend-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Action    = "sts:AssumeRole"
      Effect    = "Allow"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "bucket" {
  name_prefix = "bucket-"
  role        = aws_iam_role.train.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Action = ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
      Effect = "Allow"
      Resource = [
        "arn:aws:s3:::${var.checkpoint_bucket}",
        "arn:aws:s3:::${var.checkpoint_bucket}/${local.name}/*",
      ]
    }]
  })
}

resource "aws_iam_instance_profile" "train" {
  name_prefix = "recommend-"
  role        = aws_iam_role.train.name
}

data "aws_s3_bucket" "checkpoints" {
  bucket = var.checkpoint_bucket
}

resource "aws_s3_object" "code" {
  for_each = local.code
  region   = data.aws_s3_bucket.checkpoints.bucket_region
  bucket   = var.checkpoint_bucket
  key      = "${local.name}/code/${each.value}"
  source   = "${var.code_dir}/${each.value}"
  etag     = filemd5("${var.code_dir}/${each.value}")
}

resource "aws_instance" "first" {
  subnet_id  = local.efa ? null : data.aws_subnets.place.ids[0]
  user_data  = "${local.head}\nexport NODE_RANK=0\n${local.script}"
  tags       = { Name = "${local.name}-0" }
  depends_on = [aws_s3_object.code, aws_iam_role_policy.bucket]

  region                               = local.place.region
  ami                                  = data.aws_ssm_parameter.image.value
  instance_type                        = local.machine_type
  iam_instance_profile                 = aws_iam_instance_profile.train.name
  instance_initiated_shutdown_behavior = "terminate"
  user_data_replace_on_change          = true
  placement_group                      = local.efa ? aws_placement_group.train[0].name : null

  dynamic "launch_template" { # with the network cards
    for_each = aws_launch_template.efa
    content {
      id      = launch_template.value.id
      version = launch_template.value.latest_version
    }
  }

  dynamic "instance_market_options" {
    for_each = local.spot ? [1] : []
    content {
      market_type = "spot"
      spot_options {
        spot_instance_type             = "one-time"
        instance_interruption_behavior = "terminate"
      }
    }
  }
  metadata_options {
    http_tokens = "required"
  }
  root_block_device {
    volume_size = local.disk_gb
    volume_type = "gp3"
    iops        = local.fast_disk ? 4000 : null
    throughput  = local.fast_disk ? 1000 : null
  }
}

# They wait for the first one; where that is replaced, so are they.
resource "aws_instance" "others" {
  count     = local.nodes - 1
  subnet_id = local.efa ? null : aws_instance.first.subnet_id
  tags      = { Name = "${local.name}-${count.index + 1}" }
  user_data = join("\n", [
    local.head,
    "export NODE_RANK=${count.index + 1} MASTER_ADDR=${aws_instance.first.private_ip}",
    local.script,
  ])

  region                               = local.place.region
  ami                                  = data.aws_ssm_parameter.image.value
  instance_type                        = local.machine_type
  iam_instance_profile                 = aws_iam_instance_profile.train.name
  instance_initiated_shutdown_behavior = "terminate"
  user_data_replace_on_change          = true
  placement_group                      = local.efa ? aws_placement_group.train[0].name : null

  dynamic "launch_template" { # with the network cards
    for_each = aws_launch_template.efa
    content {
      id      = launch_template.value.id
      version = launch_template.value.latest_version
    }
  }

  dynamic "instance_market_options" {
    for_each = local.spot ? [1] : []
    content {
      market_type = "spot"
      spot_options {
        spot_instance_type             = "one-time"
        instance_interruption_behavior = "terminate"
      }
    }
  }
  metadata_options {
    http_tokens = "required"
  }
  root_block_device {
    volume_size = local.disk_gb
    volume_type = "gp3"
    iops        = local.fast_disk ? 4000 : null
    throughput  = local.fast_disk ? 1000 : null
  }
}
