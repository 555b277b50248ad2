"""The resources of each cloud that Terraform makes, as HCL: what no plan changes.

What a plan decides is in locals (`terraform.py`): places, machine type, market, number, the
seconds until the cap, the script of the machines. Arguments as of the providers named below
(registry.terraform.io, 2026-11). The AWS provider takes a region for each resource from version 6
on, so that a move to the next place ends what runs at the last one.
"""

_AWS_MACHINE = """\
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
  }"""

AWS = """\
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
  user_data  = "${local.head}\\nexport NODE_RANK=0\\n${local.script}"
  tags       = { Name = "${local.name}-0" }
  depends_on = [aws_s3_object.code, aws_iam_role_policy.bucket]

MACHINE
}

# They wait for the first one; where that is replaced, so are they.
resource "aws_instance" "others" {
  count     = local.nodes - 1
  subnet_id = local.efa ? null : aws_instance.first.subnet_id
  tags      = { Name = "${local.name}-${count.index + 1}" }
  user_data = join("\\n", [
    local.head,
    "export NODE_RANK=${count.index + 1} MASTER_ADDR=${aws_instance.first.private_ip}",
    local.script,
  ])

MACHINE
}
""".replace("MACHINE\n", f"{_AWS_MACHINE}\n")

GCP = """\
terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0"
    }
  }
}

variable "project" {
  description = "Your project"
  type        = string
}

variable "service_account" {
  description = "Of the machines: it reads and writes the bucket and deletes machines"
  type        = string
  default     = null # the project's default one
}

variable "zone" {
  description = "A zone with the machine type, where the plan names the region alone"
  type        = string
  default     = ""
}

variable "image_family" {
  description = "Family of images with PyTorch, of the project IMAGE_PROJECT"
  type        = string
  default     = "IMAGE_FAMILY"
}

provider "google" {
  project = var.project
}

data "google_compute_image" "train" {
  family  = var.image_family
  project = "IMAGE_PROJECT"
}

resource "google_storage_bucket_object" "code" {
  for_each = local.code
  bucket   = var.checkpoint_bucket
  name     = "${local.name}/code/${each.value}"
  source   = "${var.code_dir}/${each.value}"
}

resource "google_compute_instance" "train" {
  count        = local.nodes
  name         = "${local.name}-${count.index}" # the script reads its rank from it
  zone         = local.place.zone != "" ? local.place.zone : var.zone
  machine_type = local.machine_type
  labels       = { recommend-run = local.name }
  metadata     = { install-nvidia-driver = "True" }

  metadata_startup_script = "${local.head}\\n${local.script}"
  depends_on              = [google_storage_bucket_object.code]

  boot_disk {
    initialize_params {
      image = data.google_compute_image.train.self_link
      size  = local.disk_gb
      type  = local.disk_type
    }
  }
  network_interface {
    network  = "default"
    nic_type = "GVNIC"
    access_config {}
  }
  scheduling {
    provisioning_model          = local.spot ? "SPOT" : "STANDARD"
    preemptible                 = local.spot
    automatic_restart           = false
    on_host_maintenance         = "TERMINATE"
    instance_termination_action = "DELETE"
    # Google ends them even where the script hangs; a cap of its own for each start.
    max_run_duration {
      seconds = min(local.longest_run_s, 10368000) # 120 days, its longest
    }
  }
  service_account {
    email  = var.service_account
    scopes = ["cloud-platform"]
  }
  lifecycle {
    precondition {
      condition     = local.place.zone != "" || startswith(var.zone, "${local.place.region}-")
      error_message = "The plan names a region alone: name a zone of it in the variable zone."
    }
  }
}
"""

