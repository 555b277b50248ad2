"""Microsoft Azure: retail prices, machines, quotas."""
