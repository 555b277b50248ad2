"""The offers that may be rented: allowed offers, failover lists, quotas, spot laws, plan space."""
