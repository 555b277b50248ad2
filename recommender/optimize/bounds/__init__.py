"""Lower bounds of the cost and time of plans of a cluster and clusters of a site."""
