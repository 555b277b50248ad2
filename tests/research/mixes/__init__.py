"""Where mixes pay: every preset under three limits, five quotas and two ways to run."""
