"""Google Cloud: machines composed from the price list of Compute Engine, quotas."""
