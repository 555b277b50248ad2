# llama3-8b-pretrain: 1x a3-highgpu-8g spot in gcp europe-north1, then europe-west9, then
# asia-south2.
# Estimate: 64 USD on average (9 runs in 10: 38 to 108), 8 h (9 runs in 10: 4.2 h to 14 h).
# Met with 99 % chance: done within 24 h of the first start.
# Spot is interrupted in 90 % of the runs; 4.2 times on average, and 1 run in 20 has 11 or more.
# List price 10.2 USD/h while everything runs.
# Written by recommend 0.1.0 from plan 1; catalog 2026-11, prices of 2026-08-21. Nothing is rented
# until you start it:
#   terraform -chdir=run init && terraform -chdir=run apply -var checkpoint_bucket=YOUR-BUCKET -var code_dir="$PWD" -var project=YOUR-PROJECT
# Quotas needed first:
#   "Preemptible NVIDIA H100 GPUs" of 8 GPUs in europe-north1 (new accounts have 0)
# Needed first: the bucket, and Terraform 1.5 or OpenTofu with credentials of the cloud.
# Terraform creates missing machines only on apply: apply again after an interruption; with -var
# place=1 and so on where the place before has no capacity, which ends what runs there; terraform
# destroy at the end. Keep its state, which holds the first start.
# Fallback: 1x a3-highgpu-8g on-demand in europe-north1, when the time left is down to the work
# left on them + 24 min; needed in 1 % of the runs. You make the switch: terraform apply -var
# on_demand=true.
# CODE_DIR's files (variable code_dir) are put into the bucket for the machines.
# Left to Terraform: 61 USD on average, 9 h, limits met with 91 % chance (no switch).
# Checkpoints (checkpoint-* and step-* in CHECKPOINT_DIR) are written to the disk and uploaded
# behind the training by gcloud storage, counted at 298 MB/s a machine, back at 300 (restore:
# gcloud storage cp (skypilot issue 8457, 2025-12); upload: 100 GB in 336 s in parallel parts,
# n2-standard-4 (cloud-pipeline issue 1374, 2020-09); 8B to a bucket took 6 min (torchtitan issue
# 1301)). What an interruption cuts off is not resumed from: the one before is.
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
    condition     = var.place >= 0 && var.place <= 2
    error_message = "The plan has places 0 to 2."
  }
}

variable "on_demand" {
  description = "Whether the fallback has taken over"
  type        = bool
  default     = false
}

locals {
  name          = "llama3-8b-pretrain"
  longest_run_s = 86400 # since the first start
  disk_gb       = 436
  disk_type     = can(regex("^(a3-ultragpu|a4x?|g4)-", local.machine_type)) ? "hyperdisk-balanced" : "pd-balanced"
  # Where the machines are requested, in this order.
  places = [
    { region = "europe-north1", zone = "europe-north1-a" },
    { region = "europe-west9", zone = "europe-west9-a" },
    { region = "asia-south2", zone = "asia-south2-a" },
  ]
  fallback_places = [
    { region = "europe-north1", zone = "europe-north1-a" },
  ]
  # A shorter list is repeated.
  place        = var.on_demand ? element(local.fallback_places, var.place) : element(local.places, var.place)
  machine_type = var.on_demand ? "a3-highgpu-8g" : "a3-highgpu-8g"
  nodes        = var.on_demand ? 1 : 1
  spot         = var.on_demand ? false : true
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
    var.on_demand ? "export CHECKPOINT_INTERVAL_S=1200 CHECKPOINT_INTERVAL_STEPS=571 USD_PER_HOUR=97" : "",
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
  description = "Family of images with PyTorch, of the project deeplearning-platform-release"
  type        = string
  default     = "pytorch-2-9-cu129-ubuntu-2204-nvidia-580"
}

provider "google" {
  project = var.project
}

data "google_compute_image" "train" {
  family  = var.image_family
  project = "deeplearning-platform-release"
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
