#: main
@HEAD@

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
    condition     = var.place >= 0 && var.place <= @LAST@
    error_message = "The plan has places 0 to @LAST@."
  }
}

@ON_DEMAND@
locals {
  name          = @NAME@
  longest_run_s = @LONGEST_S@ # since the first start
  disk_gb       = @DISK_GB@
  @DISK_SPEED@
  # Where the machines are requested, in this order.
  places = [
    @PLACES@
  ]
  @MACHINES@
  # Without caches, checkpoints and Terraform's own files.
  code = toset([
    for path in fileset(var.code_dir, "**") : path
    if !can(regex("(^|/)([.]|__pycache__)|[.]tfstate|[.]tf$", path))
  ])
  script = file("${path.module}/@MACHINE@")
  head = join("\n", [
    "#!/usr/bin/env bash",
    "RUN_ID=$(date -d '${terraform_data.began.output}' +%s)",
    "LEFT_S=$(( RUN_ID + ${local.longest_run_s} - $(date +%s) ))",
    "export RUN_ID LEFT_S NNODES=${local.nodes}",
    "export CHECKPOINT_BUCKET=${var.checkpoint_bucket}",
    @CHANGED@
  ])
}

# When the first machine was requested: the cap counts from it, through all applies.
resource "terraform_data" "began" {
  input = timestamp()
  lifecycle {
    ignore_changes = [input]
  }
}

#: on_demand
variable "on_demand" {
  description = "Whether the fallback has taken over"
  type        = bool
  default     = false
}

#: disk_of_gcp
disk_type     = can(regex("@HYPERDISK@", local.machine_type)) ? "hyperdisk-balanced" : "pd-balanced"
#: disk_of_aws
fast_disk     = @FAST@ # else 125 MB/s
#: machines
place        = local.places[var.place]
machine_type = @TYPE@
nodes        = @NODES@
spot         = @SPOT@
#: machines_and_fallback
fallback_places = [
  @PLACES@
]
# A shorter list is repeated.
place        = var.on_demand ? element(local.fallback_places, var.place) : element(local.places, var.place)
machine_type = var.on_demand ? @LATER_TYPE@ : @TYPE@
nodes        = var.on_demand ? @LATER_NODES@ : @NODES@
spot         = var.on_demand ? false : @SPOT@
