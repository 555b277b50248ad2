"""Lower bounds: what no plan of a cluster, and no cluster of a site, can be better than."""
