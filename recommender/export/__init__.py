"""Files that run a plan: for schedulers, for the clouds own tools, for Terraform."""
