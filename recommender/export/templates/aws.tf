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
  default     = "IMAGE_PARAMETER"
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
