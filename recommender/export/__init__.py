"""Files that run a plan: for SkyPilot, dstack, Slurm and torchrun."""
