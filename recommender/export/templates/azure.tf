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
