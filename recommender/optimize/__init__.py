"""The choice of machines: exact search over clusters, lower bounds, a linear program."""
