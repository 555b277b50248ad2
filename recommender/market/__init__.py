"""What may be rented: allowed offers, failover lists, quotas and spot laws, as a plan space."""