AZURE = """\
terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.0"
    }
  }
}

variable "subscription_id" {
  description = "Your subscription"
  type        = string
}

variable "resource_group" {
  description = "A resource group of yours, which holds the storage account as well"
  type        = string
}

variable "storage_account" {
  description = "Your storage account; checkpoint_bucket is a container of it"
  type        = string
}

variable "ssh_public_key" {
  description = "File of your public key: Azure starts no machine without one"
  type        = string
  default     = "~/.ssh/id_rsa.pub"
}

provider "azurerm" {
  subscription_id = var.subscription_id
  features {}
}

data "azurerm_resource_group" "train" {
  name = var.resource_group
}

data "azurerm_storage_account" "checkpoints" {
  name                = var.storage_account
  resource_group_name = var.resource_group
}

# The machines may write blobs, and delete machines of the group, themselves among them.
resource "azurerm_user_assigned_identity" "train" {
  name                = local.name
  location            = local.places[0].region
  resource_group_name = var.resource_group
}

resource "azurerm_role_assignment" "blobs" {
  scope                = data.azurerm_storage_account.checkpoints.id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = azurerm_user_assigned_identity.train.principal_id
}

resource "azurerm_role_assignment" "machines" {
  scope                = data.azurerm_resource_group.train.id
  role_definition_name = "Virtual Machine Contributor"
  principal_id         = azurerm_user_assigned_identity.train.principal_id
}

resource "azurerm_storage_blob" "code" {
  for_each               = local.code
  name                   = "${local.name}/code/${each.value}"
  storage_account_name   = var.storage_account
  storage_container_name = var.checkpoint_bucket
  type                   = "Block"
  source                 = "${var.code_dir}/${each.value}"
}

resource "azurerm_virtual_network" "train" {
  name                = "${local.name}-${local.place.region}"
  location            = local.place.region
  resource_group_name = var.resource_group
  address_space       = ["10.0.0.0/16"]
}

resource "azurerm_subnet" "train" {
  name                 = "train"
  resource_group_name  = var.resource_group
  virtual_network_name = azurerm_virtual_network.train.name
  address_prefixes     = ["10.0.0.0/24"]
}

# To reach the bucket; a standard address lets nobody in by itself.
resource "azurerm_public_ip" "train" {
  count               = local.nodes
  name                = "${local.name}-${count.index}"
  location            = local.place.region
  resource_group_name = var.resource_group
  allocation_method   = "Static"
  sku                 = "Standard"
}

resource "azurerm_network_interface" "train" {
  count               = local.nodes
  name                = "${local.name}-${count.index}"
  location            = local.place.region
  resource_group_name = var.resource_group
  ip_configuration {
    name                          = "train"
    subnet_id                     = azurerm_subnet.train.id
    private_ip_address_allocation = "Dynamic"
    public_ip_address_id          = azurerm_public_ip.train[count.index].id
  }
}

resource "azurerm_linux_virtual_machine" "train" {
  count                 = local.nodes
  name                  = "${local.name}-${count.index}" # the script reads its rank from it
  location              = local.place.region
  resource_group_name   = var.resource_group
  size                  = local.machine_type
  network_interface_ids = [azurerm_network_interface.train[count.index].id]
  priority              = local.spot ? "Spot" : "Regular"
  eviction_policy       = local.spot ? "Delete" : null
  max_bid_price         = local.spot ? -1 : null
  admin_username        = "azureuser"
  tags                  = { recommend-run = local.name }

  custom_data = base64encode(join("\\n", [
    local.head,
    "export AZURE_STORAGE_ACCOUNT=${var.storage_account}",
    local.script,
  ]))
  depends_on = [
    azurerm_role_assignment.blobs, azurerm_role_assignment.machines, azurerm_storage_blob.code,
  ]

  admin_ssh_key {
    username   = "azureuser"
    public_key = file(pathexpand(var.ssh_public_key))
  }
  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.train.id]
  }
  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Premium_LRS"
    disk_size_gb         = local.disk_gb
  }
  source_image_reference {
    publisher = "microsoft-dsvm"
    offer     = "ubuntu-hpc"
    sku       = "2204"
    version   = "latest"
  }
}
"""
