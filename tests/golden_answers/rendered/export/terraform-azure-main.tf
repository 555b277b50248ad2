# llama3-8b-pretrain: 1x Standard_ND96isr_H100_v5 spot in azure eastus2, then westus3, then
# swedencentral.
# Estimate: 113 USD on average (9 runs in 10: 71 to 166), 9.1 h (9 runs in 10: 4.2 h to 17 h).
# Met with 98 % chance: done within 24 h of the first start.
# Spot is interrupted in 90 % of the runs; 4.2 times on average, and 1 run in 20 has 11 or more.
# List price 18.2 USD/h while everything runs.
# Written by recommend 0.1.0 from plan 1; catalog 2026-11, prices of 2026-08-21. Nothing is rented
# until you start it:
#   terraform -chdir=run init && terraform -chdir=run apply -var checkpoint_bucket=YOUR-BUCKET -var code_dir="$PWD" -var subscription_id=YOUR-SUBSCRIPTION -var resource_group=YOUR-GROUP -var storage_account=YOUR-ACCOUNT
# Needed first: the bucket, and Terraform 1.5 or OpenTofu with credentials of the cloud.
# Terraform creates missing machines only on apply: apply again after an interruption; with -var
# place=1 and so on where the place before has no capacity, which ends what runs there; terraform
# destroy at the end. Keep its state, which holds the first start.
# No fallback to on-demand: the plan waits for spot, and so does this file.
# CODE_DIR's files (variable code_dir) are put into the bucket for the machines.
# Checkpoints (checkpoint-* and step-* in CHECKPOINT_DIR) are written to the disk and uploaded
# behind the training by azcopy, counted at 300 MB/s a machine, back at 300, as others measured.
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
# log warns after 17 h, which 1 run in 100 exceeds. It resumes from what is in CHECKPOINT_DIR:
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
    condition     = var.place >= 0 && var.place <= 2
    error_message = "The plan has places 0 to 2."
  }
}

locals {
  name          = "llama3-8b-pretrain"
  longest_run_s = 86400 # since the first start
  disk_gb       = 436
  # Where the machines are requested, in this order.
  places = [
    { region = "eastus2", zone = "eastus2-a" },
    { region = "westus3", zone = "westus3-a" },
    { region = "swedencentral", zone = "swedencentral-a" },
  ]
  place        = local.places[var.place]
  machine_type = "Standard_ND96isr_H100_v5"
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

  custom_data = base64encode(join("\n", [
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
