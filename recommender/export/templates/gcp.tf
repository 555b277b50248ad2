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

  metadata_startup_script = "${local.head}\n${local.script}"
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
